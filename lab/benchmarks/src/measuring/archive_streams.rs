//! Streams that an archive records and replays, by a client in this process.

use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rusteron_archive::{
    Archive, ArchiveError, RecordingDescriptor, RecordingId, RecordingPos, ReplayLength,
    ReplayParams, ReplicationParams,
};
use rusteron_client::{ChannelUri, ExclusivePublication, Subscription};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;

/// How long an archive may take to answer, and to go on.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The stream on which archives take requests over UDP.
const CONTROL_STREAM_ID: i32 = 10;

/// How many messages a stream gets before it is another one's turn.
const BURST: u64 = 64;

/// A session with an archive, and how its streams are polled.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveClient<'a> {
    /// The session.
    pub archive: &'a Archive,
    /// Ends loops early.
    pub interrupt: &'a ShutdownSignal,
    /// How many fragments a poll receives at the most.
    pub fragment_limit: usize,
}

/// The streams of a run.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// The channel to publish on, and to record from; replays come over IPC.
    pub channel: &'a ChannelUri,
    /// The first stream. A replay has the next one, and each further recording the next but one.
    pub stream_id: i32,
    /// How many recordings there are at once.
    pub recordings: usize,
    /// The messages of each.
    pub messages: u64,
    /// Their length, at least that of their number.
    pub message_length: usize,
}

impl Load<'_> {
    fn stream_ids(&self) -> impl Iterator<Item = i32> + use<> {
        (self.stream_id..).step_by(2).take(self.recordings)
    }
}

/// A stream that is recorded.
#[derive(Debug)]
pub struct RecordedStream {
    publication: ExclusivePublication,
    counter: RecordingPos,
    message: Vec<u8>,
    /// How many messages have been sent.
    sent: u64,
    /// The position after them.
    end: i64,
}

impl RecordedStream {
    /// Sends the next messages up to `count` in all, as many as are accepted at once. Returns
    /// whether any was.
    fn send(&mut self, count: u64) -> Result<bool, Failure> {
        let before = self.sent;
        while self.sent < count {
            self.message[..8].copy_from_slice(&self.sent.to_le_bytes());
            match self.publication.offer(&self.message) {
                Ok(position) => self.end = position,
                Err(error) if error.is_retryable() => break,
                Err(error) => return Err(Failure::run("cannot publish", error)),
            }
            self.sent += 1;
        }
        Ok(self.sent > before)
    }
}

