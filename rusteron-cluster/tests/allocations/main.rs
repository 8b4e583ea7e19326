//! The message path does not allocate, on the thread that uses it.

#![cfg(unix)]

mod client;
#[cfg(feature = "service")]
mod service;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's, which counts the calls of each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes each call on to `System`, which is a valid allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees what `GlobalAlloc::alloc` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees what `GlobalAlloc::dealloc` asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Panics if the call allocates; growing is counted too, as the default `realloc` allocates anew.
pub(crate) fn without_allocating<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let before = ALLOCATIONS.get();
    let result = call();
    assert_eq!(ALLOCATIONS.get() - before, 0, "allocations of {what}");
    result
}

#[test]
fn counter_counts() {
    let counted = std::panic::catch_unwind(|| without_allocating("a box", || Box::new(1)));
    assert!(counted.is_err());
}
