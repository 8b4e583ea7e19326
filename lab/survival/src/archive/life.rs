//! The life of a server: it is started, has to have everything that former servers had announced, records and replays, and
//! is killed.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rusteron_archive::{
    Archive, ArchiveContext, RecordingEvent, RecordingSignal, RecordingSignalKind,
};
use rusteron_client::{Aeron, Subscription};
use rusteron_test_support::{Random, context};

use super::server::{EVENTS_CHANNEL, Server};
use super::stream::{Replay, Stream};
use crate::report::{Finding, Report};

/// How long requests wait for an answer of an archive that is killed among them.
const CUT_OFF_TIMEOUT: Duration = Duration::from_millis(500);
/// The subscriber of signals has its turn as often.
const SIGNAL_INTERVAL: usize = 16;

/// The moment at which a server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// So long after the process was started.
    Start,
    /// So long after the server was ready, while clients connect and ask.
    Requests,
    /// So long after all streams are recorded.
    Load,
}

/// The choices that the seed makes before a life begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// In some lives, the server starts on a copy of the directory. `cp -a` leaves holes where it
    /// finds them, makes holes of pages of zeros (`always`), or pages of zeros of holes (`never`).
    pub(super) copy: Option<&'static str>,
    moment: Moment,
    delay: Duration,
    /// The media driver is a part of the process, and is killed with it.
    pub(super) with_driver: bool,
    pub(super) sync_level: u8,
    /// Recorder and replayer have threads of their own.
    pub(super) dedicated: bool,
    /// The stream of which the publication ends under load, in some lives.
    ends: Option<usize>,
    /// The stream of which a replay follows the recording.
    follows: usize,
}

impl Plan {
    pub(super) fn choose(random: &mut Random, streams: usize) -> Self {
        let (moment, longest) = match random.below(100) {
            0..10 => (Moment::Start, 60),
            10..25 => (Moment::Requests, 100),
            _ => (Moment::Load, 200),
        };
        Self {
            copy: ["auto", "always", "never"].get(random.below(18)).copied(),
            moment,
            delay: Duration::from_micros(random.below(longest * 1000) as u64),
            with_driver: random.percent(20),
            sync_level: [0, 0, 1, 2][random.below(4)],
            dedicated: random.percent(50),
            ends: Some(random.below(2 * streams)).filter(|&ended| ended < streams),
            follows: random.below(streams),
        }
    }
}

/// A client of the server, and what it has been told.
pub(super) struct Session {
    pub(super) archive: Archive,
    events: Subscription,
    signals: Arc<Mutex<Vec<RecordingSignal>>>,
}

impl Session {
    /// Connects to the archive. `None` if that was killed meanwhile.
    pub(super) fn connect(
        server: &Server,
        timeout: Duration,
        driver_timeout: Duration,
    ) -> Result<Option<Self>, Finding> {
        let mut client = context(&server.options.aeron_dir);
        client.set_driver_timeout(driver_timeout)?;
        let aeron = Aeron::connect(client)?;
        let events = aeron.add_subscription(EVENTS_CHANNEL, server.options.events_stream_id)?;
        let signals: Arc<Mutex<Vec<_>>> = Arc::default();
        let received = Arc::clone(&signals);
        let mut context = ArchiveContext::new()?;
        context
            .set_control_request_channel("aeron:ipc")?
            .set_control_response_channel("aeron:ipc")?
            .set_message_timeout(timeout)?
            .set_recording_signal_consumer(move |signal| lock(&received).push(*signal))?;
        let mut connecting = Archive::async_connect(&aeron, context)?;
        while !server.was_killed() {
            if let Some(archive) = connecting.poll()? {
                return Ok(Some(Self { archive, events, signals }));
            }
            thread::yield_now();
        }
        Ok(None)
    }

    /// Notes the positions that recording events and signals announce.
    fn listen(&mut self, streams: &mut [Stream], with_signals: bool) -> Result<usize, Finding> {
        let mut note = |id, position, has_stopped| {
            streams.iter_mut().for_each(|stream| stream.note(id, position, has_stopped));
        };
        let polled = self.events.poll(
            |message, _| match RecordingEvent::decode(message) {
                Some(RecordingEvent::Progress { recording_id, position, .. }) => {
                    note(recording_id, position, false);
                }
                Some(RecordingEvent::Stopped { recording_id, stop_position, .. }) => {
                    note(recording_id, stop_position, true);
                }
                _ => {}
            },
            20,
        );
        let count =
            polled.map_err(|error| Finding::new("refused", format!("an event: {error}")))?;
        if with_signals {
            self.archive.poll_for_recording_signals()?;
        }
        for signal in mem::take(&mut *lock(&self.signals)) {
            if let RecordingSignal { recording_id, position: Some(position), kind, .. } = signal {
                note(recording_id, position, kind == RecordingSignalKind::Stop);
            }
        }
        Ok(count)
    }
}

