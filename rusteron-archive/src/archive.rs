//! A session with an archive, and its requests by subject.
//!
//! `Archive` is the C archive client on a client of `rusteron-client`, whose handle it holds. Recorded
//! publications and the subscriptions of replays are added through that client, so all handles are of one kind
//! and have one owner; C sends the request only. The context belongs to the session, because C's copy points
//! into it.
//!
//! - **One request at a time.** Rust holds a lock during a C call. Without a conductor thread, it also holds
//!   the lock of the conductor's work, which C does while it waits. In a conductor's callback, a request
//!   returns an error.
//! - **No error handler in listings**, because C passes unterminated texts to it there.
//! - **Absent ids are `None`.** C writes an absent recording id as -1, which also means "all recordings". So
//!   requests refuse negative ids and name the argument.
//! - **Checked messages.** C trusts lengths and assumes the blocks of its own schema version. Each C file that
//!   decodes messages therefore polls through a guard (`rusteron_archive_messages.c` of `rusteron-sys`), which
//!   gives it checked copies. A malformed message fails the poll and does not come again.

pub(crate) mod connect;
mod listing;
mod recording;
mod replay;
mod replication;
mod segments;

pub use connect::AsyncArchiveConnect;
pub(crate) use listing::fragment;
pub use listing::{Listing, RecordingSubscriptions, Recordings};
pub use recording::SourceLocation;
pub(crate) use replay::checked;
pub use replay::{ReplayLength, ReplayParams};
pub use replication::ReplicationParams;
pub(crate) use replication::with_raw;

use std::ffi::{c_char, c_int};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use rusteron_client::raw_client::RawClient;
use rusteron_client::{Aeron, Error};
use rusteron_core::ffi::{Fallible, lossy};
use rusteron_sys::archive as sys;

use crate::checks::{Id, forbid_reentry, is_entered, not_negative, unless_null};
use crate::context::ArchiveContext;
use crate::error::{ArchiveError, ArchiveErrorKind, Result, phrases};
use crate::ids::{ArchiveId, ControlSessionId};

/// A session with an archive. Starts, stops, lists and replays recordings.
///
/// Threads can share a session. Requests are sent and answered one at a time. Each request blocks
/// until the archive has answered, or
/// - while requests of other threads are under way, all of which can come first. If the archive
///   does not answer, the last of n threads waits n times as long as one thread. Without a
///   conductor thread, a client does one thing at a time for all of its sessions and its other
///   uses;
/// - then while there is no space to send the request, for as many idles as there are [retry
///   attempts](ArchiveContext::message_retry_attempts);
/// - then until the [message timeout](ArchiveContext::message_timeout) is over. In a listing, the timeout
///   begins again with each item. A replay over a response channel is two requests.
///
/// A method that is called in a callback of a conductor returns an error instead.
///
/// Ids of recordings, subscriptions and replications are not negative. Positions, which count bytes
/// of a stream, are not negative either. Given a negative one, a method sends no request and
/// returns [`ArchiveErrorKind::InvalidArgument`] with the name of the argument. For C's -1, this
/// API has `None`.
///
/// A session keeps its client open. Dropping the session tells the archive that the session is
/// over, and does not wait. Recordings and replays go on.
///
/// A message of the archive is checked before it is decoded. The method that polls a malformed
/// message returns [`ArchiveErrorKind::MalformedMessage`] with the name of the message and of the
/// field. The message is passed over, and the next method works as usual. The caller cannot know if
/// the archive has carried out the request.
///
/// When the archive goes away, the next method that sends a request returns
/// [`ArchiveErrorKind::NotConnected`], and so does every later one. Connecting again is up to the
/// caller; [`aeron`](Self::aeron) is the client for it.
///
/// ```no_run
/// use rusteron_archive::{Archive, ArchiveContext, ReplayParams, SourceLocation};
/// use rusteron_client::Aeron;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let aeron = Aeron::connect(rusteron_client::Context::new()?)?;
/// let mut context = ArchiveContext::new()?;
/// context
///     .set_control_request_channel("aeron:udp?endpoint=localhost:8010")?
///     .set_control_response_channel("aeron:udp?endpoint=localhost:0")?;
/// let archive = Archive::connect(&aeron, context)?;
///
/// let (publication, recording_id) = archive.add_recorded_publication("aeron:ipc", 1001)?;
/// while let Err(error) = publication.offer(b"to be kept") {
///     if !error.is_retryable() {
///         return Err(error.into());
///     }
///     std::thread::yield_now();
/// }
/// println!("recording {recording_id}: {:?}", archive.recording(recording_id)?);
/// # Ok(())
/// # }
/// ```
#[doc(alias("AeronArchive", "aeron_archive_t"))]
#[must_use = "the session is closed when its last handle is dropped"]
pub struct Archive {
    connection: ManuallyDrop<Connection>,
    aeron: Aeron,
    /// Held during requests. C has a lock of its own, but context changes are outside of it.
    requests: Mutex<()>,
    was_connected: AtomicBool,
    archive_id: Option<ArchiveId>,
    control_session_id: ControlSessionId,
    /// The control request channel as the caller set it, for errors.
    channel: String,
}

