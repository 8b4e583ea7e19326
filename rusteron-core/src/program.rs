//! How rusteron's own programs end, and what they print.

pub mod exit_status;
mod failure;
mod output;

use crate::agent::ShutdownSignal;

pub use failure::{Failure, exit_code};
pub use output::{log_to_standard_error, print, print_error};

/// Returns the signal that the user's wish to end the program gives.
///
/// # Errors
/// [`Failure::Run`] as for [`ShutdownSignal::on_interrupt`].
pub fn on_interrupt() -> Result<ShutdownSignal, Failure> {
    ShutdownSignal::on_interrupt().map_err(|error| Failure::run("cannot handle signals", error))
}
