//! Errors of the message path.

use std::fmt;

use crate::error::{CloseCause, Error, ErrorKind};

/// A position in a stream: bytes since the beginning of the stream, frame headers and padding
/// included.
pub type Position = i64;

/// The reason why a message was rejected. Nothing of the message has been sent.
///
/// ```
/// use rusteron_client::{OfferError, Publication};
///
/// /// Returns whether the message was sent.
/// fn try_send(publication: &Publication, message: &[u8]) -> Result<bool, OfferError> {
///     match publication.offer(message) {
///         Ok(_position) => Ok(true),
///         Err(OfferError::NotConnected) => Ok(false), // no subscriber yet: drop the message
///         Err(error) if error.is_retryable() => Ok(false), // call again
///         Err(error) => Err(error), // closed, too long, …
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OfferError {
    /// No subscriber is connected. A subscriber may be about to connect.
    #[doc(alias = "AERON_PUBLICATION_NOT_CONNECTED")]
    NotConnected,
    /// Back pressure: the subscribers, or the flow control on their behalf, are not ready for more.
    #[doc(alias = "AERON_PUBLICATION_BACK_PRESSURED")]
    BackPressured,
    /// The log buffer is being rotated to its next term. The next attempt will most likely succeed.
    #[doc(alias = "AERON_PUBLICATION_ADMIN_ACTION")]
    AdminAction,
    /// The publication is closed, or its client is closed.
    #[doc(alias = "AERON_PUBLICATION_CLOSED")]
    Closed(CloseCause),
    /// The stream has reached its maximum position, 2³¹ times the term length. Add a new
    /// publication. With a longer term length, this happens more rarely.
    #[doc(alias = "AERON_PUBLICATION_MAX_POSITION_EXCEEDED")]
    MaxPositionExceeded,
    /// The log buffer's metadata has a tail that neither the media driver nor a publisher writes:
    /// another process of the driver's directory has overwritten it. Add a new publication, on
    /// another stream or with another session id.
    CorruptLogBuffer,
    /// The message is longer than the publication's term length allows. A claim must not be longer
    /// than a fragment, either.
    MessageTooLong {
        /// The length of the message in bytes. It is `usize::MAX` if the sum of the parts' lengths
        /// overflows.
        length: usize,
        /// The length of the longest message that is accepted, in bytes: the publication's
        /// `max_message_length`, or its `max_payload_length` for a claim.
        max_message_length: usize,
    },
    /// A claim was held for so long that the media driver has unblocked it: the claimed range is
    /// padding.
    Unblocked,
    /// A block is not a sequence of frames that fits exactly at the stream's current position.
    InvalidBlock {
        /// The offset of the faulty frame, in bytes from the beginning of the block.
        offset: usize,
        /// The fault of the frame.
        fault: BlockFault,
    },
}

/// The fault of a frame in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockFault {
    /// The block ends before the frame begins, or before the end of the frame aligned to 32 bytes.
    Truncated,
    /// The block is longer than the remaining part of the publication's current term.
    BeyondTerm,
    /// The frame length, given here, is less than a header, or more than a fragment of the
    /// publication.
    FrameLength(i32),
    /// The frame has this version of the frame layout, which is not the one that this client
    /// writes.
    Version(u8),
    /// The frame is neither data nor padding, or the first frame is padding. This is its type.
    Type(u16),
    /// The term offset is not the offset at which the frame would be written.
    TermOffset(Mismatch),
    /// The session id is not the session id of the publication.
    SessionId(Mismatch),
    /// The stream id is not the stream id of the publication.
    StreamId(Mismatch),
    /// The term id is not the id of the publication's current term.
    TermId(Mismatch),
}

/// A field of a frame's header that does not have the value it must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mismatch {
    /// The value in the header.
    pub found: i32,
    /// The value that the publication's next frame must have.
    pub expected: i32,
}

impl OfferError {
    /// Returns whether a second offer of the same message may succeed without any other action
    /// first.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::NotConnected | Self::BackPressured | Self::AdminAction | Self::Unblocked
        )
    }

    /// Returns the same error from an outlined call. Without this call, compilers build errors of
    /// the message path before an error has occurred. That uses registers which the message path
    /// needs.
    #[cold]
    #[inline(never)]
    pub fn rare(self) -> Self {
        self
    }
}

