//! A pointer that another thread may use.

/// A pointer on its way to another thread.
///
/// The code that wraps the pointer guarantees that the other thread may use it.
#[derive(Debug)]
pub struct SendPtr<T>(pub *mut T);

// SAFETY: a pointer by itself does nothing; see above for its use.
unsafe impl<T> Send for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// Returns the pointer. This is a method, so closures capture the wrapper and not the pointer
    /// in it.
    pub fn get(&self) -> *mut T {
        self.0
    }
}
