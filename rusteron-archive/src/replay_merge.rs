//! Merging a replay with the live stream.
//!
//! C's replay merge takes no lock and drops answers to other requests, so `ReplayMerge` owns session and
//! subscription. It returns both after C's merge is closed, because a pending command can point to the
//! subscription. Rust polls the messages. C drops recording signals, which `rusteron_replay_merge_do_work`
//! passes to their consumer.
//!
//! `aeron_archive_replay_merge_close` waits for the driver to remove a destination, for ever if the driver
//! dies. `rusteron_replay_merge_close` passes an idle strategy that forgets the destination once the client is
//! closed, and does not let a refused command prevent the close. The shim also releases the merge's reference
//! to an image before the subscription can be closed. C defines the structure in its source file, which the
//! shim includes with the functions renamed.

mod returned;
mod state;

pub use returned::{ReplayMergeCloseError, ReplayMergeError, Returned};
pub use state::ReplayMergeState;

use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use rusteron_client::raw_client::RawClient;
use rusteron_client::{
    AsChannel, ChannelUri, Error, ErrorKind, Header, Image, Position, Subscription,
};
use rusteron_core::RecordingId;
use rusteron_core::channel::ChannelUse;
use rusteron_core::ffi::callback::catch;
use rusteron_core::ffi::{Fallible, c_string, last_error, millis};
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::checks::not_negative;
use crate::error::{ArchiveError, ArchiveErrorKind, Result, phrases};

/// Replays a recording from a position, and joins the live stream when the replay has caught up.
/// Neither loses nor repeats a message.
///
/// Polls do all of its work. The subscription has a UDP channel with `control-mode=manual`. It has
/// two destinations in turn: one for the replay, one for the live stream. IPC cannot be merged.
///
/// The merge needs the session with the archive for itself, and takes ownership of it.
/// [`into_parts`](Self::into_parts) returns the session. The polls of the merge pass signals of the
/// session's recordings to the [consumer](crate::ArchiveContext::set_recording_signal_consumer).
///
/// A merge can be moved to another thread, and one thread uses it at a time. Neither creating nor
/// polling it waits for an answer of the archive. Polls do not do the work of a client without a
/// conductor thread: call [`Aeron::do_work`](rusteron_client::Aeron::do_work) between them.
///
/// Dropping a merge before it has merged stops the replay. If a command to the media driver is
/// pending, the drop waits for the answer, as long as the client is open. In a callback, another
/// thread does the waiting. If a handler of the archive's reports panics during the drop, the panic
/// is caught and logged.
///
/// ```no_run
/// use rusteron_archive::{Archive, RecordingId, ReplayMerge, Result};
///
/// # fn follow(archive: Archive, recording_id: RecordingId, session_id: i32) -> Result<()> {
/// let subscription = archive.aeron().add_subscription("aeron:udp?control-mode=manual", 1001)?;
/// let mut merge = ReplayMerge::builder(
///     format!("aeron:udp?session-id={session_id}"),
///     "aeron:udp?endpoint=localhost:0",
///     "aeron:udp?endpoint=localhost:40123",
/// )
/// .start(archive, subscription, recording_id)?;
/// while !merge.is_merged() {
///     merge.poll(|message, _header| println!("{message:?}"), 10)?;
/// }
/// let (archive, mut subscription) = merge.into_parts()?;
/// subscription.poll(|message, _header| println!("{message:?}"), 10).ok();
/// # drop(archive);
/// # Ok(())
/// # }
/// ```
#[must_use = "the merge ends when this is dropped"]
pub struct ReplayMerge {
    inner: ManuallyDrop<Inner>,
}

/// The C structure, and the objects that it has pointers to. It is closed before they are dropped.
struct Inner {
    raw: NonNull<sys::aeron_archive_replay_merge_t>,
    recording_id: RecordingId,
    subscription: Subscription,
    archive: Archive,
    progress_timeout: Duration,
    live_destination: CString,
    live_timeout: Duration,
    /// Start of the current wait for the live stream.
    live_awaited_since: Option<Instant>,
}

