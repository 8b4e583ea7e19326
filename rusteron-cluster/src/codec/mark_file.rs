//! The header of a mark file: a file in which a component of a cluster shows tools its life and
//! settings.
//!
//! SBE, schema 110, written as version 2. Corresponds to
//! `io.aeron.cluster.service.ClusterMarkFile`.

use std::fmt;

use crate::codec::MessageHeader;
use crate::codec::fields::{Reader, Writer};

/// Length of the header in bytes. The error log follows.
pub const HEADER_LENGTH: usize = 8 * 1024;
/// The version of a component that has started: 0.3.0.
pub const VERSION: i32 = 3 << 8;
/// The version of a component that could not start.
pub const VERSION_FAILED: i32 = -1;
/// The activity timestamp of a component that has ended.
pub const ENDED: i64 = -1;
/// The activity timestamp of a component that is starting.
pub const STARTING: i64 = i64::MAX;
/// The shortest and the longest error log, in bytes.
pub const ERROR_BUFFER_LENGTHS: std::ops::RangeInclusive<usize> =
    1024 * 1024..=i32::MAX as usize - HEADER_LENGTH;

// Offsets in the file of the fields that change.
pub(crate) const VERSION_OFFSET: usize = MessageHeader::LENGTH;
pub(crate) const ACTIVITY_OFFSET: usize = MessageHeader::LENGTH + 8;
pub(crate) const START_OFFSET: usize = MessageHeader::LENGTH + 16;
pub(crate) const PID_OFFSET: usize = MessageHeader::LENGTH + 24;
pub(crate) const MEMBER_ID_OFFSET: usize = MessageHeader::LENGTH + 56;

const HEADER: MessageHeader =
    MessageHeader { block_length: 128, template_id: 200, schema_id: 110, version: 2 };
/// Length of the fields in bytes. The rest of the block is unused.
const FIELDS_LENGTH: usize = 76;

/// The component that owns a mark file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentType {
    /// No component has written its type.
    Unknown,
    /// The consensus module.
    ConsensusModule,
    /// A container of a service.
    Container,
    /// A backup of a cluster.
    Backup,
    /// A standby node.
    Standby,
}

/// The header of a mark file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkFileHeader {
    /// Version of the layout, as `major << 16 | minor << 8 | patch`. It is 0 before the first start,
    /// and [`VERSION_FAILED`] after a failed one.
    pub version: i32,
    /// The component that owns the file.
    pub component_type: ComponentType,
    /// The last sign of life in milliseconds since 1970, [`ENDED`] or [`STARTING`].
    pub activity_timestamp: i64,
    /// The start in milliseconds since 1970.
    pub start_timestamp: i64,
    /// The process.
    pub pid: i64,
    /// The term for which a consensus module stands or votes; -1 without an election.
    pub candidate_term_id: i64,
    /// The stream of requests to the archive.
    pub archive_stream_id: i32,
    /// The stream from the consensus module to the services.
    pub service_stream_id: i32,
    /// The stream from the services to the consensus module.
    pub consensus_module_stream_id: i32,
    /// The stream from the clients. -1 for containers.
    pub ingress_stream_id: i32,
    /// The member. -1 for containers before they join a log.
    pub member_id: i32,
    /// The service. -1 for consensus modules.
    pub service_id: i32,
    /// Length of the header in bytes.
    pub header_length: i32,
    /// Length of the error log in bytes.
    pub error_buffer_length: i32,
    /// The cluster.
    pub cluster_id: i32,
    /// The directory of the media driver.
    pub aeron_dir: String,
    /// The channel between the consensus module and the services.
    pub control_channel: String,
    /// The channel from the clients.
    pub ingress_channel: String,
    /// The name of the service.
    pub service_name: String,
    /// The name of the authenticator.
    pub authenticator: String,
    /// The directory of the services' mark files, if it is another one.
    pub services_cluster_dir: String,
}

/// The reason why bytes are not the header of a mark file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkFileError {
    /// The file ends within the header.
    Truncated {
        /// Length of the file in bytes, or of the part that was read.
        length: usize,
    },
    /// The file is no mark file, or of a release before 1.48.
    OtherSchema {
        /// The schema that the file names.
        schema_id: u16,
        /// The message that the file names.
        template_id: u16,
    },
    /// The major version of the layout is unknown.
    Version(
        /// The version, as in [`MarkFileHeader::version`].
        i32,
    ),
    /// The type of the component is unknown.
    ComponentType(
        /// The code of the type.
        i32,
    ),
}

