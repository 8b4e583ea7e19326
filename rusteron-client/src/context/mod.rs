//! The settings of a client, and the handlers that it is given before it connects.

pub(crate) mod close_state;
mod context;
mod counter_handlers;
mod events;
mod settings;

pub use context::Context;
pub(crate) use counter_handlers::CounterHandlers;
pub use events::{NewResource, PublicationError};
