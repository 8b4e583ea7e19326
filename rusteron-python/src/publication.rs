//! Publications.

use std::sync::Arc;

use pyo3::prelude::*;
use rusteron_client as rust;
use rusteron_client::{OfferError, OfferedBatch};

use crate::buffer::{Buffer, Lengths, Payload};
use crate::channel_uri::Channel;
use crate::claim::{self, Claim};
use crate::error;
use crate::settings::Seconds;
use crate::slot::{AnyPublication, Close, Owned, OwnedSlot, Scope, py_bool};
use crate::wait::{self, Deadline};

/// Messages that are passed to Rust at a time.
const BATCH: usize = 128;

/// Offers the messages of a batch from `start` on. Returns the number of accepted messages. Stops at a message that is
/// not in the buffer: another thread may write the lengths.
fn offer_batch(
    buffer: &[u8],
    lengths: &Lengths<'_>,
    start: usize,
    count: usize,
    mut offset: usize,
    mut offer: impl FnMut(&[&[u8]]) -> OfferedBatch,
) -> (usize, usize, Option<OfferError>) {
    let mut accepted = start;
    while accepted < count {
        let mut messages: [&[u8]; BATCH] = [&[]; BATCH];
        let mut length = BATCH.min(count - accepted);
        let mut next = offset;
        for (index, message) in messages.iter_mut().take(length).enumerate() {
            let end = next.saturating_add(lengths.get(accepted + index));
            let Some(bytes) = buffer.get(next..end) else {
                length = index;
                break;
            };
            *message = bytes;
            next = end;
        }
        if length == 0 {
            return (accepted, offset, None);
        }
        let offered = offer(&messages[..length]);
        offset += messages[..offered.accepted].iter().map(|message| message.len()).sum::<usize>();
        accepted += offered.accepted;
        if offered.stopped_by.is_some() {
            return (accepted, offset, offered.stopped_by);
        }
    }
    (accepted, offset, None)
}

/// A publication that threads can share.
///
/// Made by `Aeron.add_publication`. Publications of a client with the same channel and stream share a log buffer.
#[pyclass(subclass, frozen, module = "rusteron")]
pub(crate) struct Publication {
    slot: Arc<OwnedSlot<AnyPublication>>,
    /// The channel.
    #[pyo3(get)]
    channel: String,
    /// The stream id within the channel.
    #[pyo3(get)]
    stream_id: i32,
    /// The session id, which tells publishers of the same stream apart.
    #[pyo3(get)]
    session_id: i32,
    /// The id that the driver knows this publication by.
    #[pyo3(get)]
    registration_id: i64,
    /// The registration id of the publication that made the log buffer.
    #[pyo3(get)]
    original_registration_id: i64,
    /// Greatest length of a message, in bytes.
    #[pyo3(get)]
    max_message_length: usize,
    /// Greatest length of a message that is not sent in fragments, and of a claim, in bytes.
    #[pyo3(get)]
    max_payload_length: usize,
    /// Length of a term of the log buffer, in bytes.
    #[pyo3(get)]
    term_buffer_length: usize,
    /// The number of the counter with the position limit.
    #[pyo3(get)]
    publication_limit_counter_id: i32,
}

/// A publication with a log buffer of its own; offers are faster than a shared publication's.
///
/// Made by `Aeron.add_exclusive_publication`. Threads can share it as well, because an offer holds the GIL. Only one
/// claim at a time is possible. Offers during a claim raise `InUse`.
#[pyclass(extends = Publication, frozen, module = "rusteron")]
pub(crate) struct ExclusivePublication;

impl ExclusivePublication {
    pub(crate) fn new(
        py: Python<'_>,
        scope: &Scope,
        publication: rust::ExclusivePublication,
    ) -> PyResult<Py<Self>> {
        let handle = AnyPublication::Exclusive(publication);
        let publication = Publication::of(scope, "exclusive publication", handle);
        Py::new(py, PyClassInitializer::from(publication).add_subclass(Self))
    }
}

impl Publication {
    pub(crate) fn new(scope: &Scope, publication: rust::Publication) -> Self {
        Self::of(scope, "publication", AnyPublication::Shared(Arc::new(publication)))
    }

