//! The mark file of a container, with its error log.
//!
//! A [`ServiceAgent`](crate::ServiceAgent) activates the file of its service. Only a program that runs services in
//! another way needs this module.
//!
//! Layout and protocol are those of Java's `ClusterMarkFile`, so Java's container and tools understand the
//! file.
//!
//! - **Owner.** The timestamp decides, by a compare-and-swap from an old time to "starting". Containers of one
//!   process are also in a list, because all processes of a Linux container have the id 1.
//! - **A killed starter** leaves "starting" behind, which blocks Java's containers for good. This one replaces
//!   the process id, by a compare-and-swap, if no such process exists and the file is ten seconds old. Only
//!   Linux tells about processes.
//! - **Full disks.** The whole file is written, because otherwise the first write to a page of the mapping can
//!   end the process by SIGBUS. On file systems that copy on write, it still can.
//! - **Errors** are written as in `cnc.dat`, with the length last. A full log passes further errors to the
//!   crate `log` only.
//!
//! Only the activation makes system calls. Signs of life and errors are stores to the mapping.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rusteron_core::cnc::epoch;
use rusteron_core::cnc::error_log::{
    self, ALIGNMENT, FIRST_OBSERVATION, LAST_OBSERVATION, LENGTH, OBSERVATION_COUNT,
};
use rusteron_core::ffi::PerProcess;

use crate::codec::mark_file::{
    ACTIVITY_OFFSET, ComponentType, ENDED, HEADER_LENGTH, MEMBER_ID_OFFSET, MarkFileHeader,
    PID_OFFSET, START_OFFSET, STARTING, VERSION, VERSION_FAILED, VERSION_OFFSET,
};
use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::service::context::ServiceContext;
use crate::service::files::{self, MappedFile};

/// A component without a sign of life for this time is not alive.
const LIVENESS_TIMEOUT: Duration = Duration::from_secs(10);

/// The file in which a container shows tools its life, settings and errors, and by which a second
/// container of the same service notices the first one.
///
/// Dropping it marks the container as ended. The file stays.
///
/// Methods neither block nor make system calls, except for [`activate`](Self::activate). Errors may
/// be recorded from any thread.
///
/// Corresponds to `io.aeron.cluster.service.ClusterMarkFile`.
#[derive(Debug)]
#[must_use]
pub struct MarkFile {
    map: MappedFile,
    errors: Mutex<ErrorLog>,
    reservation: Reservation,
}

/// The mark files of this process.
static ACTIVE: PerProcess<Mutex<BTreeSet<PathBuf>>> = PerProcess::new();

impl MarkFile {
    /// Makes the mark file of a context's service, or takes over the file of a container that is not
    /// alive, and marks it as starting. Errors of the former container are saved in a file beside it.
    ///
    /// Directories are made if they are missing. `aeron_dir` is the directory of the media driver, and
    /// the length of the file is a multiple of `file_page_size`, the driver's page size of files. The
    /// whole file is written, so that a full disk is an error now, and no signal later.
    ///
    /// # Errors
    /// - [`ClusterErrorKind::ActiveMarkFile`] if another container of this service is alive, or was
    ///   less than ten seconds ago. So is a container that was killed while it was starting,
    ///   until its process is gone and ten seconds have passed.
    /// - [`ClusterErrorKind::InvalidMarkFile`] if the file is damaged, or belongs to another
    ///   component or version.
    /// - [`ClusterErrorKind::InvalidArgument`] if a setting is out of range, or the texts are too
    ///   long together.
    /// - [`ClusterErrorKind::Io`] if the file cannot be made, or something else than a regular file
    ///   has its name.
    pub fn activate(
        context: &ServiceContext,
        aeron_dir: &Path,
        file_page_size: usize,
    ) -> Result<Self> {
        let header = header(context, aeron_dir, file_page_size)?;
        let errors_end = HEADER_LENGTH + context.error_buffer_length();
        let length = errors_end.next_multiple_of(file_page_size);
        let name = format!("cluster-mark-service-{}", context.service_id());
        let file_error = |doing: &str, path: &Path, error: &io::Error| {
            let message = format!("cannot {doing} {}: {error}", path.display());
            ClusterError::new(ClusterErrorKind::Io(error.kind()), message)
        };
        let make_dir = |dir: &Path| {
            fs::create_dir_all(dir)
                .map_err(|error| file_error("make the directory", dir, &error))?;
            dir.canonicalize().map_err(|error| file_error("find the directory", dir, &error))
        };
        let dir = make_dir(context.mark_file_dir().unwrap_or(context.cluster_dir()))?;
        let path = dir.join(format!("{name}.dat"));
        let reservation =
            Reservation::new(&path).ok_or_else(|| active(&path, "in this process"))?;
        let map = match create(&path, &header, length) {
            Ok(Some(map)) => map,
            Ok(None) => take_over(&path, header, length)?,
            Err(error) => return Err(file_error("write the mark file", &path, &error)),
        };
        let errors = Mutex::new(ErrorLog::new(HEADER_LENGTH..errors_end));
        // From here on, dropping the mark file marks it as ended.
        let mark_file = Self { map, errors, reservation };
        let cluster_dir = make_dir(context.cluster_dir())?;
        let link = cluster_dir.join(format!("{name}.lnk"));
        let linked = replace_link(&link, (dir != cluster_dir).then_some(&dir));
        linked.map_err(|error| file_error("write the link", &link, &error))?;
        Ok(mark_file)
    }

