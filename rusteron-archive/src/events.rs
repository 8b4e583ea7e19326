//! Events that C reports while it waits for an answer, and their handlers.
//!
//! C calls back in the middle of a request, with its lock held and its poller half way. So the
//! callbacks only put events into a queue. The handlers run when C has returned: they may use the
//! archive, and a panic in a handler meets no C frame.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use rusteron_client::Position;
use rusteron_core::RecordingId;
use rusteron_core::ffi::lossy;
use rusteron_sys::archive as sys;

use crate::checks::unless_null;
use crate::error::ArchiveError;
use crate::ids::{ControlSessionId, RecordingSubscriptionId};

type OnSignal = Box<dyn FnMut(&RecordingSignal) + Send>;
type OnError = Box<dyn FnMut(&ArchiveError) + Send>;

/// The queue of events, and their handlers. C has a pointer to it.
#[derive(Default)]
pub(crate) struct Events {
    queue: Mutex<VecDeque<Event>>,
    handlers: Mutex<Handlers>,
    /// Read without the handlers' lock, which is held while they run.
    wants_errors: AtomicBool,
}

#[derive(Default)]
struct Handlers {
    on_signal: Option<OnSignal>,
    on_error: Option<OnError>,
}

enum Event {
    Signal(RecordingSignal),
    Error(ArchiveError),
}

impl Events {
    pub(crate) fn set_on_signal(&self, handler: OnSignal) {
        lock(&self.handlers).on_signal = Some(handler);
    }

    pub(crate) fn set_on_error(&self, handler: OnError) {
        lock(&self.handlers).on_error = Some(handler);
        self.wants_errors.store(true, Ordering::Relaxed);
    }

    /// Returns whether there is a handler of errors.
    pub(crate) fn has_on_error(&self) -> bool {
        self.wants_errors.load(Ordering::Relaxed)
    }

    /// Calls the handlers with the events in the queue, in order. If another thread, or a handler
    /// further up on this stack, is doing so, that caller goes on until the queue is empty.
    pub(crate) fn deliver(&self) {
        while !lock(&self.queue).is_empty() {
            let mut handlers = match self.handlers.try_lock() {
                Ok(handlers) => handlers,
                Err(TryLockError::Poisoned(handlers)) => handlers.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            loop {
                let Some(event) = lock(&self.queue).pop_front() else { break };
                handlers.call(&event);
            }
            // Another thread may have added an event between the last check and this unlock.
            drop(handlers);
        }
    }

    /// Returns the pointer that C passes to its callbacks.
    pub(crate) fn clientd(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }

    pub(crate) fn push_signal(&self, signal: &sys::aeron_archive_recording_signal_t) {
        self.push(Event::Signal(RecordingSignal::from_raw(signal)));
    }

    /// Keeps an error for the handler. Without a handler, logs it.
    pub(crate) fn push_error(&self, error: ArchiveError) {
        if self.has_on_error() {
            self.push(Event::Error(error));
        } else {
            log::warn!("error of an archive that belongs to no request: {error}");
        }
    }

    fn push(&self, event: Event) {
        lock(&self.queue).push_back(event);
    }
}

impl Handlers {
    fn call(&mut self, event: &Event) {
        match event {
            Event::Signal(signal) => {
                if let Some(on_signal) = &mut self.on_signal {
                    on_signal(signal);
                }
            }
            Event::Error(error) => {
                if let Some(on_error) = &mut self.on_error {
                    on_error(error);
                }
            }
        }
    }
}

/// A handler that panicked is called again for the next event, as the client's are.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// `clientd` comes from live [`Events`]; the signal is live.
pub(crate) unsafe extern "C" fn on_recording_signal(
    signal: *mut sys::aeron_archive_recording_signal_t,
    clientd: *mut c_void,
) {
    // SAFETY: C passes the `clientd` of the context's `Events`, which outlive its session, and a signal that lives
    // during the call.
    let (events, signal) = unsafe { (&*clientd.cast::<Events>(), &*signal) };
    events.push_signal(signal);
}

/// # Safety
/// `clientd` comes from live [`Events`]; the text is terminated.
pub(crate) unsafe extern "C" fn on_error(
    clientd: *mut c_void,
    code: c_int,
    message: *const c_char,
) {
    // SAFETY: C passes the `clientd` of the context's `Events`, which outlive its session, and a text with a NUL.
    let (events, message) = unsafe { (&*clientd.cast::<Events>(), lossy(message)) };
    events.push(Event::Error(ArchiveError::reported("archive", code, &message)));
}

rusteron_core::impl_debug!(Events);

/// An event of a recording of this session.
///
/// Passed to the consumer that [`ArchiveContext::set_recording_signal_consumer`] sets.
///
/// [`ArchiveContext::set_recording_signal_consumer`]: crate::ArchiveContext::set_recording_signal_consumer
#[doc(alias = "RecordingSignalConsumer")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RecordingSignal {
    /// The kind of event.
    pub kind: RecordingSignalKind,
    /// The recording.
    pub recording_id: RecordingId,
    /// The archive's subscription that records it, or `None` if there is none.
    pub subscription_id: Option<RecordingSubscriptionId>,
    /// The position in the recording, or `None` if the recording is empty or gone.
    pub position: Option<Position>,
    /// The session that received the signal.
    pub control_session_id: ControlSessionId,
}

