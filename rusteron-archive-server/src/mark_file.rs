//! The mark file of an archive, `archive-mark.dat`: it guards the directory, and shows tools the archive's life,
//! settings and errors. Layout and protocol are those of Java's `ArchiveMarkFile`; `rusteron_core::mark_file` has what
//! archive and cluster share.
//!
//! - **Restart.** By its timestamp alone, a killed archive blocks the directory for ten seconds. This one holds the
//!   [lock] of the directory, too, which the operating system takes away from a process that ends. So if the lock is free
//!   and the owner is one that had it since the last boot, the owner has ended, and the next server starts at once. A
//!   process id would not do: containers that share a directory have processes of the same ids.
//! - **A server that hangs** keeps the lock, and so the directory, however old its timestamp is.
//! - **A mark file elsewhere**, or one that was deleted, guards nothing. So the server locks the directory of the recordings
//!   in any case, and that of the mark file if it is another one.
//! - **File systems without locks** have the rules of the timestamp alone, and so have directories that another host or
//!   Java's archive has used last.
//! - **Notes.** A killed server leaves the positions of its recordings, by which the next one tells a message that a
//!   kill has cut off from one that ends in zeros. It also leaves the identity of its client, which the next one closes:
//!   the media driver would otherwise keep its counters, and with them the archive's id, for ten seconds.
//! - **The version** is zero while a server starts, so a program that waits for the start does not take the version
//!   of a former one for it. A server that ends leaves a version behind, even before it was ready: Java's archive
//!   refuses a file without one.

mod client;
mod guard;
mod header;
pub(crate) mod lock;
mod positions;

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rusteron_core::cnc::ClientIdentity;
use rusteron_core::dir_access::DirAccess;
use rusteron_core::files;
use rusteron_core::mark_file::{
    self, ACTIVITY_OFFSET, ENDED, Former, HEADER_LENGTH, MappedFile, Owner, Reservation, STARTING,
    VERSION_OFFSET,
};
use rusteron_core::sbe::MessageHeader;

use crate::context::ArchiveServerContext;
use crate::error::{Result, ServerError, ServerErrorKind};
use crate::ids::RecordingId;
pub(crate) use crate::mark_file::guard::Guard;
use crate::mark_file::header::{
    BOOT_ID_LENGTH, HOLDER_STARTED, HOLDER_STARTING, HOLDER_STATE_OFFSET, Header, HeaderError,
    Holder, VERSION,
};
use crate::mark_file::lock::LOCK_NAME;
pub(crate) use crate::mark_file::lock::Lock;
pub(crate) use crate::mark_file::positions::PositionSlot;
#[cfg(test)]
pub(crate) use crate::mark_file::positions::read as read_positions;

const NAME: &str = "archive-mark.dat";
const LINK_NAME: &str = "archive-mark.lnk";
/// The part of the file for notes to the next server, which Aeron leaves zero. Texts that reach so far leave no space.
const NOTES: Range<usize> = HEADER_LENGTH / 2..HEADER_LENGTH;

/// The mark file of a server, which no other archive can take meanwhile. Dropping it marks the server as ended. The
/// file stays.
///
/// Methods neither block nor make system calls, except for [`activate`](Self::activate). Errors may be recorded from
/// any thread.
#[derive(Debug)]
pub(crate) struct MarkFile {
    file: mark_file::MarkFile,
    /// There is a lock, and space for notes.
    has_notes: bool,
    killed: Killed,
    /// Device and inode of the file, if there is a lock. They tell the file from its copies.
    id: Option<FileId>,
    /// Dropped last.
    _locks: Locks,
}

/// Device and inode of a file.
type FileId = [i64; 2];

/// The locks of both directories: the recordings', and the mark file's, which is usually the same.
#[derive(Debug)]
struct Locks {
    _archive_dir: Option<Lock>,
    mark_file_dir: Lock,
}

