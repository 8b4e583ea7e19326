//! The server: one thread, which polls requests and answers each session on its own response channel.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::IoSlice;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusteron_client::{
    Aeron, ChannelUri, Context, ErrorKind, ExclusivePublication, Header, OfferError, PollError,
    Subscription,
};

use crate::contract::{
    OPEN_CALL_LIMIT, REQUEST_CHANNEL, REQUEST_STREAM, RESPONSE_CHANNEL, RESPONSE_STREAM,
    SMALL_ARRAY_LIMIT,
};
use crate::service::{Failure, Objects, add};
use crate::{
    Body, Encoding, Envelope, Kind, Malformed, NO_CORRELATION_ID, Operation, Status, Template,
};

/// Most bytes that wait for a session's caller.
const QUEUE_LIMIT: usize = 16 << 20;
/// Time between two looks for callers that have gone.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
const FRAGMENT_LIMIT: usize = 10;
/// How long a new session waits while the driver closes its socket.
const SOCKET_CLOSING: Duration = Duration::from_secs(1);
/// Time between two tries to open a response channel.
const OPENING_PAUSE: Duration = Duration::from_millis(1);

/// Settings of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The media driver's directory. `None` stands for Aeron's default.
    pub aeron_dir: Option<PathBuf>,
    /// The channel of requests.
    pub request_channel: String,
    /// The channel of responses, with `control-mode=response`.
    pub response_channel: String,
    /// The longest time that a caller may leave responses unread.
    pub client_timeout: Duration,
    /// The longest time that a caller may take to answer a callback.
    pub callback_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            aeron_dir: None,
            request_channel: REQUEST_CHANNEL.to_owned(),
            response_channel: RESPONSE_CHANNEL.to_owned(),
            client_timeout: Duration::from_secs(5),
            callback_timeout: Duration::from_secs(5),
        }
    }
}

/// A server without a thread of its own: call [`do_work`](Self::do_work) in a loop.
#[must_use]
#[derive(Debug)]
pub struct Server {
    requests: Subscription,
    sessions: Sessions,
    next_housekeeping: Instant,
}

impl Server {
    /// Subscribes to requests.
    ///
    /// # Errors
    /// There is no driver, or a channel is wrong.
    pub fn start(options: &ServerOptions) -> rusteron_client::Result<Self> {
        let response_channel: ChannelUri = options.response_channel.parse()?;
        let mut context = Context::new()?;
        if let Some(dir) = &options.aeron_dir {
            context.set_dir(dir)?;
        }
        let aeron = Aeron::connect(context)?;
        let requests = aeron.add_subscription(&options.request_channel, REQUEST_STREAM)?;
        let options = options.clone();
        let (opening, by_image) = (Vec::new(), HashMap::new());
        let sessions = Sessions { aeron, response_channel, options, opening, by_image };
        Ok(Self { requests, sessions, next_housekeeping: Instant::now() })
    }

    /// Answers requests, and sends responses that had to wait. Returns the amount of work done.
    ///
    /// # Errors
    /// The Aeron client is closed.
    pub fn do_work(&mut self) -> Result<usize, PollError> {
        let sessions = &mut self.sessions;
        let handler = |message: &[u8], header: &Header<'_>| {
            sessions.receive(header.image_correlation_id(), message);
        };
        let mut work_count = self.requests.poll(handler, FRAGMENT_LIMIT)?;
        self.sessions.open();
        for session in self.sessions.by_image.values_mut() {
            work_count += session.send_queue();
        }
        let now = Instant::now();
        if now >= self.next_housekeeping {
            self.next_housekeeping = now + HOUSEKEEPING;
            let images: HashSet<i64> =
                self.requests.images().map(|image| image.correlation_id()).collect();
            self.sessions.opening.retain(|opening| images.contains(&opening.image));
            self.sessions.by_image.retain(|image, _| images.contains(image));
            for session in self.sessions.by_image.values_mut() {
                session.check_deadlines(now, &self.sessions.options);
            }
        }
        Ok(work_count)
    }
}

#[derive(Debug)]
struct Sessions {
    aeron: Aeron,
    response_channel: ChannelUri,
    options: ServerOptions,
    opening: Vec<Opening>,
    /// By the correlation id of the image of the session's requests.
    by_image: HashMap<i64, Session>,
}

