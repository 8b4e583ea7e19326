//! Keeping what different threads write apart.

use std::ops::Deref;

/// A value with the cache lines around it to itself, so that writing it slows nobody down who reads
/// something else. Processors fetch lines in pairs: hence two.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CacheLine<T>(pub T);

impl<T> Deref for CacheLine<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
