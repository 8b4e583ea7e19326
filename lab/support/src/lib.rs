//! Helpers of the tests of all crates: drivers, clients, streams, programs and archives of their own, and
//! waiting with a deadline.

#![allow(missing_docs, missing_debug_implementations, reason = "no other program uses this crate")]

mod allocations;
#[cfg(feature = "archive")]
pub mod archive;
mod captured_log;
mod child_process;
#[cfg(unix)]
pub mod cluster;
mod coverage;
mod driver_files;
mod drivers;
#[cfg(unix)]
mod fork;
mod java_driver;
pub mod networks;
mod own_process;
mod ports;
mod program;
#[cfg(feature = "programs")]
pub mod programs;
mod random;
mod requirements;
#[cfg(target_os = "linux")]
mod resources;
pub mod sbe_schema;
mod setting_pairs;
#[cfg(target_os = "linux")]
mod stepped_clock;
mod streams;
mod wait;

pub use allocations::{CountingAllocator, without_allocating};
pub use captured_log::logged_with;
pub use child_process::{
    ChildProcess, DriverProcess, archiving_media_driver_beside, media_driver, media_driver_beside,
};
pub use coverage::{Omissions, Sources, coverage_problems, declared_functions};
pub use driver_files::{ForgedCnc, log_bytes, log_file, log_tails, unblock};
pub use drivers::{
    SHORT_DRIVER_TIMEOUT, connect, connect_watchfully, context, driver_context, driver_context_in,
    launch, launch_with, launch_with_long_timeouts, watchful_context,
};
#[cfg(unix)]
pub use fork::ForkedChild;
pub use java_driver::{java_driver, java_driver_with, java_program};
pub use own_process::{ignored_test, pass};
pub use ports::{free_port, free_port_block, udp_channel};
#[cfg(unix)]
pub use program::send_signal;
pub use program::{Finished, Running, command, number, report, run, succeed, without_settings};
pub use random::{Random, mix};
pub use requirements::{
    SmallFileSystem, aeron_source, has_java, java_run, memory_dir, prepare_java, skip,
};
#[cfg(target_os = "linux")]
pub use resources::resources;
pub use setting_pairs::{SettingPairs, SettingValue, refused_pair};
#[cfg(target_os = "linux")]
pub use stepped_clock::{SteppedClock, SteppedHome, job, read_line};
pub use streams::{
    SHORT_TERMS, connected_pair, exchange, exchange_with, offer, receive, receive_fragments, retry,
    shared_pair,
};
pub use wait::{DEADLINE, EndOnDrop, await_some, await_that, block_on};

/// Compiles and runs the program in the project's README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// Compiles and runs the builder in the chapter on channels.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/channels.md")]
pub struct Channels;

/// Compiles the service in the chapter on the cluster.
#[cfg(all(doctest, feature = "cluster"))]
#[doc = include_str!("../../../docs/cluster.md")]
pub struct Cluster;

/// Compiles the example in the guide for users of Aeron's Java client.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-java.md")]
pub struct FromJava;
