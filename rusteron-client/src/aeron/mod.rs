//! The client: a connection to a media driver.

mod aeron;
mod async_connect;

pub use aeron::Aeron;
pub use async_connect::AsyncConnect;