    fn of(scope: &Scope, noun: &'static str, handle: AnyPublication) -> Self {
        let constants = handle.constants().clone();
        Self {
            slot: scope.own(noun, handle),
            channel: constants.channel,
            stream_id: constants.stream_id,
            session_id: constants.session_id,
            registration_id: constants.registration_id,
            original_registration_id: constants.original_registration_id,
            max_message_length: constants.max_message_length,
            max_payload_length: constants.max_payload_length,
            term_buffer_length: constants.term_buffer_length,
            publication_limit_counter_id: constants.publication_limit_counter_id,
        }
    }

    /// Offers until the message is accepted or the deadline has passed; then returns the last error.
    fn offer_until(
        &self,
        py: Python<'_>,
        message: &Payload<'_, '_>,
        timeout: Seconds,
    ) -> PyResult<i64> {
        let mut last = OfferError::NotConnected;
        let attempt = || match self.slot.enter()?.offer(message.bytes()) {
            Ok(position) => Ok(Some(position)),
            Err(error) if error.is_retryable() => {
                last = error;
                Ok(None)
            }
            Err(error) => Err(error::client(error)),
        };
        let is_ready = || is_ready(&self.slot);
        let outcome = wait::until(py, None, Deadline::after(timeout.0), attempt, is_ready)?;
        outcome.ok_or_else(|| {
            let text =
                format!("{} stream {}: {last} for {:?}", self.channel, self.stream_id, timeout.0);
            error::timed_out(&text, &format!("{:?}", rust::Error::from(last).kind()))
        })
    }
}

/// True if an offer may succeed, or fails for good.
fn is_ready(slot: &OwnedSlot<AnyPublication>) -> bool {
    slot.is_closed_or(|publication| {
        publication.is_closed() || publication.available_window().is_ok_and(|window| window > 0)
    })
}

#[pymethods]
impl Publication {
    /// Offers one message of contiguous bytes. Returns the position after it.
    ///
    /// Without a timeout, offers once, holds the GIL, and raises `NotConnected`, `BackPressured` or
    /// `AdminAction` if the message is not accepted now. With a timeout in seconds, repeats the offer, waits
    /// without the GIL, and raises `TimedOut` in the end.
    #[pyo3(signature = (message, timeout=None))]
    fn offer(
        &self,
        py: Python<'_>,
        message: &Bound<'_, PyAny>,
        timeout: Option<Seconds>,
    ) -> PyResult<i64> {
        let message = Payload::of(message)?;
        match timeout {
            None => self.slot.enter()?.offer(message.bytes()).map_err(error::client),
            Some(timeout) => self.offer_until(py, &message, timeout),
        }
    }

    /// Offers one message. Returns the position after it, or `None` if the message is not accepted now.
    ///
    /// As `offer` without a timeout, but cheaper than an exception. Raises the errors that do not pass.
    fn try_offer(&self, message: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        let message = Payload::of(message)?;
        match self.slot.enter()?.offer(message.bytes()) {
            Ok(position) => Ok(Some(position)),
            Err(error) if error.is_retryable() => Ok(None),
            Err(error) => Err(error::client(error)),
        }
    }

    /// Offers messages that lie one after the other in a buffer. Returns the number of accepted messages.
    ///
    /// `lengths` is one length for all messages, or an array of 32-bit or 64-bit integers, or a list. The first
    /// `start` messages are skipped: to go on after a batch of which not all was accepted, add the returned
    /// number to `start`. Without a timeout, holds the GIL and returns at the first message that is not accepted
    /// now. With a timeout in seconds, waits without the GIL until all are accepted or the time is over. An
    /// interrupt of that wait raises, and the number of accepted messages is lost.
    #[pyo3(signature = (buffer, lengths, start=0, timeout=None))]
    fn offer_batch(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        lengths: &Bound<'_, PyAny>,
        start: usize,
        timeout: Option<Seconds>,
    ) -> PyResult<usize> {
        let buffer = Buffer::readable(buffer)?;
        let lengths = Lengths::of(lengths)?;
        let count = lengths.count_in(buffer.len())?;
        let mut offset = (0..start.min(count)).map(|index| lengths.get(index)).sum();
        let mut accepted = start.min(count);
        let first = accepted;
        let attempt = || {
            let mut publication = match self.slot.enter() {
                Ok(publication) => publication,
                // The caller learns what was sent. The next call raises the error.
                Err(_) if accepted > first => return Ok(Some(())),
                Err(error) => return Err(error),
            };
            let bytes = buffer.bytes();
            let offer = |messages: &[&[u8]]| publication.offer_batch(messages);
            let before = accepted;
            let stopped_by;
            (accepted, offset, stopped_by) =
                offer_batch(bytes, &lengths, accepted, count, offset, offer);
            match stopped_by {
                None => Ok(Some(())),
                Some(error) if error.is_retryable() => Ok(None),
                // The next call raises the error.
                Some(_) if before > first || accepted > before => Ok(Some(())),
                Some(error) => Err(error::client(error)),
            }
        };
        let is_ready = || is_ready(&self.slot);
        wait::until(py, None, Deadline::after_optional(timeout), attempt, is_ready)?;
        Ok(accepted - first)
    }