impl Locks {
    /// Locks both directories by a function. `refused` says which one has another owner.
    fn new(
        archive_dir: &Path,
        mark_file_dir: &Path,
        lock: impl Fn(&Path) -> io::Result<std::result::Result<Lock, Owner>>,
        refused: impl Fn(&Path, Owner) -> ServerError,
    ) -> Result<Self> {
        let lock = |dir: &Path, path: &Path| {
            lock(dir)
                .map_err(|error| ServerError::file(&dir.join(LOCK_NAME), &error))?
                .map_err(|owner| refused(path, owner))
        };
        let is_elsewhere = archive_dir != mark_file_dir;
        Ok(Self {
            _archive_dir: is_elsewhere.then(|| lock(archive_dir, archive_dir)).transpose()?,
            mark_file_dir: lock(mark_file_dir, &mark_file_dir.join(NAME))?,
        })
    }

    fn are_held(&self) -> bool {
        self.mark_file_dir.is_held()
    }
}

/// Notes of the former archive, if it was killed.
#[derive(Debug, Default)]
struct Killed {
    /// The positions that its recordings had.
    positions: HashMap<RecordingId, i64>,
    /// Its client.
    client: Option<ClientIdentity>,
    /// Killed or not, it wrote to these files, and to no others of which they are copies.
    is_original: bool,
}

impl Killed {
    /// Reads the notes of the owner of a file. `start` is the length of what is missing in front of the header.
    fn read(bytes: &[u8], header: &Header, start: usize, former: Former, file: &File) -> Self {
        if start != 0 || !header.has_space_for_notes() {
            return Self::default();
        }
        let id = file.metadata().ok().and_then(|metadata| file_id(&metadata));
        let is_original = id.is_some_and(|id| client::is_original(bytes, id));
        if !former.has_ended {
            return Self { is_original, ..Self::default() };
        }
        let client = id.and_then(|id| client::read(bytes, id));
        Self { positions: positions::read(bytes), client, is_original }
    }

    fn is_empty(&self) -> bool {
        self.positions.is_empty() && self.client.is_none()
    }
}

impl MarkFile {
    /// Makes the mark file, or takes over that of an archive that is not alive, and marks it as starting. Errors of the
    /// former archive are saved in a file beside it. Directories are made if they are missing.
    ///
    /// The length of the file is a multiple of `file_page_size`, the media driver's page size of files. If the file is in
    /// another directory than the recordings, a link file names it there.
    ///
    /// # Errors
    /// - [`ActiveArchive`](ServerErrorKind::ActiveArchive): another archive is alive, or may be. The text names its
    ///   process.
    /// - [`InvalidMarkFile`](ServerErrorKind::InvalidMarkFile): the file is damaged, or of another version.
    /// - [`InvalidArgument`](ServerErrorKind::InvalidArgument): the texts are too long together, or a length is wrong.
    /// - Errors of files, such as that of a full disk: the whole file is written.
    pub(crate) fn activate(
        settings: &ArchiveServerContext,
        aeron_dir: &Path,
        archive_id: i64,
        file_page_size: usize,
    ) -> Result<Self> {
        if !file_page_size.is_power_of_two() || file_page_size > 1 << 30 {
            return Err(ServerError::invalid(format!(
                "file page size {file_page_size}: must be a power of two, and 1 GiB at most"
            )));
        }
        let header = header(settings, aeron_dir, archive_id)?;
        let errors_end = HEADER_LENGTH + settings.error_buffer_length();
        let length = errors_end.next_multiple_of(file_page_size);
        let access = settings.dir_access();
        let archive_dir = make_dir(
            settings.archive_dir(),
            access,
            "AERON_ARCHIVE_DIR; by default aeron-archive in the working directory",
        )?;
        let dir = settings.mark_file_dir().map_or_else(
            || Ok(archive_dir.clone()),
            |dir| {
                make_dir(
                    dir,
                    access,
                    "AERON_ARCHIVE_MARK_FILE_DIR; by default the archive's directory",
                )
            },
        )?;
        let path = dir.join(NAME);
        let reservation = Reservation::new(&path).map_err(|owner| active(&path, owner))?;
        let locks = Locks::new(&archive_dir, &dir, |dir| Lock::new(dir, Some(access)), active)?;
        let (map, killed) = match create(&path, &header, length, &locks, access)? {
            Some(map) => (map, Killed::default()),
            None => take_over(&path, &header, length, &locks, access)?,
        };
        let file = mark_file::MarkFile::new(map, HEADER_LENGTH..errors_end, reservation);
        // From here on, dropping the mark file marks it as ended.
        let has_notes = locks.are_held() && header.has_space_for_notes();
        let id = fs::metadata(&path).ok().and_then(|metadata| file_id(&metadata));
        let id = id.filter(|_| has_notes);
        let mark_file = Self { file, has_notes, killed, id, _locks: locks };
        let link = archive_dir.join(LINK_NAME);
        mark_file::replace_link(&link, (dir != archive_dir).then_some(&*dir), access)
            .map_err(|error| ServerError::file(&link, &error))?;
        Ok(mark_file)
    }

