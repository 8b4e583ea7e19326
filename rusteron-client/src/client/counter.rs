//! A counter that this client owns.

use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rusteron_core::cnc::counters_reader::{MAX_KEY_LENGTH, MAX_LABEL_LENGTH};
use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::{Fallible, SendPtr, last_error};
use rusteron_core::log_buffer::CounterValue;
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::registration::{CancelRequest, PollRequest, Registration, Resource, sealed};
use crate::client::subscription_callbacks::CallbackHandle;
use crate::constants::CounterConstants;

/// A number in shared memory that this client changes and all processes can read.
///
/// Threads share a counter by reference. Its functions are single atomic operations on the shared
/// number, without a call into C. Functions whose names end in `_release` are the cheapest writes,
/// and most of them need a single writer. For everything else, [`as_atomic`](Self::as_atomic)
/// returns the number itself.
///
/// A counter keeps its client open. Dropping it frees the counter, unless the counter is static.
/// Other processes then see the counter as [`Reclaimed`](crate::CounterState::Reclaimed). After a
/// while, 1 s by default, the driver can reuse its id for another counter.
///
/// # After the client is closed
/// A fatal error, such as the death of the driver, can close the client. The number then stays
/// readable and writable as long as this handle exists, but has no meaning any more. A driver that
/// is still alive has freed the counter, and can give it to another client. From then on, the
/// functions here work on a private number of this handle, which is 0 at first. Each function
/// compares the counter's registration id before it accesses the number. Long-running writers
/// should check [`is_closed`](Self::is_closed) now and then.
///
/// Made by [`Aeron::add_counter`](crate::Aeron::add_counter) and
/// [`Aeron::add_static_counter`](crate::Aeron::add_static_counter).
///
/// Corresponds to `aeron_counter_t`. C's users access the number through the address from
/// `aeron_counter_addr`. The operations here replace that, with the names and meanings of Java's
/// `AtomicCounter`.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// let orders = aeron.add_counter(1001, b"key", "orders received")?;
/// orders.increment();
/// assert_eq!(aeron.counters_reader().value(orders.counter_id()), Some(1));
/// # Ok(())
/// # }
/// ```
#[doc(alias("aeron_counter_t", "aeron_counter_addr", "AtomicCounter"))]
#[must_use = "the counter is closed when this is dropped"]
pub struct Counter {
    raw: NonNull<sys::aeron_counter_t>,
    shared: CounterValue,
    /// Replaces the shared number once the counter belongs to another client.
    detached: AtomicI64,
    constants: CounterConstants,
    client: Arc<Client>,
}

// SAFETY: nothing in the C structure is tied to a thread. The functions called on it read constants
// and an atomic flag, and the value is only accessed atomically.
unsafe impl Send for Counter {}
// SAFETY: as above; closing needs the only owner.
unsafe impl Sync for Counter {}

impl Counter {
    /// Greatest length of a key: 112 bytes.
    pub const MAX_KEY_LENGTH: usize = MAX_KEY_LENGTH;
    /// Greatest length of a label: 380 bytes.
    pub const MAX_LABEL_LENGTH: usize = MAX_LABEL_LENGTH;

    /// Returns the number itself, for operations and memory orders that have no function here.
    ///
    /// Each call looks the number up. If the driver times out this client, a reference that is
    /// retained for long can refer to another client's number.
    ///
    /// Corresponds to `aeron_counter_addr`.
    #[doc(alias = "aeron_counter_addr")]
    #[inline]
    pub fn as_atomic(&self) -> &AtomicI64 {
        if self.shared.is_owned() { self.shared.value() } else { &self.detached }
    }

    /// Returns the value, in one order with all sequentially consistent operations of all threads.
    #[inline]
    pub fn get(&self) -> i64 {
        self.as_atomic().load(Ordering::SeqCst)
    }

    /// Returns the value. Writes before a store of this value with release are visible after this
    /// load.
    ///
    /// Corresponds to `aeron_counter_get_acquire` in C's `aeron_counters_manager.h`.
    #[doc(alias = "aeron_counter_get_acquire")]
    #[inline]
    pub fn get_acquire(&self) -> i64 {
        self.as_atomic().load(Ordering::Acquire)
    }

    /// Returns the value, without any order. Java calls it opaque.
    #[inline]
    pub fn get_relaxed(&self) -> i64 {
        self.as_atomic().load(Ordering::Relaxed)
    }

    /// Sets the value, in one order with all sequentially consistent operations of all threads.
    #[inline]
    pub fn set(&self, value: i64) {
        self.as_atomic().store(value, Ordering::SeqCst);
    }

    /// Sets the value. Earlier writes are visible to threads that read the value with acquire.
    ///
    /// Corresponds to `aeron_counter_set_release` in C's `aeron_counters_manager.h`.
    #[doc(alias = "aeron_counter_set_release")]
    #[inline]
    pub fn set_release(&self, value: i64) {
        self.as_atomic().store(value, Ordering::Release);
    }