// SAFETY: nothing in the C structure is tied to a thread. The objects that it works on are owned
// with it.
unsafe impl Send for Inner {}

// SAFETY: the bound never holds.
unsafe impl Sync for ReplayMerge where for<'a> Self: SharedBetweenThreads<'a> {}

const OPERATION: &str = "replay_merge";

impl ReplayMerge {
    /// Default limit for a merge without progress. When the limit is over, the merge fails.
    pub const DEFAULT_PROGRESS_TIMEOUT: Duration =
        Duration::from_millis(sys::REPLAY_MERGE_PROGRESS_TIMEOUT_DEFAULT_MS as u64);

    /// Default limit for a live stream that does not come. When the limit is over, the merge fails.
    pub const DEFAULT_LIVE_TIMEOUT: Duration = Duration::from_secs(10);

    /// Returns a builder with the channels of replay and live stream. Nothing happens before
    /// [`ReplayMergeBuilder::start`], which reports channels that are not valid.
    ///
    /// - `replay_channel`: parameters of the replay's channel, without an endpoint. It has to have
    ///   the session id of the publication (`aeron:udp?session-id=…`): the replay and the live stream
    ///   are one image.
    /// - `replay_destination`: endpoint on this machine that the archive replays to. Port 0 stands
    ///   for a free port. The free port can be the port of the same stream's last merge. Then the
    ///   archive refuses the replay until its driver has closed the other one: the merge fails, and
    ///   can be started again.
    /// - `live_destination`: channel of the live stream.
    ///
    /// The subscription decides on the stream id of both.
    ///
    /// Corresponds to `replay_channel`, `replay_destination` and `live_destination` of
    /// `aeron_archive_replay_merge_init`.
    #[doc(alias = "aeron_archive_replay_merge_init")]
    pub fn builder(
        replay_channel: impl Into<String>,
        replay_destination: impl AsChannel,
        live_destination: impl AsChannel,
    ) -> ReplayMergeBuilder {
        ReplayMergeBuilder {
            replay_channel: replay_channel.into(),
            replay_destination: channel(&replay_destination),
            live_destination: channel(&live_destination),
            start_position: 0,
            progress_timeout: ReplayMerge::DEFAULT_PROGRESS_TIMEOUT,
            live_timeout: ReplayMerge::DEFAULT_LIVE_TIMEOUT,
        }
    }

    /// Does the pending work of the merge, without polling messages.
    ///
    /// # Errors
    /// - [`Timeout`](crate::ArchiveErrorKind::Timeout): no progress, or no live stream, in time; the text names the
    ///   state, or the live destination;
    /// - [`UnknownRecording`](crate::ArchiveErrorKind::UnknownRecording) and others that the archive
    ///   reports;
    /// - [`NotConnected`](crate::ArchiveErrorKind::NotConnected): the connection to the archive was
    ///   lost.
    ///
    /// After one of these the merge has failed, and does nothing any more.
    ///
    /// Corresponds to `aeron_archive_replay_merge_do_work`.
    #[doc(alias = "aeron_archive_replay_merge_do_work")]
    pub fn do_work(&mut self) -> Result<usize> {
        let state = self.state();
        let Inner { raw, recording_id, archive, progress_timeout, .. } = &*self.inner;
        let id = Some(("recording_id", recording_id.get()));
        // SAFETY: all structures are live; `&mut self` is the only user of the subscription, and the
        // lock of the archive, which is held, keeps others from its poller.
        let count = archive.ask(OPERATION, id, |count: &mut i32, _archive| unsafe {
            sys::rusteron_replay_merge_do_work(count, raw.as_ptr())
        });
        let count = count.map_err(|error| {
            if !error.message().contains(phrases::NO_PROGRESS) {
                return error;
            }
            let text = format!("no progress within {progress_timeout:.1?}: {state}");
            self.timed_out(text)
        })?;
        self.limit_wait_for_live()?;
        Ok(count.max(0) as usize)
    }

