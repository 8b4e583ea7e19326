//! A subscription that reads a recording and then goes on live.
//!
//! C polls, because it switches between images of its own. A trampoline calls the handler, which gets a
//! `MessageInfo` instead of a `Header`, and catches panics. Rust adds the counters: C would wait for them in a
//! loop that never ends if the client closes.

mod context;
mod events;
mod progress;

pub use context::{PersistentSubscriptionContext, StartPosition};
pub use events::PersistentSubscriptionEvent;

use std::any::Any;
use std::collections::VecDeque;
use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::slice;

use rusteron_client::raw_client::RawClient;
use rusteron_client::{Action, Aeron, ErrorKind, Position};
use rusteron_core::RecordingId;
use rusteron_core::ffi::callback::mark;
use rusteron_core::ffi::{Fallible, Retained, last_error, lossy};
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys::archive as sys;

use crate::checks::forbid_reentry;
use crate::context::ArchiveContext;
use crate::error::{ArchiveError, Result};
use crate::persistent_subscription::context::{Listener, RawContext};
use crate::persistent_subscription::events::{EINVAL, Event, OPERATION, error, exclusive_events};
use crate::persistent_subscription::progress::{Activity, Progress, Report};

/// Ids of the counters that show the state of a persistent subscription to all clients of the media
/// driver. [`CountersReader::value`](rusteron_client::CountersReader::value) reads a counter.
///
/// The labels contain the stream ids and channels of the replay and of the live stream. The
/// counters are freed with the subscription; other counters can then get the ids.
///
/// ```no_run
/// # fn show(subscription: &rusteron_archive::PersistentSubscription) {
/// let counters = subscription.counters();
/// let left = subscription.aeron().counters_reader().value(counters.live_left);
/// println!("The live stream was left {left:?} times");
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PersistentSubscriptionCounters {
    /// The state. The values are those of the C client of Aeron 1.54.0; no public header has them.
    /// 0 is connecting to the archive. 1 to 11 are the requests for the recording and its replay.
    /// 12 is replaying, and 13 is replaying with the live stream available. 14 and 15 are joining
    /// the live stream without a replay. 16 is live and 17 is failed.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_state_counter`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_state_counter")]
    pub state: i32,
    /// The number of bytes between the replay and the live stream when the live stream was first
    /// available. `i64::MIN` before that, and 0 if the live stream was joined without a replay.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_join_difference_counter`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_join_difference_counter")]
    pub join_difference: i32,
    /// The number of times the live stream was left.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_live_left_counter`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_live_left_counter")]
    pub live_left: i32,
    /// The number of times the live stream was joined.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_live_joined_counter`.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_live_joined_counter")]
    pub live_joined: i32,
}

impl PersistentSubscriptionCounters {
    /// The value for a subscription without counters.
    pub(crate) const NONE: Self =
        Self { state: -1, join_difference: -1, live_left: -1, live_joined: -1 };
}

/// Metadata of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MessageInfo {
    /// The position in the stream after the message. Another subscription can continue from it.
    pub position: Position,
    /// The session id of the publisher, or of the replay.
    pub session_id: i32,
    /// The stream id, of the live stream or of the replay.
    pub stream_id: i32,
    /// The reserved value that the publisher set.
    pub reserved_value: i64,
}

/// A subscription that replays a recording and joins the live stream when it has caught up. It
/// returns to the recording when it falls behind or the publisher goes away. It neither loses nor
/// repeats a message.
///
/// Polls do all of its work. The subscription has a session with the archive of its own, and renews
/// a lost session. The subscription keeps its client open. It can be moved to another thread, and
/// one thread uses it at a time. Polls do not wait for the archive's answers; a poll that connects
/// again waits for the media driver.
///
/// ```no_run
/// use rusteron_archive::{
///     ArchiveContext, PersistentSubscription, PersistentSubscriptionContext, RecordingId,
///     StartPosition,
/// };
/// use rusteron_client::Aeron;
///
/// # fn follow(aeron: &Aeron, archive: ArchiveContext) -> rusteron_archive::Result<()> {
/// let mut context = PersistentSubscriptionContext::new(
///     RecordingId::new(7),
///     "aeron:udp?endpoint=localhost:40123",
///     1001,
///     "aeron:udp?endpoint=localhost:0",
///     1002,
/// )?;
/// context.set_start_position(StartPosition::Start)?;
/// let mut subscription = PersistentSubscription::new(aeron, archive, context)?;
/// loop {
///     subscription.poll(|message, info| println!("{}: {message:?}", info.position), 10)?;
/// }
/// # }
/// ```
///
/// Dropping it leaves the stream and ends the session.
///
/// Corresponds to `aeron_archive_persistent_subscription_close`.
#[doc(alias = "aeron_archive_persistent_subscription_close")]
#[must_use = "the subscription is closed when this is dropped"]
pub struct PersistentSubscription {
    /// `None` only during drop.
    inner: Option<Inner>,
    counters: PersistentSubscriptionCounters,
    aeron: Aeron,
}

