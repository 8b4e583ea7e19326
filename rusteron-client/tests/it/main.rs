//! Integration tests of the client. Folders mirror `src/`; other modules are subjects of several layers.

mod agent {
    mod composite_agent;
    mod invoker;
    mod mock;
    mod runner;
}
mod alignment;
mod channel {
    mod kinds;
    mod uri {
        mod builder;
        mod check;
        mod oracle;
        mod parameter;
        mod warnings;
    }
}
mod client {
    mod async_connect;
    mod counter;
    mod destination;
    #[cfg(unix)]
    mod forged_answers;
    mod invoker;
    mod lifecycle;
    mod next_session_id;
    mod wait;
}
mod cnc {
    mod client_identity;
    mod cnc_file;
    mod stream_positions;
}
mod context {
    mod events;
}
mod coverage;
/// The same operations through Rust and through Aeron's C functions, with the same results.
mod differential {
    mod comparison;
    mod last_term;
    mod messages;
    pub(crate) mod operations;
    mod polls;
    mod random_operations;
    mod states;
    mod term_ends;
}
mod extremes;
/// Drivers and processes that fail, and clients that stop.
mod faults {
    mod connect;
    mod killed_claimers;
    #[cfg(unix)]
    mod killed_publishers;
    mod mistakes;
    mod stopped_clients;
}
mod handle_lifetimes;
mod log_buffer {
    #[cfg(unix)]
    mod initial_writes;
}
mod messages;
mod model;
mod panics;
mod publication {
    mod batch;
    mod block;
    mod buffer_claim;
    #[cfg(unix)]
    mod corrupt_log_buffer;
    mod methods;
    mod shared_publishers;
    mod stopped_batch;
}
mod reconnect;
mod soundness;
mod subscription {
    mod assembly;
    mod controlled_poll;
    mod destinations;
    mod image {
        #[cfg(unix)]
        mod forged_frames;
        mod handlers;
        mod methods;
        #[cfg(unix)]
        mod refused;
    }
}
mod tasks;
mod thread_traits;
