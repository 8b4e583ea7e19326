//! The header of an archive's mark file: SBE, schema 100, written as version 2, format 3.1.0.

use rusteron_core::mark_file::{ENDED, HEADER_LENGTH, STARTING};
use rusteron_core::sbe::{MessageHeader, Reader, Writer};

use crate::mark_file::NOTES;

/// The version of an archive that has started: 3.1.0.
pub(crate) const VERSION: i32 = 3 << 16 | 1 << 8;

const HEADER: MessageHeader =
    MessageHeader { block_length: 128, template_id: 200, schema_id: 100, version: 2 };
/// Length of the block's part that the schema describes, in bytes.
const FIELDS_LENGTH: usize = 64;

/// Offset in the file of the state of the lock's holder. It fits into an `i32`.
pub(super) const HOLDER_STATE_OFFSET: usize = MessageHeader::LENGTH + FIELDS_LENGTH;
/// Length of a boot id in bytes: a UUID as text.
pub(super) const BOOT_ID_LENGTH: usize = 36;
/// Offset in the block of the boot id.
pub(super) const BOOT_ID_OFFSET: usize = FIELDS_LENGTH + 16;
/// Length of what follows the boot id in the block, in bytes.
const RESERVED_LENGTH: usize = HEADER.block_length as usize - BOOT_ID_OFFSET - BOOT_ID_LENGTH;

/// The header of a mark file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The version of the format; 0 before an archive is ready.
    pub(crate) version: i32,
    /// The last sign of life in milliseconds since 1970, or a mark: see `rusteron_core::mark_file`.
    pub(crate) activity_timestamp: i64,
    pub(crate) start_timestamp: i64,
    pub(crate) pid: i64,
    pub(crate) control_stream_id: i32,
    pub(crate) local_control_stream_id: i32,
    pub(crate) events_stream_id: i32,
    pub(crate) header_length: i32,
    pub(crate) error_buffer_length: i32,
    pub(crate) archive_id: i64,
    pub(crate) holder: Holder,
    pub(crate) control_channel: String,
    pub(crate) local_control_channel: String,
    pub(crate) events_channel: String,
    pub(crate) aeron_dir: String,
}

/// The process that holds the lock of the file, in a part of the block that Aeron does not use. Java's archive takes no
/// lock and leaves these bytes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// [`HOLDER_STARTING`] or [`HOLDER_STARTED`].
    pub(crate) state: i64,
    /// The holder's start. If the header has another one, the owner is an archive without a lock.
    pub(crate) start_timestamp: i64,
    /// The operating system's boot, of which the lock is. Zeros if there is no lock.
    pub(crate) boot_id: [u8; BOOT_ID_LENGTH],
}

/// [`Holder::state`] of a process that is starting.
pub(super) const HOLDER_STARTING: i64 = 1;
/// [`Holder::state`] of a process that has started.
pub(super) const HOLDER_STARTED: i64 = 2;

/// Why bytes are not the header of a mark file. It is printed as a part of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Truncated,
    OtherSchema { schema_id: u16, template_id: u16 },
    Version(i32),
}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated => f.write_str(
                "the file ends within the header: delete it if no archive runs in the directory",
            ),
            Self::OtherSchema { schema_id, template_id } => write!(
                f,
                "not the mark file of an archive: schema {schema_id}, message {template_id} instead of \
                 schema {}, message {}: choose another directory",
                HEADER.schema_id, HEADER.template_id
            ),
            Self::Version(version) => {
                let [_, major, minor, patch] = version.to_be_bytes();
                let advice = if *version > VERSION {
                    "use an archive of that version"
                } else {
                    "migrate it with Aeron's ArchiveTool"
                };
                write!(
                    f,
                    "archive of version {major}.{minor}.{patch}, only versions 3.x are known: {advice}"
                )
            }
        }
    }
}

impl Holder {
    /// Returns whether the owner of a file has ended, whose lock is free: whether the owner had the lock.
    pub(super) fn has_ended(&self, header: &Header, boot_id: &[u8; BOOT_ID_LENGTH]) -> bool {
        let is_state = match header.activity_timestamp {
            STARTING => self.state == HOLDER_STARTING,
            // Also after a failed start, which leaves the notes of the owner before.
            ENDED => true,
            _ => self.state == HOLDER_STARTED,
        };
        is_state
            && self.start_timestamp == header.start_timestamp
            && self.boot_id == *boot_id
            && *boot_id != [0; BOOT_ID_LENGTH]
    }
}

