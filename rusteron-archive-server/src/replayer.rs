//! Replaying: segment files become blocks of a publication.

mod block_reader;
mod block_sink;
mod replay;

#[cfg(test)]
mod agent_tests;
#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

pub(crate) use block_reader::BlockReader;
pub(crate) use block_sink::BlockSink;

use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, ExclusivePublication};
use rusteron_core::agent::{Agent, AgentError};

use crate::conductor::effect::{Failure, StartReplay};
use crate::conductor::event::Event;
use crate::ids::ReplayId;
use crate::recorder::IoCounters;
use crate::replayer::replay::{Replay, ReplayEnd};
use crate::worker_event::{Returned, WorkerEvent};

/// An order of the conductor to the replayer.
#[derive(Debug)]
pub(crate) enum ReplayerCommand {
    /// Replays into a publication, which stands at the position of the replay.
    StartReplay(Box<StartReplay>, Box<ExclusivePublication>),
    /// Ends a replay. One that has ended by itself is no error.
    AbortReplay(ReplayId),
}

/// Reads what is to be replayed, and offers it. On its own thread, or in turns with other agents.
#[derive(Debug)]
pub(crate) struct Replayer {
    commands: Receiver<ReplayerCommand>,
    events: Sender<WorkerEvent>,
    /// For counters that bound replays.
    client: Aeron,
    /// How long a replay waits for its first segment and for a subscriber.
    connect_timeout: Duration,
    reader: BlockReader,
    counters: IoCounters,
    replays: Vec<ActiveReplay>,
}

#[derive(Debug)]
struct ActiveReplay {
    id: ReplayId,
    replay: Replay,
    publication: Box<ExclusivePublication>,
}

impl Replayer {
    pub(crate) fn new(
        commands: Receiver<ReplayerCommand>,
        events: Sender<WorkerEvent>,
        client: Aeron,
        connect_timeout: Duration,
        reader: BlockReader,
        counters: IoCounters,
    ) -> Self {
        let replays = Vec::new();
        Self { commands, events, client, connect_timeout, reader, counters, replays }
    }

    fn execute_commands(&mut self) -> usize {
        let mut work_count = 0;
        while let Ok(command) = self.commands.try_recv() {
            self.execute(command);
            work_count += 1;
        }
        work_count
    }

    fn execute(&mut self, command: ReplayerCommand) {
        match command {
            ReplayerCommand::StartReplay(start, publication) => {
                let deadline = Instant::now().checked_add(self.connect_timeout);
                self.replays.push(ActiveReplay {
                    id: start.replay,
                    replay: Replay::new(*start, publication.session_id(), deadline),
                    publication,
                });
            }
            ReplayerCommand::AbortReplay(id) => {
                if let Some(index) = self.replays.iter().position(|active| active.id == id) {
                    let mut active = self.replays.swap_remove(index);
                    active.replay.abort();
                    self.report(active);
                }
            }
        }
    }

    /// Offers at most one block of each replay.
    fn replay(&mut self) -> usize {
        let now = Instant::now();
        let mut work_count = 0;
        let mut index = 0;
        while let Some(active) = self.replays.get_mut(index) {
            let ActiveReplay { id, replay, publication } = active;
            let had_started = replay.has_started();
            work_count += replay.do_work(publication.as_mut(), &mut self.reader, &self.client, now);
            if replay.has_started() && !had_started {
                let session_id = publication.session_id();
                let event = Event::ReplayStarted(*id, Ok(session_id));
                send(&self.events, WorkerEvent::told(event));
            }
            if replay.end().is_some() {
                let active = self.replays.swap_remove(index);
                self.report(active);
            } else {
                index += 1;
            }
        }
        work_count
    }

    fn report(&self, active: ActiveReplay) {
        let ActiveReplay { id, replay, mut publication } = active;
        let failure = match replay.end() {
            Some(ReplayEnd::Complete) => None,
            Some(ReplayEnd::Failed(failure)) => {
                publication.revoke_on_close();
                Some(failure.clone())
            }
            Some(ReplayEnd::Incomplete) | None => {
                publication.revoke_on_close();
                None
            }
        };
        let event = if replay.has_started() {
            Event::ReplayEnded(id, failure)
        } else {
            let ended = || Failure::generic("replay ended before it started");
            Event::ReplayStarted(id, Err(failure.unwrap_or_else(ended)))
        };
        // Closing the publication revokes it, unless the replay is complete.
        send(&self.events, WorkerEvent::returning(event, Returned::Publication(publication)));
    }
}

/// If the conductor has gone, what the event holds is closed here.
fn send(events: &Sender<WorkerEvent>, event: WorkerEvent) {
    if events.send(event).is_err() {
        log::debug!("replayer: the conductor has gone");
    }
}

impl Agent for Replayer {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let mut work_count = self.execute_commands();
        if !self.replays.is_empty() {
            work_count += self.replay();
        }
        if work_count > 0 {
            self.counters.publish(&self.reader.totals);
        }
        Ok(work_count)
    }

    /// Ends all replays and gives their publications back.
    fn on_close(&mut self) -> Result<(), AgentError> {
        self.execute_commands();
        for mut active in std::mem::take(&mut self.replays) {
            active.replay.abort();
            self.report(active);
        }
        Ok(())
    }

    fn role_name(&self) -> &str {
        "archive-replayer"
    }
}