    /// Fails the merge when the live stream has not come within its limit. C waits for ever: each answer of the archive
    /// counts as progress.
    fn limit_wait_for_live(&mut self) -> Result<()> {
        if !self.is_live_missing() {
            self.inner.live_awaited_since = None;
            return Ok(());
        }
        let since = *self.inner.live_awaited_since.get_or_insert_with(Instant::now);
        if since.elapsed() < self.inner.live_timeout {
            return Ok(());
        }
        // SAFETY: the structure is live, and `&mut self` is its only user.
        unsafe { sys::rusteron_replay_merge_fail(self.inner.raw.as_ptr()) };
        let Inner { subscription, live_destination, live_timeout, .. } = &*self.inner;
        let (live, stream_id) = (live_destination.to_string_lossy(), subscription.stream_id());
        Err(self.timed_out(format!(
            "no live stream beside the replay within {live_timeout:.1?} at {live}, stream {stream_id}: its publisher \
             has to run and to have the session id of the replay"
        )))
    }

    fn timed_out(&self, text: String) -> ArchiveError {
        ArchiveError::new(ArchiveErrorKind::Timeout, OPERATION, text)
            .about(Some(self.inner.recording_id.get()))
    }

    /// Returns whether a merge under way has added the live destination, and the image has no stream from there: one
    /// transport is the replay.
    fn is_live_missing(&self) -> bool {
        let raw = self.inner.raw.as_ptr();
        // SAFETY: the structure is live.
        let state = ReplayMergeState::from_c(unsafe { sys::rusteron_replay_merge_state(raw) });
        let is_joining =
            matches!(state, ReplayMergeState::Catchup | ReplayMergeState::AttemptLiveJoin);
        if !is_joining || !self.is_live_added() {
            return false;
        }
        // SAFETY: the merge has a reference of its image, so a pointer that is not null is live.
        unsafe {
            let image = sys::aeron_archive_replay_merge_image(raw);
            image.is_null() || rusteron_sys::aeron_image_active_transport_count(image) < 2
        }
    }

    /// Returns what the merge waits for.
    ///
    /// C goes to and fro between [`Catchup`](ReplayMergeState::Catchup) and
    /// [`AttemptLiveJoin`](ReplayMergeState::AttemptLiveJoin). While no live stream comes from the added live
    /// destination, this is `AttemptLiveJoin`.
    ///
    /// Corresponds to `aeron_archive_replay_merge_state_t`, which C does not export.
    pub fn state(&self) -> ReplayMergeState {
        if self.is_live_missing() {
            return ReplayMergeState::AttemptLiveJoin;
        }
        // SAFETY: the structure is live.
        let state = unsafe { sys::rusteron_replay_merge_state(self.inner.raw.as_ptr()) };
        ReplayMergeState::from_c(state)
    }

