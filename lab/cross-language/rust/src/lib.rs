//! The cross-language service in Rust: the contract's messages, the server and the caller.
//!
//! `CONTRACT.md` beside this crate defines operations, messages, errors and deadlines.

mod body;
mod caller;
mod contract;
pub mod in_process;
mod message;
pub mod modes;
mod server;
mod service;
mod session;

pub use body::{Body, DEPTH_LIMIT, Kind, Malformed, NODE_LIMIT, Value};
pub use caller::{AeronTransport, CallError, Caller, ConnectOptions, Transport};
pub use contract::{
    LIST_LIMIT, OBJECT_LIMIT, OPEN_CALL_LIMIT, Operation, REQUEST_CHANNEL, REQUEST_STREAM,
    RESPONSE_CHANNEL, RESPONSE_STREAM, SMALL_ARRAY_LIMIT, SQUARES_LIMIT, Status,
};
pub use in_process::InProcess;
pub use message::{ENVELOPE_LENGTH, Envelope, NO_CORRELATION_ID, Template};
pub use server::{Server, ServerOptions};
pub use service::{Failure, Objects};
