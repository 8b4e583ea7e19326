//! The state of a channel's endpoint.

/// The state of the socket behind a channel, or of what stands in for one.
///
/// Corresponds to the values of `aeron_subscription_channel_status` and its relatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelStatus {
    /// It is being set up.
    Initializing,
    /// It could not be set up, or has failed; or there is none, or it is not known any more because
    /// the client is closed.
    Errored,
    /// It works.
    Active,
    /// It is being closed.
    Closing,
    /// A value that this version does not know.
    Unknown(i64),
}

impl ChannelStatus {
    pub(crate) fn from_c(status: i64) -> Self {
        match status {
            0 => Self::Initializing,
            -1 => Self::Errored,
            1 => Self::Active,
            2 => Self::Closing,
            other => Self::Unknown(other),
        }
    }
}
