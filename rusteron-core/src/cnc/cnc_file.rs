//! The file by which a media driver and its clients find each other, read by a third party.

use std::ffi::CStr;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusteron_sys as sys;

use crate::cnc::cnc_copy::CncCopy;
use crate::cnc::error_log::{self, ErrorLogEntry};
use crate::cnc::loss_report::{self, LossReportEntry};
use crate::cnc::refusal::{Access, await_file};
use crate::cnc::shared_memory::SharedMemory;
use crate::cnc::{CountersReader, epoch, gone_driver};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::{Fallible, c_path, last_error};
use crate::files;

/// The file's name in the driver's directory.
const FILE_NAME: &str = "cnc.dat";
/// The heartbeat that clients and drivers give to a driver whose process has died.
const GONE: i64 = sys::RUSTERON_HEARTBEAT_OF_GONE_DRIVER as i64;

/// The command-and-control file of a media driver, opened for reading.
///
/// It holds the driver's description of itself, its counters, its errors and the losses of its
/// streams.
///
/// Opening the file makes no client, and the driver does not notice it. This works for a driver in
/// any language, and for the files that a dead driver left behind. The file stays mapped until this
/// value is dropped, even if a new driver has replaced the file. [`is_active`](Self::is_active)
/// detects that. [`read`](Self::read) maps nothing.
///
/// Threads share it by reference.
///
/// ```
/// use std::time::Duration;
/// use rusteron_client::CncFile;
/// # use rusteron_media_driver::MediaDriver;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// let cnc = CncFile::open(driver.aeron_dir(), Duration::from_secs(1))?;
/// println!("version {}, process {}", cnc.version(), cnc.pid());
/// assert!(cnc.is_active(Duration::from_secs(10)));
/// for error in cnc.errors() {
///     println!("{} × {}", error.observation_count, error.text);
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias("CncFileDescriptor", "aeron_cnc_t"))]
pub struct CncFile {
    contents: Contents,
    constants: CncConstants,
    dir: PathBuf,
    filename: PathBuf,
}

enum Contents {
    Mapped(Mapping),
    Copied(CncCopy),
}

/// The C structure with a mapping.
struct Mapping(NonNull<sys::aeron_cnc_t>);

// SAFETY: the C structure is a mapping for reading and what was computed from it; no function
// changes it before it is closed, and nothing in it is tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// The version of the layout of a driver's files: the protocol between driver and clients.
///
/// It is not Aeron's version. Drivers and clients with the same `major` understand each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct CncVersion {
    /// Changed when older clients and drivers no longer understand the files.
    pub major: u8,
    /// Changed when something is added.
    pub minor: u8,
    /// Changed when nothing is added.
    pub patch: u8,
}

impl CncFile {
    /// Opens the file of the driver in a directory.
    ///
    /// If the driver has not finished making the file, this waits up to the timeout. With a timeout
    /// of zero, it looks once.
    ///
    /// # Errors
    /// - [`ErrorKind::DriverTimeout`]: the file did not exist, or was not complete, in time;
    /// - [`ErrorKind::IncompatibleDriver`]: the file has another major version, or is no CnC file;
    /// - [`ErrorKind::InvalidArgument`]: the path is empty or too long;
    /// - [`ErrorKind::Io`]: the file cannot be read; returned at once, unless the directory has
    ///   changed within the last second and a driver may be starting there.
    ///
    /// Corresponds to `aeron_cnc_init`.
    #[doc(alias = "aeron_cnc_init")]
    pub fn open(dir: impl AsRef<Path>, timeout: Duration) -> Result<Self> {
        let dir = dir.as_ref();
        let c_dir = c_path("dir", dir)?;
        let opened =
            await_file(dir, Access::Read, timeout, |_| match Self::open_at_once(dir, &c_dir) {
                Err(error) if error.kind() == ErrorKind::DriverTimeout => Ok(None),
                outcome => outcome.map(Some),
            })?;
        opened.ok_or_else(|| Self::absent(dir, timeout))
    }

