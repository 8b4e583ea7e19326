//! The caller.

use std::error::Error;
use std::fmt;
use std::io::IoSlice;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use rusteron_client::{
    Aeron, AnyIdleStrategy, ChannelUri, Context, ErrorKind, ExclusivePublication, Header,
    IdleStrategy, IdleStrategyKind, OfferError, Subscription,
};

use crate::contract::{REQUEST_CHANNEL, REQUEST_STREAM, RESPONSE_CHANNEL, RESPONSE_STREAM};
use crate::message::write_head;
use crate::{Body, Envelope, Kind, Malformed, Operation, Status, Template};

/// A way to a server, and back.
pub trait Transport {
    /// Sends a message of two parts, the second of which may be empty.
    ///
    /// # Errors
    /// The message is too long, or not accepted until the deadline.
    fn send(&mut self, head: &[u8], rest: &[u8], deadline: Instant) -> Result<(), CallError>;

    /// Waits until the handler has got a message.
    ///
    /// # Errors
    /// There is no message until the deadline, or the server has gone.
    fn receive(
        &mut self,
        deadline: Instant,
        handler: &mut dyn FnMut(&[u8]),
    ) -> Result<(), CallError>;
}

/// Settings of a connection over Aeron.
#[derive(Debug, Clone, Args)]
pub struct ConnectOptions {
    /// Directory of a running media driver
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    pub aeron_dir: Option<PathBuf>,

    /// Channel of requests
    #[arg(long, value_name = "URI", default_value = REQUEST_CHANNEL)]
    pub request_channel: String,

    /// Channel of responses, with `control-mode=response`
    #[arg(long, value_name = "URI", default_value = RESPONSE_CHANNEL)]
    pub response_channel: String,

