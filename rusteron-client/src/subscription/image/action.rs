//! Actions of controlled polls.

/// The action that a handler of a controlled poll requests for the stream's position, after a
/// message or fragment.
///
/// Corresponds to `aeron_controlled_fragment_handler_action_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// End the poll of this image. The current message or fragment counts as not received and comes
    /// again.
    Abort,
    /// End the poll of this image after the current message or fragment.
    Break,
    /// Move the position past the current message or fragment at once, and continue the poll. The
    /// publisher, and other readers of the position, see the move at once.
    Commit,
    /// Continue the poll. The position moves when the poll ends.
    Continue,
}
