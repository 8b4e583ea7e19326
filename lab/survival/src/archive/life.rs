//! The life of a server: it is started, has to have everything that former servers had announced, records and replays, and
//! is killed.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rusteron_archive::{
    Archive, ArchiveContext, RecordingEvent, RecordingSignal, RecordingSignalKind,
};
use rusteron_client::{Aeron, Subscription};
use rusteron_test_support::context;

use super::plan::{Moment, Plan};
use super::server::{EVENTS_CHANNEL, Killer, Server, ServerOptions};
use super::stream::{Fault, Follower, Stream};
use crate::report::Report;

/// How long requests wait for an answer of an archive that is killed among them.
const CUT_OFF_TIMEOUT: Duration = Duration::from_millis(500);
/// The subscriber of signals has its turn as often.
const SIGNAL_INTERVAL: usize = 16;

/// A client of the server, and what it has been told.
pub(super) struct Session {
    archive: Archive,
    events: Subscription,
    signals: Arc<Mutex<Vec<RecordingSignal>>>,
}

impl Session {
    /// Connects to the archive. `None` if that was killed meanwhile.
    pub(super) fn connect(
        aeron: &Aeron,
        events_stream_id: i32,
        timeout: Duration,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<Self>, Fault> {
        let events = aeron.add_subscription(EVENTS_CHANNEL, events_stream_id)?;
        let signals: Arc<Mutex<Vec<_>>> = Arc::default();
        let received = Arc::clone(&signals);
        let mut context = ArchiveContext::new()?;
        context
            .set_control_request_channel("aeron:ipc")?
            .set_control_response_channel("aeron:ipc")?
            .set_message_timeout(timeout)?
            .set_recording_signal_consumer(move |signal| lock(&received).push(*signal))?;
        let mut connecting = Archive::async_connect(aeron, context)?;
        loop {
            if let Some(archive) = connecting.poll()? {
                return Ok(Some(Self { archive, events, signals }));
            }
            if is_over() {
                return Ok(None);
            }
            thread::yield_now();
        }
    }

    pub(super) fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Notes the positions that recording events and signals announce.
    fn listen(&mut self, streams: &mut [Stream], with_signals: bool) -> Result<usize, Fault> {
        let polled = self.events.poll(
            |message, _| {
                let (id, position, has_stopped) = match RecordingEvent::decode(message) {
                    Some(RecordingEvent::Progress { recording_id, position, .. }) => {
                        (recording_id, position, false)
                    }
                    Some(RecordingEvent::Stopped { recording_id, stop_position, .. }) => {
                        (recording_id, stop_position, true)
                    }
                    _ => return,
                };
                streams.iter_mut().for_each(|stream| stream.note(id, position, has_stopped));
            },
            20,
        );
        let count = polled.map_err(|error| Fault("refused", format!("an event: {error}")))?;
        if with_signals {
            self.archive.poll_for_recording_signals()?;
        }
        for signal in mem::take(&mut *lock(&self.signals)) {
            let RecordingSignal { recording_id, position: Some(position), kind, .. } = signal
            else {
                continue;
            };
            let has_stopped = kind == RecordingSignalKind::Stop;
            streams.iter_mut().for_each(|stream| stream.note(recording_id, position, has_stopped));
        }
        Ok(count)
    }
}

/// What a life needs of the campaign.
pub(super) struct Life<'a> {
    pub(super) number: u64,
    pub(super) plan: Plan,
    /// Of publications over IPC.
    pub(super) session_ids: &'a mut dyn FnMut() -> i32,
    pub(super) server: &'a ServerOptions,
    pub(super) deadline: Duration,
    pub(super) report: &'a mut Report,
}

impl Life<'_> {
    /// Lives until the kill. Returns a fault that the kill does not explain.
    pub(super) fn run(&mut self, server: &mut Server, streams: &mut [Stream]) -> Result<(), Fault> {
        let mut killer = None;
        let mut session = None;
        let outcome = self.live(server, streams, &mut killer, &mut session);
        // An error of a request that the kill has cut off. The time of such a request may be over before a killer that gets
        // no processor strikes.
        let is_cut_off =
            self.plan.moment == Moment::Requests || killer.as_ref().is_some_and(Killer::has_struck);
        let fault = outcome.err().filter(|fault| !is_cut_off || fault.0 != "refused");
        match killer {
            Some(killer) => killer.join(),
            None => server.kill_after(Duration::ZERO).join(),
        }
        let death = server.await_death();
        // The driver does not take counters and messages away so soon.
        streams.iter_mut().for_each(Stream::read_counter);
        if let Some(session) = &mut session {
            // The rest of what was announced. With a driver that is dead, there may be an error.
            while session.listen(streams, true).is_ok_and(|count| count > 0) {}
        }
        streams.iter_mut().for_each(Stream::leave);
        match (fault, death) {
            (Some(fault), _) => Err(fault),
            (None, Err(text)) => Err(Fault("crashed", text)),
            (None, Ok(())) => Ok(()),
        }
    }

    fn live(
        &mut self,
        server: &mut Server,
        streams: &mut [Stream],
        killer: &mut Option<Killer>,
        living: &mut Option<Session>,
    ) -> Result<(), Fault> {
        let Plan { moment, delay, with_driver, .. } = self.plan;
        if moment == Moment::Start {
            *killer = Some(server.kill_after(delay));
        }
        let ready = server.await_ready(killer.as_ref(), self.deadline);
        let Some(time) = ready.map_err(|text| Fault("refused to start", text))? else {
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
            *killer = Some(server.kill_after(delay));
        }
        let is_over = || killer.as_ref().is_some_and(Killer::has_struck);

        let mut client = context(&self.server.aeron_dir);
        client.set_driver_timeout(self.deadline)?;
        let aeron = Aeron::connect(client)?;
        let timeout = if moment == Moment::Requests { CUT_OFF_TIMEOUT } else { self.deadline };
        let Some(session) =
            Session::connect(&aeron, self.server.events_stream_id, timeout, &is_over)?
        else {
            return Ok(());
        };
        let session = living.insert(session);
        for stream in &mut *streams {
            let count = stream.check(session.archive(), false, &is_over)?;
            self.report.add("messages checked", count as u64);
        }
        for stream in &mut *streams {
            stream.start(session.archive(), (self.session_ids)(), &is_over)?;
        }
        let mut follower = streams[self.plan.follows].follow(session.archive())?;
        if moment == Moment::Load {
            *killer = Some(server.kill_after(delay));
        }
        let Some(killer) = killer else { return Ok(()) };
        self.load(session, streams, &mut follower, killer)
    }

    fn load(
        &mut self,
        session: &mut Session,
        streams: &mut [Stream],
        follower: &mut Option<Follower>,
        killer: &Killer,
    ) -> Result<(), Fault> {
        let mut turn: usize = 0;
        while !killer.has_struck() {
            let mut work = 0;
            for stream in &mut *streams {
                work += stream.send(self.number)?;
                stream.read_counter();
            }
            work += session.listen(streams, turn % SIGNAL_INTERVAL == 0)?;
            if let Some(follower) = follower {
                let count = follower.poll(streams)?;
                self.report.add("messages followed", count as u64);
                work += count;
            }
            // When something has been sent.
            if let Some(ended) = self.plan.ends.filter(|_| turn == 4 * SIGNAL_INTERVAL) {
                streams[ended].end_publication();
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

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
