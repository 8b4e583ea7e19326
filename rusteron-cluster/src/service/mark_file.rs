//! The mark file of a container, with its error log.
//!
//! A [`ServiceAgent`](crate::ServiceAgent) activates the file of its service. Only a program that runs services in
//! another way needs this module.
//!
//! Layout and protocol are those of Java's `ClusterMarkFile`, so Java's container and tools understand the
//! file.
//!
//! `rusteron_core::mark_file` has what archive and cluster share: the owner, full disks, errors.
//!
//! Only the activation makes system calls. Signs of life and errors are stores to the mapping.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::Ordering;

use rusteron_core::cnc::i64_at;
use rusteron_core::dir_access::DirAccess;
use rusteron_core::files;
use rusteron_core::mark_file::{
    self, ACTIVITY_OFFSET, Former, MappedFile, Owner, PID_OFFSET, Reservation,
};

use crate::codec::mark_file::{
    ComponentType, ENDED, HEADER_LENGTH, MEMBER_ID_OFFSET, MarkFileHeader, STARTING, VERSION,
    VERSION_FAILED,
};
use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::ids::MemberId;
use crate::service::context::ServiceContext;

/// The consensus module and its tools may run as other users. The file has no messages.
const ACCESS: DirAccess = DirAccess::Umask;

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
pub struct MarkFile(mark_file::MarkFile);

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
        let reservation = Reservation::new(&path).map_err(|owner| active(&path, owner))?;
        let map = match create(&path, &header, length) {
            Ok(Some(map)) => map,
            Ok(None) => take_over(&path, header, length)?,
            Err(error) => return Err(file_error("write the mark file", &path, &error)),
        };
        // From here on, dropping the mark file marks it as ended.
        let mark_file = Self(mark_file::MarkFile::new(map, HEADER_LENGTH..errors_end, reservation));
        let cluster_dir = make_dir(context.cluster_dir())?;
        let link = cluster_dir.join(format!("{name}.lnk"));
        let linked = mark_file::replace_link(&link, (dir != cluster_dir).then_some(&*dir), ACCESS);
        linked.map_err(|error| file_error("write the link", &link, &error))?;
        Ok(mark_file)
    }

    /// Marks the container as started.
    pub fn ready(&self) {
        self.tick();
        self.0.store_version(VERSION);
    }

    /// Gives a sign of life. Call it once a second.
    pub fn tick(&self) {
        self.0.tick();
    }

    /// Shows the member whose log the service has joined.
    pub fn set_member_id(&self, member_id: MemberId) {
        self.0.store(MEMBER_ID_OFFSET, member_id.get());
    }

    /// Records an error for tools. If the log is full, the error goes to the `log` crate only.
    pub fn record_error(&self, error: &str) {
        self.0.record_error(error);
    }

    /// Marks the container as one that could not start.
    pub fn failed(&self) {
        self.0.store_activity(ENDED);
        self.0.store_version(VERSION_FAILED);
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.0.path()
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
        start_timestamp: mark_file::now(),
        pid: std::process::id().into(),
        candidate_term_id: -1,
        archive_stream_id: context.archive_stream_id(),
        service_stream_id: context.service_stream_id(),
        consensus_module_stream_id: context.consensus_module_stream_id(),
        ingress_stream_id: -1,
        member_id: -1,
        service_id: context.service_id().get(),
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
    let Some(mut file) = mark_file::open_new(path, ACCESS)? else { return Ok(None) };
    let header = header.encode().unwrap_or_default();
    mark_file::write_whole(&mut file, &header, length).map(Some).inspect_err(|_| {
        // The first error counts.
        let _ = fs::remove_file(path);
    })
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
    let mut bytes = Vec::new();
    (&file).take(HEADER_LENGTH as u64).read_to_end(&mut bytes).map_err(failed)?;
    // Afterwards, so that what another starter has just written is not old.
    let is_old = mark_file::is_old(&file).map_err(failed)?;
    let old = if mark_file::is_unmade(&bytes) {
        if !is_old {
            return Err(active(path, Owner::Making));
        }
        // A full disk or the end of the process has cut it short. Several containers may come here,
        // so none of them may replace the file.
        mark_file::complete_header(path, bytes.len()).map_err(failed)?;
        MarkFileHeader {
            pid: i64_at(&bytes, PID_OFFSET).unwrap_or_default(),
            error_buffer_length: 0,
            ..header.clone()
        }
    } else {
        MarkFileHeader::decode(&bytes).map_err(|error| invalid(error.to_string()))?
    };
    if !matches!(old.component_type, ComponentType::Container | ComponentType::Unknown) {
        return Err(invalid(format!("mark file of another component: {:?}", old.component_type)));
    }
    // The header has been written, if only as zeros, so its beginning is on disk.
    let map = MappedFile::new(&file, HEADER_LENGTH).map_err(failed)?;
    let former = Former {
        activity_timestamp: old.activity_timestamp,
        pid: old.pid,
        is_starting: old.activity_timestamp == STARTING,
        is_old,
        has_ended: false,
    };
    mark_file::claim(&map, former, header.pid).map_err(|owner| active(path, owner))?;
    header.candidate_term_id = old.candidate_term_id;
    // The version stays: a former container has started.
    let bytes = header.encode().unwrap_or_default();
    let (start, errors_length) = (old.header_length, old.error_buffer_length);
    let outcome = mark_file::save_errors(path, "CONTAINER", &file, start, errors_length, ACCESS)
        .and_then(|()| mark_file::overwrite(&mut file, &bytes, length))
        .and_then(|()| MappedFile::new(&file, length));
    outcome.map_err(|error| {
        map.i64_at(ACTIVITY_OFFSET).store(ENDED.to_le(), Ordering::Release);
        failed(error)
    })
}

fn active(path: &Path, owner: Owner) -> ClusterError {
    let message = format!("{} belongs to another container, {owner}", path.display());
    ClusterError::new(ClusterErrorKind::ActiveMarkFile, message)
}
