//! Starts, stops, extensions, truncations and purges leave nothing behind: no counter, no file, and no open one.
//!
//! `RUSTERON_ARCHIVE_SOAK=SECONDS cargo test -p rusteron-archive-server --test it cycles -- --nocapture` goes on for so long,
//! checks the memory of the process, too, and prints what was in use. The catalog grows: entries of purged recordings stay.

use std::fs;
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ReplayParams, SourceLocation};
use rusteron_client::{Aeron, CounterSnapshot};
use rusteron_test_support::archive::{REPLAY_STREAM, STREAM, await_recording, offer_numbered};
use rusteron_test_support::{DEADLINE, await_that};

use crate::support::{Fixture, await_stop, extend, ipc_context};

const CYCLES: u64 = 30;
/// The type of the counter that a client has from its first command on.
const CLIENT_HEARTBEAT: i32 = 11;

/// Opens a session, records, replays, and ends all of it, each in another way by turns. Then the recording goes on, is cut
/// again, and deleted.
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
    extend(&archive, recording, 10..15);
    archive.truncate_recording(recording, position).expect("a truncation");
    archive.purge_recording(recording).expect("a purge");
}

/// Usage of a process and a server: counters, open files of the directory, its files, and KiB of memory.
#[cfg(target_os = "linux")]
const NAMES: [&str; 4] = ["counters", "open files", "files", "resident KiB"];

/// Returns the resident memory of this process in KiB.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
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
    let files = || fs::read_dir(&archive_dir).expect("the files").count();
    let usage = || [counters(), open_files(), files()];
    let before = usage();
    let soak = std::env::var("RUSTERON_ARCHIVE_SOAK");
    let soak = soak.map(|seconds| Duration::from_secs(seconds.parse().expect("seconds")));
    let (start, mut samples) = (Instant::now(), Vec::new());
    for number in 0.. {
        let is_over = match soak {
            Ok(duration) => start.elapsed() >= duration && number > CYCLES,
            Err(_) => number == CYCLES,
        };
        if is_over {
            break;
        }
        cycle(&aeron, number);
        let [counters, open_files, files] = usage();
        samples.push([counters, open_files, files, resident()]);
    }
    await_that("what there was before", || usage() == before);
    assert_eq!(fixture.connect().recordings().count(), 0);
    if soak.is_err() {
        return;
    }
    let tenth = samples.len() / 10;
    let catalog = fs::metadata(archive_dir.join("archive.catalog")).expect("the catalog").len();
    println!("{} cycles, a catalog of {catalog} bytes", samples.len());
    println!("{:>14}{:>18}{:>30}", "", "after a tenth", "lowest, median, highest");
    for (index, name) in NAMES.iter().enumerate() {
        let sorted = |samples: &[[usize; 4]]| {
            let mut values: Vec<_> = samples.iter().map(|sample| sample[index]).collect();
            values.sort_unstable();
            values
        };
        let (first, last) = (sorted(&samples[..=tenth]), sorted(&samples[samples.len() - tenth..]));
        let all = sorted(&samples);
        let (lowest, median, highest) = (all[0], all[all.len() / 2], all[all.len() - 1]);
        let highest_first = first[first.len() - 1];
        println!("{name:>14}{highest_first:>18}{lowest:>12}{median:>9}{highest:>9}");
        // An allocator does not give all back.
        let limit = highest_first + highest_first / 10 + 5;
        assert!(last[last.len() / 2] <= limit, "{name}: {highest_first} at first, then {last:?}");
    }
}
