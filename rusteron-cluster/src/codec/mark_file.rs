//! The header of a mark file: a file in which a component of a cluster shows tools its life and
//! settings.
//!
//! SBE, schema 110, written as version 2. Corresponds to
//! `io.aeron.cluster.service.ClusterMarkFile`.

use std::fmt;

#[doc(inline)]
pub use rusteron_core::mark_file::{ENDED, ERROR_BUFFER_LENGTHS, HEADER_LENGTH, STARTING};
use rusteron_core::sbe::{MessageHeader, Reader, Writer};

/// The version of a component that has started: 0.3.0.
pub const VERSION: i32 = 3 << 8;
/// The version of a component that could not start.
pub const VERSION_FAILED: i32 = -1;
/// Offset in the file of the member, which changes.
pub(crate) const MEMBER_ID_OFFSET: usize = MessageHeader::LENGTH + 56;

const HEADER: MessageHeader =
    MessageHeader { block_length: 128, template_id: 200, schema_id: 110, version: 2 };
/// Length of the fields in bytes. The rest of the block is unused.
const FIELDS_LENGTH: usize = 76;

/// The component that owns a mark file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComponentType {
    /// No component has written its type.
    Unknown = 0,
    /// The consensus module.
    ConsensusModule = 1,
    /// A container of a service.
    Container = 2,
    /// A backup of a cluster.
    Backup = 3,
    /// A standby node.
    Standby = 4,
}

/// Makes the structure of the header, with its reader and writer, from the table of its fields: numbers,
/// and texts with the version of the schema that added them. Version and component stand first.
macro_rules! header {
    (
        $(#[$attribute:meta])*
        $header:ident {
            $($(#[$number_doc:meta])* $number:ident: $type:ident;)*
        } + {
            $($(#[$text_doc:meta])* $text:ident, since $since:literal;)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $header {
            /// Version of the layout, as `major << 16 | minor << 8 | patch`. It is 0 before the first
            /// start, and [`VERSION_FAILED`] after a failed one.
            pub version: i32,
            /// The component that owns the file.
            pub component_type: ComponentType,
            $($(#[$number_doc])* pub $number: $type,)*
            $($(#[$text_doc])* pub $text: String,)*
        }

        impl $header {
            fn read(
                version: i32,
                component_type: ComponentType,
                mut reader: Reader<'_>,
            ) -> Option<Self> {
                // No number is absent: the caller has checked the length of the block.
                $(let $number = reader.$type(0, 0);)*
                let mut text =
                    |since| Some(String::from_utf8_lossy(reader.data(since)?).into_owned());
                Some(Self { version, component_type, $($number,)* $($text: text($since)?,)* })
            }

            fn write(&self, mut writer: Writer<'_>) -> Option<()> {
                writer.bytes(&HEADER.to_bytes())?;
                writer.i32(self.version)?;
                writer.i32(self.component_type as i32)?;
                $(writer.$type(self.$number)?;)*
                writer.bytes(&[0; HEADER.block_length as usize - FIELDS_LENGTH])?;
                $(writer.data(self.$text.as_bytes())?;)*
                Some(())
            }
        }
    };
}

header! {
    /// The header of a mark file.
    MarkFileHeader {
        /// The last sign of life in milliseconds since 1970, [`ENDED`] or [`STARTING`].
        activity_timestamp: i64;
        /// The start in milliseconds since 1970.
        start_timestamp: i64;
        /// The process.
        pid: i64;
        /// The term for which a consensus module stands or votes; -1 without an election.
        candidate_term_id: i64;
        /// The stream of requests to the archive.
        archive_stream_id: i32;
        /// The stream from the consensus module to the services.
        service_stream_id: i32;
        /// The stream from the services to the consensus module.
        consensus_module_stream_id: i32;
        /// The stream from the clients. -1 for containers.
        ingress_stream_id: i32;
        /// The member. -1 for containers before they join a log.
        member_id: i32;
        /// The service. -1 for consensus modules.
        service_id: i32;
        /// Length of the header in bytes.
        header_length: i32;
        /// Length of the error log in bytes.
        error_buffer_length: i32;
        /// The cluster.
        cluster_id: i32;
    } + {
        /// The directory of the media driver.
        aeron_dir, since 0;
        /// The channel between the consensus module and the services.
        control_channel, since 0;
        /// The channel from the clients.
        ingress_channel, since 0;
        /// The name of the service.
        service_name, since 0;
        /// The name of the authenticator.
        authenticator, since 0;
        /// The directory of the services' mark files, if it is another one.
        services_cluster_dir, since 1;
    }
}

/// The reason why bytes are not the header of a mark file.
#[derive(Clone, Copy, PartialEq, Eq)]
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

rusteron_core::debug_as_display!(MarkFileError);

impl std::error::Error for MarkFileError {}

impl ComponentType {
    fn from_code(code: i32) -> Result<Self, MarkFileError> {
        [Self::Unknown, Self::ConsensusModule, Self::Container, Self::Backup, Self::Standby]
            .into_iter()
            .find(|component_type| *component_type as i32 == code)
            .ok_or(MarkFileError::ComponentType(code))
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
        Self::read(version, component_type, reader).ok_or(truncated)
    }

    /// Returns the [`HEADER_LENGTH`] bytes of the header. `None` if the texts are too long.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; HEADER_LENGTH];
        self.write(Writer::new(&mut bytes))?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use rusteron_core::mark_file::{ACTIVITY_OFFSET, PID_OFFSET, START_OFFSET, VERSION_OFFSET};

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
