//! What can keep the message path from moving on.

use std::fmt;

use rusteron_sys as sys;

use crate::error::{Error, ErrorKind};

/// A position in a stream, in bytes since its beginning, frame headers and padding included.
pub type Position = i64;

/// Why a message was not taken; nothing of it has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OfferError {
    /// No subscriber is connected. One may be on its way.
    NotConnected,
    /// The subscribers, or the flow control on their behalf, are not ready for more.
    BackPressured,
    /// The log buffer was being rotated to its next term. The next attempt will most likely succeed.
    AdminAction,
    /// The publication is closed, or its client is.
    Closed,
    /// The stream has reached the end of its positions, 2³¹ times the term length. A new publication
    /// has to be added; a longer term length makes that rarer.
    MaxPositionExceeded,
    /// The message is longer than the publication's term length allows; or, if it was to be claimed,
    /// longer than a fragment.
    MessageTooLong {
        /// The length of the message in bytes; `usize::MAX` if its parts are longer than can be
        /// counted.
        length: usize,
        /// The longest message that is taken, in bytes: the publication's `max_message_length`, or
        /// its `max_payload_length` for a claim.
        max_message_length: usize,
    },
    /// A claim was held for so long that the media driver has turned its place into padding.
    Unblocked,
    /// A block is not a sequence of frames that fits exactly where the stream has come to.
    InvalidBlock {
        /// Where the frame begins that is wrong, in bytes from the beginning of the block.
        offset: usize,
        /// What is wrong with it.
        fault: BlockFault,
    },
}

/// What is wrong with a frame of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockFault {
    /// The block ends before the frame does, its alignment to 32 bytes included, or before it begins.
    Truncated,
    /// The block is longer than what is left of the publication's current term.
    BeyondTerm,
    /// The frame length is below that of a header, or above that of the publication's fragments.
    FrameLength,
    /// The version of the frame's layout is another than the one this client writes.
    Version,
    /// The frame is neither data nor padding, or it is padding and the first.
    Type,
    /// The term offset is not where the frame would come to lie.
    TermOffset,
    /// The session id is not the publication's.
    SessionId,
    /// The stream id is not the publication's.
    StreamId,
    /// The term id is not that of the publication's current term.
    TermId,
}

impl OfferError {
    /// Whether offering the same message again may succeed without doing anything else first.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::NotConnected | Self::BackPressured | Self::AdminAction | Self::Unblocked
        )
    }

    /// The same error, by a call: otherwise compilers make errors of the message path, in registers that
    /// it needs, before they know that there is one.
    #[cold]
    #[inline(never)]
    pub(crate) fn rare(self) -> Self {
        self
    }

    /// The meaning of what a C function returned for a message of `length` bytes.
    pub(crate) fn from_c(
        returned: i64,
        length: usize,
        max_message_length: usize,
    ) -> Result<Position, Self> {
        const NOT_CONNECTED: i64 = sys::AERON_PUBLICATION_NOT_CONNECTED as i64;
        const BACK_PRESSURED: i64 = sys::AERON_PUBLICATION_BACK_PRESSURED as i64;
        const ADMIN_ACTION: i64 = sys::AERON_PUBLICATION_ADMIN_ACTION as i64;
        const CLOSED: i64 = sys::AERON_PUBLICATION_CLOSED as i64;
        const MAX_POSITION_EXCEEDED: i64 = sys::AERON_PUBLICATION_MAX_POSITION_EXCEEDED as i64;
        match returned {
            0.. => Ok(returned),
            NOT_CONNECTED => Err(Self::NotConnected),
            BACK_PRESSURED => Err(Self::BackPressured),
            ADMIN_ACTION => Err(Self::AdminAction),
            CLOSED => Err(Self::Closed),
            MAX_POSITION_EXCEEDED => Err(Self::MaxPositionExceeded),
            // With arguments that Rust has checked, the length is all that C can object to.
            _ => Err(Self::MessageTooLong { length, max_message_length }),
        }
    }
}

impl fmt::Display for OfferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("no subscriber is connected"),
            Self::BackPressured => f.write_str("back-pressured by the subscribers"),
            Self::AdminAction => f.write_str("the log buffer is being rotated"),
            Self::Closed => f.write_str("the publication is closed, and so is its client"),
            Self::MaxPositionExceeded => f.write_str("the stream has reached its last position"),
            Self::MessageTooLong { length, max_message_length } => write!(
                f,
                "a message of {length} bytes; this publication takes {max_message_length} at most"
            ),
            Self::Unblocked => f.write_str("the media driver has given up waiting for the claim"),
            Self::InvalidBlock { offset, fault } => {
                write!(f, "the frame at offset {offset} of the block: {fault}")
            }
        }
    }
}

impl std::error::Error for OfferError {}

/// Allocates, so that it is for the way out of a loop.
impl From<OfferError> for Error {
    fn from(error: OfferError) -> Self {
        let kind = match error {
            OfferError::Closed => ErrorKind::ClientClosed,
            OfferError::MessageTooLong { .. } | OfferError::InvalidBlock { .. } => {
                ErrorKind::InvalidArgument
            }
            _ => ErrorKind::Other,
        };
        Self::new(kind, error.to_string())
    }
}

impl fmt::Display for BlockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "it is not whole",
            Self::BeyondTerm => "the block does not fit into the term",
            Self::FrameLength => "its length is out of range",
            Self::Version => "it is of another version",
            Self::Type => "it is of another type than allowed here",
            Self::TermOffset => "it is of another term offset",
            Self::SessionId => "it is of another session",
            Self::StreamId => "it is of another stream",
            Self::TermId => "it is of another term",
        })
    }
}

/// Why a poll could not look for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PollError {
    /// The subscription's client was closed by a fatal error, such as a media driver that died.
    Closed,
}

impl fmt::Display for PollError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the subscription is closed, and so is its client"),
        }
    }
}

impl std::error::Error for PollError {}

/// Allocates, so that it is for the way out of a loop.
impl From<PollError> for Error {
    fn from(error: PollError) -> Self {
        Self::new(ErrorKind::ClientClosed, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_message_path_become_others_with_their_words() {
        let cases = [
            (OfferError::Closed, ErrorKind::ClientClosed),
            (
                OfferError::MessageTooLong { length: 9, max_message_length: 8 },
                ErrorKind::InvalidArgument,
            ),
            (OfferError::BackPressured, ErrorKind::Other),
        ];
        for (offer_error, kind) in cases {
            let error = Error::from(offer_error);
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains(&offer_error.to_string()), "{error}");
        }
        assert_eq!(Error::from(PollError::Closed).kind(), ErrorKind::ClientClosed);
    }
}