    /// Copies the file of the driver in a directory, as [`open`](Self::open) maps it.
    ///
    /// Counters and errors are those of this moment. [`heartbeat`](Self::heartbeat) reads the file again. If another
    /// process shortens a mapped file, each process that reads the mapping gets SIGBUS and ends; a copy cannot do that.
    /// It takes as much memory as the counters and the error log have in the file, 6 MiB by default.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    ///
    /// Has no counterpart in C.
    pub fn read(dir: impl AsRef<Path>, timeout: Duration) -> Result<Self> {
        let dir = dir.as_ref();
        let filename = dir.join(FILE_NAME);
        c_path("dir", dir).and_then(|_| c_path("dir", &filename))?;
        let copied = await_file(dir, Access::Read, timeout, |_| CncCopy::read(&filename))?;
        let copy = copied.ok_or_else(|| Self::absent(dir, timeout))?;
        let constants = copy.constants.clone();
        Ok(Self { contents: Contents::Copied(copy), constants, dir: dir.to_owned(), filename })
    }

    fn absent(dir: &Path, timeout: Duration) -> Error {
        let (dir, timeout) = (dir.display(), timeout.as_millis());
        let text = format!("no complete CnC file in {dir} after {timeout} ms");
        Error::new(ErrorKind::DriverTimeout, text)
    }