    /// Returns the positions that recordings had when the former archive was killed, by id. Empty if it ended in another
    /// way, or if that is not certain.
    pub(crate) fn killed_positions(&self) -> &HashMap<RecordingId, i64> {
        &self.killed.positions
    }

    /// Returns whether the former archive wrote to this directory, and not to one of which it is a
    /// copy.
    pub(crate) fn was_original(&self) -> bool {
        self.killed.is_original
    }

    /// Notes that this archive's segments are no copies whose ends are in doubt.
    pub(crate) fn note_original(&self) {
        if let Some(id) = self.id {
            client::store_original(self, id);
        }
    }

    /// Returns the client of the former archive, whose process has certainly ended since. The media driver may have
    /// closed the client already.
    pub(crate) fn killed_client(&self) -> Option<&ClientIdentity> {
        self.killed.client.as_ref()
    }

    /// Notes the client of this server, in place of the former archive's. Belongs before the first counter.
    pub(crate) fn note_client(&self, client: &ClientIdentity) {
        if let Some(id) = self.id {
            client::store(self, client, id);
        }
    }

    /// Forgets these positions, except for those of recordings whose ends the catalog does not
    /// have.
    pub(crate) fn forget_killed_positions(&self, is_needed: impl Fn(RecordingId) -> bool) {
        if self.has_notes {
            positions::forget(self, is_needed);
        }
    }

    /// Marks the server as started.
    pub(crate) fn ready(&self) {
        self.file.store(HOLDER_STATE_OFFSET, HOLDER_STARTED as i32);
        self.tick();
        self.file.store_version(VERSION);
    }

    /// Gives a sign of life. Call it once a second.
    pub(crate) fn tick(&self) {
        self.file.tick();
    }

    /// Records an error for tools. If the log is full, the error goes to the `log` crate only.
    pub(crate) fn record_error(&self, error: &str) {
        self.file.record_error(error);
    }

    pub(crate) fn record_error_within(&self, share: usize, error: &str) {
        self.file.record_error_within(share, error);
    }
}

impl Drop for MarkFile {
    fn drop(&mut self) {
        // Also after a failed start: Java's archive refuses a file without a version.
        self.file.store_activity(ENDED);
        self.file.store_version(VERSION);
    }
}

/// Returns the header of a server that is starting.
fn header(settings: &ArchiveServerContext, aeron_dir: &Path, archive_id: i64) -> Result<Header> {
    let control = settings.control_channel_enabled().then(|| settings.control_channel().to_owned());
    let start_timestamp = mark_file::now();
    let header = Header {
        version: 0,
        activity_timestamp: STARTING,
        start_timestamp,
        pid: std::process::id().into(),
        control_stream_id: settings.control_stream_id(),
        local_control_stream_id: settings.local_control_stream_id(),
        events_stream_id: settings.recording_events_stream_id(),
        header_length: HEADER_LENGTH as i32,
        // At most 2 GiB, by the setting.
        error_buffer_length: settings.error_buffer_length() as i32,
        archive_id,
        holder: Holder { state: HOLDER_STARTING, start_timestamp, boot_id: boot_id() },
        control_channel: control.unwrap_or_default(),
        local_control_channel: settings.local_control_channel().to_owned(),
        // Also if recording events are disabled, as Java's archive does.
        events_channel: settings.recording_events_channel().to_owned(),
        aeron_dir: aeron_dir.to_string_lossy().into_owned(),
    };
    if header.encode().is_none() {
        return Err(ServerError::invalid(format!(
            "driver directory and channels: together longer than the {HEADER_LENGTH} bytes of a mark file"
        )));
    }
    Ok(header)
}

