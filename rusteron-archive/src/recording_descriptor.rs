//! Descriptions of recordings and of an archive's subscriptions.

use std::ffi::c_char;
use std::time::SystemTime;

use rusteron_client::{ChannelUri, Error, Position};
use rusteron_core::RecordingId;
use rusteron_core::cnc::epoch;
use rusteron_sys::archive as sys;

use crate::checks::unless_null;
use crate::error::{ArchiveError, ArchiveErrorKind, Result};
use crate::ids::RecordingSubscriptionId;

/// Description of a recording, copied when it was listed.
#[doc(alias = "RecordingDescriptorConsumer")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingDescriptor {
    /// The id of the recording. No other recording of this archive ever gets the same id.
    pub recording_id: RecordingId,
    /// When recording started, by the archive's clock.
    pub start_time: SystemTime,
    /// When recording stopped, or `None` if it has not.
    pub stop_time: Option<SystemTime>,
    /// The position in the publication at which the recording begins.
    pub start_position: Position,
    /// The position at which the recording ends, or `None` if it is active.
    pub stop_position: Option<Position>,
    /// The id of the publication's first term.
    pub initial_term_id: i32,
    /// The length of the files of the recording, in bytes.
    pub segment_file_length: usize,
    /// The length of the publication's terms, in bytes.
    pub term_buffer_length: usize,
    /// The longest packet of the publication, in bytes.
    pub mtu_length: usize,
    /// The session id of the publication.
    pub session_id: i32,
    /// The stream id of the publication.
    pub stream_id: i32,
    /// The channel, reduced to the parameters that distinguish it.
    pub stripped_channel: String,
    /// The channel that was given when recording was started.
    pub original_channel: String,
    /// Source of the publication: an address, or `aeron:ipc`.
    pub source_identity: String,
}

impl RecordingDescriptor {
    /// # Safety
    /// The texts of `raw` are as long as it says.
    pub(crate) unsafe fn from_raw(raw: &sys::aeron_archive_recording_descriptor_t) -> Self {
        // SAFETY: the caller guarantees texts of these lengths.
        let text = |start: *mut c_char, length: usize| unsafe { text(start, length) };
        Self {
            recording_id: RecordingId::new(raw.recording_id),
            start_time: time(raw.start_timestamp),
            stop_time: unless_null(raw.stop_timestamp).map(time),
            start_position: raw.start_position,
            stop_position: unless_null(raw.stop_position),
            initial_term_id: raw.initial_term_id,
            segment_file_length: raw.segment_file_length.max(0) as usize,
            term_buffer_length: raw.term_buffer_length.max(0) as usize,
            mtu_length: raw.mtu_length.max(0) as usize,
            session_id: raw.session_id,
            stream_id: raw.stream_id,
            stripped_channel: text(raw.stripped_channel, raw.stripped_channel_length),
            original_channel: text(raw.original_channel, raw.original_channel_length),
            source_identity: text(raw.source_identity, raw.source_identity_length),
        }
    }

    /// Returns `channel` with the parameters of a publication that continues this recording where
    /// it stopped. Add it with
    /// [`add_exclusive_publication`](rusteron_client::Aeron::add_exclusive_publication) and record
    /// it with [`extend_recording`](crate::Archive::extend_recording).
    ///
    /// `None` if the recording has not stopped.
    ///
    /// # Errors
    /// - [`InvalidPosition`](ArchiveErrorKind::InvalidPosition): the recording has stopped at the last position of
    ///   its 2³¹ terms, where nothing can continue it;
    /// - [`Client`](ArchiveErrorKind::Client): the channel is not valid.
    ///
    /// Corresponds to `aeron_uri_string_builder_set_initial_position`.
    #[doc(alias = "aeron_uri_string_builder_set_initial_position")]
    pub fn continuation(&self, channel: &str) -> Result<Option<ChannelUri>> {
        let Some(stop_position) = self.stop_position else { return Ok(None) };
        let term_length = self.term_buffer_length;
        if i128::from(stop_position) == (term_length as i128) << 31 {
            let id = self.recording_id;
            let text = format!(
                "recording {id} has stopped at {stop_position}, the last position of its terms of {term_length} bytes, \
                 and cannot be continued: record into another one"
            );
            let error = ArchiveError::new(ArchiveErrorKind::InvalidPosition, "continuation", text);
            return Err(error.about(Some(id.get())));
        }
        let uri: ChannelUri = channel.parse().map_err(Error::from)?;
        let builder = uri.to_builder().initial_position(
            stop_position,
            self.initial_term_id,
            self.term_buffer_length,
        );
        Ok(Some(builder.mtu(self.mtu_length).build().map_err(Error::from)?))
    }

