//! The programs, as a user runs them.
//!
//! One test program for all, so that it is linked once.

mod archive;
mod child;
mod flagship;
mod samples;
