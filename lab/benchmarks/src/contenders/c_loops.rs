//! The loops in C, `c/loops.c`: run by threads of this program, on its publications and
//! subscriptions.

use std::ffi::c_void;
use std::ptr;

use rusteron_client::{ExclusivePublication, IdleStrategy, OfferError, PollError, Subscription};
use rusteron_sys as sys;

use crate::contenders::c_functions::{CLOSED, CSubscription, offer_error};
use crate::measuring::measurement::{FRAGMENT_LIMIT, Plan};
use crate::measuring::publisher;
use crate::measuring::run::Run;
use crate::measuring::subscriber;

/// `rusteron_message_t`.
#[repr(C)]
struct CMessage {
    buffer: *const u8,
    length: usize,
    burst_length: usize,
}

/// `rusteron_idle_t`.
type Idle = unsafe extern "C" fn(clientd: *mut c_void, work_count: usize);

unsafe extern "C" {
    fn rusteron_publish(
        publication: *mut sys::aeron_exclusive_publication_t,
        message: *const CMessage,
        running: *const bool,
        idle: Idle,
        idle_clientd: *mut c_void,
        messages: *mut u64,
    ) -> i64;

    fn rusteron_receive(
        subscription: *mut sys::aeron_subscription_t,
        fragment_limit: usize,
        running: *const bool,
        received_bytes: *mut u64,
        idle: Idle,
        idle_clientd: *mut c_void,
        bytes: *mut u64,
    ) -> i32;
}

/// Publishes until the run is stopped, as [`publisher::publish`] does.
///
/// # Errors
/// Errors that do not pass by waiting.
pub fn publish(
    publication: &mut ExclusivePublication,
    message: &[u8],
    plan: &Plan,
    run: &Run,
) -> Result<u64, OfferError> {
    let mut idle = plan.idle.new_strategy();
    let (idle_function, idle_clientd) = idle_of(&mut idle);
    let burst_length = publisher::burst_length(message.len());
    let c_message = CMessage { buffer: message.as_ptr(), length: message.len(), burst_length };
    let mut messages = 0;
    // SAFETY: the publication is live, and `&mut` is its only user. All other pointers are to what
    // lives until the return; the flag, which other threads change, is read as volatile, which on
    // one byte is what a relaxed load is; the idle strategy is used by this call alone.
    let returned = unsafe {
        rusteron_publish(
            publication.as_ptr(),
            &c_message,
            run.running_flag().as_ptr(),
            idle_function,
            idle_clientd,
            &mut messages,
        )
    };
    if returned == 0 {
        return Ok(messages);
    }
    let max_message_length = || publication.constants().max_message_length;
    Err(offer_error(returned, message.len(), max_message_length))
}

/// Receives until the run is stopped, and then what had been published until then, as
/// [`subscriber::receive`] does.
///
/// # Errors
/// If the subscription was closed.
pub fn receive(subscription: Subscription, plan: &Plan, run: &Run) -> Result<u64, PollError> {
    let mut idle = plan.idle.new_strategy();
    let (idle_function, idle_clientd) = idle_of(&mut idle);
    let mut bytes = 0;
    // SAFETY: the subscription is live and this call its only user; for the rest as in `publish`.
    // The counter is written as volatile and aligned, by this thread alone, and read by others as
    // an atomic.
    let returned = unsafe {
        rusteron_receive(
            subscription.as_ptr(),
            FRAGMENT_LIMIT,
            run.running_flag().as_ptr(),
            run.received_bytes_counter().as_ptr(),
            idle_function,
            idle_clientd,
            &mut bytes,
        )
    };
    if returned != 0 {
        return Err(PollError::Closed(CLOSED));
    }
    // The rest is not measured.
    let mut subscription = CSubscription(subscription);
    subscriber::receive(&mut subscription, bytes, plan, &mut idle, run)
}

/// An idle strategy as C takes it.
fn idle_of<I: IdleStrategy>(idle: &mut I) -> (Idle, *mut c_void) {
    (idle_with::<I>, ptr::from_mut(idle).cast())
}

/// Idles with the strategy behind `clientd`.
///
/// # Safety
/// `clientd` points to an `I` that no other code uses meanwhile.
unsafe extern "C" fn idle_with<I: IdleStrategy>(clientd: *mut c_void, work_count: usize) {
    // SAFETY: by the contract.
    unsafe { (*clientd.cast::<I>()).idle(work_count) };
}
