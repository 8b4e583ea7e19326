//! The Python package `rusteron`: Aeron's client, archive client and media driver.
//!
//! The package `python/rusteron` exports these classes. `docs/design/python.md` explains ownership, threads and the GIL.

mod archive;
mod buffer;
mod channel_uri;
mod claim;
mod client;
mod cnc;
mod counter;
mod driver;
mod error;
mod exit;
mod message;
mod notifier;
mod publication;
mod recording;
mod replay_merge;
mod repr;
mod scope;
mod seconds;
mod settings;
mod slot;
mod subscription;
mod wait;

use pyo3::prelude::*;

#[pymodule]
fn _rusteron(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<archive::Archive>()?;
    module.add_class::<recording::RecordingDescriptor>()?;
    module.add_class::<replay_merge::ReplayMerge>()?;
    module.add_class::<channel_uri::ChannelUri>()?;
    module.add_class::<claim::Claim>()?;
    module.add_class::<client::Aeron>()?;
    module.add_class::<cnc::CncFile>()?;
    module.add_class::<cnc::ErrorLogEntry>()?;
    module.add_class::<cnc::LossReportEntry>()?;
    module.add_class::<counter::Counter>()?;
    module.add_class::<counter::CounterSnapshot>()?;
    module.add_class::<counter::CountersReader>()?;
    module.add_class::<driver::MediaDriver>()?;
    module.add_class::<message::Header>()?;
    module.add_class::<message::MessageView>()?;
    module.add_class::<publication::ExclusivePublication>()?;
    module.add_class::<publication::Publication>()?;
    module.add_class::<subscription::Image>()?;
    module.add_class::<subscription::Subscription>()?;
    module.add("AERON_VERSION", rusteron_client::AERON_VERSION.to_string())?;
    let at_exit = pyo3::wrap_pyfunction!(at_exit, module)?;
    module.py().import("atexit")?.call_method1("register", (at_exit,))?;
    Ok(())
}

/// Ends the threads that use the interpreter, and the embedded drivers. In a child of `os.fork()`, those of its own.
#[pyfunction]
fn at_exit(py: Python<'_>) {
    exit::begin(py);
    notifier::stop(py);
    driver::close_all();
}
