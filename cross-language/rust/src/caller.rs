//! The caller.

use std::error::Error;
use std::fmt;
use std::io::IoSlice;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusteron_client::{
    Aeron, AnyIdleStrategy, ChannelUri, Context, ExclusivePublication, Header, IdleStrategy,
    IdleStrategyKind, OfferError, Subscription,
};

use crate::contract::{REQUEST_CHANNEL, REQUEST_STREAM, RESPONSE_CHANNEL, RESPONSE_STREAM};
use crate::registration::added;
use crate::{Body, Encoding, Envelope, Kind, Malformed, Operation, Status, Template};

/// Settings of a caller.
#[derive(Debug, Clone)]
pub struct CallerOptions {
    /// The media driver's directory. `None` stands for Aeron's default.
    pub aeron_dir: Option<PathBuf>,
    /// The server's channel.
    pub request_channel: String,
    /// The channel of the responses, with `control-mode=response`.
    pub response_channel: String,
    /// The longest time that connecting, or a call with all its callbacks, takes.
    pub timeout: Duration,
    /// The action of a loop that waits.
    pub idle: IdleStrategyKind,
}

impl Default for CallerOptions {
    fn default() -> Self {
        Self {
            aeron_dir: None,
            request_channel: REQUEST_CHANNEL.to_owned(),
            response_channel: RESPONSE_CHANNEL.to_owned(),
            timeout: Duration::from_secs(5),
            idle: IdleStrategyKind::Backoff,
        }
    }
}

/// Function that answers callbacks. An error is a text for the server.
type CallbackHandler = Box<dyn FnMut(i64) -> Result<i64, String>>;

/// A session with a server. After an error other than [`CallError::Failed`] and [`CallError::Invalid`], drop the
/// caller and connect anew.
#[must_use]
pub struct Caller {
    requests: ExclusivePublication,
    responses: Subscription,
    timeout: Duration,
    idle: AnyIdleStrategy,
    on_callback: CallbackHandler,
    next_correlation_id: i64,
    /// Set once the server has opened its response channel.
    is_answered: bool,
    buffer: Vec<u8>,
}

/// A message of the server that belongs to the open call.
enum Event {
    Response(Result<Body, CallError>),
    Callback(u8, Result<Body, Malformed>),
}

impl Caller {
    /// Connects to a server. `on_callback` answers its callbacks.
    ///
    /// # Errors
    /// There is no driver, a channel is wrong, or no server is there within the timeout.
    pub fn connect(
        options: &CallerOptions,
        on_callback: impl FnMut(i64) -> Result<i64, String> + 'static,
    ) -> Result<Self, CallError> {
        let mut context = Context::new()?;
        if let Some(dir) = &options.aeron_dir {
            context.set_dir(dir)?;
        }
        let aeron = Aeron::connect(context)?;
        let deadline = Instant::now() + options.timeout;
        let add_responses = || aeron.add_subscription(&options.response_channel, RESPONSE_STREAM);
        let responses = added(add_responses, deadline)?;
        let channel: ChannelUri =
            options.request_channel.parse::<ChannelUri>().map_err(rusteron_client::Error::from)?;
        let channel = channel
            .to_builder()
            .response_correlation_id(responses.registration_id())
            .build()
            .map_err(rusteron_client::Error::from)?;
        let requests =
            added(|| aeron.add_exclusive_publication(&channel, REQUEST_STREAM), deadline)?;
        let mut idle = options.idle.new_strategy();
        requests.await_connected(deadline, &mut idle).map_err(|_| CallError::NotConnected)?;
        Ok(Self {
            requests,
            responses,
            timeout: options.timeout,
            idle,
            on_callback: Box::new(on_callback),
            next_correlation_id: 1,
            is_answered: false,
            buffer: Vec::new(),
        })
    }

    /// Calls an operation and waits for its result.
    ///
    /// # Errors
    /// See [`CallError`].
    pub fn call(
        &mut self,
        operation: Operation,
        encoding: Encoding,
        argument: &Body,
    ) -> Result<Body, CallError> {
        let deadline = Instant::now() + self.timeout;
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let (code, number) = (operation as u8, encoding as u8);
        let request =
            Envelope { template: Template::Request, correlation_id, code, encoding: number };
        request.write(&mut self.buffer);
        let text = argument.write_head(encoding, &mut self.buffer).map_err(CallError::Invalid)?;
        self.offer(text, deadline)?;
        loop {
            let mut event = None;
            let handler = |message: &[u8], _: &Header<'_>| {
                // Responses to earlier calls, which have timed out, are skipped.
                event = match Envelope::read(message) {
                    Ok((envelope, _)) if envelope.correlation_id != correlation_id => None,
                    Ok((envelope, body)) => Event::read(operation, &envelope, body),
                    Err(error) => Some(Event::Response(Err(CallError::Malformed(error)))),
                };
            };
            let work_count = self.poll(handler)?;
            match event {
                Some(Event::Response(result)) => return result,
                Some(Event::Callback(encoding, value)) => {
                    self.answer_callback(correlation_id, encoding, value, deadline)?;
                }
                None if work_count == 0 => self.wait(deadline)?,
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
        self.buffer.clear();
        self.offer(message, deadline)?;
        loop {
            let mut response = None;
            let handler = |message: &[u8], _: &Header<'_>| {
                response =
                    Some(Envelope::read(message).map(|(envelope, body)| (envelope, body.to_vec())));
            };
            self.poll(handler)?;
            match response {
                Some(response) => return response.map_err(CallError::Malformed),
                None => self.wait(deadline)?,
            }
        }
    }

