//! The caller.

use std::error::Error;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use prost::{DecodeError, Message};
use rusteron_client::{
    AnyIdleStrategy, ChannelUri, ErrorKind, ExclusivePublication, Header, IdleStrategy, OfferError,
    Subscription,
};

use crate::ConnectOptions;
use crate::contract::{REQUEST_STREAM, RESPONSE_STREAM};
use crate::protocol::{Operation, Outcome, Request, Response};

/// A way to a server, and back.
pub trait Transport {
    /// Sends a message.
    ///
    /// # Errors
    /// The message is too long, or not accepted until the deadline.
    fn send(&mut self, message: &[u8], deadline: Instant) -> Result<(), CallError>;

    /// Waits for a message.
    ///
    /// # Errors
    /// There is no message until the deadline, it is malformed, or the server has gone.
    fn receive(&mut self, deadline: Instant) -> Result<Response, CallError>;
}

/// A connection over Aeron.
#[derive(Debug)]
pub struct AeronTransport<I = AnyIdleStrategy> {
    requests: ExclusivePublication,
    responses: Subscription,
    idle: I,
    /// Set once the server has opened its response channel.
    is_answered: bool,
}

impl AeronTransport {
    /// Connects to a server.
    ///
    /// # Errors
    /// There is no driver, a channel is wrong, or no server is there within the timeout.
    pub fn connect(options: &ConnectOptions, timeout: Duration) -> Result<Self, CallError> {
        Self::connect_with(options, options.idle.new_strategy(), timeout)
    }
}

impl<I: IdleStrategy> AeronTransport<I> {
    /// The same with an idle strategy that is no option.
    fn connect_with(
        options: &ConnectOptions,
        mut idle: I,
        timeout: Duration,
    ) -> Result<Self, CallError> {
        let aeron = options.aeron()?;
        let deadline = Instant::now() + timeout;
        let responses =
            added(|| aeron.add_subscription(&options.response_channel, RESPONSE_STREAM), deadline)?;
        let channel: ChannelUri =
            options.request_channel.parse::<ChannelUri>().map_err(rusteron_client::Error::from)?;
        let channel = channel
            .to_builder()
            .response_correlation_id(responses.registration_id())
            .build()
            .map_err(rusteron_client::Error::from)?;
        let requests =
            added(|| aeron.add_exclusive_publication(&channel, REQUEST_STREAM), deadline)?;
        requests.await_connected(deadline, &mut idle).map_err(|_| CallError::NotConnected)?;
        Ok(Self { requests, responses, idle, is_answered: false })
    }
}

/// Adds a publication or subscription. Tries again until the deadline while the driver closes a socket of the address:
/// the last session over UDP may have used the same.
fn added<T>(
    mut add: impl FnMut() -> rusteron_client::Result<T>,
    deadline: Instant,
) -> rusteron_client::Result<T> {
    loop {
        match add() {
            Err(error)
                if error.kind() == ErrorKind::ResourceTemporarilyUnavailable
                    && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

impl<I: IdleStrategy> Transport for AeronTransport<I> {
    fn send(&mut self, message: &[u8], deadline: Instant) -> Result<(), CallError> {
        self.idle.reset();
        loop {
            match self.requests.offer(message) {
                Ok(_) => return Ok(()),
                Err(OfferError::NotConnected) => return Err(CallError::NotConnected),
                Err(OfferError::MessageTooLong { length, max_message_length }) => {
                    return Err(CallError::TooLong { length, max_message_length });
                }
                Err(error) if !error.is_retryable() => return Err(CallError::Closed),
                Err(_) if Instant::now() >= deadline => return Err(CallError::BackPressured),
                Err(_) => self.idle.idle(0),
            }
        }
    }

    fn receive(&mut self, deadline: Instant) -> Result<Response, CallError> {
        // A backoff would go on with the longest sleep of the last wait.
        self.idle.reset();
        loop {
            let mut response = None;
            let on_message =
                |message: &[u8], _: &Header<'_>| response = Some(Response::decode(message));
            let fragments = self.responses.poll(on_message, 1).map_err(|_| CallError::Closed)?;
            if let Some(response) = response {
                return Ok(response?);
            }
            if fragments > 0 {
                self.idle.reset();
                continue;
            }
            let has_responses = self.responses.is_connected();
            self.is_answered |= has_responses;
            if !self.requests.is_connected() || self.is_answered && !has_responses {
                return Err(CallError::NotConnected);
            }
            if Instant::now() >= deadline {
                return Err(CallError::TimedOut);
            }
            self.idle.idle(0);
        }
    }
}

/// Function that answers callbacks. An error is a text for the server.
type CallbackHandler = Box<dyn FnMut(i64) -> Result<i64, String>>;

/// A session with a server. After an error other than [`CallError::TooLong`], drop the caller and
/// connect anew.
#[must_use]
pub struct Caller<T> {
    transport: T,
    timeout: Duration,
    on_callback: CallbackHandler,
    next_correlation_id: i64,
    buffer: Vec<u8>,
}

impl<T: Transport> Caller<T> {
    /// Returns a caller, whose calls with all their callbacks take at most `timeout`. `on_callback` answers callbacks.
    pub fn new(
        transport: T,
        timeout: Duration,
        on_callback: impl FnMut(i64) -> Result<i64, String> + 'static,
    ) -> Self {
        let on_callback = Box::new(on_callback);
        Self { transport, timeout, on_callback, next_correlation_id: 1, buffer: Vec::new() }
    }

    /// Gives a request a correlation id, and waits for its result, which may be a failure.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(&mut self, request: &mut Request) -> Result<Response, CallError> {
        let deadline = Instant::now() + self.timeout;
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        request.correlation_id = correlation_id;
        self.send(request, deadline)?;
        loop {
            let response = self.transport.receive(deadline)?;
            // Id 0 says that the server could not read the request. Any other id is that of an
            // earlier call, which has timed out.
            if ![correlation_id, 0].contains(&response.correlation_id) {
                continue;
            }
            let argument = match response.outcome {
                Some(Outcome::CallbackArgument(argument)) => argument,
                Some(_) => return Ok(response),
                None => return Err(CallError::Malformed("no known outcome".to_owned())),
            };
            let answer = match (self.on_callback)(argument) {
                Ok(value) => Operation::CallbackResult(value),
                Err(text) => Operation::CallbackError(text),
            };
            self.send(&Request { correlation_id, operation: Some(answer) }, deadline)?;
        }
    }

    fn send(&mut self, request: &Request, deadline: Instant) -> Result<(), CallError> {
        self.buffer.clear();
        request.encode(&mut self.buffer).expect("a vector grows");
        self.transport.send(&self.buffer, deadline)
    }
}

impl<T> fmt::Debug for Caller<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("next_correlation_id", &self.next_correlation_id).finish()
    }
}

