//! A hostile source of a replication: answers, streams and frames. An input is what it does.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rusteron_archive_server::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::source(bytes));
