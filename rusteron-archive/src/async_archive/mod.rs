//! Requests that do not block.
//!
//! An `AsyncArchive` owns its session, because C's blocking requests pass over the answers to other requests.
//!
//! - **Sending.** C's proxy encodes and offers a request. With one attempt it does not idle, so back pressure
//!   is an error of the call.
//! - **Answers.** `rusteron_archive_poll_messages` borrows the assembler of C's poller for one poll. Rust
//!   decodes the checked messages and finds the request by its correlation id. The session's lock is held
//!   meanwhile, so that the descriptors of a listing stay in order.
//! - **Other messages.** Signals, and errors without a request, go to the queue of the handlers. A malformed
//!   message names no request, so it fails the next poll of the session.
//! - **Loss.** A lost connection, or a closed client, fails all waiting requests. There is no other timeout.
//!
//! Response channels need a second publication and stay with `Archive`.

mod async_archive;
mod message;
mod requests;

pub use async_archive::AsyncArchive;
pub use requests::Request;
