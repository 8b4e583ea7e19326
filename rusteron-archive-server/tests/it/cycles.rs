//! Starts, stops, extensions, truncations, replications and purges leave nothing behind: no counter, no image, no file, and no
//! open one.
//!
//! `RUSTERON_ARCHIVE_SOAK=SECONDS cargo test -p rusteron-archive-server --test it cycles -- --nocapture` goes on for so long,
//! checks the memory of the process, too, and prints what was in use. Let it be five minutes or more: drivers keep images for
//! ten seconds. The catalogs grow: entries of purged recordings stay.

use std::fs;
use std::time::{Duration, Instant};

use rusteron_archive::{
    Archive, RecordingSignalKind, ReplayParams, ReplicationParams, SourceLocation,
};
use rusteron_client::{Aeron, CounterSnapshot};
use rusteron_test_support::archive::{
    REPLAY_STREAM, STREAM, await_recording, offer_numbered, replay_all,
};
use rusteron_test_support::{DEADLINE, await_that};

use crate::replication::{Listener, launch, merge};
use crate::support::{Fixture, await_stop, extend, ipc_context, recorded};

const CYCLES: u64 = 30;
/// The type of the counter that a client has from its first command on.
const CLIENT_HEARTBEAT: i32 = 11;
/// The length of a frame with a number.
const FRAME: i64 = 96;

/// The archive that records, and the one that copies.
struct Pair {
    source: Fixture,
    target: Fixture,
    clients: [Aeron; 2],
}

impl Pair {
    fn launch() -> Self {
        let (source, target) = (launch(), launch());
        let clients = [source.aeron(), target.aeron()];
        Self { source, target, clients }
    }

    /// Opens sessions, records, replays and copies, and ends all of it, each in another way by turns. Then the recording
    /// goes on, is cut again, and all is deleted.
    fn cycle(&self, number: u64) {
        let archive = Archive::connect(&self.clients[0], ipc_context()).expect("a session");
        let copy = Listener::connect(&self.clients[1]);
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
        let control = self.source.server().control_channel();
        let replicate = |params| copy.archive.replicate(recording, control, 10, &params);
        let params = ReplicationParams::new();
        let (mut count, mut replication) = (10, None);
        match number % 4 {
            0 => replication = Some(replicate(params).expect("an id")),
            1 => _ = replicate(params).expect("an id"),
            2 => {
                count = 5;
                replicate(params.stop_position(FRAME * 5)).expect("an id");
            }
            // When the recording has ended.
            _ => {}
        }
        match number % 3 {
            0 => archive.stop_replay(id).expect("it was replayed"),
            1 => archive.stop_recording_subscription(subscription).expect("it was recorded"),
            // The subscriber goes first.
            _ => drop(replayed),
        }
        if let Some(id) = replication.filter(|_| number % 3 != 1) {
            let copied = copy.await_signal(RecordingSignalKind::Extend).recording_id;
            copy.archive.await_recorded(copied, position, DEADLINE).expect("a copy");
            copy.archive.stop_replication(id).expect("it goes on");
        }
        drop(publication);
        assert_eq!(await_stop(&archive, recording), position);
        if number % 4 == 3 {
            replicate(ReplicationParams::new()).expect("an id");
        }
        if !auto_stop && number % 3 != 1 {
            archive.stop_recording_subscription(subscription).expect("it was recorded");
        }
        let copied = copy.await_signal(RecordingSignalKind::ReplicateEnd).recording_id;
        assert_eq!(await_stop(&copy.archive, copied), FRAME * count as i64);
        let numbers = replay_all(&copy.archive, copied, recorded());
        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        extend(&archive, recording, 10..15);
        archive.truncate_recording(recording, position).expect("a truncation");
        if number % 5 == 0 {
            merge(&archive, control, &copy);
        }
        for archive in [&archive, &copy.archive] {
            let all: Vec<_> = archive.recordings().map(|it| it.expect("a recording")).collect();
            for recording in all {
                archive.purge_recording(recording.recording_id).expect("a purge");
            }
        }
    }

    /// Returns the usage that [`NAMES`] lists, of both servers and their drivers together, except memory.
    fn usage(&self) -> [usize; 4] {
        let is_heartbeat = |counter: &CounterSnapshot| counter.type_id == CLIENT_HEARTBEAT;
        let mut usage = [0; 4];
        for (fixture, aeron) in [&self.source, &self.target].into_iter().zip(&self.clients) {
            let archive_dir = fixture.archive_dir().canonicalize().expect("a directory");
            let entries = fs::read_dir("/proc/self/fd").expect("open files").flatten();
            let open = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
            let images = fixture.driver.aeron_dir().join("images");
            let used = [
                aeron.counters_reader().iter().filter(|it| !is_heartbeat(it)).count(),
                fs::read_dir(images).expect("images").count(),
                open.filter(|file| file.starts_with(&archive_dir)).count(),
                fs::read_dir(&archive_dir).expect("the files").count(),
            ];
            usage.iter_mut().zip(used).for_each(|(sum, used)| *sum += used);
        }
        usage
    }

    /// Returns the lengths of the catalogs, in bytes.
    fn catalogs(&self) -> [u64; 2] {
        [&self.source, &self.target].map(|fixture| {
            let catalog = fixture.archive_dir().join("archive.catalog");
            fs::metadata(catalog).expect("the catalog").len()
        })
    }
}

/// Usage of the process and the servers: counters, log buffers of images, open files of recordings, all files, memory.
const NAMES: [&str; 5] = ["counters", "images", "open files", "files", "resident KiB"];

/// Returns the resident memory of this process in KiB.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn cycles_leave_nothing_behind() {
    let pair = Pair::launch();
    let before = pair.usage();
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
        pair.cycle(number);
        let [counters, images, open_files, files] = pair.usage();
        samples.push([counters, images, open_files, files, resident()]);
    }
    await_that("what there was before", || pair.usage() == before);
    for fixture in [&pair.source, &pair.target] {
        assert_eq!(fixture.connect().recordings().count(), 0);
    }
    if soak.is_err() {
        return;
    }
    let tenth = samples.len() / 10;
    println!("{} cycles, catalogs of {:?} bytes", samples.len(), pair.catalogs());
    println!("{:>14}{:>18}{:>30}", "", "after a tenth", "lowest, median, highest");
    for (index, name) in NAMES.iter().enumerate() {
        let sorted = |samples: &[[usize; 5]]| {
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