    /// Action while waiting: spin, yield or backoff
    #[arg(long, value_name = "IDLE", default_value = "backoff")]
    pub idle: IdleStrategyKind,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            aeron_dir: None,
            request_channel: REQUEST_CHANNEL.to_owned(),
            response_channel: RESPONSE_CHANNEL.to_owned(),
            idle: IdleStrategyKind::Backoff,
        }
    }
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
        let mut context = Context::new()?;
        if let Some(dir) = &options.aeron_dir {
            context.set_dir(dir)?;
        }
        let aeron = Aeron::connect(context)?;
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
    fn send(&mut self, head: &[u8], rest: &[u8], deadline: Instant) -> Result<(), CallError> {
        self.idle.reset();
        loop {
            match self.requests.offer_parts(&[IoSlice::new(head), IoSlice::new(rest)]) {
                Ok(_) => return Ok(()),
                Err(OfferError::NotConnected) => return Err(CallError::NotConnected),
                Err(OfferError::MessageTooLong { length, max_message_length }) => {
                    let text = format!("{length} bytes: at most {max_message_length}");
                    return Err(CallError::Invalid(Malformed::new(text)));
                }
                Err(error) if !error.is_retryable() => return Err(CallError::Closed),
                Err(_) if Instant::now() >= deadline => return Err(CallError::BackPressured),
                Err(_) => self.idle.idle(0),
            }
        }
    }

    fn receive(
        &mut self,
        deadline: Instant,
        handler: &mut dyn FnMut(&[u8]),
    ) -> Result<(), CallError> {
        // A backoff would go on with the longest sleep of the last wait.
        self.idle.reset();
        loop {
            let mut has_message = false;
            let on_message = |message: &[u8], _: &Header<'_>| {
                has_message = true;
                handler(message);
            };
            let fragments = self.responses.poll(on_message, 1).map_err(|_| CallError::Closed)?;
            if has_message {
                return Ok(());
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

/// A session with a server. After an error other than [`CallError::Failed`] and [`CallError::Invalid`], drop the
/// caller and connect anew.
#[must_use]
pub struct Caller<T> {
    transport: T,
    timeout: Duration,
    on_callback: CallbackHandler,
    next_correlation_id: i64,
    buffer: Vec<u8>,
}

/// A message of the server that belongs to the open call.
enum Event {
    Response(Result<Body, CallError>),
    Callback(Result<Body, Malformed>),
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

    /// Calls an operation and waits for its result.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(&mut self, operation: Operation, argument: &Body) -> Result<Body, CallError> {
        let deadline = Instant::now() + self.timeout;
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let request =
            Envelope { template: Template::Request, correlation_id, code: operation as u8 };
        self.send(&request, argument, deadline)?;
        loop {
            let mut event = None;
            self.transport.receive(deadline, &mut |message| {
                // Responses to earlier calls, which have timed out, are skipped.
                event = match Envelope::read(message) {
                    Ok((envelope, _)) if envelope.correlation_id != correlation_id => None,
                    Ok((envelope, body)) => Event::read(operation, &envelope, body),
                    Err(error) => Some(Event::Response(Err(CallError::Malformed(error)))),
                };
            })?;
            match event {
                Some(Event::Response(result)) => return result,
                Some(Event::Callback(value)) => {
                    self.answer_callback(correlation_id, value, deadline)?;
                }
                None => {}
            }
        }
    }

    /// Sends bytes as they are. Returns envelope and body of the next response.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call_raw(&mut self, message: &[u8]) -> Result<(Envelope, Vec<u8>), CallError> {
        let deadline = Instant::now() + self.timeout;
        self.transport.send(message, &[], deadline)?;
        let mut response = Err(Malformed::new("no message"));
        self.transport.receive(deadline, &mut |message| {
            response = Envelope::read(message).map(|(envelope, body)| (envelope, body.to_vec()));
        })?;
        response.map_err(CallError::Malformed)
    }

    fn send(
        &mut self,
        envelope: &Envelope,
        body: &Body,
        deadline: Instant,
    ) -> Result<(), CallError> {
        envelope.write(&mut self.buffer);
        let text = write_head(body, &mut self.buffer).map_err(CallError::Invalid)?;
        self.transport.send(&self.buffer, text, deadline)
    }

    fn answer_callback(
        &mut self,
        correlation_id: i64,
        value: Result<Body, Malformed>,
        deadline: Instant,
    ) -> Result<(), CallError> {
        let answer = match value {
            Ok(Body::Integer(value)) => (self.on_callback)(value),
            Ok(_) => Err("not an integer".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let (status, body) = match answer {
            Ok(value) => (Status::Ok, Body::Integer(value)),
            Err(text) => (Status::CallbackFailed, Body::Text(text)),
        };
        let envelope = Envelope::answer(Template::CallbackResponse, correlation_id, status);
        self.send(&envelope, &body, deadline)
    }
}

impl Event {
    fn read(operation: Operation, envelope: &Envelope, body: &[u8]) -> Option<Self> {
        let result = match (envelope.template, Status::from_number(envelope.code)) {
            (Template::CallbackRequest, _) => {
                return Some(Self::Callback(Body::read(Kind::Integer, body)));
            }
            (Template::Response, Some(Status::Ok)) => {
                Body::read(operation.result(), body).map_err(CallError::Malformed)
            }
            (Template::Response, Some(status)) => Err(match Body::read(Kind::Text, body) {
                Ok(Body::Text(text)) => CallError::Failed(status, text),
                Ok(_) => unreachable!("of the kind that was read"),
                Err(error) => CallError::Malformed(error),
            }),
            (Template::Response, None) => {
                Err(CallError::Malformed(Malformed::new(format!("status {}", envelope.code))))
            }
            (Template::Request | Template::CallbackResponse, _) => return None,
        };
        Some(Self::Response(result))
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
    /// The server's answer is an error: its status, and a text.
    Failed(Status, String),
    /// No server is connected, or the server has closed this session.
    NotConnected,
    /// The server has not accepted the request within the timeout.
    BackPressured,
    /// The server has not answered within the timeout. The operation may have been executed.
    TimedOut,
    /// The Aeron client is closed.
    Closed,
    /// The argument cannot be sent.
    Invalid(Malformed),
    /// The server's message does not follow the contract.
    Malformed(Malformed),
    /// The Aeron client cannot be set up.
    Aeron(rusteron_client::Error),
}

impl CallError {
    /// Returns the name that all callers print.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Failed(status, _) => status.name(),
            Self::NotConnected => "NOT_CONNECTED",
            Self::BackPressured => "BACK_PRESSURED",
            Self::TimedOut => "TIMED_OUT",
            Self::Closed => "CLOSED",
            Self::Invalid(_) => "INVALID_REQUEST",
            Self::Malformed(_) => "MALFORMED_RESPONSE",
            Self::Aeron(_) => "AERON",
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            Self::Failed(_, text) => f.write_str(text),
            Self::NotConnected => f.write_str("no server is connected"),
            Self::BackPressured => f.write_str("the request was not accepted in time"),
            Self::TimedOut => f.write_str("no response in time"),
            Self::Closed => f.write_str("the Aeron client is closed"),
            Self::Invalid(error) | Self::Malformed(error) => error.fmt(f),
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

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;
    use rusteron_test_support::launch_with;

    use super::*;
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
        let command = ServerOptions::augment_args(clap::Command::new("server"));
        let matches =
            command.get_matches_from(["server", "--aeron-dir", dir.to_str().expect("UTF-8")]);
        let server = ServerOptions::from_arg_matches(&matches).expect("options");
        let server = Server::start(&server).expect("a server");
        let options =
            ConnectOptions { aeron_dir: Some(dir.to_owned()), ..ConnectOptions::default() };
        let timeout = Duration::from_secs(60);
        let idle = Recorded { server, actions: Vec::new() };
        let mut transport =
            AeronTransport::connect_with(&options, idle, timeout).expect("a connection");
        let mut request = Vec::new();
        let envelope = Envelope {
            template: Template::Request,
            correlation_id: 1,
            code: Operation::Ping as u8,
        };
        envelope.write(&mut request);
        for _ in 0..2 {
            transport.idle.actions.clear();
            let deadline = Instant::now() + timeout;
            transport.send(&request, &[], deadline).expect("an accepted request");
            transport.receive(deadline, &mut |_| ()).expect("a response");
            // The server has not worked before the wait for its response.
            let actions = &transport.idle.actions;
            assert_eq!(actions[..3], ["reset", "reset", "idle"], "{actions:?}");
        }
    }
}