impl ArchiveClient<'_> {
    /// Records messages, and returns the ids of the recordings and how long it took, from the first
    /// offer until everything was recorded.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not go on; [`Failure::Interrupted`].
    pub fn record(&self, load: &Load<'_>) -> Result<(Vec<RecordingId>, Duration), Failure> {
        let mut streams = self.start(load)?;
        let start = Instant::now();
        self.send(&mut streams, load.messages)?;
        let elapsed = start.elapsed();
        Ok((self.stop(streams)?, elapsed))
    }

    /// Starts recordings whose recorders are connected.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub fn start(&self, load: &Load<'_>) -> Result<Vec<RecordedStream>, Failure> {
        let start = |stream_id| {
            let archive = self.archive;
            let (publication, id) = archive
                .add_recorded_exclusive_publication(load.channel, stream_id)
                .map_err(failed("cannot record"))?;
            let counter =
                RecordingPos::find_by_recording_id(archive.aeron(), id, archive.archive_id())
                    .ok_or_else(|| Failure::run("the recording has ended", id))?;
            self.await_that("the recorder", || Ok(publication.is_connected()))?;
            let message = vec![0; load.message_length];
            Ok(RecordedStream { publication, counter, message, sent: 0, end: 0 })
        };
        load.stream_ids().map(start).collect()
    }

    /// Sends messages to all streams in turn until each has `count` of them, and waits until they
    /// are recorded.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub fn send(&self, streams: &mut [RecordedStream], count: u64) -> Result<(), Failure> {
        while streams.iter().any(|stream| stream.sent < count) {
            let mut is_idle = true;
            for stream in &mut *streams {
                is_idle &= !stream.send(count.min(stream.sent + BURST))?;
            }
            if is_idle {
                self.wait()?;
            }
        }
        self.await_progress("what is recorded", || {
            let missing = |it: &RecordedStream| it.end - it.counter.position().unwrap_or(-1);
            Ok(streams.iter().map(|it| missing(it).max(0)).sum())
        })
    }

    /// Sends messages one at a time, each when the one before is recorded, and returns the times
    /// from an offer until the recording's counter shows it, in nanoseconds. Spins.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub fn send_one_by_one(
        &self,
        stream: &mut RecordedStream,
        count: u64,
    ) -> Result<Histogram<u64>, Failure> {
        // The counter alone, not whose it is.
        let counters = self.archive.aeron().counters_reader();
        let counter_id = stream.counter.counter_id();
        let recorded = || counters.value(counter_id).unwrap_or(-1);
        let mut times = Histogram::new_with_bounds(1, DEADLINE.as_nanos() as u64, 3)
            .map_err(|error| Failure::run("a histogram", error))?;
        for _ in 0..count {
            let start = Instant::now();
            while !stream.send(stream.sent + 1)? {
                self.wait()?;
            }
            while recorded() < stream.end {
                std::hint::spin_loop();
                if start.elapsed() > DEADLINE {
                    return Err(Failure::Run("waited in vain: what is recorded".to_owned()));
                }
            }
            let elapsed = start.elapsed();
            times.saturating_record(elapsed.as_nanos() as u64);
        }
        Ok(times)
    }

    /// Stops recordings, and returns their ids.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub fn stop(&self, streams: Vec<RecordedStream>) -> Result<Vec<RecordingId>, Failure> {
        let stop = |stream: &RecordedStream| {
            self.archive
                .stop_recording_exclusive_publication(&stream.publication)
                .map_err(failed("cannot stop the recording"))?;
            let counter = &stream.counter;
            self.await_that("the end of the recording", || Ok(!counter.is_active()))?;
            Ok(counter.recording_id())
        };
        streams.iter().map(stop).collect()
    }

    /// Replays recordings at once, and returns how long it took, from the first request until the
    /// last message.
    ///
    /// # Errors
    /// As for [`record`](Self::record); also if a message is missing or repeated.
    pub fn replay(
        &self,
        load: &Load<'_>,
        recording_ids: &[RecordingId],
    ) -> Result<Duration, Failure> {
        let start = Instant::now();
        let request = |(&recording_id, stream_id): (&RecordingId, i32)| {
            let params = ReplayParams::new().length(ReplayLength::Recorded);
            let subscription =
                self.archive.replay(recording_id, "aeron:ipc", stream_id.wrapping_add(1), params);
            Ok(Replayed {
                subscription: subscription.map_err(failed("cannot replay"))?,
                received: 0,
                strange: None,
            })
        };
        let requests = recording_ids.iter().zip(load.stream_ids());
        let mut replays: Vec<Replayed> = requests.map(request).collect::<Result<_, Failure>>()?;
        let mut since = None;
        while replays.iter().any(|replay| replay.received < load.messages) {
            let mut fragments = 0;
            for replay in &mut replays {
                fragments += replay.poll(self.fragment_limit)?;
            }
            // Only idle loops look at the clock.
            if fragments > 0 {
                since = None;
            } else if since.get_or_insert_with(Instant::now).elapsed() < DEADLINE {
                self.wait()?;
            } else {
                let received: Vec<_> = replays.iter().map(|replay| replay.received).collect();
                return Err(Failure::Run(format!("the replay stops after {received:?} messages")));
            }
        }
        match replays.iter().find_map(|replay| replay.strange) {
            None => Ok(start.elapsed()),
            Some(number) => Err(Failure::Run(format!("message {number} is another one"))),
        }
    }

    /// Has this archive copy a recording of a source, which takes requests on a channel. Returns
    /// how long it took, from the request until the copy has its end.
    ///
    /// # Errors
    /// As for [`record`](Self::record).
    pub fn replicate(
        &self,
        source: &Archive,
        source_channel: &str,
        recording_id: RecordingId,
    ) -> Result<Duration, Failure> {
        let end = source.stop_position(recording_id).map_err(failed("cannot ask the source"))?;
        let latest = || -> Result<_, Failure> {
            let recordings = self.archive.recordings().last().transpose();
            recordings.map_err(failed("cannot list copies"))
        };
        let id = |it: Option<RecordingDescriptor>| it.map(|it| it.recording_id);
        let before = id(latest()?);
        let start = Instant::now();
        self.archive
            .replicate(recording_id, source_channel, CONTROL_STREAM_ID, &ReplicationParams::new())
            .map_err(failed("cannot replicate"))?;
        loop {
            self.archive.check_for_error_response().map_err(failed("the replication failed"))?;
            if let Some(copy) = latest()?.filter(|it| Some(it.recording_id) != before) {
                if end.is_some() && copy.stop_position == end {
                    return Ok(start.elapsed());
                }
            }
            if start.elapsed() > DEADLINE {
                return Err(Failure::Run("the replication does not end".to_owned()));
            }
            // Each question is work for the archive.
            if self.interrupt.wait_timeout(Duration::from_millis(1)) {
                return Err(Failure::Interrupted);
            }
        }
    }

    fn wait(&self) -> Result<(), Failure> {
        if self.archive.aeron().is_closed() {
            return Err(Failure::Run("the client was closed".to_owned()));
        }
        if self.interrupt.is_signalled() {
            return Err(Failure::Interrupted);
        }
        thread::yield_now();
        Ok(())
    }

    /// Waits until a condition is true.
    ///
    /// # Errors
    /// [`Failure::Run`] after [`DEADLINE`]; [`Failure::Interrupted`]; the condition's own failure.
    pub fn await_that(
        &self,
        what: &str,
        mut condition: impl FnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.await_progress(what, || condition().map(|is_true| i64::from(!is_true)))
    }

    /// Waits until nothing is missing. The deadline starts again when the missing number changes,
    /// and only a number that has not changed makes this thread yield.
    fn await_progress(
        &self,
        what: &str,
        mut missing: impl FnMut() -> Result<i64, Failure>,
    ) -> Result<(), Failure> {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let now = missing()?;
            if now == 0 {
                return Ok(());
            }
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() < DEADLINE {
                self.wait()?;
            } else {
                return Err(Failure::Run(format!("waited in vain: {what}")));
            }
        }
    }
}

