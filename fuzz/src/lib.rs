//! Parts that the fuzz targets share.

pub mod archive_messages;
pub mod cnc;
pub mod frames;
pub mod guard;
pub mod input;
pub mod log_buffer_file;
pub mod loopback;
pub mod patch;
pub mod polls;
pub mod stage;

pub use rusteron_test_support::archive::fake_archive;
