//! The cross-language service over gRPC, with tonic: server and caller.

pub mod protocol {
    //! Messages, client and server of `service.proto`.
    #![allow(missing_debug_implementations, unreachable_pub, reason = "generated")]
    tonic::include_proto!("crosslanguage");
}

mod caller;
mod messages;
mod server;

pub use caller::Caller;
pub use server::Service;

/// Of the flow control of HTTP/2, in bytes: equal in all languages.
pub const WINDOW_LENGTH: u32 = 1 << 20;