/// Kinds of recording signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordingSignalKind {
    /// Recording has started.
    Start,
    /// Recording has stopped.
    Stop,
    /// Recording continues at the end of the existing recording.
    Extend,
    /// Replication into the recording has started.
    Replicate,
    /// The replicated recording has joined the live stream.
    Merge,
    /// The replicated recording has caught up with its source.
    Sync,
    /// Recording or replication has stopped, and the recording has been deleted.
    Delete,
    /// Replication has ended, successfully or not.
    ReplicateEnd,
    /// A number that this version does not know.
    Unknown(i32),
}

impl RecordingSignal {
    pub(crate) fn from_raw(raw: &sys::aeron_archive_recording_signal_t) -> Self {
        Self {
            kind: RecordingSignalKind::from_code(raw.recording_signal_code),
            recording_id: RecordingId::new(raw.recording_id),
            subscription_id: unless_null(raw.subscription_id).map(RecordingSubscriptionId::new),
            position: unless_null(raw.position),
            control_session_id: ControlSessionId::new(raw.control_session_id),
        }
    }
}

impl RecordingSignalKind {
    /// Converts a number of `RecordingSignal` in the archive's SBE schema.
    fn from_code(code: i32) -> Self {
        match code {
            0 => Self::Start,
            1 => Self::Stop,
            2 => Self::Extend,
            3 => Self::Replicate,
            4 => Self::Merge,
            5 => Self::Sync,
            6 => Self::Delete,
            7 => Self::ReplicateEnd,
            code => Self::Unknown(code),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    fn signal(recording_id: RecordingId) -> sys::aeron_archive_recording_signal_t {
        sys::aeron_archive_recording_signal_t {
            control_session_id: 1,
            recording_id: recording_id.get(),
            subscription_id: -1,
            position: -1,
            recording_signal_code: 0,
        }
    }

    fn push(events: &Events, recording_id: RecordingId) {
        // SAFETY: both live during the call.
        unsafe { on_recording_signal(&mut signal(recording_id), events.clientd()) };
    }

    #[test]
    fn delivery_in_order() {
        let events = Events::default();
        let (sender, receiver) = mpsc::channel();
        let errors = sender.clone();
        events.set_on_signal(Box::new(move |signal| {
            sender.send(format!("signal {}", signal.recording_id)).expect("a receiver");
        }));
        events.set_on_error(Box::new(move |error| {
            errors
                .send(format!("error {}: {}", error.code(), error.message()))
                .expect("a receiver");
        }));
        push(&events, RecordingId::new(1));
        let text = c"response for correlationId=3, errorCode=205, error: unknown recording id: 9";
        // SAFETY: both live during the call.
        unsafe { on_error(events.clientd(), 205, text.as_ptr()) };
        push(&events, RecordingId::new(2));
        assert!(receiver.try_recv().is_err(), "nothing is called before");
        events.deliver();
        let received: Vec<_> = receiver.try_iter().collect();
        assert_eq!(received, ["signal 1", "error 205: unknown recording id: 9", "signal 2"]);
    }

    #[test]
    fn handler_pushes_and_panics() {
        let events = Arc::new(Events::default());
        let (sender, receiver) = mpsc::channel();
        let weak = Arc::downgrade(&events);
        events.set_on_signal(Box::new(move |signal| {
            sender.send(signal.recording_id).expect("a receiver");
            if signal.recording_id == 1 {
                let events = weak.upgrade().expect("events");
                push(&events, RecordingId::new(2));
                events.deliver();
            }
            assert_ne!(signal.recording_id, 2, "on purpose");
        }));
        push(&events, RecordingId::new(1));
        push(&events, RecordingId::new(3));
        let delivery = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| events.deliver()));
        assert!(delivery.is_err());
        push(&events, RecordingId::new(4));
        events.deliver();
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 3, 2, 4]);
    }
}