/// A replay that arrives.
struct Replayed {
    subscription: Subscription,
    received: u64,
    /// The first message that was another one than expected.
    strange: Option<u64>,
}

impl Replayed {
    fn poll(&mut self, fragment_limit: usize) -> Result<usize, Failure> {
        let Self { subscription, received, strange } = self;
        let handler = |message: &[u8], _: &rusteron_client::Header<'_>| {
            if !message.starts_with(&received.to_le_bytes()) {
                strange.get_or_insert(*received);
            }
            *received += 1;
        };
        subscription
            .poll(handler, fragment_limit)
            .map_err(|error| Failure::run("cannot poll the replay", error))
    }
}

/// How many messages a recording of about so many bytes has, at least one.
pub fn messages_in(recording_length: usize, message_length: usize) -> u64 {
    const HEADER_LENGTH: usize = 32;
    const ALIGNMENT: usize = 32;
    let frame_length = (message_length + HEADER_LENGTH).next_multiple_of(ALIGNMENT);
    (recording_length / frame_length).max(1) as u64
}

/// Makes the operating system write its buffers, as the disk would otherwise write them during the
/// measurement.
pub fn settle() {
    #[cfg(unix)]
    rustix::fs::sync();
}

/// The failure of a request.
pub fn failed(doing: &str) -> impl Fn(ArchiveError) -> Failure + '_ {
    move |error| Failure::run(doing, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_of_all_lengths_are_equally_long() {
        assert_eq!(messages_in(64 << 20, 32), 1 << 20);
        assert_eq!(messages_in(64 << 20, 33), (64 << 20) / 96);
        assert_eq!(messages_in(1 << 30, 1344), 780_335);
        assert_eq!(messages_in(1, 1344), 1);
    }
}
