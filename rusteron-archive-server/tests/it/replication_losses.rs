//! Replication over a wire that loses datagrams, and between archives that are killed meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use rusteron_archive::{RecordingSignalKind, ReplicationParams};
use rusteron_test_support::Random;
use rusteron_test_support::archive::{ArchiveProcess, Options, record};
use rusteron_test_support::networks::{Networks, PUBLISHER_ADDRESS, SUBSCRIBER_ADDRESS};

use crate::replication::Listener;
use crate::support::await_stop;

const COUNT: u64 = 20_000;

/// The options of source and target.
fn options(networks: &Networks) -> [Options; 2] {
    let ends =
        [(&networks.publisher, PUBLISHER_ADDRESS), (&networks.subscriber, SUBSCRIBER_ADDRESS)];
    // An archive misses a killed one soon.
    let timeouts =
        ["image.liveness", "publication.linger"].map(|it| format!("aeron.{it}.timeout=2s"));
    ends.map(|(network, address)| Options {
        host: Some(network.host(address)),
        properties: timeouts.to_vec(),
        ..Options::default()
    })
}

/// Returns what is recorded, up to a position.
fn bytes(archive: &ArchiveProcess, recording_id: i64, end: i64) -> Vec<u8> {
    const SEGMENT: usize = 128 * 1024;
    let end = usize::try_from(end).expect("a position");
    let mut all = Vec::new();
    while all.len() < end {
        let name = format!("{recording_id}-{}.rec", all.len());
        let segment = fs::read(archive.archive_dir().join(name)).expect("a segment");
        assert_eq!(segment.len(), SEGMENT);
        all.extend(segment);
    }
    all.truncate(end);
    all
}

fn copy(source: &ArchiveProcess, target: &ArchiveProcess) {
    let (publication, id, end) = record(&source.connect(), COUNT);
    drop(publication);
    await_stop(&source.connect(), id);
    let listener = Listener::connect(&target.aeron());
    let params = ReplicationParams::new();
    listener.archive.replicate(id, source.control_channel(), 10, &params).expect("an id");
    let signal = listener.await_signal(RecordingSignalKind::ReplicateEnd);
    assert_eq!(await_stop(&listener.archive, signal.recording_id), end);
    assert!(bytes(target, signal.recording_id, end) == bytes(source, id, end));
}

#[test]
fn server_copies_from_server_over_little_loss() {
    let Some(networks) = Networks::with_loss(1) else { return };
    let [source, target] = options(&networks).map(ArchiveProcess::launch_rust);
    copy(&source, &target);
}

#[test]
fn server_copies_from_server_over_much_loss() {
    let Some(networks) = Networks::with_loss(20) else { return };
    let [source, target] = options(&networks).map(ArchiveProcess::launch_rust);
    copy(&source, &target);
}

#[test]
fn server_copies_from_java_over_much_loss() {
    let Some(networks) = Networks::with_loss(20) else { return };
    let [source, target] = options(&networks);
    let Some(source) = ArchiveProcess::launch_java(source) else { return };
    copy(&source, &ArchiveProcess::launch_rust(target));
}

#[test]
fn java_copies_from_server_over_much_loss() {
    let Some(networks) = Networks::with_loss(20) else { return };
    let [source, target] = options(&networks);
    let Some(target) = ArchiveProcess::launch_java(target) else { return };
    copy(&ArchiveProcess::launch_rust(source), &target);
}

/// Kills one of the two at a random time of a replication, again and again. The copy then says where it ends, and the next
/// replication goes on from there. `RUSTERON_ARCHIVE_SEEDS=FIRST..END` runs other kills than those of CI.
#[test]
fn copy_is_completed_after_kills() {
    let seeds = std::env::var("RUSTERON_ARCHIVE_SEEDS").unwrap_or_else(|_| "1..5".to_owned());
    let (first, end) = seeds.split_once("..").expect("FIRST..END");
    let [first, end] = [first, end].map(|it| it.parse::<u64>().expect("a number"));
    let Some(networks) = Networks::with_loss(1) else { return };
    let [mut source, mut target] = options(&networks).map(ArchiveProcess::launch_rust);
    let (publication, id, stop) = record(&source.connect(), COUNT);
    drop(publication);
    await_stop(&source.connect(), id);
    let recorded = bytes(&source, id, stop);
    let mut copy_time = Duration::from_millis(500);
    for seed in first..end {
        let mut random = Random::new(seed);
        let listener = Listener::connect(&target.aeron());
        let params = ReplicationParams::new();
        let start = Instant::now();
        listener.archive.replicate(id, source.control_channel(), 10, &params).expect("an id");
        let kill_at = copy_time * random.below(1000) as u32 / 1000;
        while start.elapsed() < kill_at {
            std::thread::yield_now();
        }
        let kills_target = random.below(2) == 0;
        if kills_target {
            drop(listener);
            target.kill();
            target.restart();
        } else {
            source.kill();
            // Before that, no other replication may record the stream.
            listener.await_end();
            source.restart();
        }
        let listener = Listener::connect(&target.aeron());
        let copies = listener.archive.recordings().map(|it| it.expect("a recording").recording_id);
        let copy = copies.last();
        let mut params = ReplicationParams::new();
        if let Some(copy) = copy {
            let end = await_stop(&listener.archive, copy);
            assert!(bytes(&target, copy, end) == recorded[..end as usize], "seed {seed}");
            eprintln!("seed {seed}: killed after {kill_at:?}, copied {end} of {stop}");
            params = params.dst_recording_id(copy);
        }
        let start = Instant::now();
        listener.archive.replicate(id, source.control_channel(), 10, &params).expect("an id");
        let signal = listener.await_signal(RecordingSignalKind::ReplicateEnd);
        if copy.is_none() {
            copy_time = start.elapsed();
        }
        let copy = signal.recording_id;
        assert_eq!(await_stop(&listener.archive, copy), stop, "seed {seed}");
        assert!(bytes(&target, copy, stop) == recorded, "seed {seed}");
        // The next replication makes a new one.
        listener.archive.purge_recording(copy).expect("a stopped recording");
    }
}