impl Sessions {
    /// Handles a message of a caller.
    fn receive(&mut self, image: i64, message: &[u8]) {
        if let Some(session) = self.by_image.get_mut(&image) {
            return session.receive(message);
        }
        match self.opening.iter_mut().find(|opening| opening.image == image) {
            Some(opening) => opening.push(message),
            None => self.opening.push(Opening::new(image, message)),
        }
    }

    /// Opens the response channels of new sessions. Tries again in a later call while the driver closes a socket: the
    /// last session over UDP may have used the same.
    fn open(&mut self) {
        if self.opening.is_empty() {
            return;
        }
        for mut opening in std::mem::take(&mut self.opening) {
            let mut session = Session::new(opening.image, self.options.callback_timeout);
            if opening.bytes > QUEUE_LIMIT {
                session.close(&format!("more than {QUEUE_LIMIT} bytes wait for its channel"));
            } else if Instant::now() < opening.next_try {
                self.opening.push(opening);
                continue;
            } else {
                match self.add_responses(opening.image) {
                    Ok(responses) => session.responses = Some(responses),
                    Err(error) if opening.waits(&error) => {
                        self.opening.push(opening);
                        continue;
                    }
                    Err(error) => session.close(&error.to_string()),
                }
            }
            for message in &opening.messages {
                session.receive(message);
            }
            self.by_image.insert(opening.image, session);
        }
    }

    fn add_responses(&self, image: i64) -> rusteron_client::Result<ExclusivePublication> {
        let channel = self.response_channel.to_builder().response_correlation_id(image).build()?;
        self.aeron.add_exclusive_publication(&channel, RESPONSE_STREAM)
    }
}

/// A session whose response channel is not open yet.
#[derive(Debug)]
struct Opening {
    image: i64,
    /// Messages that have arrived meanwhile.
    messages: Vec<Vec<u8>>,
    bytes: usize,
    next_try: Instant,
    /// `None` before the first try.
    deadline: Option<Instant>,
}

impl Opening {
    fn new(image: i64, message: &[u8]) -> Self {
        let (messages, bytes) = (vec![message.to_vec()], message.len());
        Self { image, messages, bytes, next_try: Instant::now(), deadline: None }
    }

    fn push(&mut self, message: &[u8]) {
        self.bytes += message.len();
        self.messages.push(message.to_vec());
    }

    /// Returns `false` if another try does not help.
    fn waits(&mut self, error: &rusteron_client::Error) -> bool {
        let now = Instant::now();
        if error.kind() != ErrorKind::ResourceTemporarilyUnavailable
            || self.deadline.is_some_and(|deadline| now >= deadline)
        {
            return false;
        }
        if self.deadline.is_none() {
            eprintln!("session {} waits: {error}", self.image);
            self.deadline = Some(now + SOCKET_CLOSING);
        }
        self.next_try = now + OPENING_PAUSE;
        true
    }
}

/// A connected caller.
#[derive(Debug)]
struct Session {
    image: i64,
    /// `None` after the server has closed the session. Further requests are ignored.
    responses: Option<ExclusivePublication>,
    objects: Objects,
    /// Calls that await an answer to a callback, by correlation id.
    open_calls: HashMap<i64, OpenCall>,
    callback_timeout: Duration,
    /// Messages that could not be sent yet.
    queue: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    /// Since when the first message of the queue waits.
    waiting_since: Instant,
    buffer: Vec<u8>,
}

/// A call of [`Operation::Callback`].
#[derive(Debug, Clone, Copy)]
struct OpenCall {
    encoding: Encoding,
    /// The argument of the callback that awaits its answer.
    current: i64,
    last: i64,
    sum: i64,
    deadline: Instant,
}

impl Session {
    fn new(image: i64, callback_timeout: Duration) -> Self {
        Self {
            image,
            responses: None,
            objects: Objects::default(),
            open_calls: HashMap::new(),
            callback_timeout,
            queue: VecDeque::new(),
            queued_bytes: 0,
            waiting_since: Instant::now(),
            buffer: Vec::new(),
        }
    }

