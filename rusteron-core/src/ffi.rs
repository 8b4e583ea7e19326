//! The FFI to C: results, conversions, closures, forks.

pub mod callback;
mod convert;
mod fork;
pub mod handlers;
mod result;
mod retained;
pub mod wake;

pub use convert::{c_path, c_string, lossy, millis, nanos, path};
pub use fork::{ForkGuard, PerProcess, Process, lock_context_init};
pub use result::{Fallible, last_error};
pub use retained::{Retained, SendPtr};