    /// Sends the buffer and the bytes after it.
    fn offer(&mut self, rest: &[u8], deadline: Instant) -> Result<(), CallError> {
        loop {
            let parts = [IoSlice::new(&self.buffer), IoSlice::new(rest)];
            match self.requests.offer_parts(&parts) {
                Ok(_) => return Ok(()),
                Err(OfferError::NotConnected) => return Err(CallError::NotConnected),
                Err(OfferError::MessageTooLong { length, max_message_length }) => {
                    let text = format!("{length} bytes: at most {max_message_length}");
                    return Err(CallError::Invalid(Malformed::new(text)));
                }
                Err(error) if !error.is_retryable() => return Err(CallError::Closed),
                Err(_) if Instant::now() >= deadline => {
                    return Err(CallError::BackPressured(self.timeout));
                }
                Err(_) => self.idle.idle(0),
            }
        }
    }

    /// Polls at most one message.
    fn poll(&mut self, handler: impl FnMut(&[u8], &Header<'_>)) -> Result<usize, CallError> {
        self.responses.poll(handler, 1).map_err(|_| CallError::Closed)
    }

    /// Idles, unless the server has gone or the deadline has passed.
    fn wait(&mut self, deadline: Instant) -> Result<(), CallError> {
        let has_responses = self.responses.is_connected();
        self.is_answered |= has_responses;
        if !self.requests.is_connected() || self.is_answered && !has_responses {
            return Err(CallError::NotConnected);
        }
        if Instant::now() >= deadline {
            return Err(CallError::TimedOut(self.timeout));
        }
        self.idle.idle(0);
        Ok(())
    }

    fn answer_callback(
        &mut self,
        correlation_id: i64,
        encoding: u8,
        value: Result<Body, Malformed>,
        deadline: Instant,
    ) -> Result<(), CallError> {
        let encoding = Encoding::from_number(encoding).unwrap_or(Encoding::Binary);
        let answer = match value {
            Ok(Body::Integer(value)) => (self.on_callback)(value),
            Ok(_) => Err("not an integer".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let (status, body) = match answer {
            Ok(value) => (Status::Ok, Body::Integer(value)),
            Err(text) => (Status::CallbackFailed, Body::Text(text)),
        };
        let template = Template::CallbackResponse;
        Envelope::answer(template, correlation_id, status, encoding).write(&mut self.buffer);
        let text = body.write_head(encoding, &mut self.buffer).map_err(CallError::Invalid)?;
        self.offer(text, deadline)
    }
}

impl Event {
    fn read(operation: Operation, envelope: &Envelope, body: &[u8]) -> Option<Self> {
        let read = |kind| match Encoding::from_number(envelope.encoding) {
            Some(encoding) => Body::read(kind, encoding, body),
            None => Err(Malformed::new(format!("encoding {}", envelope.encoding))),
        };
        match (envelope.template, Status::from_number(envelope.code)) {
            (Template::CallbackRequest, _) => {
                Some(Self::Callback(envelope.encoding, read(Kind::Integer)))
            }
            (Template::Response, Some(Status::Ok)) => {
                Some(Self::Response(read(operation.result()).map_err(CallError::Malformed)))
            }
            (Template::Response, Some(status)) => {
                Some(Self::Response(Err(match read(Kind::Text) {
                    Ok(Body::Text(text)) => CallError::Failed(status, text),
                    Ok(_) => CallError::Malformed(Malformed::new("no text")),
                    Err(error) => CallError::Malformed(error),
                })))
            }
            (Template::Response, None) => {
                let error = Malformed::new(format!("status {}", envelope.code));
                Some(Self::Response(Err(CallError::Malformed(error))))
            }
            (Template::Request | Template::CallbackResponse, _) => None,
        }
    }
}

impl fmt::Debug for Caller {
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
    BackPressured(Duration),
    /// The server has not answered within the timeout. The operation may have been executed.
    TimedOut(Duration),
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
            Self::BackPressured(_) => "BACK_PRESSURED",
            Self::TimedOut(_) => "TIMED_OUT",
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
            Self::BackPressured(timeout) => write!(f, "request not accepted within {timeout:?}"),
            Self::TimedOut(timeout) => write!(f, "no response within {timeout:?}"),
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