    /// Marks the container as started.
    pub fn ready(&self) {
        self.tick();
        self.store_version(VERSION);
    }

    /// Gives a sign of life. Call it once a second.
    pub fn tick(&self) {
        self.store_activity(now());
    }

    /// Shows the member whose log the service has joined.
    pub fn set_member_id(&self, member_id: i32) {
        self.map.i32_at(MEMBER_ID_OFFSET).store(member_id.to_le(), Ordering::Release);
    }

    /// Records an error for tools. If the log is full, the error goes to the `log` crate only.
    pub fn record_error(&self, error: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if !errors.record(&self.map, now(), error) {
            log::error!("the error log of {} is full: {error}", self.path().display());
        }
    }

    /// Marks the container as one that could not start.
    pub fn failed(&self) {
        self.store_activity(ENDED);
        self.store_version(VERSION_FAILED);
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.reservation.0
    }

    fn store_activity(&self, timestamp: i64) {
        self.map.i64_at(ACTIVITY_OFFSET).store(timestamp.to_le(), Ordering::Release);
    }

    fn store_version(&self, version: i32) {
        self.map.i32_at(VERSION_OFFSET).store(version.to_le(), Ordering::Release);
    }
}

impl Drop for MarkFile {
    fn drop(&mut self) {
        self.store_activity(ENDED);
    }
}

/// Returns the header of a container that is starting.
fn header(
    context: &ServiceContext,
    aeron_dir: &Path,
    file_page_size: usize,
) -> Result<MarkFileHeader> {
    if !file_page_size.is_power_of_two() || file_page_size > 1 << 30 {
        return Err(ClusterError::invalid(format!(
            "file page size {file_page_size}: must be a power of two, and 1 GiB at most"
        )));
    }
    let header = MarkFileHeader {
        version: 0,
        component_type: ComponentType::Container,
        activity_timestamp: STARTING,
        start_timestamp: now(),
        pid: std::process::id().into(),
        candidate_term_id: -1,
        archive_stream_id: context.archive_stream_id(),
        service_stream_id: context.service_stream_id(),
        consensus_module_stream_id: context.consensus_module_stream_id(),
        ingress_stream_id: -1,
        member_id: -1,
        service_id: context.service_id(),
        header_length: HEADER_LENGTH as i32,
        error_buffer_length: context.error_buffer_length() as i32,
        cluster_id: context.cluster_id(),
        aeron_dir: aeron_dir.to_string_lossy().into_owned(),
        control_channel: context.control_channel().to_owned(),
        ingress_channel: String::new(),
        service_name: context.service_name().to_owned(),
        authenticator: String::new(),
        services_cluster_dir: String::new(),
    };
    if header.encode().is_none() {
        return Err(ClusterError::invalid(format!(
            "driver directory, control channel, service name: together longer than the \
             {HEADER_LENGTH} bytes of a mark file"
        )));
    }
    Ok(header)
}

/// Makes a new file. Returns `None` if the file exists.
fn create(path: &Path, header: &MarkFileHeader, length: usize) -> io::Result<Option<MappedFile>> {
    let mut options = OpenOptions::new();
    let mut file = match options.read(true).write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    };
    let header = header.encode().unwrap_or_default();
    let written = file.write_all(&header).and_then(|()| write_zeros(&mut file, length));
    written.and_then(|()| MappedFile::new(&file, length)).map(Some).inspect_err(|_| {
        // The first error counts.
        let _ = fs::remove_file(path);
    })
}

/// Removes a link file, and makes one that names a directory. Never opens the old file, which may be
/// a pipe.
fn replace_link(link: &Path, dir: Option<&PathBuf>) -> io::Result<()> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let Some(dir) = dir else { return Ok(()) };
    File::create_new(link)?.write_all(dir.to_string_lossy().as_bytes())
}

