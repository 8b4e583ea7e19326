//! The action that a handler requests for the position.

/// The action that a handler of a controlled poll requests for the stream's position, after a
/// message or fragment.
///
/// ```
/// use rusteron_client::{Action, PollError, Subscription};
///
/// /// Passes on messages until the target is full. The rejected message comes again.
/// fn fill(
///     subscription: &mut Subscription,
///     target: &mut Vec<Vec<u8>>,
/// ) -> Result<usize, PollError> {
///     let handler = |message: &[u8], _: &rusteron_client::Header<'_>| {
///         if target.len() == 100 {
///             return Action::Abort;
///         }
///         target.push(message.to_vec());
///         Action::Continue
///     };
///     subscription.controlled_poll(handler, 10)
/// }
/// ```
///
/// Corresponds to `aeron_controlled_fragment_handler_action_t`.
#[doc(alias("aeron_controlled_fragment_handler_action_t", "ControlledFragmentHandler"))]
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