impl fmt::Display for MarkFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { length } => {
                write!(f, "not a whole mark file: it ends within the header, after {length} bytes")
            }
            Self::OtherSchema { schema_id, template_id } => write!(
                f,
                "not a mark file of Aeron 1.48 or later: schema {schema_id}, message {template_id} \
                 instead of schema {}, message {}",
                HEADER.schema_id, HEADER.template_id
            ),
            Self::Version(version) => {
                let [_, major, minor, patch] = version.to_be_bytes();
                write!(
                    f,
                    "mark file of version {major}.{minor}.{patch}: only versions 0.x are known"
                )
            }
            Self::ComponentType(code) => {
                write!(f, "mark file of an unknown component: type {code}")
            }
        }
    }
}

impl std::error::Error for MarkFileError {}

impl ComponentType {
    fn from_code(code: i32) -> Result<Self, MarkFileError> {
        Ok(match code {
            0 => Self::Unknown,
            1 => Self::ConsensusModule,
            2 => Self::Container,
            3 => Self::Backup,
            4 => Self::Standby,
            _ => return Err(MarkFileError::ComponentType(code)),
        })
    }

    fn code(self) -> i32 {
        match self {
            Self::Unknown => 0,
            Self::ConsensusModule => 1,
            Self::Container => 2,
            Self::Backup => 3,
            Self::Standby => 4,
        }
    }
}

impl MarkFileHeader {
    /// Reads the header from the first [`HEADER_LENGTH`] bytes of a file. Texts that are not UTF-8
    /// get replacements.
    ///
    /// # Errors
    /// [`MarkFileError`] for everything but a mark file of Aeron 1.48 or later.
    pub fn decode(bytes: &[u8]) -> Result<Self, MarkFileError> {
        let truncated = MarkFileError::Truncated { length: bytes.len() };
        let (header, body) = MessageHeader::split(bytes).ok_or(truncated)?;
        let MessageHeader { schema_id, template_id, block_length, .. } = header;
        if (schema_id, template_id) != (HEADER.schema_id, HEADER.template_id) {
            return Err(MarkFileError::OtherSchema { schema_id, template_id });
        }
        if usize::from(block_length) < FIELDS_LENGTH {
            return Err(truncated);
        }
        let mut reader = Reader::new(header, body).ok_or(truncated)?;
        let version = reader.i32(0, 0);
        if version != VERSION_FAILED && version >> 16 != 0 {
            return Err(MarkFileError::Version(version));
        }
        let component_type = ComponentType::from_code(reader.i32(0, 0))?;
        let mut number = || reader.i64(ENDED, 0);
        let (activity_timestamp, start_timestamp) = (number(), number());
        let (pid, candidate_term_id) = (number(), number());
        let mut number = || reader.i32(-1, 0);
        let archive_stream_id = number();
        let service_stream_id = number();
        let consensus_module_stream_id = number();
        let ingress_stream_id = number();
        let (member_id, service_id) = (number(), number());
        let (header_length, error_buffer_length) = (number(), number());
        let cluster_id = number();
        let mut text = |since| {
            let bytes = reader.data(since).ok_or(truncated)?;
            Ok(String::from_utf8_lossy(bytes).into_owned())
        };
        Ok(Self {
            version,
            component_type,
            activity_timestamp,
            start_timestamp,
            pid,
            candidate_term_id,
            archive_stream_id,
            service_stream_id,
            consensus_module_stream_id,
            ingress_stream_id,
            member_id,
            service_id,
            header_length,
            error_buffer_length,
            cluster_id,
            aeron_dir: text(0)?,
            control_channel: text(0)?,
            ingress_channel: text(0)?,
            service_name: text(0)?,
            authenticator: text(0)?,
            services_cluster_dir: text(1)?,
        })
    }

