//! Kinds of answers.

/// What an answer to a request is: the field `code` of a `ControlResponse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseCode {
    /// The request has been carried out.
    Ok = 0,
    /// The request is refused, or what it began has ended.
    Error = 1,
    /// No recording has this id, or there are no more.
    RecordingUnknown = 2,
    /// There are no more subscriptions.
    SubscriptionUnknown = 3,
}
