//! The programs of this package.

use std::ffi::OsStr;
use std::process::Command;

pub(crate) use rusteron_test_support::{Finished, Running, command, number, report, run};

const THROUGHPUT: &str = env!("CARGO_BIN_EXE_embedded_exclusive_ipc_throughput");

/// The program that measures, with some arguments.
pub(crate) fn throughput<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    command(THROUGHPUT, arguments)
}
