//! The counters with the positions of active recordings.

use rusteron_client::{Aeron, Position};
use rusteron_core::RecordingId;
use rusteron_core::cnc::{i32_at, i64_at};

use crate::ids::ArchiveId;

const TYPE_ID: i32 = 100;
const RECORDING_ID: usize = 0;
const SESSION_ID: usize = 8;
const SOURCE_IDENTITY_LENGTH: usize = 12;
const SOURCE_IDENTITY: usize = 16;

/// The counter in which an archive publishes the position of a recording to all clients of its
/// media driver.
///
/// Reading it needs no request. The counter exists as long as the recording is active. Finding a
/// counter reads the counters one by one; other methods read one counter. No method blocks. A
/// `RecordingPos` keeps its client open, and can be shared by threads. Positions are in bytes of
/// the stream.
///
/// ```no_run
/// use rusteron_archive::{Archive, RecordingPos};
///
/// # fn print(archive: &Archive) -> rusteron_archive::Result<()> {
/// let (publication, recording_id) = archive.add_recorded_publication("aeron:ipc", 1001)?;
/// let recording =
///     RecordingPos::find_by_recording_id(archive.aeron(), recording_id, archive.archive_id());
/// println!("recording {recording_id} is at {:?}", recording.and_then(|recording| recording.position()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RecordingPos {
    aeron: Aeron,
    counter_id: i32,
    recording_id: RecordingId,
    session_id: i32,
    source_identity: String,
    archive_id: Option<ArchiveId>,
}

impl RecordingPos {
    /// Finds the counter of an active recording of an archive on the client's media driver.
    ///
    /// `archive_id` is the id of the [archive](crate::Archive::archive_id). All archives count
    /// recordings from 0. So `None`, which is any archive, may find the recording of another
    /// archive.
    ///
    /// Corresponds to `aeron_archive_recording_pos_find_counter_id_by_recording_id`.
    #[doc(alias = "aeron_archive_recording_pos_find_counter_id_by_recording_id")]
    pub fn find_by_recording_id(
        aeron: &Aeron,
        recording_id: RecordingId,
        archive_id: Option<ArchiveId>,
    ) -> Option<Self> {
        Self::find(aeron, |found| found.recording_id == recording_id && found.is_of(archive_id))
    }

    /// Finds the counter of an active recording of a publication, by an archive on the client's
    /// media driver. `archive_id` is as for [`find_by_recording_id`](Self::find_by_recording_id).
    ///
    /// Corresponds to `aeron_archive_recording_pos_find_counter_id_by_session_id`.
    #[doc(alias = "aeron_archive_recording_pos_find_counter_id_by_session_id")]
    pub fn find_by_session_id(
        aeron: &Aeron,
        session_id: i32,
        archive_id: Option<ArchiveId>,
    ) -> Option<Self> {
        Self::find(aeron, |found| found.is_of_session(session_id, archive_id))
    }

    /// Finds the counter of the first active recording that `matches`, of any archive on the
    /// client's media driver.
    ///
    /// Has no counterpart in C, which finds by id only.
    pub fn find(aeron: &Aeron, mut matches: impl FnMut(&Self) -> bool) -> Option<Self> {
        let counters = aeron.counters_reader();
        (0..=counters.max_counter_id())
            .filter(|id| counters.type_id(*id) == Some(TYPE_ID))
            .filter_map(|id| Self::read(aeron, id))
            .find(|found| matches(found))
    }

    fn read(aeron: &Aeron, counter_id: i32) -> Option<Self> {
        let key = aeron.counters_reader().key(counter_id)?;
        let end = source_identity_end(&key)?;
        Some(Self {
            aeron: aeron.clone(),
            counter_id,
            recording_id: i64_at(&key, RECORDING_ID)?.into(),
            session_id: i32_at(&key, SESSION_ID)?,
            source_identity: String::from_utf8_lossy(key.get(SOURCE_IDENTITY..end)?).into_owned(),
            archive_id: archive_id_in(&key),
        })
    }

    pub(crate) fn is_of_session(&self, session_id: i32, archive_id: Option<ArchiveId>) -> bool {
        self.session_id == session_id && self.is_of(archive_id)
    }

    fn is_of(&self, archive_id: Option<ArchiveId>) -> bool {
        archive_id.is_none() || self.archive_id == archive_id
    }

    /// Returns the position of the recording, or `None` if the recording is no longer active.
    ///
    /// Corresponds to `aeron_counters_reader_addr`.
    #[doc(alias = "aeron_counters_reader_addr")]
    pub fn position(&self) -> Option<Position> {
        let value = self.aeron.counters_reader().value(self.counter_id)?;
        // Checked afterwards: another counter may have got the id meanwhile.
        self.is_active().then_some(value)
    }

    /// Returns whether the recording is still active.
    ///
    /// Corresponds to `aeron_archive_recording_pos_is_active`.
    #[doc(alias = "aeron_archive_recording_pos_is_active")]
    pub fn is_active(&self) -> bool {
        let counters = self.aeron.counters_reader();
        counters.type_id(self.counter_id) == Some(TYPE_ID)
            && counters.key(self.counter_id).is_some_and(|key| {
                i64_at(&key, RECORDING_ID) == Some(self.recording_id.get())
                    && archive_id_in(&key) == self.archive_id
            })
    }

    /// Returns the id of the counter, with which a [replay can be
    /// bounded](crate::ReplayParams::bounding_limit_counter_id).
    ///
    /// Corresponds to the result of `aeron_archive_recording_pos_find_counter_id_by_recording_id`.
    #[doc(alias = "aeron_archive_recording_pos_find_counter_id_by_recording_id")]
    pub fn counter_id(&self) -> i32 {
        self.counter_id
    }

    /// Returns the id of the recording.
    ///
    /// Corresponds to `aeron_archive_recording_pos_get_recording_id`.
    #[doc(alias = "aeron_archive_recording_pos_get_recording_id")]
    pub fn recording_id(&self) -> RecordingId {
        self.recording_id
    }

    /// Returns the session id of the recorded publication.
    ///
    /// Corresponds to the session id in the key of the counter, which C compares only.
    pub fn session_id(&self) -> i32 {
        self.session_id
    }

    /// Returns the source of the publication: an address, or `aeron:ipc`.
    ///
    /// Corresponds to `aeron_archive_recording_pos_get_source_identity`.
    #[doc(alias = "aeron_archive_recording_pos_get_source_identity")]
    pub fn source_identity(&self) -> &str {
        &self.source_identity
    }

    /// Returns the id of the recording archive; see
    /// [`Archive::archive_id`](crate::Archive::archive_id).
    ///
    /// Corresponds to the archive id in the key of the counter, which C compares only.
    pub fn archive_id(&self) -> Option<ArchiveId> {
        self.archive_id
    }
}

fn source_identity_end(key: &[u8]) -> Option<usize> {
    let length = usize::try_from(i32_at(key, SOURCE_IDENTITY_LENGTH)?).ok()?;
    SOURCE_IDENTITY.checked_add(length)
}

/// Returns the archive id in a counter's key, or `None` for an archive without an id.
fn archive_id_in(key: &[u8]) -> Option<ArchiveId> {
    Some(ArchiveId::new(i64_at(key, source_identity_end(key)?)?))
}
