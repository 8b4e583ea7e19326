//! Parts that the fuzz targets share.

pub mod archive_messages;
pub mod cnc;
#[path = "../../rusteron-archive/tests/support/fake_archive.rs"]
pub mod fake_archive;
pub mod frames;
pub mod guard;
pub mod input;
pub mod log_buffer_file;
pub mod loopback;
pub mod patch;
pub mod polls;
pub mod stage;
