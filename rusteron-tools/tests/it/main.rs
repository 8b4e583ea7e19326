//! The program `rusteron`, as a user runs it, against drivers in this process, in another one, dead
//! and in Java, and against Java's archive and cluster.

mod archive;
mod clients;
mod cluster;
mod driver;
mod driver_dir;
mod errors;
mod log;
mod loss;
mod metrics;
mod options;
#[cfg(unix)]
mod prometheus;
mod recording;
#[cfg(unix)]
mod screen;
mod stat;
mod streams;
mod support;
#[cfg(unix)]
mod terminal;
mod watch;
