//! Mark files: a component shows tools its life, settings and errors in one, and by it a second component of the
//! same directory notices the first one.
//!
//! - **Owner.** The timestamp decides, by a compare-and-swap from an old time to "starting" ([`claim`]). Components
//!   of one process are also in a list ([`Reservation`]), because all processes of a Linux container have the id 1.
//! - **Full disks.** The whole file is written before it is mapped, because otherwise the first write to a page of
//!   the mapping can end the process by SIGBUS. On file systems that copy on write, it still can.
//! - **Errors** are written as in `cnc.dat`, with the length last. A full log passes further errors to the crate
//!   `log` only.
//!
//! Only making and taking over a file makes system calls. Signs of life and errors are stores to the mapping.
//!
//! The components' own crates know the other fields of the header, and decide what may be taken over.
//!
//! Corresponds to `org.agrona.MarkFile`.

mod error_log;
mod making;
mod mapped_file;
mod mark_file;
mod owner;

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

pub use error_log::{DistinctErrorLog, save_errors};
pub use making::{complete_header, is_unmade, open_new, overwrite, replace_link, write_whole};
pub use mapped_file::MappedFile;
pub use mark_file::MarkFile;
pub use owner::{Former, Owner, Reservation, claim, is_old, replace};

use crate::cnc::epoch;

/// Length of the header in bytes. The error log follows.
pub const HEADER_LENGTH: usize = 8 * 1024;
/// The activity timestamp of a component that has ended.
pub const ENDED: i64 = -1;
/// The activity timestamp of a component that is starting.
pub const STARTING: i64 = i64::MAX;
/// The shortest and the longest error log, in bytes.
pub const ERROR_BUFFER_LENGTHS: RangeInclusive<usize> =
    1024 * 1024..=i32::MAX as usize - HEADER_LENGTH;
/// A component without a sign of life for this time is not alive.
pub const LIVENESS_TIMEOUT: Duration = Duration::from_secs(10);

/// Offset in the file of the layout's version, an `i32`. It is 0 before the first start.
pub const VERSION_OFFSET: usize = 8;
/// Offset in the file of the last sign of life, an `i64` in milliseconds since 1970.
pub const ACTIVITY_OFFSET: usize = 16;
/// Offset in the file of the time of the start, as above.
pub const START_OFFSET: usize = 24;
/// Offset in the file of the process id, an `i64`.
pub const PID_OFFSET: usize = 32;

/// Returns the time in milliseconds since 1970.
pub fn now() -> i64 {
    epoch::millis(SystemTime::now())
}
