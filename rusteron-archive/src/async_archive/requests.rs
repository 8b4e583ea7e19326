//! The requests of a session that wait for their answers.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{self, Poll};

use rusteron_client::raw_client::RawClient;
use rusteron_client::{Error, ErrorKind};
use rusteron_core::ffi::{Fallible, last_error, wake};
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::async_archive::message::{Code, Message, bytes};
use crate::checks::Id;
use crate::error::{ArchiveError, ArchiveErrorKind, Result};
use crate::ids::CorrelationId;
use crate::recording_descriptor::{RecordingDescriptor, RecordingSubscriptionDescriptor};

/// A request to an archive that has been sent; made by the methods of
/// [`AsyncArchive`](crate::AsyncArchive).
///
/// Poll it until it returns the answer or an error, or await it as a future. A poll also collects
/// the answers to other requests of the session, so that requests can be polled in any order.
///
/// A request has no deadline of its own: drop it to give up. The archive carries the request out all
/// the same, and the late answer is dropped. A request keeps its session open.
#[must_use = "the answer is dropped when this is dropped"]
pub struct Request<T> {
    requests: Arc<Requests>,
    correlation_id: CorrelationId,
    convert: fn(Answer) -> T,
    has_outcome: bool,
}

impl<T> Request<T> {
    pub(super) fn new(
        requests: Arc<Requests>,
        correlation_id: CorrelationId,
        convert: fn(Answer) -> T,
    ) -> Self {
        Self { requests, correlation_id, convert, has_outcome: false }
    }

    /// Returns the id of the request, which the archive's log and errors have as well.
    pub fn correlation_id(&self) -> CorrelationId {
        self.correlation_id
    }

    /// Returns the answer, or `None` if it has not come yet. Does not wait for the archive. Passes
    /// signals and errors that belong to no request to the context's handlers.
    ///
    /// # Errors
    /// The outcome is returned once, and can be an error:
    /// - the archive's, with its kind, number and text, as for the method of the same name of
    ///   [`Archive`](crate::Archive);
    /// - [`NotConnected`](crate::ArchiveErrorKind::NotConnected): the connection was lost;
    /// - [`Client`](crate::ArchiveErrorKind::Client) with [`ErrorKind::ClientClosed`].
    ///
    /// Later polls return `Client` with [`ErrorKind::IllegalState`]. In a callback of a conductor or
    /// of an archive, a poll for an answer that has not come yet returns `Client` with
    /// [`ErrorKind::CalledFromConductor`] or [`Reentrant`](ArchiveErrorKind::Reentrant), and can be
    /// repeated elsewhere. A message that cannot be decoded fails the next
    /// [`AsyncArchive::poll`](crate::AsyncArchive::poll) instead.
    pub fn poll(&mut self) -> Result<Option<T>> {
        if self.has_outcome {
            let text = format!("request {} has given its outcome already", self.correlation_id);
            return Err(Error::new(ErrorKind::IllegalState, text).into());
        }
        if let Some(outcome) = self.take() {
            return outcome.map(Some);
        }
        let polled = self.requests.poll();
        if let Some(outcome) = self.take() {
            return outcome.map(Some);
        }
        match polled {
            Ok(_) => Ok(None),
            Err(error) if is_of_message(error.kind()) => {
                self.requests.keep_fault(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn take(&mut self) -> Option<Result<T>> {
        let outcome = self.requests.take(self.correlation_id)?;
        self.has_outcome = true;
        Some(outcome.map(self.convert))
    }
}

/// Returns whether a poll has failed because of one message, which is passed over.
fn is_of_message(kind: ArchiveErrorKind) -> bool {
    matches!(kind, ArchiveErrorKind::MalformedMessage | ArchiveErrorKind::IncompatibleVersion)
}

/// Resolves to the answer. Needs no particular runtime: a thread of the client library, one per
/// process, wakes the task.
///
/// With a client without a conductor thread, other code has to call
/// [`Aeron::do_work`](rusteron_client::Aeron::do_work) meanwhile.
impl<T> Future for Request<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut task::Context<'_>) -> Poll<Self::Output> {
        wake::outcome(Request::poll(self.get_mut()), context)
    }
}

impl<T> Drop for Request<T> {
    fn drop(&mut self) {
        if !self.has_outcome {
            self.requests.forget(self.correlation_id);
        }
    }
}

impl<T> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("correlation_id", &self.correlation_id)
            .field("has_outcome", &self.has_outcome)
            .finish_non_exhaustive()
    }
}

/// A session, and its requests by correlation id.
pub(super) struct Requests {
    pub(super) archive: Archive,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    requests: HashMap<CorrelationId, Pending>,
    /// An error of a poll that belongs to no request, for the next poll of the session.
    fault: Option<ArchiveError>,
}

