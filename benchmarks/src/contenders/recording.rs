//! Recordings and replays of messages.

use std::thread;
use std::time::{Duration, Instant};

use rusteron_archive::{
    Archive, ArchiveError, ArchiveErrorKind, RecordingPos, ReplayLength, ReplayParams,
};
use rusteron_client::ChannelUri;

use crate::command_line::choice::Language;
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::processes::archive_process::{ArchiveProcess, DEADLINE};
use crate::processes::java::{self, Java};
use crate::processes::program::Program;

/// The messages that a run records.
#[derive(Debug, Clone)]
pub struct Load {
    /// Where it is published and recorded.
    pub channel: ChannelUri,
    /// The stream id; the replay has the next one.
    pub stream_id: i32,
    /// How many messages.
    pub messages: u64,
    /// How long each of them is, at least 8 bytes.
    pub message_length: usize,
    /// How many fragments a poll of the replay takes.
    pub fragment_limit: usize,
    /// How many messages are recorded and replayed before, and again until [`Load::warmup`] has passed.
    pub warmup_messages: u64,
    /// How long that goes on.
    pub warmup: Duration,
    /// How many recordings are made and replayed then, one after the other.
    pub recordings: u32,
}

/// The times of one recording and its replay.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// From the first offer until everything was recorded.
    pub recorded_in: Duration,
    /// From the request until the last message.
    pub replayed_in: Duration,
}

