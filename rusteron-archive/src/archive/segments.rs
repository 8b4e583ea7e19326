//! Making recordings shorter, and moving their files.

use std::ffi::c_int;

use rusteron_client::{AsChannel, Position};
use rusteron_core::RecordingId;
use rusteron_core::channel::ChannelUse;
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::checks::{not_negative, number_of};
use crate::error::Result;

/// Maintenance of recordings.
impl Archive {
    /// Truncates a stopped recording at a position. Returns the number of deleted segment files.
    ///
    /// A frame has to begin at the position. Replays of the recording are stopped.
    ///
    /// # Errors
    /// - [`UnknownRecording`](crate::ArchiveErrorKind::UnknownRecording): there is no such recording;
    /// - [`ActiveRecording`](crate::ArchiveErrorKind::ActiveRecording): it is being recorded;
    /// - [`InvalidPosition`](crate::ArchiveErrorKind::InvalidPosition): the position is not in the
    ///   recording, or no frame begins there;
    /// - others, as for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_truncate_recording`.
    #[doc(alias = "aeron_archive_truncate_recording")]
    pub fn truncate_recording(&self, recording_id: RecordingId, position: Position) -> Result<u64> {
        not_negative("truncate_recording", "position", position)?;
        // SAFETY: `count_segments` passes the live structure.
        self.count_segments("truncate_recording", recording_id, |count, raw| unsafe {
            sys::aeron_archive_truncate_recording(count, raw, recording_id.get(), position)
        })
    }

    /// Deletes a stopped recording. Returns the number of deleted segment files.
    ///
    /// # Errors
    /// [`UnknownRecording`](crate::ArchiveErrorKind::UnknownRecording),
    /// [`ActiveRecording`](crate::ArchiveErrorKind::ActiveRecording); a recording that is being
    /// replayed is refused as well; others, as for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_purge_recording`.
    #[doc(alias = "aeron_archive_purge_recording")]
    pub fn purge_recording(&self, recording_id: RecordingId) -> Result<u64> {
        // SAFETY: `count_segments` passes the live structure.
        self.count_segments("purge_recording", recording_id, |count, raw| unsafe {
            sys::aeron_archive_purge_recording(count, raw, recording_id.get())
        })
    }

    /// Moves the start of a recording forward. The segment files before the position stay on disk,
    /// but no longer belong to the recording.
    ///
    /// A segment has to begin at the position; see
    /// [`segment_file_base_position`](crate::RecordingDescriptor::segment_file_base_position).
    ///
    /// # Errors
    /// [`UnknownRecording`](crate::ArchiveErrorKind::UnknownRecording),
    /// [`InvalidPosition`](crate::ArchiveErrorKind::InvalidPosition); segments that are being recorded
    /// or replayed are refused as well; others, as for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_detach_segments`.
    #[doc(alias = "aeron_archive_detach_segments")]
    pub fn detach_segments(
        &self,
        recording_id: RecordingId,
        new_start_position: Position,
    ) -> Result<()> {
        not_negative("detach_segments", "new_start_position", new_start_position)?;
        // SAFETY: `request` passes the live structure.
        self.request("detach_segments", Some(("recording_id", recording_id.get())), |raw| unsafe {
            sys::aeron_archive_detach_segments(raw, recording_id.get(), new_start_position)
        })
    }

    /// Deletes the segment files that were detached from a recording. Returns their number.
    ///
    /// # Errors
    /// As for [`detach_segments`](Self::detach_segments).
    ///
    /// Corresponds to `aeron_archive_delete_detached_segments`.
    #[doc(alias = "aeron_archive_delete_detached_segments")]
    pub fn delete_detached_segments(&self, recording_id: RecordingId) -> Result<u64> {
        // SAFETY: `count_segments` passes the live structure.
        self.count_segments("delete_detached_segments", recording_id, |count, raw| unsafe {
            sys::aeron_archive_delete_detached_segments(count, raw, recording_id.get())
        })
    }

