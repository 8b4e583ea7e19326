//! Subscriptions.
//!
//! A poll is a controlled poll in Rust. If the handler raises, the poll answers `Abort` for this message and
//! for all later ones of every publisher. Messages before it are consumed. The message itself comes again,
//! because only the handler knows whether it was dealt with, and a lost message cannot be had again.
//!
//! `poll_batch` copies into the caller's memory, which outlives the poll.

use std::ptr;
use std::sync::Arc;

use pyo3::exceptions::PyStopAsyncIteration;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rusteron_client as rust;
use rusteron_client::Action;

use crate::buffer::{Buffer, Integers};
use crate::channel_uri::Channel;
use crate::error;
use crate::exit;
use crate::message::{self, Header, MessageView};
use crate::notifier::{self, SubscriptionSlot, Waiter, has_message};
use crate::settings::Seconds;
use crate::slot::{Close, Owned, Scope, py_bool};
use crate::wait::{self, Deadline, Idle};

/// Fragments that a batch polls at a time. The publisher learns after each poll how far it may write.
const BATCH_FRAGMENTS: usize = 256;

/// The action that a handler returned. `None` goes on.
fn action(returned: &Bound<'_, PyAny>) -> PyResult<Action> {
    if returned.is_none() {
        return Ok(Action::Continue);
    }
    match returned.extract::<u8>().ok() {
        Some(1) => Ok(Action::Abort),
        Some(2) => Ok(Action::Break),
        Some(3) => Ok(Action::Commit),
        Some(4) => Ok(Action::Continue),
        _ => Err(error::invalid(&format!(
            "a handler returned {returned}; must be an Action or None"
        ))),
    }
}