    /// Sets the value, without any order. Java calls it opaque.
    #[inline]
    pub fn set_relaxed(&self, value: i64) {
        self.as_atomic().store(value, Ordering::Relaxed);
    }

    /// Adds 1, and returns the value before. It wraps around.
    ///
    /// Corresponds to `aeron_counter_increment` in C's `aeron_counters_manager.h`.
    #[doc(alias = "aeron_counter_increment")]
    #[inline]
    pub fn increment(&self) -> i64 {
        self.get_and_add(1)
    }

    /// Subtracts 1, and returns the value before. It wraps around.
    #[inline]
    pub fn decrement(&self) -> i64 {
        self.get_and_add(-1)
    }

    /// Adds to the value, and returns the value before. It wraps around.
    ///
    /// Corresponds to `aeron_counter_get_and_add` in C's `aeron_counters_manager.h`.
    #[doc(alias = "aeron_counter_get_and_add")]
    #[inline]
    pub fn get_and_add(&self, amount: i64) -> i64 {
        self.as_atomic().fetch_add(amount, Ordering::SeqCst)
    }

    /// Adds 1 with release, and returns the value before. It wraps around.
    ///
    /// For a single writer, as [`get_and_add_release`](Self::get_and_add_release).
    ///
    /// Corresponds to `aeron_counter_increment_release` in C's `aeron_counters_manager.h`.
    #[doc(alias = "aeron_counter_increment_release")]
    #[inline]
    pub fn increment_release(&self) -> i64 {
        self.get_and_add_release(1)
    }

    /// Adds to the value, and returns the value before. It wraps around.
    ///
    /// This is a load and a store with release. If only one thread writes, it is cheaper than
    /// [`get_and_add`](Self::get_and_add). With several writers, some additions are lost.
    ///
    /// Corresponds to `aeron_counter_get_and_add_release` in C's `aeron_counters_manager.h`.
    #[doc(alias = "aeron_counter_get_and_add_release")]
    #[inline]
    pub fn get_and_add_release(&self, amount: i64) -> i64 {
        let before = self.get_relaxed();
        self.set_release(before.wrapping_add(amount));
        before
    }

    /// Sets the value, and returns the value before.
    #[inline]
    pub fn get_and_set(&self, value: i64) -> i64 {
        self.as_atomic().swap(value, Ordering::SeqCst)
    }

