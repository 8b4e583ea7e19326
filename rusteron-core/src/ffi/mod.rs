//! The FFI to C: results, texts, arguments, closures.

mod argument;
pub mod callback;
mod fork;
pub mod handlers;
mod init_lock;
mod result;
mod retained;
mod send_ptr;
mod text;
pub mod wake;

pub use argument::{c_path, c_string, millis, nanos};
pub use fork::{ForkGuard, PerProcess, Process};
pub use init_lock::lock_context_init;
pub use result::{Fallible, last_error};
pub use retained::Retained;
pub use send_ptr::SendPtr;
pub use text::{lossy, path};
