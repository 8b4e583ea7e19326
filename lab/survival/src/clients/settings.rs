//! Timeouts, lengths and streams that the driver and the clients agree on.

use std::ops::RangeFrom;
use std::time::Duration;

/// After so long without a heartbeat the driver gives a client up.
pub(crate) const CLIENT_LIVENESS: Duration = Duration::from_millis(1_000);
/// How often clients give a sign of life.
pub(crate) const KEEPALIVE: Duration = Duration::from_millis(150);
/// A freed counter goes to another owner after this.
pub(crate) const COUNTER_REUSE: Duration = Duration::from_millis(300);
/// The driver unblocks a dead publisher's claim after this time.
pub(crate) const UNBLOCK: Duration = Duration::from_millis(1_500);
/// How long images without data, and publications without subscribers, live.
pub(crate) const IMAGE_LIVENESS: Duration = Duration::from_millis(1_500);
/// How long resources linger after their end.
pub(crate) const LINGER: Duration = Duration::from_millis(500);
/// How often the driver looks at its timeouts.
pub(crate) const TIMER: Duration = Duration::from_millis(50);
/// After so long without a sign of life clients give the driver up.
pub(crate) const DRIVER_TIMEOUT: Duration = Duration::from_millis(2_500);

/// The length of all terms: short, so that streams go round them several times a second.
pub(crate) const TERM_LENGTH: usize = 64 * 1024;
/// The longest message: the most that a publication with such terms takes.
pub(crate) const MAX_LENGTH: usize = TERM_LENGTH / 8;
/// The size of the file system that is filled up.
pub(crate) const DISK_SIZE: &str = "48m";

/// The messages of an exclusive publication each, over shared memory.
pub(crate) const IPC: Stream = Stream { id: 1001, is_shared: false };
/// The messages of publications that share one log buffer.
pub(crate) const SHARED: Stream = Stream { id: 1002, is_shared: true };
/// The messages of an exclusive publication each, over UDP.
pub(crate) const UDP: Stream = Stream { id: 1003, is_shared: false };
/// The streams of forgers, whose messages are not checked.
pub(crate) const FORGED_STREAM_IDS: RangeFrom<i32> = 2001..;

/// All streams. Each publisher has a publication on each, and each subscriber a subscription.
pub(crate) const STREAMS: [Stream; 3] = [IPC, SHARED, UDP];

/// One of the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stream {
    pub(crate) id: i32,
    /// `true` if the publishers share a log buffer.
    pub(crate) is_shared: bool,
}

impl Stream {
    /// Its channel, given the address and port of those over UDP.
    pub(crate) fn channel(self, endpoint: &str) -> String {
        if self == UDP { format!("aeron:udp?endpoint={endpoint}") } else { "aeron:ipc".to_owned() }
    }
}
