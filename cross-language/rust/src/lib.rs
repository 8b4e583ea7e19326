//! The cross-language service in Rust: the contract's messages, the server and the caller.
//!
//! `CONTRACT.md` beside this crate defines operations, messages, errors and deadlines.

mod allocations;
mod binary;
mod body;
mod caller;
mod contract;
mod envelope;
mod in_process;
mod json;
pub mod modes;
mod registration;
mod server;
mod service;
mod value;

pub use allocations::CountingAllocator;
pub use body::{Body, Kind, Malformed};
pub use caller::{CallError, Caller, CallerOptions};
pub use contract::{
    Encoding, LIST_LIMIT, OBJECT_LIMIT, OPEN_CALL_LIMIT, Operation, REQUEST_CHANNEL,
    REQUEST_STREAM, RESPONSE_CHANNEL, RESPONSE_STREAM, SMALL_ARRAY_LIMIT, SQUARES_LIMIT, Status,
    UnknownName,
};
pub use envelope::{ENVELOPE_LENGTH, Envelope, NO_CORRELATION_ID, Template};
pub use in_process::InProcess;
pub use server::{Server, ServerOptions};
pub use service::{Failure, Objects};
pub use value::{DEPTH_LIMIT, NODE_LIMIT, Value};