    /// Handles a message of the caller.
    fn receive(&mut self, message: &[u8]) {
        if self.responses.is_none() {
            return;
        }
        match Envelope::read(message) {
            Ok((envelope, body)) => match envelope.template {
                Template::Request => self.request(&envelope, body),
                Template::CallbackResponse => self.callback_response(&envelope, body),
                template => {
                    let text = format!("a caller sends no {template:?}");
                    self.fail_unread(Failure::new(Status::MalformedMessage, text));
                }
            },
            Err(error) => {
                self.fail_unread(Failure::new(Status::MalformedMessage, error.to_string()));
            }
        }
    }

    /// Answers a message whose envelope is not readable.
    fn fail_unread(&mut self, failure: Failure) {
        self.respond(NO_CORRELATION_ID, Encoding::Binary, Err(failure));
    }

    fn request(&mut self, envelope: &Envelope, body: &[u8]) {
        let id = envelope.correlation_id;
        let Some(encoding) = Encoding::from_number(envelope.encoding) else {
            return self.respond(id, Encoding::Binary, Err(unknown_encoding(envelope.encoding)));
        };
        let Some(operation) = Operation::from_number(envelope.code) else {
            let text = format!("no operation {}", envelope.code);
            return self.respond(id, encoding, Err(Failure::new(Status::UnknownOperation, text)));
        };
        let result = match Body::read(operation.argument(), encoding, body) {
            Err(error) => Err(malformed_body(&error)),
            Ok(Body::Integer(count)) if operation == Operation::Callback => {
                match self.open_call(id, encoding, count) {
                    Some(result) => result,
                    None => return,
                }
            }
            Ok(argument) => self.objects.execute(operation, argument),
        };
        self.respond(id, encoding, result);
    }

    /// Calls the caller back for the first time. Returns the result if the call is over already.
    fn open_call(
        &mut self,
        id: i64,
        encoding: Encoding,
        count: i64,
    ) -> Option<Result<Body, Failure>> {
        if !(0..=SMALL_ARRAY_LIMIT as i64).contains(&count) {
            let text = format!("{count} callbacks: 0 to {SMALL_ARRAY_LIMIT}");
            return Some(Err(Failure::new(Status::InvalidArgument, text)));
        }
        if self.open_calls.contains_key(&id) {
            let text = format!("call {id} is open");
            return Some(Err(Failure::new(Status::InvalidArgument, text)));
        }
        if count == 0 {
            return Some(Ok(Body::Integer(0)));
        }
        if self.open_calls.len() == OPEN_CALL_LIMIT {
            let text = format!("{OPEN_CALL_LIMIT} open calls");
            return Some(Err(Failure::new(Status::LimitReached, text)));
        }
        let deadline = Instant::now() + self.callback_timeout;
        self.call_back(id, OpenCall { encoding, current: 1, last: count, sum: 0, deadline });
        None
    }

    fn call_back(&mut self, id: i64, call: OpenCall) {
        self.open_calls.insert(id, call);
        let encoding = call.encoding as u8;
        let template = Template::CallbackRequest;
        self.send(
            &Envelope { template, correlation_id: id, code: 0, encoding },
            call.encoding,
            &Body::Integer(call.current),
        );
    }

    fn callback_response(&mut self, envelope: &Envelope, body: &[u8]) {
        let id = envelope.correlation_id;
        let encoding = Encoding::from_number(envelope.encoding);
        let Some(call) = self.open_calls.remove(&id) else {
            let failure = Failure::new(Status::UnknownCall, format!("call {id} is not open"));
            return self.respond(id, encoding.unwrap_or(Encoding::Binary), Err(failure));
        };
        let read = |kind| match encoding {
            Some(encoding) => {
                Body::read(kind, encoding, body).map_err(|error| malformed_body(&error))
            }
            None => Err(unknown_encoding(envelope.encoding)),
        };
        let sum = match Status::from_number(envelope.code) {
            Some(Status::Ok) => match read(Kind::Integer) {
                Ok(Body::Integer(value)) => add(call.sum, value),
                Ok(_) => unreachable!("of the kind that was read"),
                Err(failure) => Err(failure),
            },
            _ => Err(match read(Kind::Text) {
                Ok(Body::Text(text)) => Failure::new(Status::CallbackFailed, text),
                Ok(_) => unreachable!("of the kind that was read"),
                Err(failure) => failure,
            }),
        };
        match sum {
            Ok(sum) if call.current < call.last => {
                let deadline = Instant::now() + self.callback_timeout;
                self.call_back(id, OpenCall { current: call.current + 1, sum, deadline, ..call });
            }
            result => self.respond(id, call.encoding, result.map(Body::Integer)),
        }
    }