/// Writes zeros from the end of the header to the end of the file, so that the disk has space for
/// them.
fn write_zeros(file: &mut File, length: usize) -> io::Result<()> {
    file.seek(SeekFrom::Start(HEADER_LENGTH as u64))?;
    let count = (length - HEADER_LENGTH) as u64;
    io::copy(&mut io::repeat(0).take(count), file).map(|_| ())
}

/// Takes over an existing file, if its owner is not alive.
fn take_over(path: &Path, mut header: MarkFileHeader, length: usize) -> Result<MappedFile> {
    let failed = |error: io::Error| {
        let message = format!("cannot take over the mark file {}: {error}", path.display());
        ClusterError::new(ClusterErrorKind::Io(error.kind()), message)
    };
    let invalid = |reason: String| {
        let message = format!("{}: {reason}", path.display());
        ClusterError::new(ClusterErrorKind::InvalidMarkFile, message)
    };
    let mut file = files::open(path, OpenOptions::new().read(true).write(true)).map_err(failed)?;
    // A clock that was set back makes the age unknown.
    let age = file.metadata().and_then(|about| about.modified()).map_err(failed)?.elapsed();
    let is_old = age.is_ok_and(|age| age > LIVENESS_TIMEOUT);
    let mut bytes = Vec::new();
    (&file).take(HEADER_LENGTH as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() < HEADER_LENGTH {
        if !is_old {
            return Err(active(path, "which is making the file"));
        }
        // Its making was cut short, by a full disk or the end of the process.
        fs::remove_file(path).map_err(failed)?;
        return create(path, &header, length)
            .map_err(failed)?
            .ok_or_else(|| active(path, "which has just made the file"));
    }
    let old = MarkFileHeader::decode(&bytes).map_err(|error| invalid(error.to_string()))?;
    if !matches!(old.component_type, ComponentType::Container | ComponentType::Unknown) {
        return Err(invalid(format!("mark file of another component: {:?}", old.component_type)));
    }
    // The header is not zero throughout, so its beginning is on disk.
    let map = MappedFile::new(&file, HEADER_LENGTH).map_err(failed)?;
    let (activity, pid) = (map.i64_at(ACTIVITY_OFFSET), map.i64_at(PID_OFFSET));
    let replace = |field: &std::sync::atomic::AtomicI64, from: i64, to: i64| {
        let (from, to) = (from.to_le(), to.to_le());
        field
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .map_err(|_| active(path, "which has just taken over the file"))
    };
    if old.activity_timestamp == STARTING {
        let owner = format!("process {}, which is starting", old.pid);
        if !is_old || is_alive(old.pid) {
            return Err(active(path, &owner));
        }
        // Two starters may come here, and the pid decides between them: `STARTING` stays.
        replace(pid, old.pid, header.pid)?;
    } else {
        let age = now().saturating_sub(old.activity_timestamp);
        if age < LIVENESS_TIMEOUT.as_millis() as i64 {
            let owner = format!("process {}, which was alive {age} ms ago", old.pid);
            return Err(active(path, &owner));
        }
        replace(activity, old.activity_timestamp, STARTING)?;
    }
    header.candidate_term_id = old.candidate_term_id;
    let outcome = save_errors(path, &file, &old)
        .and_then(|()| overwrite(&mut file, &header, length))
        .and_then(|()| MappedFile::new(&file, length));
    outcome.map_err(|error| {
        activity.store(ENDED.to_le(), Ordering::Release);
        failed(error)
    })
}

/// Writes header and zeros, except for the timestamp, and for the version: a former container has
/// started.
fn overwrite(file: &mut File, header: &MarkFileHeader, length: usize) -> io::Result<()> {
    let bytes = header.encode().unwrap_or_default();
    for part in [0..VERSION_OFFSET, VERSION_OFFSET + 4..ACTIVITY_OFFSET, START_OFFSET..bytes.len()]
    {
        file.seek(SeekFrom::Start(part.start as u64))?;
        file.write_all(&bytes[part])?;
    }
    write_zeros(file, length)
}

/// Saves the errors of a former container beside the mark file.
fn save_errors(path: &Path, mut file: &File, header: &MarkFileHeader) -> io::Result<()> {
    let Ok(start) = u64::try_from(header.header_length) else { return Ok(()) };
    let Ok(length) = u64::try_from(header.error_buffer_length) else { return Ok(()) };
    // Enough for thousands of errors, whatever the file says.
    let length = length.min(16 << 20);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(length).read_to_end(&mut bytes)?;
    let entries = error_log::entries(&bytes);
    if entries.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    for entry in &entries {
        text += &format!(
            "{} observations from {} to {} ms since 1970:\n{}\n\n",
            entry.observation_count,
            epoch::millis(entry.first_observation),
            epoch::millis(entry.last_observation),
            entry.text
        );
    }
    let saved = path.with_file_name(format!("CONTAINER-{}-error.log", now()));
    fs::write(&saved, text)?;
    log::warn!("errors of the former container were saved in {}", saved.display());
    Ok(())
}

fn active(path: &Path, owner: &str) -> ClusterError {
    let message = format!("{} belongs to another container, {owner}", path.display());
    ClusterError::new(ClusterErrorKind::ActiveMarkFile, message)
}

/// Returns whether another process of this id may exist. Only Linux tells without C code.
fn is_alive(pid: i64) -> bool {
    // Mark files of this process are reserved, so this one is of a former process of the same id,
    // such as 1 in a container.
    pid > 0
        && pid != i64::from(std::process::id())
        && (cfg!(not(target_os = "linux")) || Path::new("/proc").join(pid.to_string()).exists())
}

/// Returns the time in milliseconds since 1970.
fn now() -> i64 {
    epoch::millis(SystemTime::now())
}

/// The right to use a mark file in this process. Dropping it gives the right back.
#[derive(Debug)]
struct Reservation(PathBuf);

impl Reservation {
    fn new(path: &Path) -> Option<Self> {
        let mut active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
        active.insert(path.to_owned()).then(|| Self(path.to_owned()))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        ACTIVE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// The longest text of an error, in bytes. The rest is cut off.
const MAX_TEXT_LENGTH: usize = 8 * 1024;

/// Writes distinct errors: an error that is observed again is counted.
///
/// Corresponds to `org.agrona.concurrent.errors.DistinctErrorLog`.
#[derive(Debug)]
pub(super) struct ErrorLog {
    /// The unused bytes of the log.
    free: Range<usize>,
    /// The offsets of the entries, by text.
    entries: HashMap<Box<str>, usize>,
}

impl ErrorLog {
    /// Creates the writer of a log of zeros in these bytes of a file.
    pub(super) fn new(bytes: Range<usize>) -> Self {
        Self { free: bytes, entries: HashMap::new() }
    }

    /// Records an observation at a time in milliseconds since 1970. Returns `false` if the log is
    /// full.
    pub(super) fn record(&mut self, file: &MappedFile, now: i64, text: &str) -> bool {
        let text = cut(text);
        if let Some(offset) = self.entries.get(text) {
            file.i32_at(offset + OBSERVATION_COUNT).fetch_add(1, Ordering::AcqRel);
            file.i64_at(offset + LAST_OBSERVATION).store(now, Ordering::Release);
            return true;
        }
        let length = error_log::HEADER_LENGTH + text.len();
        if length > self.free.len() {
            return false;
        }
        let offset = self.free.start;
        file.write(offset + error_log::HEADER_LENGTH, text.as_bytes());
        file.i32_at(offset + OBSERVATION_COUNT).store(1, Ordering::Relaxed);
        file.i64_at(offset + FIRST_OBSERVATION).store(now, Ordering::Relaxed);
        file.i64_at(offset + LAST_OBSERVATION).store(now, Ordering::Relaxed);
        // Last, because readers look for the length.
        file.i32_at(offset + LENGTH).store(length as i32, Ordering::Release);
        self.free.start = (offset + length).next_multiple_of(ALIGNMENT).min(self.free.end);
        self.entries.insert(text.into(), offset);
        true
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT_LENGTH);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use rusteron_core::cnc::error_log;

    use super::*;

    #[test]
    fn distinct_errors_are_counted_until_full() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[0; 256]).expect("written");
        let map = MappedFile::new(&file, 256).expect("mapped");
        let mut log = ErrorLog::new(64..192);
        assert!(log.record(&map, 10, "first"));
        assert!(log.record(&map, 20, "second"));
        assert!(log.record(&map, 30, "first"));
        // The entries take 32 bytes each; 64 are left.
        assert!(!log.record(&map, 40, &"x".repeat(41)));
        assert!(log.record(&map, 50, &"y".repeat(40)));
        assert!(!log.record(&map, 60, "z"));
        assert!(log.record(&map, 70, "second"));
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("read");
        assert!(bytes[192..].iter().all(|byte| *byte == 0));
        let entries = error_log::entries(&bytes[64..192]);
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| {
                let millis = entry.last_observation.duration_since(std::time::UNIX_EPOCH);
                let millis = millis.expect("after 1970").as_millis();
                (entry.text.as_str(), entry.observation_count, millis)
            })
            .collect();
        assert_eq!(entries, [("first", 2, 30), ("second", 2, 70), (&"y".repeat(40), 1, 50)]);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let text = "a".to_owned() + &"é".repeat(MAX_TEXT_LENGTH);
        assert_eq!(cut(&text).len(), MAX_TEXT_LENGTH - 1);
        assert_eq!(cut("short"), "short");
    }
}