/// A request that was sent.
struct Pending {
    operation: &'static str,
    relevant_id: Option<i64>,
    expected: Expected,
    answer: Answer,
    outcome: Option<Result<()>>,
}

/// The kind of answer to a request, and the number of descriptors at which a listing ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expected {
    Response,
    Recordings(usize),
    Subscriptions(usize),
}

/// An answer: a number, or descriptors.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) relevant_id: i64,
    pub(super) recordings: Vec<RecordingDescriptor>,
    pub(super) subscriptions: Vec<RecordingSubscriptionDescriptor>,
}

const POLL: &str = "poll";

impl Requests {
    pub(super) fn new(archive: Archive) -> Self {
        Self { archive, waiting: Mutex::default() }
    }

    /// Sends a request, and returns its correlation id. `call` is one of C's functions that send.
    pub(super) fn send(
        &self,
        operation: &'static str,
        relevant_id: Option<Id>,
        expected: Expected,
        call: impl FnOnce(*mut sys::aeron_archive_proxy_t, i64) -> bool,
    ) -> Result<CorrelationId> {
        self.archive.aeron().check_open()?;
        let sent = self.archive.undelivered_request(operation, relevant_id, |raw| {
            // SAFETY: `undelivered_request` passes the live structure, and its lock keeps other users away.
            let (number, proxy) = unsafe {
                (sys::aeron_archive_next_correlation_id(raw), sys::rusteron_archive_proxy(raw, 1))
            };
            if !call(proxy, number) {
                const NO_SPACE: i32 = -1;
                let error = last_error();
                return if error.code() == NO_SPACE { Ok(None) } else { Err(error) };
            }
            let correlation_id = CorrelationId::new(number);
            let relevant_id = relevant_id.map(|(_name, id)| id);
            let answer = Answer::default();
            let pending = Pending { operation, relevant_id, expected, answer, outcome: None };
            // Before the lock of the session is released, as the answer may be polled then.
            if let Some(mut waiting) = self.waiting() {
                waiting.requests.insert(correlation_id, pending);
            }
            Ok(Some(correlation_id))
        });
        self.archive.deliver();
        sent?.ok_or_else(|| {
            let text = "no space for the request now";
            ArchiveError::new(ArchiveErrorKind::BackPressured, operation, text)
                .about(relevant_id.map(|(_name, id)| id))
        })
    }

    /// Polls for messages, and gives them to their requests. Returns their number.
    pub(super) fn poll(&self) -> Result<usize> {
        const FRAGMENT_LIMIT: usize = 10;
        let open = self.archive.aeron().check_open().map_err(ArchiveError::from);
        let polled = open.and_then(|()| {
            self.archive.undelivered_request(POLL, None, |raw| {
                let Some(mut waiting) = self.waiting() else { return Ok(0) };
                let mut messages = Messages { archive: &self.archive, waiting: &mut waiting };
                // SAFETY: `undelivered_request` passes the live structure; C uses the messages
                // during the call only.
                unsafe {
                    sys::rusteron_archive_poll_messages(
                        raw,
                        Some(on_message),
                        (&raw mut messages).cast(),
                        FRAGMENT_LIMIT,
                    )
                }
                .into_result()
            })
        });
        let outcome = match polled {
            Ok(0) if !self.archive.is_connected() => {
                let text = "the connection to the archive was lost";
                Err(ArchiveError::new(ArchiveErrorKind::NotConnected, POLL, text))
            }
            Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
            Err(error) => Err(error),
        };
        let end = outcome.as_ref().err().filter(|error| is_final(error.kind()));
        if let Some((error, mut waiting)) = end.and_then(|error| Some((error, self.waiting()?))) {
            waiting.fail_all(error);
        }
        self.archive.deliver();
        outcome
    }

    /// Takes the answer to a request, or its error. `None` while there is neither.
    pub(super) fn take(&self, correlation_id: CorrelationId) -> Option<Result<Answer>> {
        let mut waiting = self.waiting()?;
        waiting.requests.get(&correlation_id)?.outcome.as_ref()?;
        let pending = waiting.requests.remove(&correlation_id)?;
        pending.outcome.map(|outcome| outcome.map(|()| pending.answer))
    }

    /// Discards a request. Its answer is dropped when it comes.
    pub(super) fn forget(&self, correlation_id: CorrelationId) {
        if let Some(mut waiting) = self.waiting() {
            waiting.requests.remove(&correlation_id);
        }
    }

    /// Keeps the error of a request's poll that is not the request's own.
    pub(super) fn keep_fault(&self, error: ArchiveError) {
        if let Some(mut waiting) = self.waiting() {
            waiting.fault.get_or_insert(error);
        }
    }

    pub(super) fn take_fault(&self) -> Option<ArchiveError> {
        self.waiting()?.fault.take()
    }

