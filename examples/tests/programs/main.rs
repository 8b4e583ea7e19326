//! The programs, as a user runs them.
//!
//! One test program for all, so that it is linked once.

mod archive;
mod bad_values;
mod child;
mod driver;
mod samples;
mod throughput;
