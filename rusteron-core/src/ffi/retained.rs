//! Pointers that outlive the call that gets them: a closure that C retains, a pointer for another thread.

use std::ffi::c_void;
use std::ptr::NonNull;

/// A closure at a fixed address, which C passes back to its callback. Dropping this value frees the
/// closure.
///
/// The closure is owned through a raw pointer. A `Box` would claim to be the only way to its
/// content, and C has another way.
#[allow(missing_debug_implementations, reason = "what it holds has none")]
pub struct Retained<F: ?Sized>(NonNull<Box<F>>);

// SAFETY: what is owned is a closure; moving it needs no more than the closure does.
unsafe impl<F: ?Sized + Send> Send for Retained<F> {}

impl<F: ?Sized> Retained<F> {
    /// Moves a closure to its fixed address.
    pub fn new(closure: Box<F>) -> Self {
        Self(NonNull::from(Box::leak(Box::new(closure))))
    }

    /// Returns the argument that C stores and passes to its callback.
    pub fn clientd(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    /// Returns the closure behind the argument that C passed to its callback.
    ///
    /// # Safety
    /// `clientd` comes from [`clientd`](Self::clientd) of the same `F`, and its `Retained` lives.
    pub unsafe fn shared<'a>(clientd: *mut c_void) -> &'a F {
        // SAFETY: the caller guarantees a live `Retained` of this type behind `clientd`.
        unsafe { &*clientd.cast::<Box<F>>() }
    }

    /// Like [`shared`](Self::shared), for closures that change their captured values.
    ///
    /// # Safety
    /// As for [`shared`](Self::shared); and no other reference to the closure is in use.
    pub unsafe fn exclusive<'a>(clientd: *mut c_void) -> &'a mut F {
        // SAFETY: the caller guarantees a live `Retained` behind `clientd`, and no other reference.
        unsafe { &mut *clientd.cast::<Box<F>>() }
    }
}

impl<F: ?Sized> Drop for Retained<F> {
    fn drop(&mut self) {
        // SAFETY: leaked by `new`, and owned by this value alone, which C outlives nowhere.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn closure_is_called_by_address_and_freed_once() {
        let captured = Arc::new(());
        let inner = Arc::clone(&captured);
        let mut calls = 0;
        let retained: Retained<dyn FnMut() -> i32 + Send> = Retained::new(Box::new(move || {
            calls += Arc::strong_count(&inner) as i32;
            calls
        }));
        let clientd = retained.clientd();
        let moved = retained;
        // SAFETY: the address is that of `moved`, which lives, and is used one call at a time.
        let results = unsafe {
            [(); 2].map(|()| Retained::<dyn FnMut() -> i32 + Send>::exclusive(clientd)())
        };
        assert_eq!(results, [2, 4]);
        drop(moved);
        assert_eq!(Arc::strong_count(&captured), 1);
    }
}
