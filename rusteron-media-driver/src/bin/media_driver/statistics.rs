//! Statistics of the driver at a fixed interval.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use rusteron_core::channel::ChannelUri;
use rusteron_core::cnc::{CncFile, CountersReader, PositionKind, StreamPosition, SystemCounter};
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_media_driver::DriverInvoker;

/// A thread that prints a line after each interval, until this is dropped.
pub(crate) struct Statistics {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Statistics {
    pub(crate) fn start(driver: &DriverInvoker, interval: Duration) -> Result<Self> {
        let cnc = driver.cnc_file()?;
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("statistics".into())
            .spawn(move || {
                let mut last = (Instant::now(), Totals::read(&cnc));
                while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                    let now = (Instant::now(), Totals::read(&cnc));
                    let time = humantime::format_rfc3339_millis(SystemTime::now());
                    let line = line(&last.1, &now.1, now.0 - last.0);
                    crate::print(format_args!("stats {time}, {line}\n"));
                    last = now;
                }
            })
            .map_err(|error| {
                Error::new(ErrorKind::Io(error.kind()), format!("statistics thread: {error}"))
            })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Statistics {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// The counters that are shown, in the order of the line; those in bytes as a rate.
const COUNTERS: [(&str, SystemCounter); 9] = [
    ("sent", SystemCounter::BytesSent),
    ("received", SystemCounter::BytesReceived),
    ("back_pressure", SystemCounter::SenderFlowControlLimits),
    ("naks_sent", SystemCounter::NakMessagesSent),
    ("naks_received", SystemCounter::NakMessagesReceived),
    ("retransmits", SystemCounter::RetransmitsSent),
    ("gaps_filled", SystemCounter::LossGapFills),
    ("short_sends", SystemCounter::ShortSends),
    ("errors", SystemCounter::Errors),
];

#[derive(Default)]
struct Totals {
    /// Keyed by the id of the counter and its registration, and by kind: publisher's or
    /// subscriber's.
    positions: HashMap<(i32, i64, PositionKind), Progress>,
    counters: [i64; COUNTERS.len()],
    lost: i64,
}

/// A position, and the position where the publisher or subscriber started, if known.
#[derive(Clone, Copy)]
struct Progress {
    start: Option<i64>,
    position: i64,
}

impl Totals {
    fn read(cnc: &CncFile) -> Self {
        let counters = cnc.counters();
        let mut positions = HashMap::new();
        for stream in counters.stream_positions() {
            for at in &stream.positions {
                let start = start(&counters, &stream.channel, at);
                let progress = Progress { start, position: at.value };
                positions.insert((at.counter_id, at.registration_id, at.kind), progress);
            }
        }
        let loss = cnc.loss_report().unwrap_or_default();
        Self {
            positions,
            counters: COUNTERS.map(|(_, counter)| counter.read(&counters).unwrap_or(0)),
            lost: loss.iter().map(|entry| entry.total_bytes_lost).fold(0, i64::saturating_add),
        }
    }
}

/// Returns the position where a publisher or subscriber started. `None` if this is unknown.
fn start(counters: &CountersReader<'_>, channel: &str, at: &StreamPosition) -> Option<i64> {
    match at.kind {
        PositionKind::PublisherPosition => publication_start(channel),
        // The label ends with the position where the subscriber joined.
        PositionKind::SubscriberPosition => {
            counters.label(at.counter_id)?.rsplit_once(" @")?.1.parse().ok()
        }
        _ => None,
    }
}

/// Returns a publication's first position, which is 0 unless its channel has another one.
fn publication_start(channel: &str) -> Option<i64> {
    let channel: ChannelUri = channel.parse().ok()?;
    let Some(initial_term_id) = channel.initial_term_id().ok()? else { return Some(0) };
    let terms = channel.term_id().ok()??.wrapping_sub(initial_term_id);
    let term_length = i64::try_from(channel.term_length().ok()??).ok()?;
    let offset = i64::try_from(channel.term_offset().ok()??).ok()?;
    i64::from(terms).checked_mul(term_length)?.checked_add(offset)
}

/// `1.0 s: published 5 B/s, consumed 5 B/s, sent 0 B/s, …`: rates of bytes, and how often the
/// rest happened in the interval.
fn line(last: &Totals, now: &Totals, interval: Duration) -> String {
    let seconds = interval.as_secs_f64().max(1e-9);
    let rate = |bytes: i64| (bytes.max(0) as f64 / seconds) as u64;
    let moved = |kind: PositionKind| {
        let steps = now.positions.iter().filter(|(key, _)| key.2 == kind);
        steps
            .filter_map(|(key, now)| {
                // A new publisher or subscriber has moved from its start.
                let before = last.positions.get(key).map_or(now.start, |last| Some(last.position));
                // Any client can write anything to its own counters.
                Some(now.position.saturating_sub(before?).max(0))
            })
            .fold(0, i64::saturating_add)
    };
    let mut line = format!(
        "{seconds:.1} s: published {} B/s, consumed {} B/s",
        rate(moved(PositionKind::PublisherPosition)),
        rate(moved(PositionKind::SubscriberPosition)),
    );
    for (index, (name, counter)) in COUNTERS.iter().enumerate() {
        let count = now.counters[index].saturating_sub(last.counters[index]);
        let _ = match counter {
            SystemCounter::BytesSent | SystemCounter::BytesReceived => {
                write!(line, ", {name} {} B/s", rate(count))
            }
            _ => write!(line, ", {name} {count}"),
        };
    }
    let _ = write!(line, ", lost {} B", now.lost.saturating_sub(last.lost));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_counts_the_interval() {
        let mut last = Totals::default();
        let mut now = Totals { lost: 7, ..Totals::default() };
        let publisher = |id| (id, 10, PositionKind::PublisherPosition);
        let at = |start, position| Progress { start, position };
        last.positions.insert(publisher(1), at(Some(0), 1000));
        now.positions.insert(publisher(1), at(Some(0), 3000));
        // A new stream with an unknown start counts from the next interval on.
        now.positions.insert(publisher(2), at(None, 1 << 40));
        now.positions.insert(publisher(3), at(Some(1 << 40), (1 << 40) + 500));
        (last.counters[0], now.counters[0]) = (100, 300);
        (last.counters[8], now.counters[8]) = (1, 4);
        assert_eq!(
            line(&last, &now, Duration::from_secs(2)),
            "2.0 s: published 1250 B/s, consumed 0 B/s, sent 100 B/s, received 0 B/s, \
             back_pressure 0, naks_sent 0, naks_received 0, retransmits 0, gaps_filled 0, \
             short_sends 0, errors 3, lost 7 B"
        );
    }

    #[test]
    fn publication_starts_where_channel_says() {
        assert_eq!(publication_start("aeron:ipc"), Some(0));
        let given = "aeron:udp?endpoint=localhost:1|term-length=64k|init-term-id=7|term-id=10";
        assert_eq!(publication_start(&format!("{given}|term-offset=64")), Some(3 * 65536 + 64));
        // C ends a label with NUL where the label is too long. The first position may be behind that.
        let cut = format!("aeron:ipc?alias={}\0", "x".repeat(330));
        assert_eq!(publication_start(cut.trim_end_matches('\0')), Some(0));
        // The driver's default term length is unknown here.
        for unknown in ["aeron:ipc?init-term-id=7|term-id=10|term-offset=64", given, &cut] {
            assert_eq!(publication_start(unknown), None, "{unknown}");
        }
    }
}
