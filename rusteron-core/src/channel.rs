//! Channels: their URIs and the state of their sockets.

mod status;
mod streams;
mod uri;

pub use status::{ChannelStatus, local_addresses};
pub use streams::{ChosenStream, clashes};
pub use uri::{
    AsChannel, ChannelText, ChannelUri, ChannelUriBuilder, ChannelUriError, ChannelUriErrorKind,
    ChannelUse, CongestionControl, ControlMode, FlowControl, Group, Media, Parameter,
    ResponseCorrelationId, SessionId, TimestampOffset, UncheckedChannel, is_safe_for_c,
};
