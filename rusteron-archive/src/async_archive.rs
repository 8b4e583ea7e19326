//! Requests that do not block.
//!
//! An `AsyncArchive` owns its session, because C's blocking requests pass over the answers to other requests.
//!
//! - **Sending.** C's proxy encodes and offers a request. With one attempt it does not idle, so back pressure
//!   is an error of the call.
//! - **Answers.** `rusteron_archive_poll_messages` borrows the assembler of C's poller for one poll. Rust
//!   decodes the checked messages and finds the request by its correlation id. The session's lock is held
//!   meanwhile, so that the descriptors of a listing stay in order.
//! - **Other messages.** Signals, and errors without a request, go to the queue of the handlers. A malformed
//!   message names no request, so it fails the next poll of the session.
//! - **Loss.** A lost connection, or a closed client, fails all waiting requests. There is no other timeout.
//!
//! Response channels need a second publication and stay with `Archive`.

mod message;
mod requests;

pub use requests::Request;

use std::fmt;
use std::sync::Arc;

use rusteron_client::{Aeron, AsChannel, Position};
use rusteron_core::RecordingId;
use rusteron_core::channel::ChannelUse;
use rusteron_sys::archive as sys;

use crate::archive::{
    Archive, ReplayParams, ReplicationParams, SourceLocation, checked, fragment, with_raw,
};
use crate::async_archive::requests::{Answer, Expected, Requests};
use crate::checks::{Id, NULL_VALUE, not_negative, number_of, unless_null};
use crate::context::ArchiveContext;
use crate::error::{ArchiveError, Result};
use crate::ids::{
    ArchiveId, ControlSessionId, RecordingSubscriptionId, ReplaySessionId, ReplicationId,
};
use crate::recording_descriptor::{RecordingDescriptor, RecordingSubscriptionDescriptor};

type Proxy = *mut sys::aeron_archive_proxy_t;