/// The C structure, with its context and client.
struct Connection {
    raw: NonNull<sys::aeron_archive_t>,
    context: ArchiveContext,
}

// SAFETY: nothing in the C structure is tied to a thread, and there is one request at a time.
unsafe impl Send for Connection {}
// SAFETY: a shared reference reaches only constants without the lock.
unsafe impl Sync for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the structure is live and not used again. Its own copy of the context is freed
        // with it, and has pointers into the context that is dropped afterwards.
        unsafe { sys::aeron_archive_close(self.raw.as_ptr()) };
    }
}

impl Archive {
    /// Connects to the archive at the context's control request channel, over the media driver of
    /// `aeron`.
    ///
    /// Waits until the media driver has answered one request. Then waits for the archive to be
    /// there and to answer, for the context's message timeout at most.
    ///
    /// # Errors
    /// - [`ArchiveErrorKind::Timeout`]: no answer in time;
    /// - [`ArchiveErrorKind::AuthenticationRejected`]: the archive does not accept the credentials;
    /// - [`ArchiveErrorKind::IncompatibleVersion`]: the archive does not speak this client's version of
    ///   the protocol;
    /// - [`ArchiveErrorKind::MalformedMessage`]: an answer cannot be decoded;
    /// - [`ArchiveErrorKind::InvalidArgument`]: a channel is missing, there are no retry attempts, or the
    ///   credentials are too long;
    /// - [`ArchiveErrorKind::Refused`] or others, in the archive's words;
    /// - [`ArchiveErrorKind::Client`]: a channel is not valid, the supplier of credentials panicked, or the
    ///   client or the media driver failed.
    ///
    /// Corresponds to `aeron_archive_connect`.
    #[doc(alias = "aeron_archive_connect")]
    pub fn connect(aeron: &Aeron, context: ArchiveContext) -> Result<Self> {
        let mut connect = AsyncArchiveConnect::begin(aeron, context)?;
        RawClient::new(aeron).wait_for(|| connect.poll())
    }

    /// Starts connecting. Poll or await the result.
    ///
    /// Blocks for a moment, until the media driver has answered one request. Polling for the
    /// archive's answer does not block.
    ///
    /// # Errors
    /// - [`ArchiveErrorKind::InvalidArgument`]: a channel is missing, or there are no retry attempts;
    /// - [`ArchiveErrorKind::Client`]: a channel is not valid, or the client or the media driver
    ///   failed.
    ///
    /// Corresponds to `aeron_archive_async_connect`.
    #[doc(alias = "aeron_archive_async_connect")]
    pub fn async_connect(aeron: &Aeron, context: ArchiveContext) -> Result<AsyncArchiveConnect> {
        AsyncArchiveConnect::begin(aeron, context)
    }

    /// # Safety
    /// The structure is live, has no other owner, and was connected with its context and `aeron`.
    unsafe fn new(connection: Connection, aeron: Aeron, channel: String) -> Self {
        let raw = connection.raw.as_ptr();
        // SAFETY: live; both numbers never change.
        let (archive_id, control_session_id) = unsafe {
            (sys::aeron_archive_get_archive_id(raw), sys::aeron_archive_control_session_id(raw))
        };
        let connection = ManuallyDrop::new(connection);
        Self {
            connection,
            aeron,
            requests: Mutex::default(),
            was_connected: AtomicBool::new(true),
            archive_id: unless_null(archive_id).map(ArchiveId::new),
            control_session_id: ControlSessionId::new(control_session_id),
            channel,
        }
    }

