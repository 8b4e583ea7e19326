//! A hostile client of an archive server, while another client is served. An input is what it does.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rusteron_archive_server::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::conductor(bytes));