/// A session with an archive whose requests do not wait for their answers.
///
/// A method sends a request and returns a [`Request`], which is polled or awaited. Any number of
/// requests can be under way, and be polled in any order. The archive does one listing at a time for
/// a session; it refuses others with
/// [`ActiveListing`](crate::ArchiveErrorKind::ActiveListing).
///
/// Polls do all of the work: [`poll`](Self::poll) and the poll of each request collect answers,
/// recording signals and errors that belong to no request. Signals and such errors go to the
/// [context's](crate::ArchiveContext::set_recording_signal_consumer) handlers. The session has no timeouts
/// but the caller's. The archive keeps the answers that it cannot send yet, until the session is polled.
///
/// It has the session for itself, because a request of [`Archive`] passes over the answers to others.
/// Threads can share it: each call holds a lock while it sends or collects. The session ends when
/// this and the last of its requests are dropped. Recordings and replays go on.
///
/// Each request allocates for its place in the list of waiting requests, and for descriptors.
///
/// # Errors
/// Methods that send return
/// - [`BackPressured`](crate::ArchiveErrorKind::BackPressured), which is
///   [retryable](ArchiveError::is_retryable): there is no space for the request now;
/// - [`NotConnected`](crate::ArchiveErrorKind::NotConnected): the connection was lost. Connect again;
/// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): an argument is out of its range, as
///   for the methods of [`Archive`];
/// - [`Reentrant`](crate::ArchiveErrorKind::Reentrant): called in a delegating invoker;
/// - [`Client`](crate::ArchiveErrorKind::Client): a channel is not valid, this is a callback of a
///   conductor, or the client is closed.
///
/// After such an error, nothing was sent. The archive's errors come with the answer, see
/// [`Request::poll`].
///
/// ```no_run
/// use rusteron_archive::{Archive, AsyncArchive, ArchiveContext, RecordingId, SourceLocation};
/// use rusteron_client::Aeron;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let aeron = Aeron::connect(rusteron_client::Context::new()?)?;
/// let mut context = ArchiveContext::new()?;
/// context
///     .set_control_request_channel("aeron:udp?endpoint=localhost:8010")?
///     .set_control_response_channel("aeron:udp?endpoint=localhost:0")?;
/// let archive = AsyncArchive::new(Archive::connect(&aeron, context)?);
///
/// let mut start = archive.start_recording("aeron:ipc", 1001, SourceLocation::Local, false)?;
/// let mut list = archive.recordings(RecordingId::new(0), 100)?;
/// let (mut subscription_id, mut recordings) = (None, None);
/// while subscription_id.is_none() || recordings.is_none() {
///     if subscription_id.is_none() {
///         subscription_id = start.poll()?;
///     }
///     if recordings.is_none() {
///         recordings = list.poll()?;
///     }
///     std::thread::yield_now(); // or go on with other work
/// }
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_archive_async_client_t`.
#[doc(alias("AsyncAeronArchive", "aeron_archive_async_client_t"))]
#[must_use = "the session is closed when its last handle is dropped"]
pub struct AsyncArchive {
    requests: Arc<Requests>,
}

impl AsyncArchive {
    /// Takes over a session, which [`Archive::connect`] or [`Archive::async_connect`] has made.
    pub fn new(archive: Archive) -> Self {
        Self { requests: Arc::new(Requests::new(archive)) }
    }

    /// The client that this session belongs to.
    pub fn aeron(&self) -> &Aeron {
        self.requests.archive.aeron()
    }

    /// The configuration of this session. Its message timeout and retry attempts have no effect here.
    pub fn context(&self) -> &ArchiveContext {
        self.requests.archive.context()
    }

    /// As [`Archive::archive_id`].
    pub fn archive_id(&self) -> Option<ArchiveId> {
        self.requests.archive.archive_id()
    }

    /// As [`Archive::control_session_id`].
    pub fn control_session_id(&self) -> ControlSessionId {
        self.requests.archive.control_session_id()
    }

    /// As [`Archive::is_connected`].
    pub fn is_connected(&self) -> bool {
        self.requests.archive.is_connected()
    }

    /// Collects at most 10 fragments of messages of the archive, without waiting. Returns the number
    /// of fragments.
    ///
    /// # Errors
    /// - [`NotConnected`](crate::ArchiveErrorKind::NotConnected): the connection was lost; all waiting
    ///   requests have failed with this error;
    /// - [`MalformedMessage`](crate::ArchiveErrorKind::MalformedMessage): a message was passed over,
    ///   in this poll or in a request's. The request that it answers never has an outcome;
    /// - [`Client`](crate::ArchiveErrorKind::Client) and [`Reentrant`](crate::ArchiveErrorKind::Reentrant),
    ///   as for the type.
    ///
    /// Corresponds to `aeron_archive_async_client_poll`.
    #[doc(alias = "aeron_archive_async_client_poll")]
    pub fn poll(&self) -> Result<usize> {
        let polled = self.requests.poll();
        match self.requests.take_fault() {
            Some(fault) if polled.is_ok() => Err(fault),
            _ => polled,
        }
    }

    /// As [`Archive::start_recording`].
    pub fn start_recording(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> Result<Request<RecordingSubscriptionId>> {
        let channel = channel.to_c_string(ChannelUse::Subscription)?;
        let is_local = source_location == SourceLocation::Local;
        // SAFETY: `send` passes the live structure; the channel lives during the call.
        self.send("start_recording", None, number, |proxy, id| unsafe {
            sys::aeron_archive_proxy_start_recording(
                proxy,
                channel.as_ptr(),
                stream_id,
                is_local,
                auto_stop,
                id,
            )
        })
    }

    /// As [`Archive::extend_recording`].
    pub fn extend_recording(
        &self,
        recording_id: RecordingId,
        channel: impl AsChannel,
        stream_id: i32,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> Result<Request<RecordingSubscriptionId>> {
        let channel = channel.to_c_string(ChannelUse::Subscription)?;
        let is_local = source_location == SourceLocation::Local;
        let about = Some(("recording_id", recording_id.get()));
        // SAFETY: as in `start_recording`.
        self.send("extend_recording", about, number, |proxy, id| unsafe {
            sys::aeron_archive_proxy_extend_recording(
                proxy,
                recording_id.get(),
                channel.as_ptr(),
                stream_id,
                is_local,
                auto_stop,
                id,
            )
        })
    }

    /// As [`Archive::stop_recording`].
    pub fn stop_recording(&self, channel: impl AsChannel, stream_id: i32) -> Result<Request<()>> {
        let channel = channel.to_c_string(ChannelUse::Subscription)?;
        // SAFETY: as in `start_recording`.
        self.send("stop_recording", None, drop, |proxy, id| unsafe {
            sys::aeron_archive_proxy_stop_recording(proxy, id, channel.as_ptr(), stream_id)
        })
    }

    /// As [`Archive::start_replay`], but refuses response channels, which need a session of their own.
    pub fn start_replay(
        &self,
        recording_id: RecordingId,
        replay_channel: impl AsChannel,
        replay_stream_id: i32,
        params: ReplayParams,
    ) -> Result<Request<ReplaySessionId>> {
        const OPERATION: &str = "start_replay";
        let (channel, is_response) = checked(&replay_channel)?;
        if is_response {
            let text = "replay_channel: a response channel needs a session that blocks";
            return Err(ArchiveError::invalid(OPERATION, text));
        }
        let mut params = params.to_raw()?;
        let about = Some(("recording_id", recording_id.get()));
        // SAFETY: `send` passes the live structure; channel and parameters live during the call.
        self.send(OPERATION, about, number, |proxy, id| unsafe {
            sys::aeron_archive_proxy_replay(
                proxy,
                id,
                recording_id.get(),
                channel.as_ptr(),
                replay_stream_id,
                &mut params,
            )
        })
    }

    /// As [`Archive::stop_replay`].
    pub fn stop_replay(&self, replay_session_id: ReplaySessionId) -> Result<Request<()>> {
        // The id can be negative, so it is not given as one that must not be.
        // SAFETY: `send` passes the live structure.
        self.send("stop_replay", None, drop, |proxy, id| unsafe {
            sys::aeron_archive_proxy_stop_replay(proxy, id, replay_session_id.into())
        })
    }

    /// As [`Archive::stop_all_replays`].
    pub fn stop_all_replays(&self, recording_id: Option<RecordingId>) -> Result<Request<()>> {
        let about = recording_id.map(|id| ("recording_id", id.get()));
        self.send("stop_all_replays", about, drop, |proxy, id| {
            let recording_id = recording_id.map_or(NULL_VALUE, RecordingId::get);
            // SAFETY: `send` passes the live structure.
            unsafe { sys::aeron_archive_proxy_stop_all_replays(proxy, id, recording_id) }
        })
    }

    /// Asks for one recording, or `None` if there is none with this id.
    ///
    /// Corresponds to `aeron_archive_async_client_try_send_list_recording_request`.
    #[doc(alias = "aeron_archive_async_client_try_send_list_recording_request")]
    pub fn recording(
        &self,
        recording_id: RecordingId,
    ) -> Result<Request<Option<RecordingDescriptor>>> {
        let about = Some(("recording_id", recording_id.get()));
        let found = |mut answer: Answer| answer.recordings.pop();
        // SAFETY: `send_listing` passes the live structure.
        self.send_listing("recording", about, Expected::Recordings(1), found, |proxy, id| unsafe {
            sys::aeron_archive_proxy_list_recording(proxy, id, recording_id.get())
        })
    }

    /// Asks for at most `count` recordings from an id on, by ascending id. `count` is at least 1.
    ///
    /// If there are fewer, they were the last.
    pub fn recordings(
        &self,
        from_recording_id: RecordingId,
        count: i32,
    ) -> Result<Request<Vec<RecordingDescriptor>>> {
        const OPERATION: &str = "recordings";
        let about = Some(("from_recording_id", from_recording_id.get()));
        let expected = Expected::Recordings(at_least_one(OPERATION, count)?);
        // SAFETY: `send_listing` passes the live structure.
        self.send_listing(OPERATION, about, expected, recordings, |proxy, id| unsafe {
            sys::aeron_archive_proxy_list_recordings(proxy, id, from_recording_id.get(), count)
        })
    }

    /// As [`recordings`](Self::recordings), of those with this stream id whose original channel
    /// contains a text of at most 4,095 bytes.
    pub fn recordings_for_uri(
        &self,
        from_recording_id: RecordingId,
        count: i32,
        channel_fragment: &str,
        stream_id: i32,
    ) -> Result<Request<Vec<RecordingDescriptor>>> {
        const OPERATION: &str = "recordings_for_uri";
        let channel_fragment = fragment(channel_fragment)?;
        let about = Some(("from_recording_id", from_recording_id.get()));
        let expected = Expected::Recordings(at_least_one(OPERATION, count)?);
        // SAFETY: `send_listing` passes the live structure; the text lives during the call.
        self.send_listing(OPERATION, about, expected, recordings, |proxy, id| unsafe {
            sys::aeron_archive_proxy_list_recordings_for_uri(
                proxy,
                id,
                from_recording_id.get(),
                count,
                channel_fragment.as_ptr(),
                stream_id,
            )
        })
    }

    /// Asks for at most `count` of the subscriptions that [`Archive::recording_subscriptions`] lists,
    /// from an index in the archive's list on. `count` is at least 1.
    pub fn recording_subscriptions(
        &self,
        from_index: i32,
        count: i32,
        channel_fragment: &str,
        stream_id: Option<i32>,
    ) -> Result<Request<Vec<RecordingSubscriptionDescriptor>>> {
        const OPERATION: &str = "recording_subscriptions";
        not_negative(OPERATION, "from_index", from_index)?;
        let channel_fragment = fragment(channel_fragment)?;
        let expected = Expected::Subscriptions(at_least_one(OPERATION, count)?);
        let found = |answer: Answer| answer.subscriptions;
        // SAFETY: as in `recordings_for_uri`.
        self.send_listing(OPERATION, None, expected, found, |proxy, id| unsafe {
            sys::aeron_archive_proxy_list_recording_subscriptions(
                proxy,
                id,
                from_index,
                count,
                channel_fragment.as_ptr(),
                stream_id.unwrap_or(0),
                stream_id.is_some(),
            )
        })
    }

    /// As [`Archive::find_last_matching_recording`].
    pub fn find_last_matching_recording(
        &self,
        min_recording_id: RecordingId,
        channel_fragment: &str,
        stream_id: i32,
        session_id: i32,
    ) -> Result<Request<Option<RecordingId>>> {
        let channel_fragment = fragment(channel_fragment)?;
        let about = Some(("min_recording_id", min_recording_id.get()));
        // SAFETY: `send` passes the live structure; the text lives during the call.
        self.send("find_last_matching_recording", about, optional, |proxy, id| unsafe {
            sys::aeron_archive_proxy_find_last_matching_recording(
                proxy,
                id,
                min_recording_id.get(),
                channel_fragment.as_ptr(),
                stream_id,
                session_id,
            )
        })
    }

    /// As [`Archive::replicate`], also with tags. The archive reports the end of the replication, and
    /// its errors, to the context's handlers.
    #[doc(alias = "taggedReplicate")]
    pub fn replicate(
        &self,
        src_recording_id: RecordingId,
        src_control_channel: impl AsChannel,
        src_control_stream_id: i32,
        params: &ReplicationParams,
    ) -> Result<Request<ReplicationId>> {
        let about = Some(("src_recording_id", src_recording_id.get()));
        with_raw(&src_control_channel, params, |src_control_channel, raw_params| {
            // SAFETY: `send` passes the live structure; all texts live during the call, and C
            // keeps none of them.
            self.send("replicate", about, number, |proxy, id| unsafe {
                sys::aeron_archive_proxy_replicate(
                    proxy,
                    id,
                    src_recording_id.get(),
                    src_control_stream_id,
                    src_control_channel.as_ptr(),
                    raw_params,
                )
            })
        })?
    }

    /// As [`Archive::update_channel`](crate::Archive::update_channel).
    pub fn update_channel(
        &self,
        recording_id: RecordingId,
        new_channel: impl AsChannel,
    ) -> Result<Request<()>> {
        let channel = new_channel.to_c_string(ChannelUse::Subscription)?;
        let about = Some(("recording_id", recording_id.get()));
        // SAFETY: `send` passes the live structure; the channel lives during the call.
        self.send("update_channel", about, drop, |proxy, id| unsafe {
            sys::aeron_archive_proxy_update_channel(proxy, id, recording_id.get(), channel.as_ptr())
        })
    }

    /// Sends a request that is answered by one response. `call` gets the sender and the request's
    /// correlation id.
    fn send<T>(
        &self,
        operation: &'static str,
        about: Option<Id>,
        convert: fn(Answer) -> T,
        call: impl FnOnce(Proxy, i64) -> bool,
    ) -> Result<Request<T>> {
        self.send_listing(operation, about, Expected::Response, convert, call)
    }

    fn send_listing<T>(
        &self,
        operation: &'static str,
        about: Option<Id>,
        expected: Expected,
        convert: fn(Answer) -> T,
        call: impl FnOnce(Proxy, i64) -> bool,
    ) -> Result<Request<T>> {
        let correlation_id = self.requests.send(operation, about, expected, call)?;
        Ok(Request::new(Arc::clone(&self.requests), correlation_id, convert))
    }
}

/// Requests about an id, and perhaps a second id or a position, which must not be negative:
/// `name(id: Type, second: Type) -> answer, conversion, C's function`.
macro_rules! requests_by_id {
    ($(
        $name:ident($id:ident: $type:ty $(, $second:ident: $other:ty)?) -> $answer:ty,
            $convert:expr, $call:ident;
    )+) => {
        $(#[doc = concat!("As [`Archive::", stringify!($name), "`].")]
        pub fn $name(&self, $id: $type $(, $second: $other)?) -> Result<Request<$answer>> {
            let operation = stringify!($name);
            let $id = i64::from($id);
            $(let $second = i64::from($second);)?
            $(not_negative(operation, stringify!($second), $second)?;)?
            // SAFETY: `send` passes the live structure.
            self.send(operation, Some((stringify!($id), $id)), $convert, |proxy, id| unsafe {
                sys::$call(proxy, id, $id $(, $second)?)
            })
        })+
    };
}