impl fmt::Display for OfferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => f.write_str("no subscriber is connected"),
            Self::BackPressured => f.write_str("back-pressured by the subscribers"),
            Self::AdminAction => f.write_str("the log buffer is being rotated"),
            Self::Closed(cause) => write!(f, "the publication is closed: {}", cause.with_advice()),
            Self::MaxPositionExceeded => f.write_str("the stream has reached its last position"),
            Self::CorruptLogBuffer => {
                f.write_str("another process has overwritten the log buffer's tail")
            }
            Self::MessageTooLong { length, max_message_length } => write!(
                f,
                "a message of {length} bytes; this call takes {max_message_length} at most; offer takes \
                 an eighth of term-length, up to 16 MiB"
            ),
            Self::Unblocked => f.write_str("the media driver has unblocked the claim"),
            Self::InvalidBlock { offset, fault } => {
                write!(f, "the frame at offset {offset} of the block: {fault}")
            }
        }
    }
}

crate::debug_as_display!(OfferError, PollError);

impl std::error::Error for OfferError {}

/// Allocates, so use this conversion only to leave a loop.
impl From<OfferError> for Error {
    fn from(error: OfferError) -> Self {
        let kind = match error {
            OfferError::NotConnected => ErrorKind::NotConnected,
            OfferError::BackPressured => ErrorKind::BackPressured,
            OfferError::AdminAction => ErrorKind::AdminAction,
            OfferError::Unblocked => ErrorKind::Unblocked,
            OfferError::MaxPositionExceeded => ErrorKind::MaxPositionExceeded,
            OfferError::CorruptLogBuffer => ErrorKind::CorruptLogBuffer,
            OfferError::Closed(cause) => return Self::closed(cause, error.to_string()),
            OfferError::MessageTooLong { .. } | OfferError::InvalidBlock { .. } => {
                ErrorKind::InvalidArgument
            }
        };
        Self::new(kind, error.to_string())
    }
}

impl fmt::Display for BlockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, Mismatch { found, expected }) = match *self {
            Self::Truncated => return f.write_str("the block ends within it"),
            Self::BeyondTerm => return f.write_str("the block does not fit into the term"),
            Self::FrameLength(length) => return write!(f, "frame length {length} is out of range"),
            Self::Version(found) => return write!(f, "frame version {found} is unknown"),
            Self::Type(found) => return write!(f, "frame type {found} is not allowed here"),
            Self::TermOffset(it) => ("term offset", it),
            Self::SessionId(it) => ("session id", it),
            Self::StreamId(it) => ("stream id", it),
            Self::TermId(it) => ("term id", it),
        };
        write!(f, "{field}={found}: must be {expected}")
    }
}

/// The reason why a poll could not look for messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PollError {
    /// A fatal error, such as a dead media driver, has closed the subscription's client.
    Closed(CloseCause),
}

impl fmt::Display for PollError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(cause) => write!(f, "the subscription is closed: {}", cause.with_advice()),
        }
    }
}

impl std::error::Error for PollError {}

/// Allocates, so use this conversion only to leave a loop.
impl From<PollError> for Error {
    fn from(error: PollError) -> Self {
        let PollError::Closed(cause) = error;
        Self::closed(cause, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_path_errors_convert_without_loss() {
        let invalid_block = OfferError::InvalidBlock { offset: 0, fault: BlockFault::Type(5) };
        let cases = [
            (OfferError::NotConnected, ErrorKind::NotConnected),
            (OfferError::BackPressured, ErrorKind::BackPressured),
            (OfferError::AdminAction, ErrorKind::AdminAction),
            (OfferError::Unblocked, ErrorKind::Unblocked),
            (OfferError::MaxPositionExceeded, ErrorKind::MaxPositionExceeded),
            (OfferError::CorruptLogBuffer, ErrorKind::CorruptLogBuffer),
            (OfferError::Closed(CloseCause::DriverShutdown), ErrorKind::ClientClosed),
            (
                OfferError::MessageTooLong { length: 9, max_message_length: 8 },
                ErrorKind::InvalidArgument,
            ),
            (invalid_block, ErrorKind::InvalidArgument),
        ];
        for (offer_error, kind) in cases {
            let error = Error::from(offer_error);
            assert_eq!(error.kind(), kind);
            assert_eq!(error.is_retryable(), offer_error.is_retryable(), "{offer_error:?}");
            assert!(error.is_transient() || !error.is_retryable(), "{offer_error:?}");
            assert!(error.to_string().contains(&offer_error.to_string()), "{error}");
        }
        let fault = BlockFault::TermId(Mismatch { found: 7, expected: 6 });
        assert_eq!(
            OfferError::InvalidBlock { offset: 64, fault }.to_string(),
            "the frame at offset 64 of the block: term id=7: must be 6"
        );
        let closed = Error::from(PollError::Closed(CloseCause::ClientTimeout));
        assert_eq!(closed.kind(), ErrorKind::ClientClosed);
        assert_eq!(closed.close_cause(), Some(CloseCause::ClientTimeout));
    }
}
