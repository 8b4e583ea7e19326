//! Channels: their URIs and the state of their sockets.

pub(crate) mod status;
pub(crate) mod uri;
