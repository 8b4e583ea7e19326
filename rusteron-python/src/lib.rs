//! The Python package `rusteron`: Aeron's client, archive client, media driver and archive server.
//!
//! The package `python/rusteron` exports these classes. The wheel is `abi3-py39`, one file for CPython 3.9 and
//! later. Free-threaded builds have no limited API, so they have no wheel; a wheel for Windows would need 3.11.
//!
//! # Ownership
//! Each Python object has a `slot`, which owns a Rust handle until the object is closed or collected. A
//! handle of a client keeps the slot of the driver or server that its `Aeron` was made with, so the collector may take
//! the objects in any order. `Aeron.close()` closes the client's handles, the newest first. Handles are dropped
//! without the GIL, because the last one joins threads. At the end of the interpreter, `atexit` ends the
//! asyncio thread, all servers and all drivers, so no directory is left behind.
//!
//! No Python callback runs on a conductor's thread: errors in the background wait in a queue for
//! `Aeron.errors()`. So no thread that Rust joins ever needs the GIL.
//!
//! # The GIL
//! Connecting, adding, closing and archive requests release it. Requests that block in C run on a thread of their own,
//! so that Ctrl-C ends the wait for them. A wait (`timeout=`, `await_connected`,
//! iteration) holds it during each attempt and releases it while it idles. One `offer` or `poll`, and a batch,
//! keep it: releasing and taking it costs 25 ns if no other thread wants it, and up to Python's switch interval
//! of 5 ms if one does.
//!
//! # Errors
//! `kind` is the name of the Rust kind, and `code` Aeron's number. Results of offers are classes, because
//! callers handle each in another way. `try_offer` is for loops, where an exception would cost several offers.

/// A class with an attribute for each field, and its conversion from a Rust object.
macro_rules! snapshot {
    (
        $(#[$doc:meta])*
        $name:ident of $source:ident: $from:ty {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $value:expr,)+
        }
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, get_all, module = "rusteron")]
        pub(crate) struct $name {
            $($(#[$field_doc])* $field: $type,)+
        }

        impl From<$from> for $name {
            fn from($source: $from) -> Self {
                Self { $($field: $value,)+ }
            }
        }
    };
}

mod archive;
mod buffer;
mod channel_uri;
mod claim;
mod client;
mod cnc;
mod driver;
mod error;
mod exit;
mod message;
mod notifier;
mod publication;
mod replay_merge;
mod server;
mod settings;
mod slot;
mod subscription;
mod wait;

use pyo3::prelude::*;

#[pymodule]
fn _rusteron(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<archive::Archive>()?;
    module.add_class::<archive::RecordingDescriptor>()?;
    module.add_class::<replay_merge::ReplayMerge>()?;
    module.add_class::<server::ArchiveServer>()?;
    module.add_class::<channel_uri::ChannelUri>()?;
    module.add_class::<claim::Claim>()?;
    module.add_class::<client::Aeron>()?;
    module.add_class::<cnc::CncFile>()?;
    module.add_class::<cnc::ErrorLogEntry>()?;
    module.add_class::<cnc::LossReportEntry>()?;
    module.add_class::<cnc::Counter>()?;
    module.add_class::<cnc::CounterSnapshot>()?;
    module.add_class::<cnc::CountersReader>()?;
    module.add_class::<driver::MediaDriver>()?;
    module.add_class::<message::Header>()?;
    module.add_class::<message::MessageView>()?;
    module.add_class::<publication::ExclusivePublication>()?;
    module.add_class::<publication::Publication>()?;
    module.add_class::<subscription::Image>()?;
    module.add_class::<subscription::Subscription>()?;
    module.add("AERON_VERSION", rusteron_client::AERON_VERSION.to_string())?;
    // Here, because a thread that gives the GIL away within these ends the process when the interpreter ends meanwhile.
    error::module(module.py())?;
    claim::exporting_type(module.py())?;
    message::class(module.py())?;
    message::exporting_type(module.py())?;
    let at_exit = pyo3::wrap_pyfunction!(at_exit, module)?;
    module.py().import("atexit")?.call_method1("register", (at_exit,))?;
    Ok(())
}

/// Ends the threads that use the interpreter, and the servers and drivers of the process. In a child of `os.fork()`, those of its own.
#[pyfunction]
fn at_exit(py: Python<'_>) {
    exit::begin(py);
    notifier::stop(py);
    slot::close_all();
}
