//! The cross-language service in Rust: the contract's messages, the server and the caller.
//!
//! `CONTRACT.md` beside this crate defines operations, messages, errors and deadlines.

mod caller;
mod contract;
pub mod in_process;
pub mod modes;
pub mod protocol;
mod server;
mod service;
mod session;

pub use caller::{AeronTransport, CallError, Caller, Transport};
pub use contract::{
    ConnectOptions, OBJECT_LIMIT, OPEN_CALL_LIMIT, REQUEST_CHANNEL, REQUEST_STREAM,
    RESPONSE_CHANNEL, RESPONSE_STREAM,
};
pub use in_process::InProcess;
pub use server::{Server, ServerOptions};
pub use service::Service;
