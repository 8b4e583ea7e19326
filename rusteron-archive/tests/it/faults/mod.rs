//! Archives that end, alone or with their media driver.

mod archive_alone;
mod archive_and_driver;