    /// Returns the [`HEADER_LENGTH`] bytes of the header. `None` if the texts are too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; HEADER_LENGTH];
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(&HEADER.to_bytes())?;
        writer.i32(self.version)?;
        writer.i32(self.component_type.code())?;
        writer.i64(self.activity_timestamp)?;
        writer.i64(self.start_timestamp)?;
        writer.i64(self.pid)?;
        writer.i64(self.candidate_term_id)?;
        writer.i32(self.archive_stream_id)?;
        writer.i32(self.service_stream_id)?;
        writer.i32(self.consensus_module_stream_id)?;
        writer.i32(self.ingress_stream_id)?;
        writer.i32(self.member_id)?;
        writer.i32(self.service_id)?;
        writer.i32(self.header_length)?;
        writer.i32(self.error_buffer_length)?;
        writer.i32(self.cluster_id)?;
        writer.bytes(&[0; HEADER.block_length as usize - FIELDS_LENGTH])?;
        writer.data(self.aeron_dir.as_bytes())?;
        writer.data(self.control_channel.as_bytes())?;
        writer.data(self.ingress_channel.as_bytes())?;
        writer.data(self.service_name.as_bytes())?;
        writer.data(self.authenticator.as_bytes())?;
        writer.data(self.services_cluster_dir.as_bytes())?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> MarkFileHeader {
        MarkFileHeader {
            version: VERSION,
            component_type: ComponentType::Container,
            activity_timestamp: 1,
            start_timestamp: 2,
            pid: 3,
            candidate_term_id: 4,
            archive_stream_id: 5,
            service_stream_id: 6,
            consensus_module_stream_id: 7,
            ingress_stream_id: 8,
            member_id: 9,
            service_id: 10,
            header_length: 11,
            error_buffer_length: 12,
            cluster_id: 13,
            aeron_dir: "/dev/shm/aeron".to_owned(),
            control_channel: "aeron:ipc".to_owned(),
            ingress_channel: String::new(),
            service_name: "orders".to_owned(),
            authenticator: "none".to_owned(),
            services_cluster_dir: "elsewhere".to_owned(),
        }
    }

    #[test]
    fn decoded_header_is_the_encoded_one() {
        let mut bytes = header().encode().expect("short texts");
        assert_eq!(MarkFileHeader::decode(&bytes), Ok(header()));
        let number = |offset| bytes[offset];
        let offsets =
            [VERSION_OFFSET + 1, ACTIVITY_OFFSET, START_OFFSET, PID_OFFSET, MEMBER_ID_OFFSET];
        assert_eq!(offsets.map(number), [3, 1, 2, 3, 9]);
        // Version 0 of the schema has no directory of services.
        bytes[6] = 0;
        let old = MarkFileHeader { services_cluster_dir: String::new(), ..header() };
        assert_eq!(MarkFileHeader::decode(&bytes), Ok(old));
        let long = MarkFileHeader { service_name: "x".repeat(HEADER_LENGTH), ..header() };
        assert_eq!(long.encode(), None);
    }

    #[test]
    fn hostile_header_is_refused() {
        let bytes = header().encode().expect("short texts");
        let texts = ["/dev/shm/aeron", "aeron:ipc", "", "orders", "none", "elsewhere"];
        let length = 8 + 128 + texts.map(|text| 4 + text.len()).iter().sum::<usize>();
        for length in 0..length {
            let error = MarkFileHeader::decode(&bytes[..length]);
            assert_eq!(error, Err(MarkFileError::Truncated { length }));
        }
        assert!(MarkFileHeader::decode(&bytes[..length]).is_ok());
        let patched = |offset: usize, patch: &[u8]| {
            let mut bytes = bytes.clone();
            bytes[offset..][..patch.len()].copy_from_slice(patch);
            MarkFileHeader::decode(&bytes).expect_err("refused")
        };
        let other = MarkFileError::OtherSchema { schema_id: 111, template_id: 200 };
        assert_eq!(patched(4, &[111]), other);
        assert_eq!(patched(10, &[1]), MarkFileError::Version(1 << 16 | VERSION));
        assert_eq!(patched(12, &[77]), MarkFileError::ComponentType(77));
        let truncated = MarkFileError::Truncated { length: HEADER_LENGTH };
        assert_eq!(patched(0, &[75, 0]), truncated);
        assert_eq!(patched(0, &[255, 255]), truncated);
        assert_eq!(patched(136, &[255; 4]), truncated);
        let zeros = MarkFileError::OtherSchema { schema_id: 0, template_id: 0 };
        assert_eq!(MarkFileHeader::decode(&[0; HEADER_LENGTH]), Err(zeros));
    }
}
