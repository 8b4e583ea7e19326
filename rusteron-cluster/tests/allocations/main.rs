//! The message path does not allocate, on the thread that uses it.

#![cfg(unix)]

mod client;
#[cfg(feature = "service")]
mod service;

use rusteron_test_support::CountingAllocator;
pub(crate) use rusteron_test_support::without_allocating;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn counter_counts() {
    let counted = std::panic::catch_unwind(|| without_allocating("a box", || Box::new(1)));
    assert!(counted.is_err());
}
