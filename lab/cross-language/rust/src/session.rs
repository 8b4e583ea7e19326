//! A session of one caller: its objects, open calls and responses.

use std::collections::{HashMap, VecDeque};
use std::io::IoSlice;
use std::time::{Duration, Instant};

use rusteron_client::{ExclusivePublication, OfferError};

use crate::contract::{OPEN_CALL_LIMIT, SMALL_ARRAY_LIMIT};
use crate::message::write_head;
use crate::service::{Failure, Objects, add};
use crate::{Body, Envelope, Kind, NO_CORRELATION_ID, Operation, Status, Template};

/// Most bytes that wait for a session's caller.
pub(crate) const QUEUE_LIMIT: usize = 16 << 20;

/// The way of a session's messages to its caller.
pub(crate) trait Responses {
    /// Sends a message of two parts.
    fn offer(&mut self, head: &[u8], rest: &[u8]) -> Result<(), OfferError>;

    /// Returns the length of the longest message.
    fn longest_message(&self) -> usize;
}

impl Responses for ExclusivePublication {
    fn offer(&mut self, head: &[u8], rest: &[u8]) -> Result<(), OfferError> {
        self.offer_parts(&[IoSlice::new(head), IoSlice::new(rest)]).map(|_| ())
    }

    fn longest_message(&self) -> usize {
        self.max_message_length()
    }
}

/// A connected caller.
#[derive(Debug)]
pub(crate) struct Session<R> {
    image: i64,
    /// `None` before `open`, and after the server has closed the session. Requests are ignored.
    responses: Option<R>,
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
    /// The argument of the callback that awaits its answer.
    current: i64,
    last: i64,
    sum: i64,
    deadline: Instant,
}

impl<R: Responses> Session<R> {
    /// Returns the session of the image of a caller's requests, without a way for responses.
    pub(crate) fn new(image: i64, callback_timeout: Duration) -> Self {
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

    pub(crate) fn open(&mut self, responses: R) {
        self.responses = Some(responses);
    }

    /// Returns the way of the responses, unless the session is closed.
    pub(crate) fn responses(&mut self) -> Option<&mut R> {
        self.responses.as_mut()
    }

    /// Handles a message of the caller.
    pub(crate) fn receive(&mut self, message: &[u8]) {
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
        self.respond(NO_CORRELATION_ID, Err(failure));
    }

    fn request(&mut self, envelope: &Envelope, body: &[u8]) {
        let id = envelope.correlation_id;
        let Some(operation) = Operation::from_number(envelope.code) else {
            let text = format!("no operation {}", envelope.code);
            return self.respond(id, Err(Failure::new(Status::UnknownOperation, text)));
        };
        let result = match read(operation.argument(), body) {
            Ok(Body::Integer(count)) if operation == Operation::Callback => {
                match self.open_call(id, count) {
                    Some(result) => result,
                    None => return,
                }
            }
            Ok(argument) => self.objects.execute(operation, argument),
            Err(failure) => Err(failure),
        };
        self.respond(id, result);
    }

    /// Calls the caller back for the first time. Returns the result if the call is over already.
    fn open_call(&mut self, id: i64, count: i64) -> Option<Result<Body, Failure>> {
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
        self.call_back(id, 1, count, 0);
        None
    }

    fn call_back(&mut self, id: i64, current: i64, last: i64, sum: i64) {
        let deadline = Instant::now() + self.callback_timeout;
        self.open_calls.insert(id, OpenCall { current, last, sum, deadline });
        let template = Template::CallbackRequest;
        let envelope = Envelope { template, correlation_id: id, code: 0 };
        self.send(&envelope, &Body::Integer(current));
    }

    fn callback_response(&mut self, envelope: &Envelope, body: &[u8]) {
        let id = envelope.correlation_id;
        let Some(call) = self.open_calls.remove(&id) else {
            let failure = Failure::new(Status::UnknownCall, format!("call {id} is not open"));
            return self.respond(id, Err(failure));
        };
        let is_ok = Status::from_number(envelope.code) == Some(Status::Ok);
        let answer = read(if is_ok { Kind::Integer } else { Kind::Text }, body);
        let sum = answer.and_then(|answer| match answer {
            Body::Integer(value) => add(call.sum, value),
            Body::Text(text) => Err(Failure::new(Status::CallbackFailed, text)),
            _ => unreachable!("of the kind that was read"),
        });
        match sum {
            Ok(sum) if call.current < call.last => {
                self.call_back(id, call.current + 1, call.last, sum);
            }
            result => self.respond(id, result.map(Body::Integer)),
        }
    }

    fn respond(&mut self, id: i64, result: Result<Body, Failure>) {
        let (status, body) = match result {
            Ok(body) => (Status::Ok, body),
            Err(failure) => (failure.status, Body::Text(failure.text)),
        };
        self.send(&Envelope::answer(Template::Response, id, status), &body);
    }

    fn send(&mut self, envelope: &Envelope, body: &Body) {
        let Some(responses) = &mut self.responses else { return };
        envelope.write(&mut self.buffer);
        let max_length = responses.longest_message();
        let text = match write_head(body, &mut self.buffer) {
            Ok(text) if self.buffer.len() + text.len() <= max_length => Ok(text),
            Ok(text) => {
                let length = self.buffer.len() + text.len();
                Err(format!("{length} bytes: at most {max_length}"))
            }
            Err(error) => Err(error.to_string()),
        };
        let text = match text {
            Ok(text) => text,
            Err(text) => {
                let failure = Failure::new(Status::ResponseTooLong, text);
                return self.respond(envelope.correlation_id, Err(failure));
            }
        };
        if self.queue.is_empty() {
            match responses.offer(&self.buffer, text) {
                Ok(()) => return,
                Err(error) if error.is_retryable() => self.waiting_since = Instant::now(),
                Err(error) => return self.close(&error.to_string()),
            }
        }
        self.queued_bytes += self.buffer.len() + text.len();
        self.queue.push_back([&self.buffer, text].concat());
        if self.queued_bytes > QUEUE_LIMIT {
            self.close(&format!("more than {QUEUE_LIMIT} bytes wait for its caller"));
        }
    }

    /// Sends messages that had to wait. Returns how many.
    pub(crate) fn send_queue(&mut self) -> usize {
        let mut work_count = 0;
        while let (Some(message), Some(responses)) = (self.queue.front(), &mut self.responses) {
            match responses.offer(message, &[]) {
                Ok(()) => {
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

    pub(crate) fn check_deadlines(&mut self, now: Instant, client_timeout: Duration) {
        if !self.queue.is_empty() && now > self.waiting_since + client_timeout {
            let text = format!("its caller has read nothing for {:?}", client_timeout);
            self.close(&text);
        }
        let late: Vec<i64> = self
            .open_calls
            .iter()
            .filter_map(|(id, call)| (now > call.deadline).then_some(*id))
            .collect();
        for id in late {
            if self.open_calls.remove(&id).is_some() {
                let text = format!("no answer to a callback within {:?}", self.callback_timeout);
                let failure = Failure::new(Status::CallbackFailed, text);
                self.respond(id, Err(failure));
            }
        }
    }

    /// Closes the response channel, which tells the caller that the session is over.
    pub(crate) fn close(&mut self, reason: &str) {
        eprintln!("session {} closed: {reason}", self.image);
        *self = Self::new(self.image, self.callback_timeout);
    }
}

fn read(kind: Kind, body: &[u8]) -> Result<Body, Failure> {
    Body::read(kind, body).map_err(|error| Failure::new(Status::MalformedBody, error.to_string()))
}
