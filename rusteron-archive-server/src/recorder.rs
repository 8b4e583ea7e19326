//! Recording: blocks of images become segment files.

mod block_writer;
mod io_totals;
mod recording;
mod syncs;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod script_tests;
#[cfg(test)]
mod tests;

pub(crate) use block_writer::BlockWriter;
pub(crate) use io_totals::{IoCounters, IoTotals};
pub(crate) use recording::{BlockSource, Recording};

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender};

use rusteron_client::{Counter, Subscription};
use rusteron_core::agent::{Agent, AgentError};

use crate::conductor::effect::{ImageId, RecordingId, RegistrationId, StartRecording};
use crate::conductor::event::Event;
use crate::recorder::syncs::Syncs;
use crate::storage::SyncLevel;
use crate::worker_event::{Returned, WorkerEvent};

/// An order of the conductor to the recorder.
#[derive(Debug)]
pub(crate) enum RecorderCommand {
    /// Takes a subscription. The recordings of its images are started by themselves.
    AddSubscription(Box<Subscription>),
    /// Records an image, and sets the counter after each block.
    StartRecording(Box<StartRecording>, Counter),
    /// Ends a recording. One that has stopped by itself is no error.
    AbortRecording(RecordingId),
    /// Counts the streams that feed the image of a recording.
    CountTransports(RecordingId),
    /// Ends what is left of the recordings of a subscription, and gives it back.
    ReturnSubscription(RegistrationId),
}

/// Polls the images of all recordings, and writes what arrives. On its own thread, or in turns with
/// other agents.
#[derive(Debug)]
pub(crate) struct Recorder {
    commands: Receiver<RecorderCommand>,
    events: Sender<WorkerEvent>,
    file_io_max: usize,
    writer: BlockWriter,
    syncs: Syncs,
    counters: IoCounters,
    subscriptions: HashMap<RegistrationId, Box<Subscription>>,
    recordings: Vec<ActiveRecording>,
}

#[derive(Debug)]
struct ActiveRecording {
    id: RecordingId,
    subscription: RegistrationId,
    image: ImageId,
    recording: Recording,
    counter: Counter,
}

impl Recorder {
    /// `file_io_max` bounds the bytes of one write.
    pub(crate) fn new(
        commands: Receiver<RecorderCommand>,
        events: Sender<WorkerEvent>,
        file_io_max: usize,
        writer: BlockWriter,
        counters: IoCounters,
    ) -> Self {
        Self {
            commands,
            events,
            file_io_max,
            syncs: Syncs::new(writer.sync_level()),
            writer,
            counters,
            subscriptions: HashMap::new(),
            recordings: Vec::new(),
        }
    }

    fn execute_commands(&mut self) -> usize {
        let mut work_count = 0;
        while let Ok(command) = self.commands.try_recv() {
            self.execute(command);
            work_count += 1;
        }
        work_count
    }

    fn execute(&mut self, command: RecorderCommand) {
        match command {
            RecorderCommand::AddSubscription(subscription) => {
                let id = RegistrationId::new(subscription.registration_id());
                self.subscriptions.insert(id, subscription);
            }
            RecorderCommand::StartRecording(start, counter) => {
                counter.set_release(start.join_position);
                self.recordings.push(ActiveRecording {
                    id: start.geometry.recording_id,
                    subscription: start.subscription,
                    image: start.image,
                    recording: Recording::new(&start, self.file_io_max),
                    counter,
                });
            }
            RecorderCommand::AbortRecording(id) => self.stop_all(|active| active.id == id),
            RecorderCommand::CountTransports(id) => self.count_transports(id),
            RecorderCommand::ReturnSubscription(id) => {
                self.stop_all(|active| active.subscription == id);
                if let Some(subscription) = self.subscriptions.remove(&id) {
                    self.give_back(subscription);
                }
            }
        }
    }

    /// A recording that has stopped has no image to count for.
    fn count_transports(&mut self, id: RecordingId) {
        let Some(active) = self.recordings.iter().find(|active| active.id == id) else { return };
        let Some(subscription) = self.subscriptions.get_mut(&active.subscription) else { return };
        let image =
            subscription.images().find(|image| image.correlation_id() == active.image.get());
        let count = image.map_or(0, |image| image.active_transport_count());
        self.send(WorkerEvent::told(Event::Transports(id, count)));
    }

    /// Records at most one block of each image.
    fn record(&mut self) -> usize {
        let mut work_count = 0;
        for active in &mut self.recordings {
            let mut image =
                self.subscriptions.get_mut(&active.subscription).and_then(|subscription| {
                    subscription.images().find(|image| image.correlation_id() == active.image.get())
                });
            let source = image.as_mut().map(|image| image as &mut dyn BlockSource);
            let work = active.recording.write_block(source, &mut self.writer);
            if work > 0 {
                active.counter.set_release(active.recording.position());
            }
            work_count += work;
        }
        if work_count > 0 {
            self.sync();
        }
        let mut index = 0;
        while let Some(active) = self.recordings.get(index) {
            if active.recording.is_stopped() {
                let active = self.recordings.swap_remove(index);
                self.report(active);
            } else {
                index += 1;
            }
        }
        work_count
    }

    /// Syncs the blocks of this turn, and announces them.
    fn sync(&mut self) {
        if self.writer.sync_level() == SyncLevel::None {
            return;
        }
        let unsynced = self.recordings.iter_mut().enumerate();
        let unsynced =
            unsynced.filter_map(|(index, it)| Some((index, it.recording.take_unsynced()?)));
        let (indices, files): (Vec<_>, Vec<_>) = unsynced.unzip();
        for (index, synced) in indices.into_iter().zip(self.syncs.sync(files)) {
            if let Some(active) = self.recordings.get_mut(index) {
                active.recording.synced(synced, &mut self.writer);
                active.counter.set_release(active.recording.position());
            }
        }
    }

    fn stop_all(&mut self, is_meant: impl Fn(&ActiveRecording) -> bool) {
        let (meant, others): (Vec<_>, Vec<_>) = self.recordings.drain(..).partition(is_meant);
        self.recordings = others;
        for mut active in meant {
            active.recording.abort();
            self.report(active);
        }
    }

    fn report(&self, active: ActiveRecording) {
        let ActiveRecording { id, recording, counter, .. } = active;
        let failure = recording.failure().cloned();
        let event = Event::RecordingStopped(id, recording.position(), failure);
        self.send(WorkerEvent::returning(event, Returned::Counter(counter)));
        recording.announce_end();
    }

    fn give_back(&self, subscription: Box<Subscription>) {
        let returned = Some(Returned::Subscription(subscription));
        self.send(WorkerEvent { event: None, returned });
    }

    /// If the conductor has gone, what the event holds is closed here.
    fn send(&self, event: WorkerEvent) {
        if self.events.send(event).is_err() {
            log::debug!("recorder: the conductor has gone");
        }
    }
}

impl Agent for Recorder {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let work_count = self.execute_commands() + self.record();
        if work_count > 0 {
            self.counters.publish(self.writer.totals());
        }
        Ok(work_count)
    }

    /// Stops all recordings and gives everything back.
    fn on_close(&mut self) -> Result<(), AgentError> {
        self.execute_commands();
        self.stop_all(|_| true);
        for subscription in std::mem::take(&mut self.subscriptions).into_values() {
            self.give_back(subscription);
        }
        Ok(())
    }

    fn role_name(&self) -> &str {
        "archive-recorder"
    }
}
