//! Programs that run as processes of their own: Java, drivers, an archive. Their networks and
//! usage.

pub mod aeron_c;
pub mod archive_process;
pub mod cluster_members;
pub mod cores;
pub mod driver_process;
pub mod echo_service;
pub mod environment;
pub mod java;
pub mod process_usage;
pub mod program;