// SAFETY: the bound never holds.
unsafe impl Sync for PersistentSubscription where for<'a> Self: SharedBetweenThreads<'a> {}

/// The C structure and the objects that it has pointers to. Fields are dropped in order, after the
/// structure.
struct Inner {
    raw: NonNull<sys::aeron_archive_persistent_subscription_t>,
    archive_context: ArchiveContext,
    events: Retained<VecDeque<Event>>,
    listener: Option<Listener>,
    recording_id: RecordingId,
    last_error: Option<ArchiveError>,
    progress: Progress,
}

// SAFETY: nothing in the C structure is tied to a thread, and it works only on its own objects.
unsafe impl Send for Inner {}

impl PersistentSubscription {
    /// Starts subscribing. Polls do the rest.
    ///
    /// `archive_context` configures the connection to the archive. Waits for the media driver to
    /// add four [counters](Self::counters), which show the state to all clients.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): a replay channel that
    ///   does not go with the archive's;
    /// - [`Client`](crate::ArchiveErrorKind::Client): the client or the media driver failed.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_create`.
    #[doc(alias = "aeron_archive_persistent_subscription_create")]
    pub fn new(
        aeron: &Aeron,
        mut archive_context: ArchiveContext,
        context: PersistentSubscriptionContext,
    ) -> Result<Self> {
        forbid_reentry(OPERATION)?;
        crate::archive::connect::check(&archive_context)?;
        archive_context.set_aeron(aeron)?;
        let events = Retained::new(Box::default());
        let raw = RawContext::new(aeron, &archive_context, &context, &events)?;
        let mut subscription = ptr::null_mut();
        RawClient::new(aeron)
            .command(OPERATION, || {
                // SAFETY: the context is live and complete, and all that it points to is kept.
                unsafe {
                    sys::aeron_archive_persistent_subscription_create(
                        &mut subscription,
                        raw.as_ptr(),
                    )
                }
                .into_result()
            })?
            .map_err(|error| ArchiveError::from_c(&error, OPERATION))?;
        // The context belongs to the subscription from here, and is closed with it.
        let counters = raw.into_counters();
        let raw = NonNull::new(subscription).ok_or_else(last_error)?;
        let listener = context.listener;
        let recording_id = context.recording_id;
        let progress = Progress::new(context.max_replays_without_progress);
        let last_error = None;
        let inner =
            Inner { raw, archive_context, events, listener, recording_id, last_error, progress };
        Ok(Self { inner: Some(inner), counters, aeron: aeron.clone() })
    }

    /// Does the pending work, and passes at most `fragment_limit` fragments of messages to the
    /// handler. Returns the amount of work; 0 means that there was none.
    ///
    /// The handler gets whole messages. C assembles long messages in memory of `malloc`, which is
    /// aligned to 8 bytes or more. Other messages start at a multiple of 32 bytes. If the handler
    /// panics, the panic goes through to the caller, and the next poll continues after that message. For a client without a conductor
    /// thread, polls do the client's work, and the handler runs as the client's callbacks do.
    ///
    /// # Errors
    /// [`failure`](Self::failure), if there is one; and [`Client`](crate::ArchiveErrorKind::Client) if
    /// this is a callback of a conductor.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_poll`.
    #[doc(alias = "aeron_archive_persistent_subscription_poll")]
    pub fn poll<F>(&mut self, mut handler: F, fragment_limit: usize) -> Result<usize>
    where
        F: FnMut(&[u8], &MessageInfo),
    {
        let handler = |message: &[u8], info: &MessageInfo| {
            handler(message, info);
            Action::Continue
        };
        self.controlled_poll(handler, fragment_limit)
    }