    /// Looks once. The error is a driver timeout if looking again may help.
    fn open_at_once(dir: &Path, c_dir: &CStr) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: `c_dir` is a terminated string that C can hold; C writes the new structure's
        // address to `raw`, or fails.
        let opened = unsafe { sys::aeron_cnc_init(&mut raw, c_dir.as_ptr(), 0) }.into_result();
        if let Err(error) = opened {
            // C uses the same code for a path that is too long for C.
            // SAFETY: a terminated string; the function maps the file and unmaps it again.
            let incompatible = error.kind() == ErrorKind::InvalidArgument
                && unsafe { sys::rusteron_cnc_state(c_dir.as_ptr(), ptr::null_mut()) }
                    == sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPATIBLE;
            return Err(if incompatible {
                let file = dir.join(FILE_NAME);
                error
                    .with_kind(ErrorKind::IncompatibleDriver)
                    .with_line(&file.display().to_string())
            } else {
                error
            });
        }
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let mut constants = MaybeUninit::uninit();
        // SAFETY: the structure is live, and C copies all constants from the mapping.
        let constants = unsafe {
            sys::aeron_cnc_constants(raw.as_ptr(), constants.as_mut_ptr());
            constants.assume_init()
        };
        let constants = CncConstants::from_raw(&constants);
        let (contents, filename) = (Contents::Mapped(Mapping(raw)), dir.join(FILE_NAME));
        Ok(Self { contents, constants, dir: dir.to_owned(), filename })
    }

    /// Returns the name of the file.
    ///
    /// Corresponds to `aeron_cnc_filename`.
    #[doc(alias = "aeron_cnc_filename")]
    pub fn filename(&self) -> &Path {
        &self.filename
    }

    /// Returns the values that are constant while a driver runs: its process, timeouts, and the
    /// lengths of its buffers.
    ///
    /// Corresponds to `aeron_cnc_constants`.
    #[doc(alias = "aeron_cnc_constants")]
    pub fn constants(&self) -> &CncConstants {
        &self.constants
    }

    /// Returns the version of the protocol that the driver speaks.
    ///
    /// Corresponds to `cnc_version` of `aeron_cnc_constants`.
    #[doc(alias = "aeron_cnc_constants")]
    pub fn version(&self) -> CncVersion {
        let [_, major, minor, patch] = self.constants.cnc_version.to_be_bytes();
        CncVersion { major, minor, patch }
    }

    /// Returns the id of the driver's process on the driver's operating system.
    ///
    /// Corresponds to `pid` of `aeron_cnc_constants`.
    #[doc(alias = "aeron_cnc_constants")]
    pub fn pid(&self) -> i64 {
        self.constants.pid
    }

    /// Returns the time when the driver was started.
    ///
    /// Corresponds to `start_timestamp` of `aeron_cnc_constants`.
    #[doc(alias = "aeron_cnc_constants")]
    pub fn start_time(&self) -> SystemTime {
        epoch::time(self.constants.start_timestamp).unwrap_or(UNIX_EPOCH)
    }

    /// Returns the silence after which the driver regards a client as dead.
    ///
    /// Corresponds to `client_liveness_timeout` of `aeron_cnc_constants`.
    #[doc(alias = "aeron_cnc_constants")]
    pub fn client_liveness_timeout(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.constants.client_liveness_timeout).unwrap_or(0))
    }

    /// Returns the time when the driver last reported that it is alive. `None` if the driver has
    /// ended in good order, or if a client or another driver has noticed its death.
    ///
    /// The driver reports about once a second.
    ///
    /// Corresponds to `aeron_cnc_to_driver_heartbeat`.
    #[doc(alias = "aeron_cnc_to_driver_heartbeat")]
    pub fn heartbeat(&self) -> Option<SystemTime> {
        match self.heartbeat_millis() {
            heartbeat if heartbeat < 0 || heartbeat == GONE => None,
            heartbeat => epoch::time(heartbeat),
        }
    }

    /// Returns the heartbeat, in milliseconds of the epoch. Negative if the driver has ended in good
    /// order, and for a buffer of an impossible length.
    fn heartbeat_millis(&self) -> i64 {
        match &self.contents {
            // SAFETY: the structure is live, and the function reads the mapping atomically. The length
            // of the buffer was part of what C compared with the file's when it mapped it. For an
            // impossible length C sets an error, a thread-local, that is not needed here.
            Contents::Mapped(Mapping(raw)) => unsafe {
                let heartbeat = sys::aeron_cnc_to_driver_heartbeat(raw.as_ptr());
                sys::aeron_err_clear();
                heartbeat
            },
            Contents::Copied(copy) => copy.heartbeat_millis(),
        }
    }

    /// Returns the time since the driver last reported that it is alive. `None` if the driver has
    /// ended in good order.
    pub fn heartbeat_age(&self) -> Option<Duration> {
        // If the clock was set back, the age is zero.
        self.heartbeat()
            .map(|heartbeat| SystemTime::now().duration_since(heartbeat).unwrap_or(Duration::ZERO))
    }

    /// Returns whether the driver has reported within the timeout that it is alive, and its process
    /// has not [provably ended](Self::has_died) since.
    ///
    /// Clients use their driver timeout for this, 10 s by default.
    ///
    /// Corresponds to `aeron_is_driver_active`, which opens the file first.
    #[doc(alias = "aeron_is_driver_active")]
    pub fn is_active(&self, timeout: Duration) -> bool {
        self.heartbeat_age().is_some_and(|age| age <= timeout) && !self.has_died()
    }

    /// Returns whether the driver's process has provably ended without closing its files: it was
    /// killed, or has crashed. `false` may also mean that this cannot be told.
    ///
    /// Only Linux can tell, for the driver's user, on tmpfs, ext4, XFS and Btrfs. Elsewhere, the age
    /// of the heartbeat is the only sign.
    ///
    /// Has no counterpart in C.
    pub fn has_died(&self) -> bool {
        if self.heartbeat_millis() == GONE {
            return true;
        }
        let gone = c_path("dir", &self.dir).ok().and_then(|dir| gone_driver(&dir));
        // A driver that ends in good order says so before its files lose their writer.
        gone == Some((self.constants.start_timestamp, self.constants.pid))
            && self.heartbeat_millis() >= 0
    }

    /// Returns a reader of the counters of the driver and its clients. The reader borrows this file.
    ///
    /// Corresponds to `aeron_cnc_counters_reader`.
    #[doc(alias = "aeron_cnc_counters_reader")]
    pub fn counters(&self) -> CountersReader<'_> {
        match &self.contents {
            // SAFETY: the reader is a part of the C structure, and reads the mapping; both live as
            // long as `self`.
            Contents::Mapped(Mapping(raw)) => unsafe {
                CountersReader::from_raw(sys::aeron_cnc_counters_reader(raw.as_ptr()))
            },
            Contents::Copied(copy) => copy.counters(),
        }
    }

    /// Returns the errors that the driver has logged, each distinct error once.
    ///
    /// Corresponds to `aeron_cnc_error_log_read`.
    #[doc(alias("aeron_cnc_error_log_read", "ErrorLogReader", "ErrorStat"))]
    pub fn errors(&self) -> Vec<ErrorLogEntry> {
        error_log::read(self.error_log(), i64::MIN)
    }

    /// Returns the errors that the driver has observed at or after a time, each distinct error
    /// once.
    ///
    /// Corresponds to `aeron_cnc_error_log_read`.
    #[doc(alias = "aeron_cnc_error_log_read")]
    pub fn errors_since(&self, since: SystemTime) -> Vec<ErrorLogEntry> {
        error_log::read(self.error_log(), epoch::millis(since))
    }

    /// Returns the losses on the driver's streams, one entry for each publisher whose messages were
    /// lost.
    ///
    /// The losses are in a separate file next to this one. Each call reads that file anew.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the file cannot be read.
    ///
    /// Corresponds to `aeron_cnc_loss_reporter_read`.
    #[doc(alias("aeron_cnc_loss_reporter_read", "LossReportReader", "LossStat"))]
    pub fn loss_report(&self) -> Result<Vec<LossReportEntry>> {
        let file = self.dir.join(loss_report::FILE_NAME);
        let mut report = Vec::new();
        let opened = files::open(&file, OpenOptions::new().read(true));
        // Enough for a hundred thousand entries, whatever the length of the file.
        let read = opened.and_then(|file| file.take(16 << 20).read_to_end(&mut report));
        read.map_err(|error: io::Error| {
            Error::new(ErrorKind::Io(error.kind()), format!("{}: {error}", file.display()))
        })?;
        Ok(loss_report::read(&report))
    }

    /// Returns the buffer after the counters' values, which is the last in the file.
    fn error_log(&self) -> SharedMemory<'_> {
        if let Contents::Copied(copy) = &self.contents {
            return copy.error_log();
        }
        let values = self.counters().values();
        let length = usize::try_from(self.constants.error_log_buffer_length).unwrap_or(0);
        // SAFETY: C has compared the sum of the lengths of the buffers, which follow each other in
        // the file, with the length of the mapping, which lives as long as `self`.
        unsafe { SharedMemory::new(values.start().add(values.len()), length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the structure is live and not used again; what borrows from the mapping borrows
        // the `CncFile` and is gone.
        unsafe { sys::aeron_cnc_close(self.0.as_ptr()) };
    }
}