    /// Claims a range of the log buffer for a message of `length` bytes, which is written without a copy.
    ///
    /// Raises as `offer` does. `length` is at most `max_payload_length`.
    ///
    /// >>> import rusteron
    /// >>> with rusteron.MediaDriver.launch_embedded() as driver, rusteron.Aeron(driver) as aeron:
    /// ...     subscription = aeron.add_subscription("aeron:ipc", 1001)
    /// ...     publication = aeron.add_exclusive_publication("aeron:ipc", 1001)
    /// ...     publication.await_connected(10)
    /// ...     with publication.try_claim(5) as view:
    /// ...         view[:] = b"hello"
    /// ...     print(next(subscription))
    /// b'hello'
    fn try_claim(&self, py: Python<'_>, length: usize) -> PyResult<Py<Claim>> {
        claim::new(py, Claim::of(&self.slot, length)?)
    }

    /// Waits until a subscriber is connected, without the GIL. Raises `TimedOut` after `timeout` seconds.
    fn await_connected(&self, py: Python<'_>, timeout: Seconds) -> PyResult<()> {
        let look = |publication: &Owned<AnyPublication>| {
            (!publication.is_closed()).then(|| publication.is_connected())
        };
        let failure = format!("{} stream {}: no subscriber", self.channel, self.stream_id);
        wait::connected(py, &self.slot, timeout, look, &failure)
    }

    /// True if a subscriber is connected.
    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        Ok(self.slot.enter()?.is_connected())
    }

    /// True if the publication was closed, by `close()`, with its client, or by a fatal error.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed() || self.slot.enter().is_ok_and(|publication| publication.is_closed())
    }

    /// The position after the last message.
    #[getter]
    fn position(&self) -> PyResult<i64> {
        self.slot.enter()?.position().map_err(error::client)
    }

    /// The position up to which messages are accepted now.
    #[getter]
    fn position_limit(&self) -> PyResult<i64> {
        self.slot.enter()?.position_limit().map_err(error::client)
    }

    /// Bytes that are accepted now, frame headers included.
    #[getter]
    fn available_window(&self) -> PyResult<usize> {
        self.slot.enter()?.available_window().map_err(error::client)
    }

    /// The state of the channel's sockets: "initializing", "active", "closing", "errored" or "closed".
    #[getter]
    fn channel_status(&self) -> PyResult<String> {
        Ok(format!("{:?}", self.slot.enter()?.channel_status()).to_lowercase())
    }

    /// Adds a destination, to a channel with `control-mode=manual`. Returns the destination's id.
    fn add_destination(&self, py: Python<'_>, channel: Channel) -> PyResult<i64> {
        let mut request =
            self.slot.enter()?.async_add_destination(&*channel).map_err(error::client)?;
        let id = request.registration_id();
        wait::outcome(py, || request.poll(), error::client)?;
        Ok(id)
    }

    /// Removes a destination by its channel.
    fn remove_destination(&self, py: Python<'_>, channel: Channel) -> PyResult<()> {
        let mut request =
            self.slot.enter()?.async_remove_destination(&*channel).map_err(error::client)?;
        wait::outcome(py, || request.poll(), error::client).map(drop)
    }

    /// Closes the publication, after a claim that is under way. Does nothing if the publication is closed.
    fn close(&self) {
        self.slot.close();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let publication = slf.get();
        Ok(format!(
            "{}(channel='{}', stream_id={}, session_id={}, is_closed={})",
            slf.get_type().name()?,
            publication.channel,
            publication.stream_id,
            publication.session_id,
            py_bool(publication.is_closed())
        ))
    }
}
