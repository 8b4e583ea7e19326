//! What the fuzz targets share.

pub mod cnc;
pub mod frames;
pub mod guard;
pub mod input;
pub mod log_file;
pub mod loopback;
pub mod patch;
pub mod polls;
pub mod stage;
