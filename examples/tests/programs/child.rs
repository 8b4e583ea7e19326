//! The programs of this package.

use std::ffi::OsStr;
use std::process::Command;

// Not everything in it is of use here.
#[allow(dead_code)]
#[path = "../support/process.rs"]
mod process;

pub(crate) use process::*;

const THROUGHPUT: &str = env!("CARGO_BIN_EXE_embedded_exclusive_ipc_throughput");

/// The program that measures, with some arguments.
pub(crate) fn throughput<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    command(THROUGHPUT, arguments)
}
