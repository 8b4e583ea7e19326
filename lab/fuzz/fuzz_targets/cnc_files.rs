//! A `cnc.dat` in which anything may be, read as the program `rusteron` and other observers do.
//!
//! An input is a list of changes to the file of a real driver.

#![no_main]

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use rusteron_client::{CncFile, SystemCounter, request_driver_termination};
use rusteron_fuzz::cnc;
use rusteron_fuzz::input::{Input, patch};
use rusteron_fuzz::stage::work_dir;
use rusteron_media_driver::is_driver_active;

const MAX_PATCHES: usize = 32;

struct Observer {
    dir: PathBuf,
    real: Vec<u8>,
}

impl Observer {
    fn new() -> Self {
        let dir = work_dir("cnc");
        fs::create_dir_all(&dir).expect("a directory");
        let real = cnc::real_file();
        fs::write(dir.join("cnc.dat"), &real).expect("a file");
        // Otherwise, all inputs would be refused at once.
        CncFile::open(&dir, Duration::ZERO).expect("a file that is in order");
        Self { dir, real }
    }

    fn run(&self, input: &mut Input<'_>) {
        let mut file = self.real.clone();
        match input.byte() {
            0xff => file.truncate(usize::from(input.half())),
            0xfe => file.resize(file.len() + usize::from(input.half()), 0),
            _ => {}
        }
        for _ in 0..MAX_PATCHES {
            if input.is_empty() {
                break;
            }
            change(&mut file, input);
        }
        fs::write(self.dir.join("cnc.dat"), &file).expect("a file");
        self.read();
        black_box(is_driver_active(&self.dir, Duration::ZERO).is_ok());
        black_box(request_driver_termination(&self.dir, b"token").is_ok());
    }

    fn read(&self) {
        let cnc = match CncFile::open(&self.dir, Duration::ZERO) {
            Ok(cnc) => cnc,
            Err(error) => {
                black_box(error.to_string());
                return;
            }
        };
        black_box((cnc.constants(), cnc.version(), cnc.pid(), cnc.start_time()));
        black_box((cnc.client_liveness_timeout(), cnc.heartbeat(), cnc.heartbeat_age()));
        black_box((cnc.is_active(Duration::from_secs(10)), format!("{cnc:?}")));
        for error in cnc.errors() {
            black_box(format!("{error:?}"));
        }
        black_box(cnc.errors_since(UNIX_EPOCH));

        let counters = cnc.counters();
        for counter in counters.iter().take(1000) {
            let id = counter.id;
            assert!((0..=counters.max_counter_id()).contains(&id));
            black_box(format!("{counter:?}"));
            black_box((counters.value(id), counters.label(id), counters.key(id)));
            black_box((counters.type_id(id), counters.registration_id(id), counters.owner_id(id)));
            black_box((counters.reference_id(id), counters.state(id)));
            black_box((counters.free_for_reuse_deadline(id), counters.counter(id)));
            let (type_id, registration_id) = (counter.type_id, counter.registration_id);
            black_box(counters.find_by_type_id_and_registration_id(type_id, registration_id));
        }
        let beyond = counters.max_counter_id().wrapping_add(1);
        for id in [-1, i32::MIN, i32::MAX, beyond] {
            black_box((counters.value(id), counters.label(id), counters.counter(id)));
        }
        for stream in counters.stream_positions() {
            black_box(stream.to_string());
            black_box((stream.sender_backlog(), stream.subscriber_backlog()));
        }
        for counter in SystemCounter::ALL {
            black_box(counter.read(&counters));
        }
    }
}

/// Changes a number or some bytes in the header or in one of the buffers.
fn change(file: &mut [u8], input: &mut Input<'_>) {
    let buffer = usize::from(input.byte()) % (cnc::BOUNDS.len() - 1);
    let (start, end) = (cnc::BOUNDS[buffer], cnc::BOUNDS[buffer + 1]);
    let unit = input.choose(&[4, 1, 128, 512]);
    let offset = start + usize::from(input.half()) * unit % (end - start);
    let offset = match input.byte() {
        0 => offset,
        // Fields of a record.
        byte => (offset + usize::from(byte) * 4).min(end),
    };
    let found = |offset| {
        let bytes = file.get(offset as usize..).and_then(|bytes| bytes.first_chunk());
        bytes.copied().map_or(0, i32::from_le_bytes)
    };
    let patch = patch(input, offset as u64, found);
    if let Some(bytes) = file.get_mut(offset..) {
        let length = bytes.len().min(patch.bytes.len());
        bytes[..length].copy_from_slice(&patch.bytes[..length]);
    }
}

fuzz_target!(|bytes: &[u8]| {
    thread_local! {
        static OBSERVER: Observer = Observer::new();
    }
    OBSERVER.with(|observer| observer.run(&mut Input::new(bytes)));
});
