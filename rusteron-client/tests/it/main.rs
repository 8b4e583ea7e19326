//! Integration tests of the client. Folders mirror `src/`; other modules are subjects of several layers.

mod agent;
mod alignment;
mod channel;
mod client;
mod cnc;
mod conductor_agent;
mod context;
mod coverage;
mod differential;
mod extremes;
mod faults;
mod handle_lifetimes;
mod log_buffer;
mod messages;
mod model;
mod panics;
mod publication;
mod soundness;
mod subscription;
mod thread_traits;