/// Polls a Rust subscription or image with a function that can fail. The message of the failure comes again.
pub(crate) fn poll_with(
    poll: impl FnOnce(&mut dyn FnMut(&[u8], &rust::Header<'_>) -> Action) -> PyResult<usize>,
    mut handler: impl FnMut(&[u8], &rust::Header<'_>) -> PyResult<Action>,
) -> PyResult<usize> {
    let mut failure = None;
    let polled = poll(&mut |message, header| {
        // The failed message stays, and so do all messages behind it, of every publisher.
        if failure.is_some() {
            return Action::Abort;
        }
        handler(message, header).unwrap_or_else(|error| {
            failure = Some(error);
            Action::Abort
        })
    });
    // The handler's exception says more than an end of the client meanwhile.
    failure.map_or(polled, Err)
}

/// Receives the messages of a channel and stream.
///
/// Made by `Aeron.add_subscription`. One call at a time uses a subscription; a call during another thread's poll, or in a
/// handler of this subscription's poll, raises `InUse`.
///
/// `for message in subscription` yields each `Message`, and waits for it without the GIL, until `close()` of the
/// subscription or its client. If the client ends for another reason, such as a dead driver, it raises `Closed`.
/// `async for` does so under asyncio.
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct Subscription {
    slot: Arc<SubscriptionSlot>,
    /// The channel.
    #[pyo3(get)]
    channel: String,
    /// The stream id within the channel.
    #[pyo3(get)]
    stream_id: i32,
    /// The id that the driver knows this subscription by.
    #[pyo3(get)]
    registration_id: i64,
}

impl Subscription {
    pub(crate) fn new(scope: &Scope, subscription: rust::Subscription) -> Self {
        let constants = subscription.constants();
        let (channel, stream_id) = (constants.channel.clone(), constants.stream_id);
        let registration_id = constants.registration_id;
        Self { slot: scope.own("subscription", subscription), channel, stream_id, registration_id }
    }

    pub(crate) fn slot(&self) -> &Arc<SubscriptionSlot> {
        &self.slot
    }

    /// Polls once, or until there are fragments or the deadline has passed.
    fn poll_until(
        &self,
        py: Python<'_>,
        fragment_limit: usize,
        timeout: Option<Seconds>,
        idle: Option<Idle>,
        mut handler: impl FnMut(&[u8], &rust::Header<'_>) -> PyResult<Action>,
    ) -> PyResult<usize> {
        // A wait for no fragments would never end before its deadline.
        if fragment_limit == 0 {
            return Err(error::invalid("fragment_limit: 0; must be 1 or more"));
        }
        let mut attempt = || {
            let mut subscription = self.slot.enter()?;
            poll_with(
                |handler| {
                    subscription.controlled_poll(handler, fragment_limit).map_err(error::client)
                },
                &mut handler,
            )
        };
        if timeout.is_none() {
            return attempt();
        }
        let found = wait::until(
            py,
            idle,
            Deadline::after_optional(timeout),
            || attempt().map(|fragments| (fragments > 0).then_some(fragments)),
            || has_message(&self.slot),
        )?;
        Ok(found.unwrap_or(0))
    }

    /// Waits for one message. `None`: the time is over, or `close()` was called.
    fn next_before<'py>(
        &self,
        py: Python<'py>,
        deadline: Deadline,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let attempt = || self.take_one(py);
        let outcome = wait::until(py, None, deadline, attempt, || has_message(&self.slot));
        self.unless_closed(py, outcome)
    }

    /// Turns `Closed` after `close()` into `None`. Other errors, such as those of signal handlers, stay.
    fn unless_closed<T>(
        &self,
        py: Python<'_>,
        outcome: PyResult<Option<T>>,
    ) -> PyResult<Option<T>> {
        self.slot.check_process()?;
        match outcome {
            Err(raised) if self.slot.is_closed() && error::is_a(py, &raised, "Closed") => Ok(None),
            outcome => outcome,
        }
    }

    /// Takes one message, if there is one.
    fn take_one<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut subscription = self.slot.enter()?;
        let mut taken = None;
        loop {
            let fragments = poll_with(
                |handler| subscription.controlled_poll(handler, 1).map_err(error::client),
                |message, header| {
                    taken = Some(message::received(py, message, header)?);
                    Ok(Action::Continue)
                },
            )?;
            if taken.is_some() || fragments == 0 {
                return Ok(taken);
            }
        }
    }
}

#[pymethods]
impl Subscription {
    /// Calls `handler(message, header)` for the messages that have arrived, at most `fragment_limit` fragments.
    ///
    /// The message is `bytes`, whole, and can be kept. Returns the number of fragments. Without a timeout, looks once and
    /// holds the GIL. With a timeout in seconds, waits for fragments without the GIL. `idle_strategy` is the action of the
    /// waiting loop: "spin", "yield", "sleep-ns", "backoff" (the default) or "noop". The first two react soonest.
    ///
    /// An exception of the handler ends the poll and reaches the caller. Messages before it are consumed. The message of
    /// the exception comes again with the next poll, as do later ones.
    ///
    /// >>> import rusteron
    /// >>> with rusteron.MediaDriver.launch_embedded() as driver, rusteron.Aeron(driver) as aeron:
    /// ...     subscription = aeron.add_subscription("aeron:ipc", 1001)
    /// ...     publication = aeron.add_publication("aeron:ipc", 1001)
    /// ...     _ = publication.offer(b"hello", timeout=10)
    /// ...     fragments = subscription.poll(lambda message, header: print(message), timeout=10)
    /// b'hello'
    #[pyo3(signature = (handler, fragment_limit=10, timeout=None, idle_strategy=None))]
    fn poll(
        &self,
        py: Python<'_>,
        handler: &Bound<'_, PyAny>,
        fragment_limit: usize,
        timeout: Option<Seconds>,
        idle_strategy: Option<Idle>,
    ) -> PyResult<usize> {
        self.poll_until(py, fragment_limit, timeout, idle_strategy, |message, header| {
            let message = PyBytes::new(py, message);
            exit::call(handler, (message, Bound::new(py, Header::from(header))?))?;
            Ok(Action::Continue)
        })
    }

    /// As `poll`, with a handler that returns an `Action` for each message, or `None` to go on.
    #[pyo3(signature = (handler, fragment_limit=10, timeout=None, idle_strategy=None))]
    fn controlled_poll(
        &self,
        py: Python<'_>,
        handler: &Bound<'_, PyAny>,
        fragment_limit: usize,
        timeout: Option<Seconds>,
        idle_strategy: Option<Idle>,
    ) -> PyResult<usize> {
        self.poll_until(py, fragment_limit, timeout, idle_strategy, |message, header| {
            let message = PyBytes::new(py, message);
            action(&exit::call(handler, (message, Bound::new(py, Header::from(header))?))?)
        })
    }

    /// As `poll`, but `handler(view, header)` gets a `MessageView`, which copies only what the handler asks for.
    #[pyo3(signature = (handler, fragment_limit=10, timeout=None, idle_strategy=None))]
    fn poll_views(
        &self,
        py: Python<'_>,
        handler: &Bound<'_, PyAny>,
        fragment_limit: usize,
        timeout: Option<Seconds>,
        idle_strategy: Option<Idle>,
    ) -> PyResult<usize> {
        self.poll_until(py, fragment_limit, timeout, idle_strategy, |message, header| {
            MessageView::lend(py, &self.slot, message, |view| {
                exit::call(handler, (view, Bound::new(py, Header::from(header))?))?;
                Ok(Action::Continue)
            })
        })
    }

    /// Copies the messages that have arrived into one buffer, one after the other. Returns their number.
    ///
    /// `offsets` is a writable array of 32-bit or 64-bit integers. The message `n` is `buffer[offsets[n]:offsets[n + 1]]`.
    /// At most `len(offsets) - 1` messages are taken. Messages that do not fit come with the next poll; a message that is
    /// longer than the whole buffer raises `InvalidArgument`, and stays. Without a timeout, looks once and holds the GIL.
    /// With a timeout in seconds, waits for a message without the GIL, with an idle strategy as of `poll`.
    #[pyo3(signature = (buffer, offsets, timeout=None, idle_strategy=None))]
    fn poll_batch(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        offsets: &Bound<'_, PyAny>,
        timeout: Option<Seconds>,
        idle_strategy: Option<Idle>,
    ) -> PyResult<usize> {
        let buffer = Buffer::writable(buffer)?;
        let offsets = Integers::writable("offsets", offsets)?;
        if offsets.len() < 2 {
            let text = format!("offsets: {} integer(s); must be 2 or more", offsets.len());
            return Err(error::invalid(&text));
        }
        let capacity = buffer.len().min(offsets.max());
        let limit = offsets.len() - 1;
        let start = buffer.as_ptr();
        let attempt = || {
            let mut subscription = self.slot.enter()?;
            let (mut count, mut end, mut too_long) = (0, 0, None);
            let mut is_full = false;
            offsets.set(0, 0);
            while count < limit && !is_full {
                let fragments = BATCH_FRAGMENTS.min(limit - count);
                let copy = |message: &[u8], _: &rust::Header<'_>| {
                    // The failed message stays, and so do all messages behind it, of every publisher.
                    if is_full {
                        return Action::Abort;
                    }
                    if message.len() > capacity - end {
                        is_full = true;
                        too_long = (message.len() > capacity).then_some(message.len());
                        return Action::Abort;
                    }
                    // SAFETY: the range lies within the writable buffer, which is not a frame of the log.
                    unsafe {
                        ptr::copy_nonoverlapping(message.as_ptr(), start.add(end), message.len())
                    };
                    end += message.len();
                    count += 1;
                    offsets.set(count, end);
                    Action::Continue
                };
                let polled = subscription.controlled_poll(copy, fragments);
                match polled {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(_) if count > 0 => break,
                    Err(reason) => return Err(error::client(reason)),
                }
            }
            match too_long {
                Some(length) if count == 0 => Err(error::invalid(&format!(
                    "buffer: a message of {length} bytes; the buffer takes {capacity}"
                ))),
                _ => Ok((count > 0).then_some(count)),
            }
        };
        let count =
            wait::until(py, idle_strategy, Deadline::after_optional(timeout), attempt, || {
                has_message(&self.slot)
            })?;
        Ok(count.unwrap_or(0))
    }

    /// Yields messages as iteration does, and ends after `timeout` seconds without a message.
    #[pyo3(signature = (timeout=None))]
    fn messages(slf: Py<Self>, timeout: Option<Seconds>) -> Messages {
        Messages { subscription: slf, timeout: timeout.map(|timeout| timeout.0) }
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.next_before(py, Deadline::NEVER)
    }

    fn __aiter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let module = py.import("rusteron._asyncio")?;
        exit::call(&module.getattr("messages")?, (slf,)).map(Bound::unbind)
    }

    /// Takes one message, or returns `None`. Raises `StopAsyncIteration` after `close()`. For `rusteron._asyncio`.
    fn _take_one<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.unless_closed(py, self.take_one(py).map(Some))? {
            Some(taken) => Ok(taken),
            None => Err(PyStopAsyncIteration::new_err(())),
        }
    }

    /// Has `callback()` called once, by another thread, when there is a message. For `rusteron._asyncio`.
    fn _notify(&self, py: Python<'_>, callback: Py<PyAny>) -> PyResult<Waiter> {
        notifier::notify(py, Arc::clone(&self.slot), callback)
    }

    /// Returns the publishers that are connected, as they are now.
    fn images(&self) -> PyResult<Vec<Image>> {
        let mut subscription = self.slot.enter()?;
        Ok(subscription.images().map(|image| Image::from(&image)).collect())
    }

    /// Waits until a publisher is connected, without the GIL. Raises `TimedOut` after `timeout` seconds.
    fn await_connected(&self, py: Python<'_>, timeout: Seconds) -> PyResult<()> {
        let look = |subscription: &Owned<rust::Subscription>| {
            (!subscription.is_closed()).then(|| subscription.is_connected())
        };
        let failure = format!("{} stream {}: no publisher", self.channel, self.stream_id);
        wait::connected(py, &self.slot, timeout, look, &failure)
    }

    /// True if a publisher is connected.
    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        Ok(self.slot.enter()?.is_connected())
    }

    /// Number of connected publishers.
    #[getter]
    fn image_count(&self) -> PyResult<usize> {
        Ok(self.slot.enter()?.image_count())
    }

    /// True if the subscription was closed, by `close()`, with its client, or by a fatal error.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed()
            || self.slot.enter().is_ok_and(|subscription| subscription.is_closed())
    }

    /// The state of the channel's sockets: "initializing", "active", "closing", "errored" or "closed".
    #[getter]
    fn channel_status(&self) -> PyResult<String> {
        Ok(format!("{:?}", self.slot.enter()?.channel_status()).to_lowercase())
    }

    /// The addresses that the channel's sockets are bound to, as `host:port`.
    #[getter]
    fn local_addresses(&self) -> PyResult<Vec<String>> {
        let addresses = self.slot.enter()?.local_addresses().map_err(error::client)?;
        Ok(addresses.iter().map(ToString::to_string).collect())
    }

    /// Adds a destination, to a channel with `control-mode=manual`.
    fn add_destination(&self, py: Python<'_>, channel: Channel) -> PyResult<()> {
        let mut request =
            self.slot.enter()?.async_add_destination(&*channel).map_err(error::client)?;
        wait::outcome(py, || request.poll(), error::client).map(drop)
    }

    /// Removes a destination by its channel.
    fn remove_destination(&self, py: Python<'_>, channel: Channel) -> PyResult<()> {
        let mut request =
            self.slot.enter()?.async_remove_destination(&*channel).map_err(error::client)?;
        wait::outcome(py, || request.poll(), error::client).map(drop)
    }

    /// Closes the subscription, after a poll that is under way. Does nothing if the subscription is closed.
    fn close(&self) {
        self.slot.close();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!(
            "Subscription(channel='{}', stream_id={}, is_closed={})",
            self.channel,
            self.stream_id,
            py_bool(self.is_closed())
        )
    }
}

