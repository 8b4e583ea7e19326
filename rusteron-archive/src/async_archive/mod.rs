//! Requests that do not block.

mod async_archive;
mod message;
mod request;
mod requests;
mod segments;

pub use async_archive::AsyncArchive;
pub use request::Request;
