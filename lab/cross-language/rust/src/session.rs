//! A caller's session over Aeron: its response channel, and the responses that wait for it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use prost::Message;
use rusteron_client::{Aeron, ChannelUri, ErrorKind, ExclusivePublication};

use crate::Service;
use crate::contract::RESPONSE_STREAM;
use crate::protocol::{Failure, Response, Status};

/// Most bytes that wait for a session's caller, or for its channel.
const QUEUE_LIMIT: usize = 16 << 20;
/// How long a new session waits while the driver closes its socket.
const SOCKET_CLOSING: Duration = Duration::from_secs(1);
/// Time between two tries to open a response channel.
const OPENING_PAUSE: Duration = Duration::from_millis(1);

/// A connected caller.
#[derive(Debug)]
pub(crate) struct Session {
    image: i64,
    state: State,
    service: Service,
    /// Requests while the session is opening, then responses that could not be sent yet.
    queue: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    /// Since when the first response of the queue waits.
    waiting_since: Instant,
    buffer: Vec<u8>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "almost all sessions are open")]
enum State {
    /// The response channel cannot be opened yet. There is no deadline before the first try.
    Opening {
        next_try: Instant,
        deadline: Option<Instant>,
    },
    Open(ExclusivePublication),
    /// The server has closed the session. Requests are ignored.
    Closed,
}

impl Session {
    /// Returns the session of the image of a caller's requests, without a response channel.
    pub(crate) fn new(image: i64, callback_timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            image,
            state: State::Opening { next_try: now, deadline: None },
            service: Service::new(callback_timeout),
            queue: VecDeque::new(),
            queued_bytes: 0,
            waiting_since: now,
            buffer: Vec::new(),
        }
    }

    /// Handles a message of the caller.
    pub(crate) fn receive(&mut self, message: &[u8]) {
        match self.state {
            State::Opening { .. } => self.enqueue(message.to_vec()),
            State::Open(_) => {
                let response = self.service.receive(message);
                self.send(&response);
            }
            State::Closed => {}
        }
    }

    /// Opens the response channel, and sends responses that had to wait. Returns how many.
    pub(crate) fn do_work(&mut self, aeron: &Aeron, response_channel: &ChannelUri) -> usize {
        match self.state {
            State::Opening { next_try, deadline } if Instant::now() >= next_try => {
                self.open(aeron, response_channel, deadline);
                0
            }
            State::Open(_) if !self.queue.is_empty() => self.send_queue(),
            _ => 0,
        }
    }

    /// Opens the response channel. Tries again in a later call while the driver closes a socket:
    /// the last session over UDP may have used the same.
    fn open(&mut self, aeron: &Aeron, channel: &ChannelUri, deadline: Option<Instant>) {
        let now = Instant::now();
        let channel = channel.to_builder().response_correlation_id(self.image).build();
        let added = channel
            .map_err(rusteron_client::Error::from)
            .and_then(|channel| aeron.add_exclusive_publication(&channel, RESPONSE_STREAM));
        match added {
            Ok(responses) => {
                self.state = State::Open(responses);
                self.queued_bytes = 0;
                for message in std::mem::take(&mut self.queue) {
                    self.receive(&message);
                }
            }
            Err(error)
                if error.kind() == ErrorKind::ResourceTemporarilyUnavailable
                    && deadline.is_none_or(|deadline| now < deadline) =>
            {
                if deadline.is_none() {
                    eprintln!("session {} waits: {error}", self.image);
                }
                let deadline = deadline.or(Some(now + SOCKET_CLOSING));
                self.state = State::Opening { next_try: now + OPENING_PAUSE, deadline };
            }
            Err(error) => self.close(&error.to_string()),
        }
    }

    fn send(&mut self, response: &Response) {
        let State::Open(responses) = &mut self.state else { return };
        self.buffer.clear();
        response.encode(&mut self.buffer).expect("a vector grows");
        let (length, max_length) = (self.buffer.len(), responses.max_message_length());
        if length > max_length {
            let text = format!("{length} bytes: at most {max_length}");
            let failure = Failure::new(Status::ResponseTooLong, text);
            return self.send(&Response::new(response.correlation_id, Err(failure)));
        }
        if self.queue.is_empty() {
            match responses.offer(&self.buffer) {
                Ok(_) => return,
                Err(error) if error.is_retryable() => self.waiting_since = Instant::now(),
                Err(error) => return self.close(&error.to_string()),
            }
        }
        self.enqueue(self.buffer.clone());
    }

    fn enqueue(&mut self, message: Vec<u8>) {
        self.queued_bytes += message.len();
        self.queue.push_back(message);
        if self.queued_bytes > QUEUE_LIMIT {
            self.close(&format!("more than {QUEUE_LIMIT} bytes wait for its caller"));
        }
    }

    fn send_queue(&mut self) -> usize {
        let mut work_count = 0;
        while let (Some(message), State::Open(responses)) = (self.queue.front(), &mut self.state) {
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

    pub(crate) fn check_deadlines(&mut self, now: Instant, client_timeout: Duration) {
        if let State::Open(_) = self.state {
            if !self.queue.is_empty() && now > self.waiting_since + client_timeout {
                self.close(&format!("its caller has read nothing for {client_timeout:?}"));
            }
            for response in self.service.expire(now) {
                self.send(&response);
            }
        }
    }

    /// Closes the response channel, which tells the caller that the session is over.
    fn close(&mut self, reason: &str) {
        eprintln!("session {} closed: {reason}", self.image);
        self.state = State::Closed;
        self.queue.clear();
    }
}
