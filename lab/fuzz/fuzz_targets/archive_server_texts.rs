//! Channels that clients send to an archive server, and values of its settings. An input is a text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rusteron_archive_server::fuzzing;

fuzz_target!(|text: &str| fuzzing::text(text));