/// The reason why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// No server is connected, or the server has closed this session.
    NotConnected,
    /// The server has not accepted the request within the timeout.
    BackPressured,
    /// The server has not answered within the timeout. The operation may have been executed.
    TimedOut,
    /// The Aeron client is closed.
    Closed,
    /// The request is longer than a message.
    #[expect(missing_docs, reason = "names of lengths")]
    TooLong { length: usize, max_message_length: usize },
    /// The server's message is no response, or one of no known outcome.
    Malformed(String),
    /// The Aeron client cannot be set up.
    Aeron(rusteron_client::Error),
}

impl CallError {
    /// Returns the name that all callers print.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotConnected => "NOT_CONNECTED",
            Self::BackPressured => "BACK_PRESSURED",
            Self::TimedOut => "TIMED_OUT",
            Self::Closed => "CLOSED",
            Self::TooLong { .. } => "INVALID_REQUEST",
            Self::Malformed(_) => "MALFORMED_RESPONSE",
            Self::Aeron(_) => "AERON",
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            Self::NotConnected => f.write_str("no server is connected"),
            Self::BackPressured => f.write_str("the request was not accepted in time"),
            Self::TimedOut => f.write_str("no response in time"),
            Self::Closed => f.write_str("the Aeron client is closed"),
            Self::TooLong { length, max_message_length } => {
                write!(f, "{length} bytes: at most {max_message_length}")
            }
            Self::Malformed(reason) => f.write_str(reason),
            Self::Aeron(error) => error.fmt(f),
        }
    }
}

impl Error for CallError {}

impl From<rusteron_client::Error> for CallError {
    fn from(error: rusteron_client::Error) -> Self {
        Self::Aeron(error)
    }
}

impl From<DecodeError> for CallError {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rusteron_test_support::launch_with;

    use super::*;
    use crate::protocol::Void;
    use crate::{Server, ServerOptions};

    /// Lets the server work instead of idling, and records what it is asked for.
    struct Recorded {
        server: Server,
        actions: Vec<&'static str>,
    }

    impl IdleStrategy for Recorded {
        fn idle(&mut self, work_count: usize) {
            assert_eq!(work_count, 0);
            self.actions.push("idle");
            self.server.do_work().expect("a server that works");
        }

        fn reset(&mut self) {
            self.actions.push("reset");
        }
    }

    #[test]
    fn aeron_transport_starts_idling_over_at_each_wait() {
        let driver = launch_with(|context| Ok(context));
        let dir = driver.aeron_dir();
        let dir = dir.to_str().expect("UTF-8");
        let server = ServerOptions::parse_from(["server", "--aeron-dir", dir]);
        let server = Server::start(&server).expect("a server");
        let options = ConnectOptions::new(dir);
        let timeout = Duration::from_secs(60);
        let idle = Recorded { server, actions: Vec::new() };
        let mut transport =
            AeronTransport::connect_with(&options, idle, timeout).expect("a connection");
        let request = Request::from(Operation::Ping(Void {})).encode_to_vec();
        for _ in 0..2 {
            transport.idle.actions.clear();
            let deadline = Instant::now() + timeout;
            transport.send(&request, deadline).expect("an accepted request");
            transport.receive(deadline).expect("a response");
            // The server has not worked before the wait for its response.
            let actions = &transport.idle.actions;
            assert_eq!(actions[..3], ["reset", "reset", "idle"], "{actions:?}");
        }
    }
}
