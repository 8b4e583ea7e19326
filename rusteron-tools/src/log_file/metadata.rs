//! The metadata at the end of a log buffer.

use std::fmt;

use serde::Serialize;

use super::Fields;
use super::frame::Flags;

/// Number of terms in a log buffer.
pub(crate) const PARTITION_COUNT: usize = 3;
pub(super) const METADATA_LENGTH: u64 = 4096;
const TERM_LENGTHS: std::ops::RangeInclusive<i32> = 64 * 1024..=1024 * 1024 * 1024;
const PAGE_SIZES: std::ops::RangeInclusive<i32> = 4 * 1024..=1024 * 1024 * 1024;

/// The metadata of a log buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Metadata {
    pub(crate) kind: LogKind,
    pub(crate) registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) initial_term_id: i32,
    pub(crate) active_term_count: i32,
    pub(crate) term_length: i32,
    pub(crate) page_size: i32,
    pub(crate) mtu_length: i32,
    pub(crate) is_connected: bool,
    pub(crate) active_transport_count: i32,
    /// `None` until the stream ends.
    pub(crate) end_of_stream_position: Option<i64>,
    pub(crate) is_publication_revoked: bool,
    pub(crate) publication_window_length: i32,
    pub(crate) receiver_window_length: i32,
    pub(crate) max_resend: i32,
    pub(crate) entity_tag: i64,
    pub(crate) response_correlation_id: i64,
    pub(crate) linger_timeout_ns: i64,
    pub(crate) untethered_window_limit_timeout_ns: i64,
    pub(crate) untethered_linger_timeout_ns: i64,
    pub(crate) untethered_resting_timeout_ns: i64,
    pub(crate) group: bool,
    pub(crate) is_response: bool,
    pub(crate) rejoin: bool,
    pub(crate) reliable: bool,
    pub(crate) sparse: bool,
    pub(crate) signal_eos: bool,
    pub(crate) spies_simulate_connection: bool,
    pub(crate) tether: bool,
    pub(crate) default_header: DefaultHeader,
    pub(crate) tails: [Tail; PARTITION_COUNT],
}

/// The owner of a log buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogKind {
    ConcurrentPublication,
    ExclusivePublication,
    Image,
    Unknown,
}

/// The header that publishers start their frames from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DefaultHeader {
    pub(crate) length: i32,
    pub(crate) version: u8,
    pub(crate) flags: Flags,
    #[serde(rename = "type")]
    pub(crate) frame_type: u16,
    pub(crate) term_id: i32,
    pub(crate) reserved_value: i64,
}

/// The end of the written part of a term. In the file of an image, the initial value stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Tail {
    pub(crate) term_id: i32,
    /// Beyond the end of the term after a publisher has found the term full.
    pub(crate) term_offset: u32,
    pub(crate) position: i64,
}

impl Metadata {
    pub(super) fn parse(bytes: &[u8; METADATA_LENGTH as usize]) -> Self {
        let fields = Fields(bytes);
        let flag = |offset| fields.u8(offset) != 0;
        let header = Fields(&bytes[320..]);
        let end_of_stream_position = fields.i64(128);
        let mut metadata = Self {
            kind: match fields.u8(497) {
                0 => LogKind::ConcurrentPublication,
                1 => LogKind::ExclusivePublication,
                2 => LogKind::Image,
                _ => LogKind::Unknown,
            },
            registration_id: fields.i64(256),
            session_id: header.i32(12),
            stream_id: header.i32(16),
            initial_term_id: fields.i32(264),
            active_term_count: fields.i32(24),
            term_length: fields.i32(276),
            page_size: fields.i32(280),
            mtu_length: fields.i32(272),
            is_connected: fields.i32(136) != 0,
            active_transport_count: fields.i32(140),
            end_of_stream_position: Some(end_of_stream_position).filter(|&end| end != i64::MAX),
            is_publication_revoked: flag(496),
            publication_window_length: fields.i32(284),
            receiver_window_length: fields.i32(288),
            max_resend: fields.i32(316),
            entity_tag: fields.i64(448),
            response_correlation_id: fields.i64(456),
            linger_timeout_ns: fields.i64(464),
            untethered_window_limit_timeout_ns: fields.i64(472),
            untethered_linger_timeout_ns: fields.i64(500),
            untethered_resting_timeout_ns: fields.i64(480),
            group: flag(488),
            is_response: flag(489),
            rejoin: flag(490),
            reliable: flag(491),
            sparse: flag(492),
            signal_eos: flag(493),
            spies_simulate_connection: flag(494),
            tether: flag(495),
            default_header: DefaultHeader {
                length: fields.i32(268),
                version: header.u8(4),
                flags: Flags(header.u8(5)),
                frame_type: header.u16(6),
                term_id: header.i32(20),
                reserved_value: header.i64(24),
            },
            tails: [Tail { term_id: 0, term_offset: 0, position: 0 }; PARTITION_COUNT],
        };
        metadata.tails = [0, 8, 16].map(|offset| metadata.tail(fields.i64(offset)));
        metadata
    }

    /// Checks that a file of a length can have this metadata at its end. If not, returns the reason.
    pub(super) fn check(&self, file_length: u64) -> Result<(), String> {
        let power_of_two = |number: i32| number > 0 && number.unsigned_abs().is_power_of_two();
        let (term_length, page_size) = (self.term_length, self.page_size);
        if !TERM_LENGTHS.contains(&term_length) || !power_of_two(term_length) {
            return Err(format!("a term length of {term_length}"));
        }
        if !PAGE_SIZES.contains(&page_size) || !power_of_two(page_size) {
            return Err(format!("a page size of {page_size}"));
        }
        let terms = PARTITION_COUNT as u64 * u64::from(term_length.unsigned_abs());
        let length = (terms + METADATA_LENGTH).next_multiple_of(page_size.unsigned_abs().into());
        if file_length == length {
            return Ok(());
        }
        let of = format!("for terms of {term_length} bytes and pages of {page_size}");
        Err(format!("{file_length} bytes instead of {length} {of}"))
    }

    fn tail(&self, raw: i64) -> Tail {
        let (term_id, term_offset) = ((raw >> 32) as i32, raw as u32);
        let within = i64::from(term_offset).min(self.term_length.into());
        Tail { term_id, term_offset, position: self.position(term_id, within) }
    }

    /// The position of an offset in the term with an id. Term ids wrap around.
    pub(super) fn position(&self, term_id: i32, term_offset: i64) -> i64 {
        let term_count = i64::from(term_id.wrapping_sub(self.initial_term_id));
        term_count * i64::from(self.term_length) + term_offset
    }
}

impl fmt::Display for LogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ConcurrentPublication => "publication",
            Self::ExclusivePublication => "exclusive publication",
            Self::Image => "image",
            Self::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_file::tests::{Builder, TERM_LENGTH};

    #[test]
    fn metadata_is_parsed() {
        let log = Builder::new().open();
        let metadata = log.metadata;
        assert_eq!(metadata.kind, LogKind::ExclusivePublication);
        assert_eq!((metadata.registration_id, metadata.mtu_length), (42, 1408));
        assert_eq!((metadata.session_id, metadata.stream_id), (-7, 1001));
        assert_eq!((metadata.is_connected, metadata.end_of_stream_position), (true, None));
        let term_length = TERM_LENGTH as i64;
        let expected = [
            Tail { term_id: i32::MAX, term_offset: 70_000, position: term_length },
            Tail { term_id: i32::MIN, term_offset: 96, position: term_length + 96 },
        ];
        assert_eq!(metadata.tails[..2], expected);
    }
}
