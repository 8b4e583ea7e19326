//! The programs, as a user runs them.
//!
//! One test program for all, so that it is linked once.

mod archive;
mod child;
#[cfg(unix)]
mod cluster;
mod flagship;
#[cfg(unix)]
mod reconnecting;
mod samples;
