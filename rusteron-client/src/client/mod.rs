//! The connection to a media driver, and the resources registered with it.
//!
//! C's conductor talks to the driver: it installs image lists, closes resources that the driver has closed, and
//! frees what no handle can reach. It is a thread of the client, or `Aeron::do_work` under a lock.
//!
//! Between two duty cycles, at most every 5 ms, the conductor's idle strategy asks the kernel whether the
//! driver's process has ended. If so, the shim writes an old heartbeat and makes C's next look at it due. C
//! then closes the client in its own way, and calls the error handler with a driver timeout.

mod background;
mod client;
mod conductor_idle;
pub(crate) mod connect;
pub(crate) mod counter;
pub(crate) mod destination;
mod next_session_id;
pub(crate) mod registration;
pub(crate) mod subscription_callbacks;
pub(crate) mod wait;

pub(crate) use background::Background;
pub(crate) use client::Client;
pub use counter::Counter;
pub use destination::DestinationRegistration;
pub use next_session_id::NextSessionId;
pub use registration::{Registration, Resource};
pub use wait::{WaitError, WaitState};
