//! Frames with lengths that no publisher writes, under the polls of Rust and of C. C's polls serve an archive's
//! client.

use std::ffi::c_void;
use std::os::unix::fs::FileExt;

use rusteron_client::Action;
use rusteron_sys as sys;
use rusteron_test_support::{await_that, connect, launch_with_long_timeouts, log_file, offer};

const TERM_LENGTH: i32 = 64 * 1024;

unsafe extern "C" fn receive(
    clientd: *mut c_void,
    _buffer: *const u8,
    length: usize,
    _header: *mut sys::aeron_header_t,
) {
    // SAFETY: the lengths of `poll_c`.
    unsafe { &mut *clientd.cast::<Vec<usize>>() }.push(length);
}

unsafe extern "C" fn control(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) -> sys::aeron_controlled_fragment_handler_action_t {
    // SAFETY: C passes a frame and the address that it was given.
    unsafe { receive(clientd, buffer, length, header) };
    // The frame comes again.
    sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_ABORT
}

/// Returns the lengths of the fragments that C's polls find.
fn poll_c(subscription: *mut sys::aeron_subscription_t) -> Vec<usize> {
    let mut lengths = Vec::<usize>::new();
    let clientd = (&raw mut lengths).cast();
    // SAFETY: the subscription is live, and used by this thread only. The handlers take the lengths.
    unsafe {
        sys::aeron_subscription_controlled_poll(subscription, Some(control), clientd, 10);
        sys::aeron_subscription_poll(subscription, Some(receive), clientd, 10);
    }
    lengths
}

#[test]
fn length_outside_term_is_unpublished() {
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let mut subscription =
        aeron.add_subscription("aeron:ipc?term-length=64k", 1).expect("a subscription");
    let mut publication =
        aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 1).expect("a publication");
    await_that("the image", || subscription.image_count() == 1 && publication.is_connected());
    let log = log_file(&driver, publication.original_registration_id());
    // Once at the beginning of the term, once near its end.
    let mut offset = 0;
    for _ in 0..2 {
        offer(&mut publication, b"message");
        let left = TERM_LENGTH - offset;
        let lengths = [i32::MIN, -64, 1, 31, left + 1, left + 32, 1 << 30, i32::MAX - 31, i32::MAX];
        for length in lengths {
            log.write_all_at(&length.to_ne_bytes(), offset as u64).expect("a length");
            assert_eq!(poll_c(subscription.as_ptr()), [0; 0], "{length} at {offset}");
            assert_eq!(subscription.poll(|_, _| unreachable!(), 10), Ok(0), "{length}");
            assert_eq!(subscription.controlled_poll(|_, _| Action::Continue, 10), Ok(0));
            assert_eq!(subscription.block_poll(|_, _, _| unreachable!(), 1 << 20), Ok(0));
        }
        log.write_all_at(&39_i32.to_ne_bytes(), offset as u64).expect("a length");
        assert_eq!(poll_c(subscription.as_ptr()), [7, 7]);
        offset += 64;
        while offset < TERM_LENGTH - 64 {
            offer(&mut publication, &[0; 32]);
            assert_eq!(subscription.poll(|_, _| (), 1), Ok(1));
            offset += 64;
        }
    }
}
