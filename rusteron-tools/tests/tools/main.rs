//! The program `rusteron`, as a user runs it, against drivers in this process, in another one, dead
//! and in Java.
//!
//! One test program for all, so that it is linked once.

mod dead_driver;
mod driver;
mod errors_and_losses;
#[cfg(unix)]
mod java;
mod log;
#[cfg(unix)]
mod screen;
mod stat;
mod streams;
mod support;
mod usage;
