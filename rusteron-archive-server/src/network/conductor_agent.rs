//! The turns of the conductor.

use std::mem;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rusteron_client::{Counter, Error};
use rusteron_core::agent::{Agent, AgentError, AgentRunner};

use crate::conductor::Conductor;
use crate::conductor::effect::{Blame, Clock, Outside};
use crate::conductor::event::Event;
use crate::mark_file::MarkFile;
use crate::network::{Network, Requests};
use crate::recorder::Recorder;
use crate::replayer::Replayer;

/// The time between two signs of life in the mark file.
const MARK_FILE_INTERVAL_NS: i64 = 1_000_000_000;

/// Recorder and replayer.
#[derive(Debug)]
pub(crate) enum Workers {
    /// Each on a thread of its own.
    Threads(Vec<AgentRunner>),
    /// In turns with the conductor.
    Shared(Box<(Replayer, Recorder)>),
}

/// The conductor with everything that it needs of the outside, as an agent.
///
/// In each turn it does the work of the Aeron client if that is due, takes events and requests, and
/// lets the conductor do what is due.
#[derive(Debug)]
pub(crate) struct ConductorAgent {
    /// Before the network, which holds the client.
    requests: Requests,
    conductor: Conductor,
    workers: Workers,
    network: Network,
    events: Vec<Event>,
    /// The counters of recordings that have ended, until the conductor is told of it.
    returned: Vec<Counter>,
    start: Instant,
    /// The time of the client's last turn, in milliseconds since 1970.
    last_client_turn_ms: i64,
    mark_file_due_ns: i64,
    /// Last: dropping it says that the archive has ended.
    mark_file: Arc<MarkFile>,
}

impl ConductorAgent {
    pub(crate) fn new(
        requests: Requests,
        conductor: Conductor,
        workers: Workers,
        network: Network,
        mark_file: Arc<MarkFile>,
    ) -> Self {
        Self {
            requests,
            conductor,
            workers,
            network,
            events: Vec::new(),
            returned: Vec::new(),
            start: Instant::now(),
            last_client_turn_ms: 0,
            mark_file_due_ns: 0,
            mark_file,
        }
    }

    /// Does the work of the client once a millisecond, and in each turn while the driver's answer
    /// is awaited.
    fn work_client(&mut self, now: Clock) -> Result<usize, Error> {
        if now.epoch_ms == self.last_client_turn_ms && !self.network.is_adding() {
            return Ok(0);
        }
        self.last_client_turn_ms = now.epoch_ms;
        let worked = self.network.aeron().do_work();
        self.network.errors().report_client_errors(worked.is_err());
        worked
    }

    fn tick_mark_file(&mut self, now: Clock) {
        // Not by the time of the day, which can be set back.
        if now.ns >= self.mark_file_due_ns {
            self.mark_file_due_ns = now.ns.saturating_add(MARK_FILE_INTERVAL_NS);
            self.mark_file.tick();
            self.network.errors().report_unlogged();
        }
    }

    /// Tells the conductor what has happened.
    fn tell(&mut self, now: Clock) -> usize {
        let events = mem::take(&mut self.events);
        let count = events.len();
        for event in events {
            self.conductor.on_event(event, now, &mut self.network);
        }
        self.returned.clear();
        count
    }

    fn poll_requests(&mut self, now: Clock) -> Result<usize, Error> {
        let Self { requests, conductor, network, .. } = self;
        let polled = requests.poll(|image, message| {
            let source_identity = network.source_identity(image);
            conductor.on_request(image, &source_identity, message, now, network)
        });
        Ok(polled?)
    }

    /// Rejects the streams of requests of sessions that have failed.
    fn reject(&mut self) {
        for (image, reason) in self.network.take_rejections() {
            match self.requests.reject(image, &reason) {
                Ok(false) => {}
                Ok(true) => self.network.reject(image, reason),
                Err(error) => {
                    self.network.report(Blame::Server, &format!("request image {image}: {error}"))
                }
            }
        }
    }

    fn clock(&self) -> Clock {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock {
            ns: i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX),
            epoch_ms: i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX),
        }
    }
}

impl Agent for ConductorAgent {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let now = self.clock();
        let mut work = self.work_client(now)?;
        self.tick_mark_file(now);
        self.network.poll(&mut self.events, &mut self.returned);
        work += self.tell(now);
        work += self.poll_requests(now)?;
        work += self.conductor.on_tick(now, &mut self.network);
        self.reject();
        Ok(work + self.workers.do_work()?)
    }

    /// Stops recordings at the positions that they have, ends replays and sessions. Nothing waits
    /// for clients.
    fn on_close(&mut self) -> Result<(), AgentError> {
        let now = self.clock();
        self.conductor.begin_close(now, &mut self.network);
        let closed = self.workers.close();
        self.network.cancel(&mut self.events);
        self.network.poll_workers(&mut self.events, &mut self.returned);
        self.tell(now);
        self.conductor.finish_close(now, &mut self.network);
        closed
    }

    fn role_name(&self) -> &str {
        "archive-conductor"
    }
}

impl Workers {
    /// Gives the agents that have no thread their turns.
    fn do_work(&mut self) -> Result<usize, AgentError> {
        match self {
            Self::Threads(_) => Ok(0),
            Self::Shared(agents) => {
                let (replayer, recorder) = &mut **agents;
                Ok(replayer.do_work()? + recorder.do_work()?)
            }
        }
    }

    /// Ends both agents, which give back what they have.
    fn close(&mut self) -> Result<(), AgentError> {
        match self {
            Self::Threads(runners) => {
                let closed = mem::take(runners).into_iter().map(AgentRunner::close);
                // All of them, whatever becomes of one.
                let outcomes: Vec<_> = closed.collect();
                outcomes.into_iter().collect::<Result<(), _>>().map_err(AgentError::from)
            }
            Self::Shared(agents) => {
                let (replayer, recorder) = &mut **agents;
                replayer.on_close().and(recorder.on_close())
            }
        }
    }
}
