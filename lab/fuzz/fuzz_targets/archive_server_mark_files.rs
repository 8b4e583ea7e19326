//! An archive's mark file, which a server takes over. An input is a file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rusteron_archive_server::fuzzing;
use rusteron_fuzz::stage::work_dir;

fuzz_target!(|bytes: &[u8]| fuzzing::mark_file(bytes, &work_dir("mark-file")));
