//! The programs, as a user runs them.
//!
//! One test program for all, so that it is linked once.

mod flagship;
#[cfg(unix)]
mod reconnecting;
mod samples;