    /// Does the pending work of the merge, and passes at most `fragment_limit` fragments of
    /// messages to the handler. Returns the number of fragments.
    ///
    /// The handler gets whole messages, as in [`Subscription::poll`].
    ///
    /// # Errors
    /// As for [`do_work`](Self::do_work).
    ///
    /// Corresponds to `aeron_archive_replay_merge_poll`.
    #[doc(alias = "aeron_archive_replay_merge_poll")]
    pub fn poll<F>(&mut self, handler: F, fragment_limit: usize) -> Result<usize>
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        self.do_work()?;
        Ok(self.image().map_or(0, |mut image| image.poll(handler, fragment_limit)))
    }

    /// Returns the image of the replay, which becomes the image of the live stream. `None` while
    /// there is no image.
    ///
    /// Corresponds to `aeron_archive_replay_merge_image`.
    #[doc(alias = "aeron_archive_replay_merge_image")]
    pub fn image(&mut self) -> Option<Image<'_>> {
        // SAFETY: the structure is live.
        let raw = unsafe { sys::aeron_archive_replay_merge_image(self.inner.raw.as_ptr()) };
        self.inner.subscription.images().find(|image| image.as_ptr() == raw)
    }

    /// Returns whether the merge has joined the live stream and the replay is over.
    ///
    /// Corresponds to `aeron_archive_replay_merge_is_merged`.
    #[doc(alias = "aeron_archive_replay_merge_is_merged")]
    pub fn is_merged(&self) -> bool {
        // SAFETY: the structure is live.
        unsafe { sys::aeron_archive_replay_merge_is_merged(self.inner.raw.as_ptr()) }
    }

    /// Returns whether the merge has failed. A failed merge does no more work.
    ///
    /// Corresponds to `aeron_archive_replay_merge_has_failed`.
    #[doc(alias = "aeron_archive_replay_merge_has_failed")]
    pub fn has_failed(&self) -> bool {
        // SAFETY: the structure is live.
        unsafe { sys::aeron_archive_replay_merge_has_failed(self.inner.raw.as_ptr()) }
    }

    /// Returns whether the live stream has been joined, with or without the replay.
    ///
    /// Corresponds to `aeron_archive_replay_merge_is_live_added`.
    #[doc(alias = "aeron_archive_replay_merge_is_live_added")]
    pub fn is_live_added(&self) -> bool {
        // SAFETY: the structure is live.
        unsafe { sys::aeron_archive_replay_merge_is_live_added(self.inner.raw.as_ptr()) }
    }

    /// Ends the merge. Returns the session and the subscription. If the merge [is
    /// merged](Self::is_merged), the subscription is at the live stream.
    ///
    /// Waits as dropping does, and until the media driver has removed the replay's destination. If a
    /// handler of the archive's reports panics meanwhile, the panic goes through to the caller, and
    /// the parts are dropped.
    ///
    /// # Errors
    /// On an error, the merge goes on with session and subscription as before. The error [gives
    /// back](ReplayMergeCloseError::into_merge) the merge, for another try. If the operator `?`
    /// converts it to an [`ArchiveError`](crate::ArchiveError), the merge is dropped.
    /// - [`Client`](ArchiveErrorKind::Client) with [`ErrorKind::CalledFromConductor`]: this is a callback
    ///   of a conductor;
    /// - [`Reentrant`](ArchiveErrorKind::Reentrant): this is a delegating invoker;
    /// - [`Client`](ArchiveErrorKind::Client): the client failed, as when its queue of commands is full.
    ///
    /// Corresponds to `aeron_archive_replay_merge_close`.
    #[doc(alias = "aeron_archive_replay_merge_close")]
    pub fn into_parts(self) -> Result<(Archive, Subscription), ReplayMergeCloseError> {
        // SAFETY: after the close, nothing uses the structure again: `self` is taken apart at once. C
        // leaves a structure that it cannot close usable.
        if let Err(error) = unsafe { self.inner.close(true) } {
            return Err(ReplayMergeCloseError::new(error, self));
        }
        let mut this = ManuallyDrop::new(self);
        // SAFETY: taken once, and `this` is not dropped.
        let Inner { archive, subscription, .. } = unsafe { ManuallyDrop::take(&mut this.inner) };
        archive.deliver();
        Ok((archive, subscription))
    }
}

impl Inner {
    /// Closes C's structure. The caller delivers the archive's reports to their handlers.
    ///
    /// A subscription that is kept loses the replay's destination. Only asking the driver for that
    /// can fail in C.
    ///
    /// # Safety
    /// The structure is live, and not used again unless this fails: C has freed nothing then.
    unsafe fn close(&self, is_subscription_kept: bool) -> Result<()> {
        let close = |_archive| {
            // SAFETY: the caller guarantees a live structure that it does not use again.
            unsafe { sys::rusteron_replay_merge_close(self.raw.as_ptr(), is_subscription_kept) }
                .into_result()
        };
        self.archive.undelivered_request(OPERATION, None, close).map(drop)
    }

    /// Drops the objects of a closed structure.
    fn end(self) {
        catch("handler of an archive's events", || self.archive.deliver());
    }
}

