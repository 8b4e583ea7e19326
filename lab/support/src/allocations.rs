//! Counting of allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which counts the calls of each thread. A test makes it its program's `#[global_allocator]`.
pub struct CountingAllocator;

// SAFETY: passes each call on to `System`, which is a valid allocator. Counting changes nothing of it.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees a valid layout (`GlobalAlloc::alloc`).
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees memory of `alloc` with this layout (`GlobalAlloc::dealloc`).
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Panics if the call allocates; growing is counted too, as the default `realloc` allocates anew.
pub fn without_allocating<T>(what: &str, call: impl FnOnce() -> T) -> T {
    let before = ALLOCATIONS.get();
    let result = call();
    assert_eq!(ALLOCATIONS.get() - before, 0, "allocations of {what}");
    result
}
