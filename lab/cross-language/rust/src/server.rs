//! The server: one thread, which polls requests and answers each session on its own response channel.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use rusteron_client::{
    Aeron, ChannelUri, Context, ErrorKind, ExclusivePublication, Header, PollError, Subscription,
};

use crate::contract::{REQUEST_CHANNEL, REQUEST_STREAM, RESPONSE_CHANNEL, RESPONSE_STREAM};
use crate::session::{QUEUE_LIMIT, Session};

/// Time between two checks for callers that have gone.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
const FRAGMENT_LIMIT: usize = 10;
/// How long a new session waits while the driver closes its socket.
const SOCKET_CLOSING: Duration = Duration::from_secs(1);
/// Time between two tries to open a response channel.
const OPENING_PAUSE: Duration = Duration::from_millis(1);

/// Settings of a server.
#[derive(Debug, Clone, Args)]
pub struct ServerOptions {
    /// Directory of a running media driver
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Channel of requests
    #[arg(long, value_name = "URI", default_value = REQUEST_CHANNEL)]
    request_channel: String,

    /// Channel of responses
    #[arg(long, value_name = "URI", default_value = RESPONSE_CHANNEL)]
    response_channel: String,

    /// Longest time that a caller may leave responses unread, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    client_timeout_ms: u64,

    /// Longest time that a caller may take to answer a callback, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    callback_timeout_ms: u64,
}

/// A server without a thread of its own: call [`do_work`](Self::do_work) in a loop.
#[must_use]
#[derive(Debug)]
pub struct Server {
    requests: Subscription,
    sessions: Sessions,
    client_timeout: Duration,
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
        let sessions = Sessions {
            aeron,
            response_channel,
            callback_timeout: Duration::from_millis(options.callback_timeout_ms),
            opening: Vec::new(),
            by_image: HashMap::new(),
        };
        let client_timeout = Duration::from_millis(options.client_timeout_ms);
        Ok(Self { requests, sessions, client_timeout, next_housekeeping: Instant::now() })
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
                session.check_deadlines(now, self.client_timeout);
            }
        }
        Ok(work_count)
    }
}

#[derive(Debug)]
struct Sessions {
    aeron: Aeron,
    response_channel: ChannelUri,
    callback_timeout: Duration,
    opening: Vec<Opening>,
    /// By the correlation id of the image of the session's requests.
    by_image: HashMap<i64, Session<ExclusivePublication>>,
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
            let mut session = Session::new(opening.image, self.callback_timeout);
            if opening.bytes > QUEUE_LIMIT {
                session.close(&format!("more than {QUEUE_LIMIT} bytes wait for its channel"));
            } else if Instant::now() < opening.next_try {
                self.opening.push(opening);
                continue;
            } else {
                match self.add_responses(opening.image) {
                    Ok(responses) => session.open(responses),
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