impl Drop for ReplayMerge {
    fn drop(&mut self) {
        if !RawClient::new(self.inner.archive.aeron()).is_of_this_process() {
            return; // the merge is that of the process which this was forked from
        }
        // SAFETY: taken once, and `self` is not used after.
        let inner = ManuallyDrop::new(unsafe { ManuallyDrop::take(&mut self.inner) });
        // SAFETY: the structure is used again only if this fails.
        let Err(error) = (unsafe { inner.close(false) }) else {
            return ManuallyDrop::into_inner(inner).end();
        };
        let id = inner.recording_id;
        // Both conditions are temporary, so another thread can wait for the close.
        let is_callback = matches!(
            error.kind(),
            ArchiveErrorKind::Client(ErrorKind::CalledFromConductor) | ArchiveErrorKind::Reentrant
        );
        if !is_callback {
            // The structure has pointers to the parts, which must not be dropped before it.
            log::warn!("replay merge of recording {id}: left open: {error}");
            return;
        }
        let spawned = thread::Builder::new().name("aeron-close".into()).spawn(move || {
            // SAFETY: this is the only user of the structure, and the last.
            match unsafe { inner.close(false) } {
                Ok(()) => ManuallyDrop::into_inner(inner).end(),
                Err(error) => log::warn!("replay merge of recording {id}: left open: {error}"),
            }
        });
        if let Err(error) = spawned {
            log::error!(
                "replay merge of recording {id}: left open, no thread to close it: {error}"
            );
        }
    }
}

impl fmt::Debug for ReplayMerge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayMerge")
            .field("recording_id", &self.inner.recording_id)
            .field("state", &self.state())
            .finish()
    }
}

/// Builds a [`ReplayMerge`], with the channels that [`ReplayMerge::builder`] has been given.
///
/// A clone can start another merge of the same stream, for example after a failure.
///
/// ```no_run
/// use std::time::Duration;
///
/// use rusteron_archive::{Archive, RecordingId, ReplayMerge, Result};
///
/// # fn follow(archive: Archive, recording_id: RecordingId, session_id: i32) -> Result<()> {
/// let subscription = archive.aeron().add_subscription("aeron:udp?control-mode=manual", 1001)?;
/// let merge = ReplayMerge::builder(
///     format!("aeron:udp?session-id={session_id}"),
///     "aeron:udp?endpoint=localhost:0",
///     "aeron:udp?endpoint=localhost:40123",
/// )
/// .start_position(4096)
/// .progress_timeout(Duration::from_secs(30))
/// .start(archive, subscription, recording_id)?;
/// # drop(merge);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "no merge begins until `start` is called"]
pub struct ReplayMergeBuilder {
    replay_channel: String,
    replay_destination: Result<CString>,
    live_destination: Result<CString>,
    start_position: Position,
    progress_timeout: Duration,
    live_timeout: Duration,
}

impl ReplayMergeBuilder {
    /// Replays from this position, in bytes of the stream, 0 or more. A frame has to begin there.
    ///
    /// The default is 0. A recording that begins later, because it was recorded late or its first
    /// segments were purged, needs its [start position](Archive::start_position) or a later one.
    ///
    /// Corresponds to `start_position` of `aeron_archive_replay_merge_init`.
    #[doc(alias = "aeron_archive_replay_merge_init")]
    pub fn start_position(mut self, position: Position) -> Self {
        self.start_position = position;
        self
    }

    /// Limits the time without progress of the replay. A merge fails when the timeout is over. The
    /// default is [`ReplayMerge::DEFAULT_PROGRESS_TIMEOUT`].
    ///
    /// The timeout is rounded up to whole milliseconds, and 100 years at most.
    ///
    /// While the merge waits for the live stream, each answer of the archive is progress, and
    /// [`live_timeout`](Self::live_timeout) is the limit.
    ///
    /// Corresponds to `merge_progress_timeout_ms` of `aeron_archive_replay_merge_init`.
    #[doc(alias = "aeron_archive_replay_merge_init")]
    pub fn progress_timeout(mut self, timeout: Duration) -> Self {
        self.progress_timeout = timeout;
        self
    }