impl AsyncArchive {
    requests_by_id! {
        stop_recording_subscription(subscription_id: RecordingSubscriptionId) -> (), drop,
            aeron_archive_proxy_stop_recording_subscription;
        try_stop_recording_by_identity(recording_id: RecordingId) -> bool, is_not_zero,
            aeron_archive_proxy_stop_recording_by_identity;
        recording_position(recording_id: RecordingId) -> Option<Position>, optional,
            aeron_archive_proxy_get_recording_position;
        start_position(recording_id: RecordingId) -> Position, number,
            aeron_archive_proxy_get_start_position;
        stop_position(recording_id: RecordingId) -> Option<Position>, optional,
            aeron_archive_proxy_get_stop_position;
        max_recorded_position(recording_id: RecordingId) -> Position, number,
            aeron_archive_proxy_get_max_recorded_position;
        stop_replication(replication_id: ReplicationId) -> (), drop,
            aeron_archive_proxy_stop_replication;
        truncate_recording(recording_id: RecordingId, position: Position) -> u64, count,
            aeron_archive_proxy_truncate_recording;
        purge_recording(recording_id: RecordingId) -> u64, count,
            aeron_archive_proxy_purge_recording;
        detach_segments(recording_id: RecordingId, new_start_position: Position) -> (), drop,
            aeron_archive_proxy_detach_segments;
        delete_detached_segments(recording_id: RecordingId) -> u64, count,
            aeron_archive_proxy_delete_detached_segments;
        purge_segments(recording_id: RecordingId, new_start_position: Position) -> u64, count,
            aeron_archive_proxy_purge_segments;
        attach_segments(recording_id: RecordingId) -> u64, count,
            aeron_archive_proxy_attach_segments;
        migrate_segments(
            src_recording_id: RecordingId, dst_recording_id: RecordingId) -> u64, count,
            aeron_archive_proxy_migrate_segments;
    }
}

fn number<T: From<i64>>(answer: Answer) -> T {
    answer.relevant_id.into()
}

fn is_not_zero(answer: Answer) -> bool {
    answer.relevant_id != 0
}

fn count(answer: Answer) -> u64 {
    number_of(answer.relevant_id)
}

fn optional<T: From<i64>>(answer: Answer) -> Option<T> {
    unless_null(answer.relevant_id).map(T::from)
}

fn recordings(answer: Answer) -> Vec<RecordingDescriptor> {
    answer.recordings
}

/// Checks the length of a listing, which would have no end otherwise.
fn at_least_one(operation: &'static str, count: i32) -> Result<usize> {
    usize::try_from(count).ok().filter(|count| *count > 0).ok_or_else(|| {
        ArchiveError::invalid(operation, format!("count: {count}; the minimum is 1"))
    })
}

impl fmt::Debug for AsyncArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncArchive").field(&self.requests.archive).finish()
    }
}