    /// Sets the value to `new` if it is `current`, and returns the value before.
    ///
    /// # Errors
    /// The actual value, if it is not `current`.
    #[inline]
    pub fn compare_exchange(&self, current: i64, new: i64) -> Result<i64, i64> {
        self.as_atomic().compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    /// Sets the value if the proposed value is greater, and returns whether it was.
    #[inline]
    pub fn propose_max(&self, proposed: i64) -> bool {
        self.as_atomic().fetch_max(proposed, Ordering::SeqCst) < proposed
    }

    /// Sets the value with release if the proposed value is greater, and returns whether it was.
    ///
    /// For a single writer: it is cheaper than [`propose_max`](Self::propose_max), which does not let
    /// a smaller proposal of another thread win.
    ///
    /// Corresponds to `aeron_counter_propose_max_release` in C's `aeron_counters_manager.h`.
    #[doc(alias = "aeron_counter_propose_max_release")]
    #[inline]
    pub fn propose_max_release(&self, proposed: i64) -> bool {
        let greater = self.get_relaxed() < proposed;
        if greater {
            self.set_release(proposed);
        }
        greater
    }

    /// Returns the counter's id, by which a [`CountersReader`](crate::CountersReader) finds the
    /// counter.
    pub fn counter_id(&self) -> i32 {
        self.constants.counter_id
    }

    /// Returns the registration id of the counter. The driver chooses it; for a static counter, the
    /// caller does.
    pub fn registration_id(&self) -> i64 {
        self.constants.registration_id
    }

    /// Sets the reference id: the registration id of the resource that the counter belongs to. It is 0
    /// at first. All processes can read it, see
    /// [`CounterSnapshot::reference_id`](crate::CounterSnapshot::reference_id).
    ///
    /// Set it before the value that makes readers look at the counter. Has no effect after the client
    /// is closed and the driver has freed the counter.
    ///
    /// Corresponds to Java's `AeronCounters.setReferenceId`.
    #[doc(alias = "setReferenceId")]
    pub fn set_reference_id(&self, reference_id: i64) {
        if self.shared.is_owned() {
            self.shared.set_reference_id(reference_id);
        }
    }

    /// Returns the counter's constants: its ids.
    ///
    /// Corresponds to `aeron_counter_constants`.
    #[doc(alias = "aeron_counter_constants")]
    pub fn constants(&self) -> &CounterConstants {
        &self.constants
    }

    /// Returns whether the counter is closed. Either a fatal error has closed the client, and the
    /// counter with it. Or the client was stopped for longer than its liveness timeout: the media
    /// driver has timed out the client, and has given the counter to another client.
    ///
    /// Corresponds to `aeron_counter_is_closed`.
    #[doc(alias = "aeron_counter_is_closed")]
    pub fn is_closed(&self) -> bool {
        // SAFETY: the counter is live; the function reads an atomic flag.
        let closed = unsafe { sys::aeron_counter_is_closed(self.raw.as_ptr()) };
        // C does not mark static counters.
        closed || self.client.is_closed() || !self.shared.is_owned()
    }
}

/// Starts adding a counter. With a registration id, the counter is static.
pub(crate) fn begin(
    client: &Arc<Client>,
    type_id: i32,
    key: &[u8],
    label: &str,
    registration_id: Option<i64>,
) -> Result<Registration<Counter>> {
    if type_id < 0 {
        let text = format!("type_id={type_id}: must be from 0 to {}, your own from 1000", i32::MAX);
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    // The C driver truncates longer keys and labels, and the Java driver rejects them.
    check_length("key", key.len(), MAX_KEY_LENGTH)?;
    check_length("label", label.len(), MAX_LABEL_LENGTH)?;
    let (key_start, label_start) = (key.as_ptr(), label.as_ptr().cast());
    // SAFETY: these are the functions that begin a counter; they copy key and label.
    unsafe {
        Registration::begin(client, None, |registering, client| match registration_id {
            None => sys::aeron_async_add_counter(
                registering,
                client,
                type_id,
                key_start,
                key.len(),
                label_start,
                label.len(),
            ),
            Some(registration_id) => sys::aeron_async_add_static_counter(
                registering,
                client,
                type_id,
                key_start,
                key.len(),
                label_start,
                label.len(),
                registration_id,
            ),
        })
    }
}

pub(crate) fn check_length(name: &str, length: usize, max: usize) -> Result<()> {
    if length > max {
        let text = format!("{name}: {length} bytes; the maximum is {max}");
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    Ok(())
}

impl Resource for Counter {}

// SAFETY: both functions are C's for requests of this kind.
unsafe impl sealed::Resource for Counter {
    type Raw = *mut sys::aeron_counter_t;

    const POLL: PollRequest<Self::Raw> = sys::aeron_async_add_counter_poll;
    /// For a static counter, C's documentation says that this fails. But it succeeds: it frees the
    /// client's record of the counter, and leaves the counter itself alone.
    const CANCEL: CancelRequest = sys::aeron_async_add_counter_cancel;

    unsafe fn from_raw(
        raw: Self::Raw,
        client: Arc<Client>,
        _callbacks: Option<CallbackHandle>,
    ) -> Result<Self> {
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let mut constants = MaybeUninit::uninit();
        // SAFETY: the counter is live, and C fills the structure in or fails.
        unsafe { sys::aeron_counter_constants(raw.as_ptr(), constants.as_mut_ptr()) }
            .into_result()?;
        // SAFETY: filled in just now.
        let constants = CounterConstants::from_raw(unsafe { constants.assume_init_ref() });
        // SAFETY: the counter is live, and the function reads a constant.
        let value = unsafe { sys::aeron_counter_addr(raw.as_ptr()) };
        if value.is_null() {
            // C's address for a negative id, with which no driver answers.
            return Err(Error::new(ErrorKind::Other, "the driver has given the counter no slot"));
        }
        // SAFETY: the driver allocated the record within the client's mapping of the values, where
        // records are 128 bytes long; the mapping goes with the context of the client, which lives
        // as long as the counter; and all processes write values in atomic steps.
        let shared = unsafe { CounterValue::new(value.cast(), constants.registration_id) };
        Ok(Self { raw, shared, detached: AtomicI64::new(0), constants, client })
    }
}

impl Counter {
    /// Returns the C counter, for C to own. The counter lives at most as long as the client.
    pub(crate) fn into_raw(self) -> *mut sys::aeron_counter_t {
        let this = ManuallyDrop::new(self);
        // SAFETY: read once, as `this` is neither dropped nor used again.
        drop(unsafe { ptr::read(&this.client) });
        this.raw.as_ptr()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let (raw, registration_id) = (SendPtr(self.raw.as_ptr()), self.constants.registration_id);
        self.client.release(move || {
            // SAFETY: the counter is live, and closing hands it over to the conductor, which frees it;
            // this was the only owner. If the client was ended by an error, nothing happens here and
            // the structure is freed with the client, or never if the counter is static.
            let closed = unsafe { sys::aeron_counter_close(raw.get(), None, ptr::null_mut()) };
            if let Err(error) = closed.into_result() {
                log::debug!("counter {registration_id}: {error}");
            }
        });
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter")
            .field("counter_id", &self.counter_id())
            .field("registration_id", &self.registration_id())
            .field("value", &self.get_relaxed())
            .field("client_is_closed", &self.client.is_closed())
            .finish()
    }
}
