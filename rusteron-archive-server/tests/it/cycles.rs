//! Starts and stops leave nothing behind: no counter, and no open file.

use rusteron_archive::{Archive, ReplayParams, SourceLocation};
use rusteron_client::{Aeron, CounterSnapshot};
use rusteron_test_support::archive::{REPLAY_STREAM, STREAM, await_recording, offer_numbered};
use rusteron_test_support::{DEADLINE, await_that};

use crate::support::{Fixture, await_stop, ipc_context};

const CYCLES: u64 = 30;
/// The type of the counter that a client has from its first command on.
const CLIENT_HEARTBEAT: i32 = 11;

/// Opens a session, records, replays, and ends all of it, each in another way by turns.
fn cycle(aeron: &Aeron, number: u64) {
    let archive = Archive::connect(aeron, ipc_context()).expect("a session");
    let auto_stop = number % 2 == 0;
    let subscription = archive
        .start_recording("aeron:ipc", STREAM, SourceLocation::Local, auto_stop)
        .expect("a subscription");
    let mut publication =
        archive.aeron().add_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let recording = await_recording(&archive, publication.session_id());
    let position = offer_numbered(&mut publication, 0..10);
    archive.await_recorded(recording, position, DEADLINE).expect("a recording");
    let (replayed, id) = archive
        .replay_with_id(recording, "aeron:ipc", REPLAY_STREAM, ReplayParams::new())
        .expect("a replay");
    match number % 3 {
        0 => archive.stop_replay(id).expect("it was replayed"),
        1 => archive.stop_recording_subscription(subscription).expect("it was recorded"),
        // The subscriber goes first.
        _ => drop(replayed),
    }
    drop(publication);
    assert_eq!(await_stop(&archive, recording), position);
    if !auto_stop && number % 3 != 1 {
        archive.stop_recording_subscription(subscription).expect("it was recorded");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn cycles_leave_nothing_behind() {
    let fixture = Fixture::launch();
    let aeron = fixture.aeron();
    let is_heartbeat = |counter: &CounterSnapshot| counter.type_id == CLIENT_HEARTBEAT;
    let counters = || aeron.counters_reader().iter().filter(|it| !is_heartbeat(it)).count();
    let archive_dir = fixture.archive_dir().canonicalize().expect("a directory");
    let open_files = || {
        let entries = std::fs::read_dir("/proc/self/fd").expect("open files").flatten();
        let files = entries.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        files.filter(|file| file.starts_with(&archive_dir)).count()
    };
    let before = (counters(), open_files());
    for number in 0..CYCLES {
        cycle(&aeron, number);
    }
    await_that("what there was before", || (counters(), open_files()) == before);
    let recordings = fixture.connect().recordings().count() as u64;
    assert_eq!(recordings, CYCLES);
}