    /// Moves the start of a recording forward, and deletes the segment files before it. Returns
    /// their number.
    ///
    /// # Errors
    /// As for [`detach_segments`](Self::detach_segments).
    ///
    /// Corresponds to `aeron_archive_purge_segments`.
    #[doc(alias = "aeron_archive_purge_segments")]
    pub fn purge_segments(
        &self,
        recording_id: RecordingId,
        new_start_position: Position,
    ) -> Result<u64> {
        not_negative("purge_segments", "new_start_position", new_start_position)?;
        // SAFETY: `count_segments` passes the live structure.
        self.count_segments("purge_segments", recording_id, |count, raw| unsafe {
            sys::aeron_archive_purge_segments(count, raw, recording_id.get(), new_start_position)
        })
    }

    /// Attaches the segment files that were detached from a recording. Returns their number.
    ///
    /// # Errors
    /// As for [`detach_segments`](Self::detach_segments).
    ///
    /// Corresponds to `aeron_archive_attach_segments`.
    #[doc(alias = "aeron_archive_attach_segments")]
    pub fn attach_segments(&self, recording_id: RecordingId) -> Result<u64> {
        // SAFETY: `count_segments` passes the live structure.
        self.count_segments("attach_segments", recording_id, |count, raw| unsafe {
            sys::aeron_archive_attach_segments(count, raw, recording_id.get())
        })
    }

    /// Moves the segment files of a recording to the beginning or the end of another recording.
    /// Returns their number.
    ///
    /// Stream id, initial term id, term length, segment length and MTU have to be equal. One of the
    /// two has to end where the other begins, between two segments, and the source must not be
    /// recorded. It is empty afterwards.
    ///
    /// # Errors
    /// As for [`detach_segments`](Self::detach_segments). `rusteron-archive-server` also refuses a
    /// source that is being replayed, as
    /// [`ActiveRecording`](crate::ArchiveErrorKind::ActiveRecording). Java's archive moves the files
    /// all the same, and the replay may read other data.
    /// [`relevant_id`](crate::ArchiveError::relevant_id) is the source, or, if one of the two
    /// recordings is unknown, the id of that recording.
    ///
    /// Corresponds to `aeron_archive_migrate_segments`.
    #[doc(alias = "aeron_archive_migrate_segments")]
    pub fn migrate_segments(
        &self,
        src_recording_id: RecordingId,
        dst_recording_id: RecordingId,
    ) -> Result<u64> {
        not_negative("migrate_segments", "dst_recording_id", dst_recording_id.get())?;
        let id = Some(("src_recording_id", src_recording_id.get()));
        // SAFETY: `ask` passes the live structure.
        let count = self.ask("migrate_segments", id, |count, raw| unsafe {
            sys::aeron_archive_migrate_segments(
                count,
                raw,
                src_recording_id.get(),
                dst_recording_id.get(),
            )
        });
        count.map(number_of)
    }

    /// Changes the channel with which a recording is found.
    ///
    /// # Errors
    /// [`UnknownRecording`](crate::ArchiveErrorKind::UnknownRecording); others, as for
    /// [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_update_channel`.
    #[doc(alias = "aeron_archive_update_channel")]
    pub fn update_channel(
        &self,
        recording_id: RecordingId,
        new_channel: impl AsChannel,
    ) -> Result<()> {
        let channel = new_channel.to_c_string(ChannelUse::Subscription)?;
        // SAFETY: `request` passes the live structure; the channel lives during the call.
        self.request("update_channel", Some(("recording_id", recording_id.get())), |raw| unsafe {
            sys::aeron_archive_update_channel(raw, recording_id.get(), channel.as_ptr())
        })
    }

    /// Sends a request about a recording, whose answer is a number of segment files.
    fn count_segments(
        &self,
        operation: &'static str,
        recording_id: RecordingId,
        call: impl FnOnce(&mut i64, *mut sys::aeron_archive_t) -> c_int,
    ) -> Result<u64> {
        self.ask(operation, Some(("recording_id", recording_id.get())), call).map(number_of)
    }
}