/// The settings and programs that runs are made with.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The archive.
    pub process: &'a ArchiveProcess,
    /// Our session with it.
    pub archive: &'a Archive,
    /// Java.
    pub java: &'a Java,
    /// Ends a run early.
    pub interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// One run, with an outcome for each recording; they are purged.
    ///
    /// # Errors
    /// [`Failure::Run`] if anything fails; [`Failure::Interrupted`].
    pub fn measure(&self, client: Language, load: &Load) -> Result<Vec<Outcome>, Failure> {
        match client {
            Language::Rust => self.measure_rust(load),
            Language::Java => self.measure_java(load),
        }
    }

    fn measure_rust(&self, load: &Load) -> Result<Vec<Outcome>, Failure> {
        let start = Instant::now();
        loop {
            let (recording_id, _) = self.record(load, load.warmup_messages)?;
            self.replay(load, load.warmup_messages, recording_id)?;
            self.purge(recording_id)?;
            if start.elapsed() >= load.warmup {
                break;
            }
        }
        let measure = |_| {
            settle();
            let (recording_id, recorded_in) = self.record(load, load.messages)?;
            settle();
            let replayed_in = self.replay(load, load.messages, recording_id)?;
            self.purge(recording_id)?;
            Ok(Outcome { recorded_in, replayed_in })
        };
        (0..load.recordings).map(measure).collect()
    }

    fn measure_java(&self, load: &Load) -> Result<Vec<Outcome>, Failure> {
        let arguments = [
            self.process.aeron_dir().display().to_string(),
            load.channel.to_string(),
            load.stream_id.to_string(),
            load.message_length.to_string(),
            load.fragment_limit.to_string(),
            load.warmup_messages.to_string(),
            load.warmup.as_nanos().to_string(),
            load.recordings.to_string(),
            load.messages.to_string(),
        ];
        let timeout = DEADLINE + load.warmup;
        let mut program = self.java.start("benchmarks/Recording.java", &[], &arguments, timeout)?;
        let mut outcomes = Vec::new();
        for _ in 0..load.recordings {
            self.line_of(&mut program, "ready")?;
            settle();
            program.go_on()?;
            let recorded_in = self.line_of(&mut program, "recorded ")?;
            settle();
            program.go_on()?;
            let replayed_in = self.line_of(&mut program, "replayed ")?;
            program.go_on()?;
            outcomes.push(Outcome { recorded_in, replayed_in });
        }
        program.finish(self.interrupt)?;
        Ok(outcomes)
    }

    /// Reads a line with a prefix, and the nanoseconds behind it, if there are some.
    fn line_of(&self, program: &mut Program, prefix: &str) -> Result<Duration, Failure> {
        let line = program.line(self.interrupt)?.ok_or(Failure::Interrupted)?;
        match line.strip_prefix(prefix) {
            Some("") => Ok(Duration::ZERO),
            nanos => java::number(&line, nanos).map(Duration::from_nanos),
        }
    }

    /// Records messages, and returns the recording's id and how long it took.
    fn record(&self, load: &Load, count: u64) -> Result<(i64, Duration), Failure> {
        let archive = self.archive;
        let mut publication = archive
            .add_recorded_exclusive_publication(&load.channel, load.stream_id)
            .map_err(failed("cannot record"))?;
        let session_id = publication.session_id();
        let counter = self.await_some("the recording", || {
            RecordingPos::find_by_session_id(archive.aeron(), session_id, archive.archive_id())
        })?;
        self.await_some("the recorder", || publication.is_connected().then_some(()))?;
        let mut message = vec![0; load.message_length];
        let start = Instant::now();
        let mut end = 0;
        for number in 0..count {
            message[..8].copy_from_slice(&number.to_le_bytes());
            end = loop {
                match publication.offer(&message) {
                    Ok(position) => break position,
                    Err(error) if error.is_retryable() => self.wait()?,
                    Err(error) => return Err(Failure::run("cannot publish", error)),
                }
            };
        }
        self.await_progress("what is recorded", || {
            let position = counter.position().unwrap_or(-1);
            (position, position >= end)
        })?;
        let elapsed = start.elapsed();
        archive
            .stop_recording_exclusive_publication(&publication)
            .map_err(failed("cannot stop the recording"))?;
        self.await_some("the end of the recording", || (!counter.is_active()).then_some(()))?;
        Ok((counter.recording_id(), elapsed))
    }

    fn replay(&self, load: &Load, count: u64, recording_id: i64) -> Result<Duration, Failure> {
        let start = Instant::now();
        let mut subscription = self
            .archive
            .replay(
                recording_id,
                "aeron:ipc",
                load.stream_id.wrapping_add(1),
                ReplayParams::new().length(ReplayLength::Recorded),
            )
            .map_err(failed("cannot replay"))?;
        let mut received = 0_u64;
        let mut strange = None;
        let mut since = None;
        while received < count {
            let handler = |message: &[u8], _: &rusteron_client::Header<'_>| {
                if !message.starts_with(&received.to_le_bytes()) {
                    strange.get_or_insert(received);
                }
                received += 1;
            };
            let fragments = subscription
                .poll(handler, load.fragment_limit)
                .map_err(|error| Failure::run("cannot poll the replay", error))?;
            // Only idle loops look at the clock.
            if fragments > 0 {
                since = None;
            } else if since.get_or_insert_with(Instant::now).elapsed() < DEADLINE {
                self.wait()?;
            } else {
                return Err(Failure::Run(format!("the replay stops after {received} messages")));
            }
        }
        match strange {
            None => Ok(start.elapsed()),
            Some(number) => Err(Failure::Run(format!("message {number} is another one"))),
        }
    }

    /// Purges the recording as soon as the archive has noticed that no replay uses it any more.
    fn purge(&self, recording_id: i64) -> Result<(), Failure> {
        let mut last = None;
        let purged = self.await_some("the end of the replay", || {
            match self.archive.purge_recording(recording_id) {
                Ok(_) => Some(Ok(())),
                Err(error)
                    if error.kind() == ArchiveErrorKind::Refused
                        || error.kind() == ArchiveErrorKind::ActiveRecording =>
                {
                    last = Some(error);
                    None
                }
                Err(error) => Some(Err(failed("cannot purge")(error))),
            }
        });
        match (purged, last) {
            (Ok(outcome), _) => outcome,
            (Err(Failure::Run(_)), Some(error)) => Err(failed("cannot purge")(error)),
            (Err(failure), _) => Err(failure),
        }
    }

    fn wait(&self) -> Result<(), Failure> {
        if self.archive.aeron().is_closed() {
            return Err(Failure::Run("the client was closed".to_owned()));
        }
        if self.interrupt.is_requested() {
            return Err(Failure::Interrupted);
        }
        thread::yield_now();
        Ok(())
    }

    fn await_some<T>(
        &self,
        what: &str,
        mut attempt: impl FnMut() -> Option<T>,
    ) -> Result<T, Failure> {
        let mut outcome = None;
        self.await_progress(what, || {
            outcome = attempt();
            (0, outcome.is_some())
        })?;
        outcome.ok_or_else(|| Failure::Run(format!("waited in vain: {what}")))
    }

    /// Waits as long as a number changes, or for the timeout.
    fn await_progress(
        &self,
        what: &str,
        mut attempt: impl FnMut() -> (i64, bool),
    ) -> Result<(), Failure> {
        let mut last = None;
        let mut since = Instant::now();
        loop {
            let (now, is_over) = attempt();
            if is_over {
                return Ok(());
            }
            if last != Some(now) {
                last = Some(now);
                since = Instant::now();
                continue;
            }
            if since.elapsed() >= DEADLINE {
                return Err(Failure::Run(format!("waited in vain: {what}")));
            }
            self.wait()?;
        }
    }
}

/// Makes the operating system write its buffers, as the disk would otherwise write them during the measurement.
fn settle() {
    #[cfg(unix)]
    rustix::fs::sync();
}

fn failed(doing: &str) -> impl Fn(ArchiveError) -> Failure + '_ {
    move |error| Failure::run(doing, error)
}