    fn respond(&mut self, id: i64, encoding: Encoding, result: Result<Body, Failure>) {
        let (status, body) = match result {
            Ok(body) => (Status::Ok, body),
            Err(failure) => (failure.status, Body::Text(failure.text)),
        };
        self.send(&Envelope::answer(Template::Response, id, status, encoding), encoding, &body);
    }

    fn send(&mut self, envelope: &Envelope, encoding: Encoding, body: &Body) {
        envelope.write(&mut self.buffer);
        let text = match body.write_head(encoding, &mut self.buffer) {
            Ok(text) => text,
            Err(error) => {
                let failure = Failure::new(Status::ResponseTooLong, error.to_string());
                return self.respond(envelope.correlation_id, encoding, Err(failure));
            }
        };
        let length = self.buffer.len() + text.len();
        let Some(responses) = &mut self.responses else { return };
        if self.queue.is_empty() {
            match responses.offer_parts(&[IoSlice::new(&self.buffer), IoSlice::new(text)]) {
                Ok(_) => return,
                Err(error) if error.is_retryable() => self.waiting_since = Instant::now(),
                Err(OfferError::MessageTooLong { length, max_message_length }) => {
                    let text = format!("{length} bytes: at most {max_message_length}");
                    let failure = Failure::new(Status::ResponseTooLong, text);
                    return self.respond(envelope.correlation_id, encoding, Err(failure));
                }
                Err(error) => return self.close(&error.to_string()),
            }
        } else if length > responses.max_message_length() {
            let text = format!("{length} bytes: at most {}", responses.max_message_length());
            let failure = Failure::new(Status::ResponseTooLong, text);
            return self.respond(envelope.correlation_id, encoding, Err(failure));
        }
        self.queued_bytes += length;
        self.queue.push_back([&self.buffer, text].concat());
        if self.queued_bytes > QUEUE_LIMIT {
            self.close(&format!("more than {QUEUE_LIMIT} bytes wait for its caller"));
        }
    }

    /// Sends messages that had to wait. Returns how many.
    fn send_queue(&mut self) -> usize {
        let mut work_count = 0;
        while let (Some(message), Some(responses)) = (self.queue.front(), &mut self.responses) {
            match responses.offer(message) {
                Ok(_) => {
                    self.queued_bytes -= message.len();
                    self.queue.pop_front();
                    self.waiting_since = Instant::now();
                    work_count += 1;
                }
                Err(error) if error.is_retryable() => break,
                Err(error) => self.close(&error.to_string()),
            }
        }
        work_count
    }

    fn check_deadlines(&mut self, now: Instant, options: &ServerOptions) {
        if !self.queue.is_empty() && now > self.waiting_since + options.client_timeout {
            let text = format!("its caller has read nothing for {:?}", options.client_timeout);
            self.close(&text);
        }
        let late: Vec<i64> = self
            .open_calls
            .iter()
            .filter_map(|(id, call)| (now > call.deadline).then_some(*id))
            .collect();
        for id in late {
            if let Some(call) = self.open_calls.remove(&id) {
                let text = format!("no answer to a callback within {:?}", options.callback_timeout);
                let failure = Failure::new(Status::CallbackFailed, text);
                self.respond(id, call.encoding, Err(failure));
            }
        }
    }

    /// Closes the response channel, which tells the caller that the session is over.
    fn close(&mut self, reason: &str) {
        eprintln!("session {} closed: {reason}", self.image);
        *self = Self::new(self.image, self.callback_timeout);
    }
}

fn unknown_encoding(number: u8) -> Failure {
    Failure::new(Status::UnknownEncoding, format!("no encoding {number}"))
}

fn malformed_body(error: &Malformed) -> Failure {
    Failure::new(Status::MalformedBody, error.to_string())
}
