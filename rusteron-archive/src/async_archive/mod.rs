//! Requests that do not block.

mod async_archive;
mod message;
mod requests;

pub use async_archive::AsyncArchive;
pub use requests::Request;
