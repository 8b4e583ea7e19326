//! Integration tests of the client. Folders mirror `src/`; other modules are subjects of several layers.

mod client {
    mod connect;
    mod counter;
    mod destination;
    #[cfg(unix)]
    mod forged_answers;
    mod invoker;
    mod lifecycle;
    mod stopped;
    mod wait;
}
mod context {
    mod events;
}
mod coverage;
/// The same operations through Rust and through Aeron's C functions, with the same results.
mod differential {
    mod comparison;
    mod last_term;
    mod operations;
    mod polls;
    mod random_operations;
    mod states;
    mod term_ends;
    #[cfg(unix)]
    mod unfinished;
}
mod model;
mod publication {
    mod batch;
    mod block;
    mod buffer_claim;
    #[cfg(unix)]
    mod corrupt_log_buffer;
    mod methods;
    mod threads;
}
mod reconnect;
mod soundness;
mod subscription {
    mod channels;
    mod image {
        mod handlers;
        mod methods;
        #[cfg(unix)]
        mod refused;
    }
    mod polls;
}
mod tasks;
mod thread_traits;