impl Header {
    /// Reads the header from the first [`HEADER_LENGTH`] bytes of a file. Texts that are not UTF-8 get replacements.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let truncated = HeaderError::Truncated;
        let (sbe, body) = MessageHeader::split(bytes).ok_or(truncated)?;
        let MessageHeader { schema_id, template_id, block_length, .. } = sbe;
        if (schema_id, template_id) != (HEADER.schema_id, HEADER.template_id) {
            return Err(HeaderError::OtherSchema { schema_id, template_id });
        }
        if block_length < HEADER.block_length {
            return Err(truncated);
        }
        let mut reader = Reader::new(sbe, body).ok_or(truncated)?;
        let version = reader.i32(0, 0);
        if version != 0 && version >> 16 != VERSION >> 16 {
            return Err(HeaderError::Version(version));
        }
        let _padding = reader.i32(0, 0);
        let activity_timestamp = reader.i64(0, 0);
        let start_timestamp = reader.i64(0, 0);
        let pid = reader.i64(0, 0);
        let control_stream_id = reader.i32(0, 0);
        let local_control_stream_id = reader.i32(0, 0);
        let events_stream_id = reader.i32(0, 0);
        let header_length = reader.i32(0, 1);
        let error_buffer_length = reader.i32(0, 1);
        let _padding = reader.i32(0, 0);
        let archive_id = reader.i64(-1, 2);
        let holder = Holder {
            state: reader.i64(0, 0),
            start_timestamp: reader.i64(0, 0),
            boot_id: body
                .get(BOOT_ID_OFFSET..)
                .and_then(|rest| rest.first_chunk().copied())
                .ok_or(truncated)?,
        };
        // The block has been read up to the boot id. Texts follow behind the block, wherever the reader is.
        let mut text = || -> Result<String, HeaderError> {
            let bytes = reader.data(0).ok_or(truncated)?;
            Ok(String::from_utf8_lossy(bytes).into_owned())
        };
        Ok(Self {
            version,
            activity_timestamp,
            start_timestamp,
            pid,
            control_stream_id,
            local_control_stream_id,
            events_stream_id,
            header_length,
            error_buffer_length,
            archive_id,
            holder,
            control_channel: text()?,
            local_control_channel: text()?,
            events_channel: text()?,
            aeron_dir: text()?,
        })
    }

    /// Reads a header without the header of SBE in front of it, as Aeron wrote it before 1.48. Such a file can be of an
    /// archive that is running.
    pub(super) fn decode_headerless(bytes: &[u8]) -> Result<Self, HeaderError> {
        let header = Self::decode(&[&HEADER.to_bytes()[..], bytes].concat())?;
        // Zeros at the start are no version.
        if header.version == 0 { Err(HeaderError::Version(0)) } else { Ok(header) }
    }

    /// Tells whether the texts leave space for [notes](NOTES).
    pub(super) fn has_space_for_notes(&self) -> bool {
        let texts = [
            &self.control_channel,
            &self.local_control_channel,
            &self.events_channel,
            &self.aeron_dir,
        ];
        let length = |text: &&String| size_of::<u32>() + text.len();
        let fixed = MessageHeader::LENGTH + usize::from(HEADER.block_length);
        fixed + texts.iter().map(length).sum::<usize>() <= NOTES.start
    }

    /// Returns the [`HEADER_LENGTH`] bytes of the header. `None` if the texts are too long.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = vec![0; HEADER_LENGTH];
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(&HEADER.to_bytes())?;
        writer.i32(self.version)?;
        writer.i32(0)?;
        writer.i64(self.activity_timestamp)?;
        writer.i64(self.start_timestamp)?;
        writer.i64(self.pid)?;
        writer.i32(self.control_stream_id)?;
        writer.i32(self.local_control_stream_id)?;
        writer.i32(self.events_stream_id)?;
        writer.i32(self.header_length)?;
        writer.i32(self.error_buffer_length)?;
        writer.i32(0)?;
        writer.i64(self.archive_id)?;
        writer.i64(self.holder.state)?;
        writer.i64(self.holder.start_timestamp)?;
        writer.bytes(&self.holder.boot_id)?;
        writer.bytes(&[0; RESERVED_LENGTH])?;
        for text in [
            &self.control_channel,
            &self.local_control_channel,
            &self.events_channel,
            &self.aeron_dir,
        ] {
            writer.data(text.as_bytes())?;
        }
        Some(bytes)
    }
}
