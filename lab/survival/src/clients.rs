//! A fault campaign: publishers, subscribers and a media driver, each a process of its own, are killed, paused and starved
//! at random for a given time. Subscribers check every message.
//!
//! The supervisor chooses the faults and carries them out (`strikes`), hears and replaces its
//! members (`members`), and looks for what they leave behind (`leaks`) at checkpoints
//! (`checkpoint`). The subscribers' checks are in `oracle`.
//!
//! These conditions must hold:
//! - Within one image, the messages of a publication arrive in order, each once, unchanged.
//! - A gap is allowed only where the driver has timed out the subscriber: its client reports that within a second.
//! - An image that was joined at its beginning has the first message of each publication.
//! - A client that was paused for longer than the client liveness timeout reports that it is closed.
//! - After the faults, every remaining client finds all the others, and every message arrives.
//! - Files, mappings, descriptors, threads, counters and memory then are as before.
//!
//! The faults: processes are killed and paused, for shorter and longer than the client liveness timeout and
//! than the time after which counters go to another client; a driver is killed and another takes its directory
//! over at once; processes fork children that use and drop all inherited handles; a forger overwrites the
//! metadata of its own log buffers; the driver's file system fills up, which needs root; descriptors run out.
//! The streams go over IPC and UDP, and the driver loses datagrams.
//!
//! `just survival clients --duration 10m` runs it, and prints a table of violations, the time of each takeover,
//! and the seed. `--seed` chooses the same faults again; the machine decides when they strike. A violation,
//! leak or crash is exit code 1. `skipped after a timeout` counts gaps that a subscriber saw in the second
//! before it reported its timeout, in which publishers no longer waited for it.

mod campaign;
mod checkpoint;
mod leaks;
mod members;
mod oracle;
mod parts;
mod settings;
mod strikes;

pub(crate) use campaign::{ClientsOptions, NAME, run};
pub(crate) use parts::play;
