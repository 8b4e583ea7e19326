//! The settings of a client, and the handlers that it is given before it connects.

pub(crate) mod close_state;
mod context;
mod events;

pub use context::Context;
pub use events::{NewResource, PublicationError};