    /// `None` in a forked child: a thread of the parent may have held the lock.
    fn waiting(&self) -> Option<MutexGuard<'_, Waiting>> {
        let is_ours = RawClient::new(self.archive.aeron()).is_of_this_process();
        is_ours.then(|| self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns whether no answer can come after this error.
fn is_final(kind: ArchiveErrorKind) -> bool {
    matches!(
        kind,
        ArchiveErrorKind::NotConnected | ArchiveErrorKind::Client(ErrorKind::ClientClosed)
    )
}

impl Waiting {
    fn fail_all(&mut self, error: &ArchiveError) {
        for pending in self.requests.values_mut() {
            let error = || error.clone().during(pending.operation).about(pending.relevant_id);
            pending.outcome.get_or_insert_with(|| Err(error()));
        }
    }

    fn on_response(
        &mut self,
        archive: &Archive,
        correlation_id: CorrelationId,
        relevant_id: i64,
        code: Code,
        text: &str,
    ) {
        let Some(pending) = self.requests.get_mut(&correlation_id) else {
            if code == Code::Error {
                let error = refused("archive", relevant_id, text, correlation_id);
                archive.context().events().push_error(error);
            }
            return;
        };
        let unknown = |code: u32| {
            let kind =
                ArchiveErrorKind::from_code(code as i32).unwrap_or(ArchiveErrorKind::Refused);
            let text = format!("{kind:?}: {relevant_id}");
            Err(ArchiveError::reported(pending.operation, code as i32, &text)
                .about(Some(relevant_id)))
        };
        let outcome = match (code, pending.expected) {
            (Code::Ok, _)
            | (Code::RecordingUnknown, Expected::Recordings(_))
            | (Code::SubscriptionUnknown, Expected::Subscriptions(_)) => Ok(()),
            (Code::RecordingUnknown, _) => unknown(sys::AERON_ARCHIVE_ERROR_CODE_UNKNOWN_RECORDING),
            (Code::SubscriptionUnknown, _) => {
                unknown(sys::AERON_ARCHIVE_ERROR_CODE_UNKNOWN_SUBSCRIPTION)
            }
            (Code::Error, _) => Err(refused(pending.operation, relevant_id, text, correlation_id)
                .about(pending.relevant_id)),
        };
        pending.answer.relevant_id = relevant_id;
        pending.outcome.get_or_insert(outcome);
    }

    fn on_message(&mut self, archive: &Archive, message: Message) {
        match message {
            Message::Response { correlation_id, relevant_id, code, text } => {
                self.on_response(archive, correlation_id, relevant_id, code, &text);
            }
            Message::Recording { correlation_id, descriptor } => {
                let Some(pending) = self.requests.get_mut(&correlation_id) else { return };
                if let Expected::Recordings(count) = pending.expected {
                    pending.answer.recordings.push(descriptor);
                    if pending.answer.recordings.len() >= count {
                        pending.outcome.get_or_insert(Ok(()));
                    }
                }
            }
            Message::Subscription { correlation_id, descriptor } => {
                let Some(pending) = self.requests.get_mut(&correlation_id) else { return };
                if let Expected::Subscriptions(count) = pending.expected {
                    pending.answer.subscriptions.push(descriptor);
                    if pending.answer.subscriptions.len() >= count {
                        pending.outcome.get_or_insert(Ok(()));
                    }
                }
            }
            Message::Signal(signal) => archive.context().events().push_signal(&signal),
        }
    }
}

/// Returns the error of an archive that refuses a request.
fn refused(
    operation: &'static str,
    number: i64,
    text: &str,
    correlation_id: CorrelationId,
) -> ArchiveError {
    /// C moves the archive's numbers up.
    const FIRST: i32 = sys::AERON_ARCHIVE_ERROR_CODE_GENERIC as i32;
    let code = i32::try_from(number).ok().and_then(|number| number.checked_add(FIRST));
    ArchiveError::reported(operation, code.unwrap_or(FIRST), text).answering(correlation_id)
}

/// The argument of [`on_message`].
struct Messages<'a> {
    archive: &'a Archive,
    waiting: &'a mut Waiting,
}

/// # Safety
/// `clientd` points to [`Messages`] with no other user; the message has `length` bytes.
unsafe extern "C" fn on_message(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    _header: *mut rusteron_sys::aeron_header_t,
) -> rusteron_sys::aeron_controlled_fragment_handler_action_t {
    // SAFETY: C passes the `clientd` that its poll was given, a `Messages` that only this handler uses, and a
    // message of `length` bytes.
    let (messages, message) =
        unsafe { (&mut *clientd.cast::<Messages<'_>>(), bytes(buffer, length)) };
    if let Some(message) = Message::decode(message, messages.archive.control_session_id()) {
        messages.waiting.on_message(messages.archive, message);
    }
    rusteron_sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_CONTINUE
}