    /// As [`poll`](Self::poll), with a handler whose result controls the position after each
    /// message.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_controlled_poll`.
    #[doc(alias = "aeron_archive_persistent_subscription_controlled_poll")]
    pub fn controlled_poll<F>(&mut self, handler: F, fragment_limit: usize) -> Result<usize>
    where
        F: FnMut(&[u8], &MessageInfo) -> Action,
    {
        forbid_reentry(OPERATION)?;
        let client = RawClient::new(&self.aeron);
        let in_conductor = client.has_invoker();
        self.aeron.check_open()?;
        let Some(inner) = &mut self.inner else { return Ok(0) };
        let mut poll = Poll { handler, panic: None, in_conductor };
        let raw = inner.raw.as_ptr();
        let work = client.command(OPERATION, || {
            let work = inner.archive_context.connecting(&self.aeron, |_context| {
                // SAFETY: the structure is live, and `&mut self` its only user; the handler is given
                // what belongs to it.
                unsafe {
                    sys::aeron_archive_persistent_subscription_controlled_poll(
                        raw,
                        Some(on_message::<F>),
                        (&raw mut poll).cast(),
                        fragment_limit,
                    )
                }
            });
            inner.end_without_credentials();
            inner.end_without_progress();
            work
        })?;
        inner.archive_context.events().deliver();
        inner.deliver();
        if let Some(panic) = poll.panic {
            resume_unwind(panic);
        }
        match self.failure() {
            Some(failure) => Err(failure),
            None => Ok(work.max(0) as usize),
        }
    }

    /// Returns whether messages come from the live stream at the moment.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_is_live`.
    #[doc(alias = "aeron_archive_persistent_subscription_is_live")]
    pub fn is_live(&self) -> bool {
        // SAFETY: the structure is live.
        self.with(|raw| unsafe { sys::aeron_archive_persistent_subscription_is_live(raw) })
    }

    /// Returns whether messages come from the recording at the moment.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_is_replaying`.
    #[doc(alias = "aeron_archive_persistent_subscription_is_replaying")]
    pub fn is_replaying(&self) -> bool {
        // SAFETY: the structure is live.
        self.with(|raw| unsafe { sys::aeron_archive_persistent_subscription_is_replaying(raw) })
    }

    /// Returns the reason if the subscription has failed. A failed subscription does no more work.
    /// It fails if trying again cannot help, for example without such a recording, if the supplier
    /// of its credentials fails, or after [several
    /// replays](PersistentSubscriptionContext::set_max_replays_without_progress) without a message.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_has_failed` and
    /// `aeron_archive_persistent_subscription_failure_reason`.
    #[doc(alias(
        "aeron_archive_persistent_subscription_has_failed",
        "aeron_archive_persistent_subscription_failure_reason"
    ))]
    pub fn failure(&self) -> Option<ArchiveError> {
        let raw = self.inner.as_ref()?.raw.as_ptr();
        let (mut code, mut message) = (0, ptr::null());
        // SAFETY: the structure is live, and so is the text that C points to.
        let has_failed = unsafe {
            sys::aeron_archive_persistent_subscription_failure_reason(raw, &mut code, &mut message)
        };
        // SAFETY: terminated, and unchanged during the call.
        let message = has_failed.then(|| unsafe { lossy(message) })?;
        let inner = self.inner.as_ref()?;
        match (code, &*message, &inner.last_error) {
            // C has reported the error only to the listener.
            (0, "", Some(error)) => Some(error.clone()),
            _ => Some(error(inner.recording_id, code, &message)),
        }
    }

    /// Returns the counters that show the subscription's state to all clients of the media driver.
    ///
    /// Corresponds to `aeron_archive_persistent_subscription_context_get_state_counter` and its
    /// relatives.
    #[doc(alias = "aeron_archive_persistent_subscription_context_get_state_counter")]
    pub fn counters(&self) -> PersistentSubscriptionCounters {
        self.counters
    }

    /// The client that this subscription belongs to.
    ///
    /// Has no counterpart in C.
    pub fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    fn with(
        &self,
        ask: impl FnOnce(*mut sys::aeron_archive_persistent_subscription_t) -> bool,
    ) -> bool {
        self.inner.as_ref().is_some_and(|inner| ask(inner.raw.as_ptr()))
    }
}

impl Inner {
    /// Fails the subscription if there were no credentials: C has sent empty ones, or is about to.
    fn end_without_credentials(&mut self) {
        // SAFETY: C has returned, and asks for none.
        let Some(failure) = (unsafe { self.archive_context.take_credentials_failure() }) else {
            return;
        };
        let code = if failure.kind() == ErrorKind::InvalidArgument { EINVAL } else { 0 };
        let text = CString::new(failure.message()).unwrap_or_default();
        self.fail(code, &text);
    }

