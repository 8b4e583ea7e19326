//! Messages to an archive server's control stream. An input is a message.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rusteron_archive_server::fuzzing;

fuzz_target!(|message: &[u8]| fuzzing::request(message));
