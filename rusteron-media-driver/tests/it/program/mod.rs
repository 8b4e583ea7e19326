//! The program `media_driver`.

mod configuration;
mod process;