    /// Returns the position at which the segment file of a position begins.
    ///
    /// Detaching and purging need such positions. A position before the recording counts as its
    /// start.
    ///
    /// The lengths in an archive's descriptor are powers of two. With other lengths, the result is
    /// meaningless.
    ///
    /// Corresponds to `aeron_archive_segment_file_base_position`.
    #[doc(alias = "aeron_archive_segment_file_base_position")]
    pub fn segment_file_base_position(&self, position: Position) -> Position {
        // In C, numbers of callers that no archive sends would overflow.
        let begin = |position: Position, length: usize| {
            position.wrapping_sub(position & (length as i64).wrapping_sub(1))
        };
        let first = begin(self.start_position, self.term_buffer_length);
        let from_first = position.max(self.start_position).wrapping_sub(first);
        first.wrapping_add(begin(from_first, self.segment_file_length))
    }
}

/// A subscription of an archive, which records a channel and stream.
#[doc(alias = "RecordingSubscriptionDescriptorConsumer")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordingSubscriptionDescriptor {
    /// The id with which
    /// [`stop_recording_subscription`](crate::Archive::stop_recording_subscription) ends the
    /// subscription.
    pub subscription_id: RecordingSubscriptionId,
    /// The stream id.
    pub stream_id: i32,
    /// The channel, reduced to the parameters that distinguish it.
    pub stripped_channel: String,
}

impl RecordingSubscriptionDescriptor {
    /// # Safety
    /// The text of `raw` is as long as it says.
    pub(crate) unsafe fn from_raw(
        raw: &sys::aeron_archive_recording_subscription_descriptor_t,
    ) -> Self {
        Self {
            subscription_id: RecordingSubscriptionId::new(raw.subscription_id),
            stream_id: raw.stream_id,
            // SAFETY: the caller guarantees a text of this length.
            stripped_channel: unsafe { text(raw.stripped_channel, raw.stripped_channel_length) },
        }
    }
}

/// # Safety
/// `start` is null or points to `length` bytes.
unsafe fn text(start: *const c_char, length: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees `length` bytes at `start`.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Converts milliseconds since 1970, the archive's only unit.
fn time(timestamp: i64) -> SystemTime {
    epoch::time(timestamp).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(start_position: Position) -> RecordingDescriptor {
        RecordingDescriptor {
            recording_id: RecordingId::new(0),
            start_time: SystemTime::UNIX_EPOCH,
            stop_time: None,
            start_position,
            stop_position: None,
            initial_term_id: 7,
            segment_file_length: 128 * 1024,
            term_buffer_length: 64 * 1024,
            mtu_length: 1408,
            session_id: 1,
            stream_id: 2,
            stripped_channel: String::new(),
            original_channel: String::new(),
            source_identity: String::new(),
        }
    }

    #[test]
    fn segments_begin_at_first_term() {
        let base = |start, position| descriptor(start).segment_file_base_position(position);
        assert_eq!(base(0, 0), 0);
        assert_eq!(base(0, 128 * 1024 - 32), 0);
        assert_eq!(base(0, 128 * 1024), 128 * 1024);
        assert_eq!(base(96 * 1024, 128 * 1024), 64 * 1024);
        assert_eq!(base(96 * 1024, 192 * 1024), 192 * 1024);
        assert_eq!(base(96 * 1024, 0), 64 * 1024, "before the recording");
    }

    #[test]
    fn extremes_do_not_overflow() {
        let extremes = [i64::MIN, -1, 0, 1, i64::MAX];
        for start in extremes {
            for position in extremes {
                for length in [0, 1, 3, 1 << 31, usize::MAX] {
                    let mut descriptor = descriptor(start);
                    descriptor.term_buffer_length = length;
                    descriptor.segment_file_length = length;
                    descriptor.segment_file_base_position(position);
                    descriptor.stop_position = Some(position);
                    descriptor.initial_term_id = i32::MAX;
                    // A channel, or an error.
                    let _ = descriptor.continuation("aeron:ipc");
                }
            }
        }
    }

    #[test]
    fn continuation_at_stop_position() {
        let mut descriptor = descriptor(0);
        assert_eq!(descriptor.continuation("aeron:ipc").expect("a channel"), None);
        descriptor.stop_position = Some(3 * 64 * 1024 + 96);
        let channel = descriptor.continuation("aeron:ipc").expect("a channel").expect("an end");
        let text = channel.to_string();
        for parameter in ["init-term-id=7", "term-id=10", "term-offset=96", "term-length=64k"] {
            assert!(text.contains(parameter), "{parameter} in {text}");
        }
        descriptor.continuation("nonsense").expect_err("no channel");
        let last = (64 * 1024) << 31;
        descriptor.stop_position = Some(last);
        let error = descriptor.continuation("aeron:ipc").expect_err("no position is left");
        assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition);
        assert!(error.message().contains(&last.to_string()), "{error}");
        descriptor.stop_position = Some(last - 32);
        descriptor.continuation("aeron:ipc").expect("a channel").expect("an end");
    }
}
