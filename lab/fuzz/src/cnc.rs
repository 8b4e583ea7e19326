//! A driver's `cnc.dat`, as it is when the driver is used.

use std::fs;

use rusteron_client::{CncFile, UncheckedChannel};

use crate::stage::Stage;

/// The lengths of the buffers of a file that is made smaller, so that each input can write all of it.
const TO_DRIVER: usize = 1024 + TO_DRIVER_TRAILER;
const TO_DRIVER_TRAILER: usize = 768;
const TO_CLIENTS: usize = 1024 + 128;
const COUNTERS_METADATA: usize = 64 * 512;
const COUNTERS_VALUES: usize = 64 * 128;
const ERROR_LOG: usize = 8192;

/// Where the header and the buffers begin, and the end.
pub const BOUNDS: [usize; 7] = {
    let lengths = [128, TO_DRIVER, TO_CLIENTS, COUNTERS_METADATA, COUNTERS_VALUES, ERROR_LOG];
    let mut bounds = [0; 7];
    let mut index = 0;
    while index < lengths.len() {
        bounds[index + 1] = bounds[index] + lengths[index];
        index += 1;
    }
    bounds
};

/// The file of a driver with a client, streams, a counter and an error.
pub fn real_file() -> Vec<u8> {
    let mut stage = Stage::launch(|_| Ok(()));
    let aeron = stage.aeron.clone();
    let channel = "aeron:udp?endpoint=127.0.0.1:0|alias=fuzzed";
    let _subscription =
        stage.added(aeron.async_add_subscription(channel, 1001)).expect("a subscription");
    let _publication = stage
        .added(aeron.async_add_publication("aeron:udp?endpoint=127.0.0.1:9", 1001))
        .expect("a publication");
    let _ipc = stage.added(aeron.async_add_publication("aeron:ipc", 1002)).expect("a publication");
    let _counter = stage.added(aeron.async_add_counter(1001, b"key", "label")).expect("a counter");
    let unknown = UncheckedChannel("aeron:udp?endpoint=127.0.0.1:9|mtu=33");
    stage.added(aeron.async_add_publication(unknown, 1001)).expect_err("no such channel");
    stage.repeat_work(100);

    let cnc: CncFile = stage.driver.cnc_file().expect("a file");
    assert!(!cnc.errors().is_empty() && cnc.counters().iter().count() > 32);
    let constants = cnc.constants();
    let lengths = [
        128,
        constants.to_driver_buffer_length,
        constants.to_clients_buffer_length,
        constants.counter_metadata_buffer_length,
        constants.counter_values_buffer_length,
        constants.error_log_buffer_length,
    ];
    let file = fs::read(cnc.filename()).expect("a file");
    let mut smaller = Vec::new();
    let mut start = 0;
    for (index, length) in lengths.into_iter().map(|length| length as usize).enumerate() {
        let wanted = BOUNDS[index + 1] - BOUNDS[index];
        match index {
            // The positions and the heartbeat are at the end; the commands have been read.
            1 => {
                let end = start + length;
                smaller.resize(smaller.len() + wanted - TO_DRIVER_TRAILER, 0);
                smaller.extend_from_slice(&file[end - TO_DRIVER_TRAILER..end]);
            }
            _ => smaller.extend_from_slice(&file[start..start + wanted]),
        }
        start += length;
    }
    // The lengths follow the version.
    for index in 1..lengths.len() {
        let length = (BOUNDS[index + 1] - BOUNDS[index]) as i32;
        smaller[4 * index..4 * index + 4].copy_from_slice(&length.to_le_bytes());
    }
    smaller.resize(smaller.len().next_multiple_of(4096), 0);
    smaller
}
