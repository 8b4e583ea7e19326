//! The connection to a media driver, and the resources registered with it.

pub(crate) mod background;
mod client;
mod conductor_idle;
pub(crate) mod connect;
pub(crate) mod counter;
pub(crate) mod destination;
pub(crate) mod next_session_id;
pub(crate) mod registration;
pub(crate) mod subscription_callbacks;
mod termination;
pub(crate) mod wait;

pub(crate) use client::Client;
pub use counter::Counter;
pub use destination::DestinationRegistration;
pub use next_session_id::NextSessionId;
pub use registration::{Registration, Resource};
pub use termination::request_driver_termination;
pub use wait::{WaitError, WaitState};
