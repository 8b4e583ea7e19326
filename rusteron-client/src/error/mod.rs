//! Errors: of calls that may wait, and of the message path.

mod error;
mod offer_error;

pub use error::{Error, ErrorKind, Result};
pub use offer_error::{BlockFault, OfferError, PollError, Position};
