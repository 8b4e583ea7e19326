//! Integration tests of the client. Folders mirror `src/`; other modules are subjects of several
//! layers.

mod api;
mod channels;
mod client {
    mod connect;
    mod counter;
    mod invoker;
    mod lifecycle;
    mod stopped;
    mod wait;
}
/// The same operations through Rust and through Aeron's C functions, with the same results.
mod differential {
    mod operations;
    mod polls;
    mod publications;
    mod term_ends;
    #[cfg(unix)]
    mod unfinished;
}
#[cfg(unix)]
mod forged;
mod handlers;
mod model;
mod publication {
    mod batch;
    mod block;
    #[cfg(unix)]
    mod corrupt_log_buffer;
    mod methods;
}
mod reconnect;
mod soundness;
mod subscription {
    mod image;
    mod polls;
    mod skip;
}
mod tasks;
