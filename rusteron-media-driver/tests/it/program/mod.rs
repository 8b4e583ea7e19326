//! The program `media_driver`.

mod configuration;
mod problems;
mod process;