/// A life, and what it needs of the campaign.
pub(super) struct Life<'a> {
    pub(super) number: u64,
    pub(super) plan: Plan,
    /// The last one that was given to a publication over IPC.
    pub(super) session_id: &'a mut i32,
    pub(super) server: &'a mut Server,
    pub(super) streams: &'a mut [Stream],
    pub(super) deadline: Duration,
    pub(super) report: &'a mut Report,
}

impl Life<'_> {
    /// Lives until the kill. Returns a finding that the kill does not explain.
    pub(super) fn run(mut self) -> Result<(), Finding> {
        let mut session = None;
        let outcome = self.live(&mut session);
        // An error of a request that the kill has cut off. The time of such a request may be over before a killer that gets
        // no processor strikes.
        let is_cut_off = self.plan.moment == Moment::Requests || self.server.was_killed();
        let outcome =
            outcome.or_else(|finding| match is_cut_off && finding.condition == "refused" {
                true => Ok(()),
                false => Err(finding),
            });
        let death = self.server.await_death();
        // The driver does not take counters and messages away so soon.
        self.streams.iter_mut().for_each(Stream::read_counter);
        if let Some(session) = &mut session {
            // The rest of what was announced. With a driver that is dead, there may be an error.
            while session.listen(self.streams, true).is_ok_and(|count| count > 0) {}
        }
        self.streams.iter_mut().for_each(Stream::leave);
        outcome.and(death)
    }

    /// Sets the session as soon as there is one.
    fn live(&mut self, living: &mut Option<Session>) -> Result<(), Finding> {
        let Plan { moment, delay, with_driver, .. } = self.plan;
        if moment == Moment::Start {
            self.server.kill_after(delay);
        }
        let Some(time) = self.server.await_ready()? else {
            self.report.add("kills before a server was ready", 1);
            return Ok(());
        };
        let name = match (with_driver, self.number) {
            (_, 1) => "first start",
            (true, _) => "restart of archive and driver",
            (false, _) => "restart of archive",
        };
        self.report.time(name, time);
        if moment == Moment::Requests {
            self.server.kill_after(delay);
        }
        let timeout = if moment == Moment::Requests { CUT_OFF_TIMEOUT } else { self.deadline };
        let Some(session) = Session::connect(self.server, timeout, self.deadline)? else {
            return Ok(());
        };
        let session = living.insert(session);
        for stream in &mut *self.streams {
            let count = stream.check(&session.archive, false, self.server)?;
            self.report.add("messages checked", count as u64);
        }
        for stream in &mut *self.streams {
            *self.session_id += 1;
            stream.start(&session.archive, *self.session_id, self.server)?;
        }
        let mut follower = self.streams[self.plan.follows].follow(&session.archive)?;
        if moment == Moment::Load {
            self.server.kill_after(delay);
        }
        self.load(session, &mut follower)
    }

    fn load(
        &mut self,
        session: &mut Session,
        follower: &mut Option<Replay>,
    ) -> Result<(), Finding> {
        let mut turn: usize = 0;
        while !self.server.was_killed() {
            let mut work = 0;
            for stream in &mut *self.streams {
                work += stream.send(self.number)?;
                stream.read_counter();
            }
            work += session.listen(self.streams, turn % SIGNAL_INTERVAL == 0)?;
            if let Some(follower) = follower {
                let count = self.streams[self.plan.follows].compare_followed(follower)?;
                self.report.add("messages followed", count as u64);
                work += count;
            }
            // When something has been sent.
            if let Some(ended) = self.plan.ends.filter(|_| turn == 4 * SIGNAL_INTERVAL) {
                self.streams[ended].end_publication();
                self.report.add("publications ended", 1);
            }
            if work == 0 {
                thread::yield_now();
            }
            turn += 1;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_chooses_the_plan() {
        let plans = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| format!("{:?}", Plan::choose(&mut random, 6))).collect::<Vec<_>>()
        };
        assert_eq!(plans(1), plans(1));
        assert_ne!(plans(1), plans(2));
        for text in
            ["Start", "Requests", "Load", "with_driver: true", "sync_level: 2", "Some(5)", "always"]
        {
            assert!(plans(1).iter().any(|plan| plan.contains(text)), "{text}");
        }
    }
}