/// Messages of a subscription; ends after a time without one.
#[pyclass(frozen, module = "rusteron._rusteron")]
pub(crate) struct Messages {
    subscription: Py<Subscription>,
    timeout: Option<std::time::Duration>,
}

#[pymethods]
impl Messages {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let deadline = self.timeout.map_or(Deadline::NEVER, Deadline::after);
        self.subscription.get().next_before(py, deadline)
    }
}

snapshot! {
    /// A publisher of a subscription, as it was when it was listed.
    Image of image: &rust::Image<'_> {
        session_id: i32 = image.session_id(),
        correlation_id: i64 = image.correlation_id(),
        source_identity: String = image.source_identity().into_owned(),
        join_position: i64 = image.join_position(),
        position: i64 = image.position(),
        initial_term_id: i32 = image.initial_term_id(),
        term_buffer_length: usize = image.term_buffer_length(),
        mtu_length: usize = image.mtu_length(),
        subscriber_position_id: i32 = image.subscriber_position_id(),
        is_end_of_stream: bool = image.is_end_of_stream(),
        is_closed: bool = image.is_closed(),
    }
}

#[pymethods]
impl Image {
    fn __repr__(&self) -> String {
        format!(
            "Image(session_id={}, source_identity={:?}, position={})",
            self.session_id, self.source_identity, self.position
        )
    }
}
