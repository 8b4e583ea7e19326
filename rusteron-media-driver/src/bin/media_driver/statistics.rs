//! Statistics of the driver at a fixed interval.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusteron_client::{CncFile, Error, ErrorKind, PositionKind, Result, SystemCounter};
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
                    crate::print(line(&last.1, &now.1, now.0 - last.0) + "\n");
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
    positions: HashMap<(i32, i64, PositionKind), i64>,
    counters: [i64; COUNTERS.len()],
    lost: i64,
}

impl Totals {
    fn read(cnc: &CncFile) -> Self {
        let counters = cnc.counters();
        let positions = counters.stream_positions().into_iter().flat_map(|stream| stream.positions);
        let positions = positions
            .map(|position| {
                ((position.counter_id, position.registration_id, position.kind), position.value)
            })
            .collect();
        let loss = cnc.loss_report().unwrap_or_default();
        Self {
            positions,
            counters: COUNTERS.map(|(_, counter)| counter.read(&counters).unwrap_or(0)),
            lost: loss.iter().map(|entry| entry.total_bytes_lost).fold(0, i64::saturating_add),
        }
    }
}

/// `stats 1.0 s: published 5 B/s, consumed 5 B/s, sent 0 B/s, …`: rates of bytes, and how often the
/// rest happened in the interval.
fn line(last: &Totals, now: &Totals, interval: Duration) -> String {
    let seconds = interval.as_secs_f64().max(1e-9);
    let rate = |bytes: i64| (bytes.max(0) as f64 / seconds) as u64;
    let moved = |kind: PositionKind| {
        // The start of a stream is unknown, and may be far from 0. Any client can write anything to
        // its own counters.
        let steps = now.positions.iter().filter(|(key, _)| key.2 == kind);
        steps
            .filter_map(|(key, value)| Some(value.saturating_sub(*last.positions.get(key)?).max(0)))
            .fold(0, i64::saturating_add)
    };
    let mut line = format!(
        "stats {seconds:.1} s: published {} B/s, consumed {} B/s",
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
        last.positions.insert((1, 10, PositionKind::PublisherPosition), 1000);
        now.positions.insert((1, 10, PositionKind::PublisherPosition), 3000);
        now.positions.insert((2, 11, PositionKind::PublisherPosition), 1 << 40);
        (last.counters[0], now.counters[0]) = (100, 300);
        (last.counters[8], now.counters[8]) = (1, 4);
        assert_eq!(
            line(&last, &now, Duration::from_secs(2)),
            "stats 2.0 s: published 1000 B/s, consumed 0 B/s, sent 100 B/s, received 0 B/s, \
             back_pressure 0, naks_sent 0, naks_received 0, retransmits 0, gaps_filled 0, \
             short_sends 0, errors 3, lost 7 B"
        );
    }
}
