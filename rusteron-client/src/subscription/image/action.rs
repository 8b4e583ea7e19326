//! What a controlled poll does next.

/// What a handler of a controlled poll wants to be done with the stream's position after a message
/// or fragment.
///
/// Corresponds to `aeron_controlled_fragment_handler_action_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// End the poll of this image; what was just given counts as not received and comes again.
    Abort,
    /// End the poll of this image, after what was just given.
    Break,
    /// Move the position past what was just given now, before the poll goes on, so that the
    /// publisher, and others who read the position, know at once.
    Commit,
    /// Go on; the position moves when the poll ends.
    Continue,
}