    /// Limits the time without a live stream, from the moment that its destination was added. A merge fails when the
    /// timeout is over. The default is [`ReplayMerge::DEFAULT_LIVE_TIMEOUT`].
    ///
    /// `Duration::MAX` is no limit, as in C.
    pub fn live_timeout(mut self, timeout: Duration) -> Self {
        self.live_timeout = timeout;
        self
    }

    /// Starts merging the recording with the live stream, and takes ownership of session and
    /// subscription. Does not wait for an answer of the archive.
    ///
    /// The channel of the subscription has to be UDP with `control-mode=manual`.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): IPC, a subscription without
    ///   `control-mode=manual`, a replay destination without an endpoint, a negative id or
    ///   position;
    /// - [`Client`](crate::ArchiveErrorKind::Client): a channel is not valid or contains a NUL byte,
    ///   the progress timeout is too long, or the client failed.
    ///
    /// The error [gives back](ReplayMergeError::into_parts) archive and subscription. If the
    /// operator `?` converts it to an [`ArchiveError`](crate::ArchiveError), both are dropped.
    ///
    /// Corresponds to `aeron_archive_replay_merge_init`.
    #[doc(alias = "aeron_archive_replay_merge_init")]
    pub fn start(
        self,
        archive: Archive,
        subscription: Subscription,
        recording_id: RecordingId,
    ) -> Result<ReplayMerge, ReplayMergeError> {
        let (progress_timeout, live_timeout) = (self.progress_timeout, self.live_timeout);
        match self.init(&archive, &subscription, recording_id) {
            Ok((raw, live_destination)) => {
                let inner = ManuallyDrop::new(Inner {
                    raw,
                    recording_id,
                    subscription,
                    archive,
                    progress_timeout,
                    live_destination,
                    live_timeout,
                    live_awaited_since: None,
                });
                let merge = ReplayMerge { inner };
                // A panic of a handler ends the merge, as dropping does.
                merge.inner.archive.deliver();
                Ok(merge)
            }
            Err(error) => {
                archive.deliver();
                Err(ReplayMergeError::new(error, (archive, subscription)))
            }
        }
    }

    /// Makes C's structure, which has pointers to archive and subscription. Both have to outlive the
    /// structure. Returns it with the live destination. The caller delivers the archive's reports to their handlers.
    fn init(
        self,
        archive: &Archive,
        subscription: &Subscription,
        recording_id: RecordingId,
    ) -> Result<(NonNull<sys::aeron_archive_replay_merge_t>, CString)> {
        not_negative(OPERATION, "start_position", self.start_position)?;
        // Only parsed: C adds the endpoint, and without it the text is no complete channel.
        self.replay_channel.parse::<ChannelUri>().map_err(Error::from)?;
        let replay_channel = c_string("replay_channel", &self.replay_channel)?;
        let replay_destination = self.replay_destination?;
        let live_destination = self.live_destination?;
        let timeout = millis("progress_timeout", self.progress_timeout)?;
        // SAFETY: reads a clock.
        let now = unsafe { rusteron_sys::rusteron_steady_clock_ms() };
        let mut raw = ptr::null_mut();
        let relevant_id = Some(("recording_id", recording_id.get()));
        archive.undelivered_request(OPERATION, relevant_id, |archive| {
            // SAFETY: archive and subscription are live. The merge owns both, and closes the new
            // structure before it drops them. C copies the channels, which are terminated strings.
            unsafe {
                sys::aeron_archive_replay_merge_init(
                    &mut raw,
                    subscription.as_ptr(),
                    archive,
                    replay_channel.as_ptr(),
                    replay_destination.as_ptr(),
                    live_destination.as_ptr(),
                    recording_id.get(),
                    self.start_position,
                    now,
                    timeout as i64,
                )
            }
            .into_result()
        })?;
        Ok((NonNull::new(raw).ok_or_else(last_error)?, live_destination))
    }
}

/// Returns the checked text of a channel: C parses it without a check.
fn channel(channel: &impl AsChannel) -> Result<CString> {
    let text = channel.to_c_string(ChannelUse::ReceiveDestination)?;
    text.to_string_lossy().parse::<ChannelUri>().map_err(Error::from)?;
    Ok(text)
}