crate::impl_debug!(CncFile: filename(), version(), pid(), heartbeat());

impl fmt::Display for CncVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The properties of a media driver's files that stay the same while it runs, as they are written.
///
/// Corresponds to `aeron_cnc_constants_t`.
#[doc(alias = "aeron_cnc_constants_t")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CncConstants {
    /// The version of the layout, `major << 16 | minor << 8 | patch`.
    pub cnc_version: i32,
    /// The length in bytes of the buffer of commands to the driver.
    pub to_driver_buffer_length: i32,
    /// The length in bytes of the buffer of announcements to clients.
    pub to_clients_buffer_length: i32,
    /// The length in bytes of the buffer with the counters' types, keys and labels.
    pub counter_metadata_buffer_length: i32,
    /// The length in bytes of the buffer with the counters' values.
    pub counter_values_buffer_length: i32,
    /// The length in bytes of the buffer with the errors.
    pub error_log_buffer_length: i32,
    /// After how many nanoseconds of silence the driver gives a client up for dead.
    pub client_liveness_timeout: i64,
    /// When the driver was started, in milliseconds since 1970.
    pub start_timestamp: i64,
    /// The number of the driver's process.
    pub pid: i64,
    /// The size in bytes that the lengths of files are multiples of.
    pub file_page_size: i32,
}

impl CncConstants {
    /// Copies what C filled in.
    fn from_raw(raw: &sys::aeron_cnc_constants_t) -> Self {
        Self {
            cnc_version: raw.cnc_version,
            to_driver_buffer_length: raw.to_driver_buffer_length,
            to_clients_buffer_length: raw.to_clients_buffer_length,
            counter_metadata_buffer_length: raw.counter_metadata_buffer_length,
            counter_values_buffer_length: raw.counter_values_buffer_length,
            error_log_buffer_length: raw.error_log_buffer_length,
            client_liveness_timeout: raw.client_liveness_timeout,
            start_timestamp: raw.start_timestamp,
            pid: raw.pid,
            file_page_size: raw.file_page_size,
        }
    }
}