    /// The client that this session belongs to.
    ///
    /// Corresponds to `aeron_archive_context_get_aeron`.
    #[doc(alias = "aeron_archive_context_get_aeron")]
    pub fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    /// The configuration of this session. Its channels are the given ones, with the parameters that
    /// connecting added.
    ///
    /// Corresponds to `aeron_archive_get_archive_context`.
    #[doc(alias = "aeron_archive_get_archive_context")]
    pub fn context(&self) -> &ArchiveContext {
        &self.connection.context
    }

    /// Returns the id that tells this archive from others. `None` if the archive is too old to have
    /// an id.
    ///
    /// Corresponds to `aeron_archive_get_archive_id`.
    #[doc(alias = "aeron_archive_get_archive_id")]
    pub fn archive_id(&self) -> Option<ArchiveId> {
        self.archive_id
    }

    /// The id that the archive has given this session.
    ///
    /// Corresponds to `aeron_archive_control_session_id`.
    #[doc(alias = "aeron_archive_control_session_id")]
    pub fn control_session_id(&self) -> ControlSessionId {
        self.control_session_id
    }

    /// Returns whether the archive's answers can reach this session.
    ///
    /// Sends no request: a killed archive counts as connected until its image has timed out. While
    /// a request is under way, returns the state from before that request.
    ///
    /// Corresponds to `aeron_subscription_is_connected`, of what
    /// `aeron_archive_get_control_response_subscription` returns.
    #[doc(alias(
        "aeron_subscription_is_connected",
        "aeron_archive_get_control_response_subscription"
    ))]
    pub fn is_connected(&self) -> bool {
        // Does not wait for the lock: this thread can be its owner, in a delegating invoker.
        let lock = match self.requests.try_lock() {
            Err(TryLockError::WouldBlock) => return self.was_connected.load(Ordering::Relaxed),
            Err(TryLockError::Poisoned(lock)) => lock.into_inner(),
            Ok(lock) => lock,
        };
        // SAFETY: both live as long as `self`; the lock keeps polls away.
        let is_connected = unsafe {
            let subscription =
                sys::aeron_archive_get_control_response_subscription(self.connection.raw.as_ptr());
            rusteron_sys::aeron_subscription_is_connected(subscription)
        };
        self.was_connected.store(is_connected, Ordering::Relaxed);
        drop(lock);
        is_connected
    }

    /// Polls for one message of the archive that no request is waiting for. Returns the number of
    /// recording signals in it: 0 or 1. Does not wait.
    ///
    /// The signals go to the context's
    /// [consumer](ArchiveContext::set_recording_signal_consumer), before this returns.
    ///
    /// # Errors
    /// - An error that the archive reports without a request, if there is no [error
    ///   handler](ArchiveContext::set_error_handler);
    /// - [`ArchiveErrorKind::NotConnected`]: the connection was lost.
    ///
    /// Corresponds to `aeron_archive_poll_for_recording_signals`.
    #[doc(alias = "aeron_archive_poll_for_recording_signals")]
    pub fn poll_for_recording_signals(&self) -> Result<usize> {
        // SAFETY: `ask` passes the live structure.
        let count: i32 = self.ask("poll_for_recording_signals", None, |count, raw| unsafe {
            sys::aeron_archive_poll_for_recording_signals(count, raw)
        })?;
        Ok(count.max(0) as usize)
    }

    /// Polls for one message of the archive that no request is waiting for. Returns its text if it
    /// is an error. Does not wait.
    ///
    /// # Errors
    /// [`ArchiveErrorKind::NotConnected`]: the connection was lost.
    ///
    /// Corresponds to `aeron_archive_poll_for_error_response`.
    #[doc(alias = "aeron_archive_poll_for_error_response")]
    pub fn poll_for_error_response(&self) -> Result<Option<String>> {
        let mut buffer = [0 as c_char; 4096];
        // SAFETY: `request` passes the live structure; C terminates what it writes.
        self.request("poll_for_error_response", None, |raw| unsafe {
            sys::aeron_archive_poll_for_error_response(raw, buffer.as_mut_ptr(), buffer.len())
        })?;
        // SAFETY: terminated, as C has written to it, or was filled with zeros.
        let text = unsafe { lossy(buffer.as_ptr()) };
        Ok((!text.is_empty()).then(|| text.into_owned()))
    }

    /// Polls for one message of the archive that no request is waiting for. Does not wait.
    ///
    /// # Errors
    /// - An error that the archive reports without a request, if there is no [error
    ///   handler](ArchiveContext::set_error_handler);
    /// - [`ArchiveErrorKind::NotConnected`]: the connection was lost.
    ///
    /// Corresponds to `aeron_archive_check_for_error_response`.
    #[doc(alias = "aeron_archive_check_for_error_response")]
    pub fn check_for_error_response(&self) -> Result<()> {
        // SAFETY: `request` passes the live structure.
        self.request("check_for_error_response", None, |raw| unsafe {
            sys::aeron_archive_check_for_error_response(raw)
        })
    }

    /// Closes the session, as dropping it does.
    ///
    /// Corresponds to `aeron_archive_close`.
    #[doc(alias = "aeron_archive_close")]
    pub fn close(self) {}

    /// Runs a C function on the session, and then passes C's reports to the handlers.
    ///
    /// The function's error is C's. `relevant_id` is the id that the request is about; a negative
    /// id is refused.
    pub(crate) fn request(
        &self,
        operation: &'static str,
        relevant_id: Option<Id>,
        call: impl FnOnce(*mut sys::aeron_archive_t) -> c_int,
    ) -> Result<()> {
        let call = |raw| call(raw).into_result();
        let outcome = self.undelivered_request(operation, relevant_id, call);
        self.deliver();
        outcome.map(drop)
    }

    /// As [`request`](Self::request), for a C function that writes an answer to its first argument.
    pub(crate) fn ask<T: Default>(
        &self,
        operation: &'static str,
        relevant_id: Option<Id>,
        call: impl FnOnce(&mut T, *mut sys::aeron_archive_t) -> c_int,
    ) -> Result<T> {
        let mut answer = T::default();
        self.request(operation, relevant_id, |raw| call(&mut answer, raw))?;
        Ok(answer)
    }

    /// Runs a C function on the session as [`request`](Self::request) does, without
    /// [`deliver`](Self::deliver). Lets the caller put things in order first, because a handler can
    /// panic.
    pub(crate) fn undelivered_request<T>(
        &self,
        operation: &'static str,
        relevant_id: Option<Id>,
        call: impl FnOnce(*mut sys::aeron_archive_t) -> Result<T, Error>,
    ) -> Result<T> {
        forbid_reentry(operation)?;
        if let Some((name, id)) = relevant_id {
            not_negative(operation, name, id)?;
        }
        let client = RawClient::new(&self.aeron);
        // A callback would wait for a request that waits for the client, which runs the callback.
        client.forbid_blocking(operation, None)?;
        let outcome = {
            let _lock = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            client.command(operation, || call(self.connection.raw.as_ptr()))
        };
        outcome?.map_err(|error| {
            let error = ArchiveError::from_c(&error, operation);
            self.explain(error).about(relevant_id.map(|(_name, id)| id))
        })
    }

    /// Replaces the text of an answer that did not come: C names its own functions and types, and not the archive.
    fn explain(&self, error: ArchiveError) -> ArchiveError {
        let channel = &self.channel;
        match error.kind() {
            ArchiveErrorKind::Timeout if phrases::is_without_answer(error.message()) => {
                let timeout = self.context().message_timeout();
                error
                    .saying(format!("no answer from the archive at {channel} within {timeout:.1?}"))
            }
            ArchiveErrorKind::NotConnected => {
                error.saying(format!("the archive at {channel} is gone; connect again"))
            }
            _ => error,
        }
    }

    /// Passes C's reports to the handlers. In the middle of a request it does nothing: the end of
    /// that request delivers them. A forked child leaves them to the parent.
    pub(crate) fn deliver(&self) {
        if !is_entered() && RawClient::new(&self.aeron).is_of_this_process() {
            self.connection.context.events().deliver();
        }
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        // SAFETY: taken once, and `self` is not used after.
        let connection = unsafe { ManuallyDrop::take(&mut self.connection) };
        RawClient::new(&self.aeron).release(move || drop(connection));
    }
}

rusteron_core::impl_debug!(Archive: archive_id(), control_session_id, is_connected());