/// Returns the id of this boot of the operating system. Zeros if only the timestamps are to count: the system tells
/// none.
fn boot_id() -> [u8; BOOT_ID_LENGTH] {
    let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.first_chunk().copied().unwrap_or([0; BOOT_ID_LENGTH])
}

/// `setting` names the setting with the directory, and its default.
fn make_dir(dir: &Path, access: DirAccess, setting: &str) -> Result<PathBuf> {
    access.create_dir(dir).and_then(|()| dir.canonicalize()).map_err(|error| {
        let path = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let error = ServerError::file(&path, &error);
        ServerError::new(error.kind(), format!("{} ({setting})", error.message()))
    })
}

#[cfg(unix)]
fn file_id(metadata: &fs::Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;

    Some([metadata.dev() as i64, metadata.ino() as i64])
}

#[cfg(not(unix))]
fn file_id(_: &fs::Metadata) -> Option<FileId> {
    None
}

/// Makes a new file, and maps the whole. Returns `None` if the file exists.
fn create(
    path: &Path,
    header: &Header,
    length: usize,
    locks: &Locks,
    access: DirAccess,
) -> Result<Option<MappedFile>> {
    let failed = |error: io::Error| ServerError::file(path, &error);
    let Some(mut file) = mark_file::open_new(path, access).map_err(failed)? else {
        return Ok(None);
    };
    let bytes = encode(header, locks);
    // A file that is cut short stays: removing it would leave an archive that has opened it
    // meanwhile without a guard.
    mark_file::write_whole(&mut file, &bytes, length).map_err(failed).map(Some)
}

/// Takes over an existing file, if its owner is not alive. Returns the notes of a killed owner, too.
fn take_over(
    path: &Path,
    header: &Header,
    length: usize,
    locks: &Locks,
    access: DirAccess,
) -> Result<(MappedFile, Killed)> {
    let failed = |error: io::Error| ServerError::file(path, &error);
    let refused = |owner: Owner| active(path, owner);
    let mut file = files::open(path, OpenOptions::new().read(true).write(true)).map_err(failed)?;
    let Ended { bytes, owner } = former_owner(path, &file, locks)?.map_err(refused)?;
    let Some((old, start, former)) = owner else {
        let map = mark_file::write_whole(&mut file, &encode(header, locks), length);
        return Ok((map.map_err(failed)?, Killed::default()));
    };
    // The header is not zero throughout, so its beginning is on disk.
    let map = MappedFile::new(&file, HEADER_LENGTH).map_err(failed)?;
    let (activity, version) = (map.i64_at(ACTIVITY_OFFSET), map.i32_at(VERSION_OFFSET));
    if start == 0 {
        // If this process ends before it has written the header, it was starting.
        let state = map.i32_at(HOLDER_STATE_OFFSET);
        state.store((HOLDER_STARTING as i32).to_le(), Ordering::Release);
        mark_file::claim(&map, former, header.pid).map_err(refused)?;
        version.store(0, Ordering::Release);
    } else {
        let activity = map.i64_at(ACTIVITY_OFFSET - start);
        mark_file::replace(activity, old.activity_timestamp, STARTING).map_err(refused)?;
    }
    let (errors, errors_length) = (old.header_length, old.error_buffer_length);
    if let Err(error) =
        mark_file::save_errors(path, "archive", &file, errors, errors_length, access)
    {
        log::warn!("the errors in {} cannot be saved: {error}", path.display());
    }
    let mut new = encode(header, locks);
    let killed = Killed::read(&bytes, &old, start, former, &file);
    if !killed.is_empty() && header.has_space_for_notes() {
        // Until the catalog has the ends and the client is closed: this server can be killed before.
        new[NOTES].copy_from_slice(&bytes[NOTES]);
    }
    if header.has_space_for_notes() {
        client::carry_over(&bytes, &mut new, killed.is_original);
    }
    match mark_file::write_whole(&mut file, &new, length) {
        Ok(map) => Ok((map, killed)),
        Err(error) => {
            if start == 0 {
                activity.store(ENDED.to_le(), Ordering::Release);
                version.store(VERSION.to_le(), Ordering::Release);
            }
            Err(failed(error))
        }
    }
}

