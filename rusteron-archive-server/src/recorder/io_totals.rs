//! Bytes and time of reads or writes, as counters show them.

use std::time::Duration;

use rusteron_client::Counter;

/// The sums over all writes of a recorder, or all reads of a replayer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IoTotals {
    pub(crate) bytes: i64,
    pub(crate) time_ns: i64,
    pub(crate) max_time_ns: i64,
}

impl IoTotals {
    pub(crate) fn add(&mut self, bytes: usize, time: Duration) {
        let time_ns = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        self.bytes = self.bytes.saturating_add(bytes as i64);
        self.time_ns = self.time_ns.saturating_add(time_ns);
        self.max_time_ns = self.max_time_ns.max(time_ns);
    }
}

/// The counters of a recorder (types 105 to 107), or of a replayer (108 to 110).
#[derive(Debug)]
pub(crate) struct IoCounters {
    /// The longest time of one operation, in nanoseconds.
    pub(crate) max_time: Counter,
    pub(crate) bytes: Counter,
    /// The sum of times, in nanoseconds.
    pub(crate) time: Counter,
}

impl IoCounters {
    pub(crate) fn publish(&self, totals: &IoTotals) {
        self.bytes.set_release(totals.bytes);
        self.time.set_release(totals.time_ns);
        self.max_time.set_release(totals.max_time_ns);
    }
}
