//! Keeping what different threads write apart.

use std::ops::Deref;

/// A value with the cache lines around it to itself. So a write to the value slows no thread that
/// reads another value. Processors fetch lines in pairs: hence two lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CacheLine<T>(pub T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
