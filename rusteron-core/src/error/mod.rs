//! Errors: of calls that may wait, and of the message path.

mod close_cause;
mod error;
mod offer_error;

pub use close_cause::CloseCause;
pub use error::{Error, ErrorKind, Result};
pub use offer_error::{BlockFault, OfferError, PollError, Position};