    /// Fails the subscription if it asks for the same messages again and again.
    fn end_without_progress(&mut self) {
        let raw = self.raw.as_ptr();
        // SAFETY: the structure is live, and `&mut self` its only user.
        let (is_replaying, is_live, has_session, position) = unsafe {
            (
                sys::aeron_archive_persistent_subscription_is_replaying(raw),
                sys::aeron_archive_persistent_subscription_is_live(raw),
                sys::rusteron_persistent_subscription_has_session(raw),
                sys::rusteron_persistent_subscription_position(raw),
            )
        };
        let activity = match is_replaying {
            true => Activity::Replaying,
            false if is_live || !has_session => Activity::Other,
            false => Activity::Asking,
        };
        match self.progress.observe(activity, position) {
            None => {}
            // SAFETY: C is not running.
            Some(Report::Error(code, text)) => unsafe { exclusive_events(self.events.clientd()) }
                .push_back(Event::Error(code, text)),
            Some(Report::Failure(code, text)) => {
                self.fail(code, &CString::new(text).unwrap_or_default());
            }
        }
    }

    fn fail(&mut self, code: c_int, text: &CStr) {
        // SAFETY: the structure is live, and `&mut self` its only user; C copies the text.
        unsafe {
            sys::rusteron_persistent_subscription_fail(self.raw.as_ptr(), code, text.as_ptr());
        }
    }

    fn deliver(&mut self) {
        loop {
            // SAFETY: C is not running.
            let events = unsafe { exclusive_events(self.events.clientd()) };
            let event = match events.pop_front() {
                None => return,
                Some(Event::LiveJoined) => PersistentSubscriptionEvent::LiveJoined,
                Some(Event::LiveLeft) => PersistentSubscriptionEvent::LiveLeft,
                Some(Event::Error(code, text)) => {
                    let error = error(self.recording_id, code, &text);
                    self.progress.on_error(&error);
                    self.last_error = Some(error.clone());
                    PersistentSubscriptionEvent::Error(error)
                }
            };
            if let Some(listener) = &mut self.listener {
                listener(&event);
            }
        }
    }
}

/// State of one poll.
struct Poll<F> {
    handler: F,
    panic: Option<Box<dyn Any + Send>>,
    in_conductor: bool,
}

/// # Safety
/// `clientd` points to a `Poll<F>` with no other user; message and header are live.
unsafe extern "C" fn on_message<F>(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut rusteron_sys::aeron_header_t,
) -> rusteron_sys::aeron_controlled_fragment_handler_action_t
where
    F: FnMut(&[u8], &MessageInfo) -> Action,
{
    // SAFETY: C passes the `clientd` of the poll, a `Poll<F>` that only this handler uses, a live message and a live
    // header, whose values it fills in.
    let (poll, message, info) = unsafe {
        let mut values = MaybeUninit::zeroed();
        rusteron_sys::aeron_header_values(header, values.as_mut_ptr());
        let frame = values.assume_init().frame;
        let info = MessageInfo {
            position: rusteron_sys::aeron_header_position(header),
            session_id: frame.session_id,
            stream_id: frame.stream_id,
            reserved_value: frame.reserved_value,
        };
        let message: &[u8] = if length == 0 { &[] } else { slice::from_raw_parts(buffer, length) };
        (&mut *clientd.cast::<Poll<F>>(), message, info)
    };
    let Poll { handler, panic, in_conductor } = poll;
    let call = || {
        if *in_conductor { mark(|| handler(message, &info)) } else { handler(message, &info) }
    };
    use rusteron_sys::*;
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Action::Abort) => aeron_controlled_fragment_handler_action_en_AERON_ACTION_ABORT,
        Ok(Action::Break) => aeron_controlled_fragment_handler_action_en_AERON_ACTION_BREAK,
        Ok(Action::Commit) => aeron_controlled_fragment_handler_action_en_AERON_ACTION_COMMIT,
        Ok(Action::Continue) => aeron_controlled_fragment_handler_action_en_AERON_ACTION_CONTINUE,
        Err(payload) => {
            *panic = Some(payload);
            aeron_controlled_fragment_handler_action_en_AERON_ACTION_BREAK
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the structure is live and not used again. The targets of its pointers are dropped
        // after it.
        unsafe { sys::aeron_archive_persistent_subscription_close(self.raw.as_ptr()) };
    }
}

impl Drop for PersistentSubscription {
    fn drop(&mut self) {
        let inner = self.inner.take();
        RawClient::new(&self.aeron).release(move || drop(inner));
    }
}

rusteron_core::impl_debug!(PersistentSubscription: is_live(), is_replaying(), failure());