/// A mark file whose owner has ended.
struct Ended {
    /// The header's, as far as there are any.
    bytes: Vec<u8>,
    /// The header, the length of what is missing in front of it, and its owner. `None` if its making was cut short by a
    /// full disk or the end of the process.
    owner: Option<(Header, usize, Former)>,
}

/// Reads a mark file, or returns the owner that may be alive although it does not hold the locks.
fn former_owner(path: &Path, file: &File, locks: &Locks) -> Result<Result<Ended, Owner>> {
    let failed = |error: io::Error| ServerError::file(path, &error);
    let is_old = mark_file::is_old(file).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(HEADER_LENGTH as u64).read_to_end(&mut bytes).map_err(failed)?;
    // Its making is in progress, or was cut short.
    if bytes.len() < HEADER_LENGTH || bytes.iter().all(|byte| *byte == 0) {
        return Ok(if is_old { Ok(Ended { bytes, owner: None }) } else { Err(Owner::Making) });
    }
    let (header, start) = decode(path, &bytes)?;
    let former = Former {
        activity_timestamp: header.activity_timestamp,
        pid: header.pid,
        // Java's archive leaves the timestamp of a file that it has made at 0 until it has started.
        is_starting: header.activity_timestamp == STARTING
            || header.version == 0 && header.activity_timestamp == 0,
        is_old,
        has_ended: locks.are_held() && header.holder.has_ended(&header, &boot_id()),
    };
    let owner = Some((header, start, former));
    Ok(former.check().map(|()| Ended { bytes, owner }))
}

/// Decodes the header of a file. Returns it with the length of what is missing in front of it.
fn decode(path: &Path, bytes: &[u8]) -> Result<(Header, usize)> {
    let decoded = match Header::decode(bytes) {
        // Padding stands where the schema is in later files.
        Err(HeaderError::OtherSchema { schema_id: 0, .. }) => {
            Header::decode_headerless(bytes).map(|header| (header, MessageHeader::LENGTH))
        }
        decoded => decoded.map(|header| (header, 0)),
    };
    decoded.map_err(|error| {
        ServerError::new(ServerErrorKind::InvalidMarkFile, format!("{}: {error}", path.display()))
    })
}

/// Returns the bytes of a header whose texts are known to fit. Without a lock, it names no boot.
fn encode(header: &Header, locks: &Locks) -> Vec<u8> {
    let boot_id = if locks.are_held() { header.holder.boot_id } else { [0; BOOT_ID_LENGTH] };
    let header = Header { holder: Holder { boot_id, ..header.holder }, ..header.clone() };
    header.encode().unwrap_or_default()
}

fn active(path: &Path, owner: Owner) -> ServerError {
    let owner = match owner {
        // Java's, or of another boot or host: otherwise, the lock would tell.
        Owner::Alive { pid, age_ms: ahead_ms @ ..0 } => format!(
            "process {pid}, which was alive {} ms ahead of this host's clock: if it has ended, delete the file",
            ahead_ms.unsigned_abs()
        ),
        owner => format!("{owner}: end it, or choose another directory"),
    };
    let message = format!("{} belongs to another archive, {owner}", path.display());
    ServerError::new(ServerErrorKind::ActiveArchive, message)
}

#[cfg(test)]
mod tests;
