//! A frame.

use std::fmt;

use serde::Serialize;

/// The length of a frame's header, and the alignment of all frames.
pub(crate) const HEADER_LENGTH: u64 = 32;

/// The flags of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub(crate) struct Flags(pub(crate) u8);

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Frame {
    /// The index of the term in the file.
    pub(crate) partition: usize,
    /// Start of the frame in its term.
    pub(crate) offset: u64,
    /// Start of the frame in its stream, according to the term id in the header.
    pub(crate) position: i64,
    /// Includes the header.
    pub(crate) length: u32,
    /// `true` if the publisher has committed the frame.
    pub(crate) committed: bool,
    pub(crate) version: u8,
    pub(crate) flags: Flags,
    #[serde(rename = "type")]
    pub(crate) frame_type: FrameType,
    /// Offset in the header. Equal to `offset` in an intact frame.
    pub(crate) term_offset: i32,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) term_id: i32,
    pub(crate) reserved_value: i64,
    /// Payload up to the limit. Empty for padding.
    #[serde(skip)]
    pub(crate) payload: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FrameType {
    Padding,
    Data,
    #[serde(untagged)]
    Other(u16),
}

/// The names of the flags that are set, joined, and the number of those without a name.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u8, &str); 4] =
            [(0x80, "begin"), (0x40, "end"), (0x20, "eos"), (0x10, "revoked")];
        let mut rest = self.0;
        let mut separator = "";
        for (flag, name) in NAMES {
            if rest & flag != 0 {
                write!(f, "{separator}{name}")?;
                separator = "+";
                rest &= !flag;
            }
        }
        if rest != 0 || self.0 == 0 {
            write!(f, "{separator}{rest:#04x}")?;
        }
        Ok(())
    }
}

impl From<Flags> for String {
    fn from(flags: Flags) -> Self {
        flags.to_string()
    }
}

impl From<u16> for FrameType {
    fn from(number: u16) -> Self {
        match number {
            0 => Self::Padding,
            1 => Self::Data,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Padding => f.write_str("padding"),
            Self::Data => f.write_str("data"),
            Self::Other(number) => write!(f, "type {number:#06x}"),
        }
    }
}
