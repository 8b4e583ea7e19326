//! A segment that another archive or a crash has left. `fuzzing::segment` describes the input.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rusteron_archive_server::fuzzing;

fuzz_target!(|bytes: &[u8]| fuzzing::segment(bytes));
