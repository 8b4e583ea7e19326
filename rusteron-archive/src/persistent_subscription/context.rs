//! The configuration of a persistent subscription.

use std::collections::VecDeque;
use std::ffi::{CString, c_int};
use std::ptr::{self, NonNull};

use rusteron_client::raw_client::{RawClient, counter_into_raw};
use rusteron_client::{Aeron, AsChannel, ChannelUri, Error, Position};
use rusteron_core::RecordingId;
use rusteron_core::channel::ChannelUse;
use rusteron_core::ffi::{Fallible, Retained, last_error};
use rusteron_sys::archive as sys;

use crate::checks::not_negative;
use crate::context::ArchiveContext;
use crate::error::{ArchiveError, Result};
use crate::persistent_subscription::PersistentSubscriptionCounters;
use crate::persistent_subscription::events::OPERATION;
use crate::persistent_subscription::events::{
    Event, PersistentSubscriptionEvent, on_error, on_live_joined, on_live_left,
};

/// Start position of a persistent subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartPosition {
    /// In the live stream. The recording is used for messages that are missed later.
    #[default]
    Live,
    /// At the start of the recording.
    Start,
    /// At a position in the recording, in bytes of the stream. A frame has to begin there, and the
    /// position cannot be negative.
    At(Position),
}

/// The configuration of a persistent subscription. [`PersistentSubscription`] has an example.
///
/// [`PersistentSubscription`]: crate::PersistentSubscription
#[must_use = "a context does nothing by itself"]
pub struct PersistentSubscriptionContext {
    pub(crate) recording_id: RecordingId,
    live_channel: CString,
    live_stream_id: i32,
    replay_channel: CString,
    replay_stream_id: i32,
    start_position: StartPosition,
    pub(crate) max_replays_without_progress: u32,
    pub(crate) listener: Option<Listener>,
}

pub(crate) type Listener = Box<dyn FnMut(&PersistentSubscriptionEvent) + Send>;

impl PersistentSubscriptionContext {
    /// Creates the configuration for a live stream and its recording. The recording is replayed to
    /// a channel and stream of this subscription's own: UDP with an endpoint, whose port may be 0,
    /// IPC, or a response channel.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): a negative recording id;
    /// - [`Client`](crate::ArchiveErrorKind::Client): a channel is not valid.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_set_recording_id`, and the
    /// setters of the channels and streams.
    #[doc(alias = "aeron_archive_persistent_subscription_context_set_recording_id")]
    pub fn new(
        recording_id: RecordingId,
        live_channel: impl AsChannel,
        live_stream_id: i32,
        replay_channel: impl AsChannel,
        replay_stream_id: i32,
    ) -> Result<Self> {
        not_negative(OPERATION, "recording_id", recording_id.get())?;
        Ok(Self {
            recording_id,
            live_channel: checked(&live_channel)?,
            live_stream_id,
            replay_channel: checked(&replay_channel)?,
            replay_stream_id,
            start_position: StartPosition::default(),
            max_replays_without_progress: 5,
            listener: None,
        })
    }

    /// Sets where to begin. The default is the live stream.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument) for a negative position.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_set_start_position`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_set_start_position")]
    pub fn set_start_position(&mut self, start_position: StartPosition) -> Result<&mut Self> {
        if let StartPosition::At(position) = start_position {
            not_negative(OPERATION, "start_position", position)?;
        }
        self.start_position = start_position;
        Ok(self)
    }

    /// Sets the number of replays in a row that may end without a single message, before the
    /// subscription [fails](crate::PersistentSubscription::failure). The default is 5.
    ///
    /// A replay ends like this where the recording is damaged, or if nothing comes through the
    /// replay channel for the [message timeout](ArchiveContext::message_timeout). Joining the live
    /// stream, or connecting to the archive again, starts the count anew.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument) for 0.
    ///
    /// Has no counterpart in C, which asks for replays for ever.
    pub fn set_max_replays_without_progress(&mut self, count: u32) -> Result<&mut Self> {
        if count == 0 {
            let text = "max_replays_without_progress=0: must be at least 1";
            return Err(ArchiveError::invalid(OPERATION, text));
        }
        self.max_replays_without_progress = count;
        Ok(self)
    }

    /// Sets the listener for errors, and for joining and leaving the live stream.
    ///
    /// Polls call it on their thread, after the message handler.
    ///
    /// # Errors
    /// This call cannot fail; it returns a `Result` as the other setters do.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_set_listener`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_set_listener")]
    pub fn set_listener(
        &mut self,
        listener: impl FnMut(&PersistentSubscriptionEvent) + Send + 'static,
    ) -> Result<&mut Self> {
        self.listener = Some(Box::new(listener));
        Ok(self)
    }
}

fn checked(channel: &impl AsChannel) -> Result<CString> {
    let text = channel.to_c_string(ChannelUse::Subscription)?;
    text.to_string_lossy().parse::<ChannelUri>().map_err(Error::from)?;
    Ok(text)
}

/// `AERON_ARCHIVE_PERSISTENT_SUBSCRIPTION_FROM_START`, a macro that the bindings do not have.
const FROM_START: Position = -1;
/// `AERON_ARCHIVE_PERSISTENT_SUBSCRIPTION_FROM_LIVE`, likewise.
const FROM_LIVE: Position = -2;

/// C's context, before it passes to its subscription.
pub(crate) struct RawContext {
    raw: NonNull<sys::aeron_archive_persistent_subscription_context_t>,
    counters: PersistentSubscriptionCounters,
}

