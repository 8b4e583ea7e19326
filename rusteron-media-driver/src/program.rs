//! What programs with a media driver share: `media_driver`, and those of `rusteron-archive-server`.
//!
//! Properties of the command line and of files become environment variables, so that all settings enter a driver as
//! they do in Aeron's own program. What no part of the program reads is a [`Problem`].
//!
//! This module is for rusteron's own programs, and may change in every release.

mod driver;
mod options;
mod problems;

pub use driver::{
    context_without_event_log, driver_configuration, new_context, print_configuration,
    refuse_fatal_settings, setting_line,
};
pub use options::{CommonOptions, Origins};
pub use problems::{KnownSettings, Problem};
