//! The reader of log buffers of the program `rusteron`, whose crate has no library.
#![allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "a module of a program, of which a part is used"
)]

#[path = "../../rusteron-tools/src/log_file.rs"]
mod log_file;

use std::hint::black_box;
use std::io::{Read, Seek};

/// Reads everything that is in a log buffer, as `rusteron log` does.
pub fn read(source: impl Read + Seek, payload_limit: usize) {
    let mut log = match log_file::LogFile::open(source) {
        Ok(log) => log,
        Err(fault) => {
            black_box(fault.to_string());
            return;
        }
    };
    black_box(format!("{:?}", log.metadata()));
    for partition in 0..log_file::PARTITION_COUNT {
        let mut end = 0;
        for entry in log.entries(partition, payload_limit) {
            let (start, length) = match &entry {
                log_file::Entry::Frame(frame) => {
                    assert!(frame.payload.len() <= payload_limit);
                    black_box((frame.flags.to_string(), frame.frame_type.to_string()));
                    (
                        frame.offset,
                        u64::from(frame.length).next_multiple_of(log_file::HEADER_LENGTH),
                    )
                }
                log_file::Entry::Gap { offset, length, .. } => (*offset, *length),
                log_file::Entry::Fault { offset, reason, .. } => {
                    black_box(reason);
                    (*offset, 0)
                }
            };
            assert_eq!(start, end, "what is found lies side by side");
            end = start + length;
        }
    }
}