impl RawContext {
    pub(crate) fn new(
        aeron: &Aeron,
        archive_context: &ArchiveContext,
        context: &PersistentSubscriptionContext,
        events: &Retained<VecDeque<Event>>,
    ) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: C writes the address of the new structure to `raw`, or fails.
        unsafe { sys::aeron_archive_persistent_subscription_context_init(&mut raw) }
            .into_result()?;
        let counters = PersistentSubscriptionCounters::NONE;
        let mut this = Self { raw: NonNull::new(raw).ok_or_else(last_error)?, counters };
        let listener = sys::aeron_archive_persistent_subscription_listener_t {
            on_live_joined: Some(on_live_joined),
            on_live_left: Some(on_live_left),
            on_error: Some(on_error),
            clientd: events.clientd(),
        };
        let start_position = match context.start_position {
            StartPosition::Live => FROM_LIVE,
            StartPosition::Start => FROM_START,
            StartPosition::At(position) => position,
        };
        let client = RawClient::new(aeron).as_ptr();
        // SAFETY: the structure is live. C copies the texts and the listener, and the targets of
        // the pointers that it keeps outlive it.
        unsafe {
            use sys::*;
            aeron_archive_persistent_subscription_context_set_aeron(raw, client).into_result()?;
            let archive = archive_context.as_ptr();
            aeron_archive_persistent_subscription_context_set_archive_context(raw, archive)
                .into_result()?;
            let id = context.recording_id;
            aeron_archive_persistent_subscription_context_set_recording_id(raw, id.get())
                .into_result()?;
            let live = context.live_channel.as_ptr();
            aeron_archive_persistent_subscription_context_set_live_channel(raw, live)
                .into_result()?;
            let id = context.live_stream_id;
            aeron_archive_persistent_subscription_context_set_live_stream_id(raw, id)
                .into_result()?;
            let replay = context.replay_channel.as_ptr();
            aeron_archive_persistent_subscription_context_set_replay_channel(raw, replay)
                .into_result()?;
            let id = context.replay_stream_id;
            aeron_archive_persistent_subscription_context_set_replay_stream_id(raw, id)
                .into_result()?;
            aeron_archive_persistent_subscription_context_set_start_position(raw, start_position)
                .into_result()?;
            aeron_archive_persistent_subscription_context_set_listener(raw, &listener)
                .into_result()?;
        }
        this.add_counters(aeron, context)?;
        Ok(this)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_archive_persistent_subscription_context_t {
        self.raw.as_ptr()
    }

    /// Passes ownership of the structure to its subscription.
    pub(crate) fn into_counters(self) -> PersistentSubscriptionCounters {
        std::mem::ManuallyDrop::new(self).counters
    }

    /// C would add the counters as well, and wait for the answer without a deadline.
    fn add_counters(
        &mut self,
        aeron: &Aeron,
        context: &PersistentSubscriptionContext,
    ) -> Result<()> {
        use rusteron_sys::{
            AERON_COUNTER_ARCHIVE_PERSISTENT_SUBSCRIPTION_JOIN_DIFFERENCE_TYPE_ID as JOIN_DIFFERENCE,
            AERON_COUNTER_ARCHIVE_PERSISTENT_SUBSCRIPTION_LIVE_JOINED_COUNT_TYPE_ID as LIVE_JOINED,
            AERON_COUNTER_ARCHIVE_PERSISTENT_SUBSCRIPTION_LIVE_LEFT_COUNT_TYPE_ID as LIVE_LEFT,
            AERON_COUNTER_ARCHIVE_PERSISTENT_SUBSCRIPTION_STATE_TYPE_ID as STATE,
        };
        use sys::{
            aeron_archive_persistent_subscription_context_set_join_difference_counter as set_join_difference,
            aeron_archive_persistent_subscription_context_set_live_joined_counter as set_live_joined,
            aeron_archive_persistent_subscription_context_set_live_left_counter as set_live_left,
            aeron_archive_persistent_subscription_context_set_state_counter as set_state,
        };
        type Set = unsafe extern "C" fn(
            *mut sys::aeron_archive_persistent_subscription_context_t,
            *mut rusteron_sys::aeron_counter_t,
        ) -> c_int;
        const MAX_LABEL: usize = rusteron_client::Counter::MAX_LABEL_LENGTH;
        let ids = &mut self.counters;
        let counters: [(u32, &str, Set, &mut i32); 4] = [
            (STATE, "State", set_state, &mut ids.state),
            (JOIN_DIFFERENCE, "Join Difference", set_join_difference, &mut ids.join_difference),
            (LIVE_LEFT, "Live Left Count", set_live_left, &mut ids.live_left),
            (LIVE_JOINED, "Live Joined Count", set_live_joined, &mut ids.live_joined),
        ];
        for (type_id, name, set, id) in counters {
            let mut label = format!(
                "Persistent Subscription {name}: {} {} {} {}",
                context.replay_stream_id,
                context.replay_channel.to_string_lossy(),
                context.live_stream_id,
                context.live_channel.to_string_lossy()
            );
            while label.len() > MAX_LABEL {
                label.pop();
            }
            let counter = aeron.add_counter(type_id as i32, b"", &label)?;
            *id = counter.counter_id();
            // SAFETY: the structure is live, and closes the counter, which it is given.
            unsafe { set(self.raw.as_ptr(), counter_into_raw(counter)) }.into_result()?;
        }
        Ok(())
    }
}

impl Drop for RawContext {
    fn drop(&mut self) {
        // SAFETY: no subscription has it. Not in a callback, as everything that makes one is refused
        // there; counters are closed by commands that wait for nothing.
        unsafe { sys::aeron_archive_persistent_subscription_context_close(self.raw.as_ptr()) };
    }
}

rusteron_core::impl_debug!(
    PersistentSubscriptionContext: recording_id, live_channel, replay_channel, start_position,
    max_replays_without_progress
);
