//! Programs that run as processes of their own: Java, drivers, an archive.

pub mod archive_process;
pub mod driver_process;
pub mod java;
pub mod process_usage;
pub mod program;
