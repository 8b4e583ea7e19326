//! The server: one thread, which polls requests and answers each session on its own response channel.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{Aeron, ChannelUri, Header, PollError, Subscription};

use crate::ConnectOptions;
use crate::contract::REQUEST_STREAM;
use crate::session::Session;

/// Time between two checks for callers that have gone.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
const FRAGMENT_LIMIT: usize = 10;

/// Serves the cross-language service until Ctrl-C
#[derive(Debug, Parser)]
#[command(name = "server")]
pub struct ServerOptions {
    /// Settings of the connection.
    #[command(flatten)]
    pub connect: ConnectOptions,

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
    aeron: Aeron,
    requests: Subscription,
    response_channel: ChannelUri,
    /// By the correlation id of the image of the session's requests.
    sessions: HashMap<i64, Session>,
    client_timeout: Duration,
    callback_timeout: Duration,
    next_housekeeping: Instant,
}

impl Server {
    /// Subscribes to requests.
    ///
    /// # Errors
    /// There is no driver, or a channel is wrong.
    pub fn start(options: &ServerOptions) -> rusteron_client::Result<Self> {
        let response_channel = options.connect.response_channel.parse()?;
        let aeron = options.connect.aeron()?;
        let requests = aeron.add_subscription(&options.connect.request_channel, REQUEST_STREAM)?;
        Ok(Self {
            aeron,
            requests,
            response_channel,
            sessions: HashMap::new(),
            client_timeout: Duration::from_millis(options.client_timeout_ms),
            callback_timeout: Duration::from_millis(options.callback_timeout_ms),
            next_housekeeping: Instant::now(),
        })
    }

    /// Answers requests, and sends responses that had to wait. Returns the amount of work done.
    ///
    /// # Errors
    /// The Aeron client is closed.
    pub fn do_work(&mut self) -> Result<usize, PollError> {
        let Self { sessions, callback_timeout, .. } = self;
        let handler = |message: &[u8], header: &Header<'_>| {
            let image = header.image_correlation_id();
            let session =
                sessions.entry(image).or_insert_with(|| Session::new(image, *callback_timeout));
            session.receive(message);
        };
        let mut work_count = self.requests.poll(handler, FRAGMENT_LIMIT)?;
        for session in self.sessions.values_mut() {
            work_count += session.do_work(&self.aeron, &self.response_channel);
        }
        let now = Instant::now();
        if now >= self.next_housekeeping {
            self.next_housekeeping = now + HOUSEKEEPING;
            let images: HashSet<i64> =
                self.requests.images().map(|image| image.correlation_id()).collect();
            self.sessions.retain(|image, _| images.contains(image));
            for session in self.sessions.values_mut() {
                session.check_deadlines(now, self.client_timeout);
            }
        }
        Ok(work_count)
    }
}
