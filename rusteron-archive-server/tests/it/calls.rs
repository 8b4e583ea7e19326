//! What a call of the archive client or of the Aeron client makes ends with what it returns: no
//! counter, no log buffer, no open file and no subscription of the archive is left, however often
//! it is called.
//!
//! `RUSTERON_ARCHIVE_CALLS=100` makes each call so often.

use std::fs;

use rusteron_archive::{
    Archive, AsyncArchive, PersistentSubscription, PersistentSubscriptionContext, RecordingId,
    ReplayMerge, ReplayParams, ReplicationParams, SourceLocation, StartPosition,
};
use rusteron_client::{Aeron, CounterSnapshot};
use rusteron_test_support::archive::{REPLAY_STREAM, STREAM, record};
use rusteron_test_support::{await_that, free_port};

use crate::replication::launch;
use crate::support::{Fixture, ipc_context};

/// More than the archive's limits of recordings and of replays.
const CALLS: usize = 25;
/// The type of the counter that a client has from its first command on.
const CLIENT_HEARTBEAT: i32 = 11;
/// Not the stream of the recording that goes on.
const OTHER_STREAM: i32 = STREAM + 1;

/// A server, a client and a session that stay, and a recording that goes on.
struct Calls {
    fixture: Fixture,
    aeron: Aeron,
    archive: Archive,
    recording_id: RecordingId,
}

impl Calls {
    /// Returns what server, driver and client use: counters, log buffers of publications and of
    /// images, mapped and open files of theirs, subscriptions of the archive.
    fn usage(&self) -> [usize; 6] {
        let is_heartbeat = |counter: &CounterSnapshot| counter.type_id == CLIENT_HEARTBEAT;
        let aeron_dir = self.fixture.driver.aeron_dir();
        let files = |name| fs::read_dir(aeron_dir.join(name)).expect("log buffers").count();
        let dirs = [aeron_dir.to_owned(), self.fixture.archive_dir()];
        let is_theirs = |path: &str| dirs.iter().any(|dir| path.contains(&*dir.to_string_lossy()));
        let maps = fs::read_to_string("/proc/self/maps").expect("the mappings");
        let open = fs::read_dir("/proc/self/fd").expect("open files").flatten();
        let open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        [
            self.aeron.counters_reader().iter().filter(|it| !is_heartbeat(it)).count(),
            files("publications"),
            files("images"),
            maps.lines().filter(|line| is_theirs(line)).count(),
            open.filter(|path| is_theirs(&path.to_string_lossy())).count(),
            self.archive.recording_subscriptions("", None).expect("an answer").count(),
        ]
    }
}

/// Makes calls often, each of which is a name and a block, and awaits what there was before.
macro_rules! make {
    ($calls:ident, $($name:literal: $call:block)+) => {{
        let number = std::env::var("RUSTERON_ARCHIVE_CALLS").ok().and_then(|it| it.parse().ok());
        let before = $calls.usage();
        $(
            for _ in 0..number.unwrap_or(CALLS) {
                let _made = $call;
            }
            await_that(concat!("the end of ", $name), || $calls.usage() == before);
        )+
    }};
}

fn launch_calls() -> (Calls, rusteron_client::ExclusivePublication) {
    let fixture = launch();
    let aeron = fixture.aeron();
    let archive = Archive::connect(&aeron, ipc_context()).expect("a session");
    let (publication, recording_id, _) = record(&archive, 1000);
    (Calls { fixture, aeron, archive, recording_id }, publication)
}

#[test]
fn sessions_and_recordings_end() {
    let (calls, _publication) = launch_calls();
    let (aeron, archive) = (&calls.aeron, &calls.archive);
    let connect_async = |polls: usize| {
        let mut connect = Archive::async_connect(aeron, ipc_context()).expect("an attempt");
        (0..polls).find_map(|_| {
            std::thread::yield_now();
            connect.poll().expect("no error")
        })
    };
    let udp = format!("aeron:udp?endpoint=localhost:{}", free_port());
    make! { calls,
        "sessions": { Archive::connect(aeron, ipc_context()).expect("a session") }
        "sessions of other clients": { calls.fixture.connect_over_udp() }
        "abandoned connects": { connect_async(0) }
        "abandoned connects under way": { connect_async(10) }
        "recorded publications": {
            archive.add_recorded_exclusive_publication("aeron:ipc", OTHER_STREAM).expect("it")
        }
        "recorded UDP publications": {
            archive.add_recorded_publication(&*udp, OTHER_STREAM).expect("it")
        }
        "recorded publications added twice": {
            let first = archive.add_recorded_publication("aeron:ipc", OTHER_STREAM).expect("it");
            archive.add_recorded_publication("aeron:ipc", OTHER_STREAM).expect_err("twice");
            first
        }
        "abandoned requests": {
            let session = Archive::connect(aeron, ipc_context()).expect("a session");
            let session = AsyncArchive::new(session);
            drop(session.recordings(0.into(), 10).expect("sent"));
            let source = SourceLocation::Local;
            drop(session.start_recording("aeron:ipc", OTHER_STREAM, source, true).expect("sent"));
            drop(session.stop_recording("aeron:ipc", OTHER_STREAM).expect("sent"));
            session
        }
        "abandoned listings": { archive.recordings().next() }
        "replications of an unknown recording": {
            let control = calls.fixture.server().control_channel();
            let params = ReplicationParams::new();
            let id = archive.replicate(77.into(), control, 10, &params).expect("an id");
            archive.try_stop_replication(id).expect("an answer")
        }
    }
}

#[test]
fn replays_end() {
    let (calls, _publication) = launch_calls();
    let (aeron, archive, id) = (&calls.aeron, &calls.archive, calls.recording_id);
    let replay = |channel: &str| {
        let params = ReplayParams::new();
        let (subscription, replay) =
            archive.replay_with_id(id, channel, REPLAY_STREAM, params).expect("a replay");
        // Otherwise, the archive waits for its subscriber.
        archive.stop_replay(replay).expect("an answer");
        subscription
    };
    let persistent = |replay_channel: &str, is_polled: bool| {
        let mut context = PersistentSubscriptionContext::new(
            id,
            "aeron:ipc",
            STREAM,
            replay_channel,
            REPLAY_STREAM,
        )
        .expect("valid settings");
        context.set_start_position(StartPosition::Start).expect("a position");
        let mut subscription =
            PersistentSubscription::new(aeron, ipc_context(), context).expect("a subscription");
        await_that("the replay", || {
            !is_polled || {
                subscription.poll(|_, _| {}, 10).expect("no failure");
                subscription.is_replaying()
            }
        });
        subscription
    };
    let merge = |recording_id: RecordingId, polls: usize| {
        let session = Archive::connect(aeron, ipc_context()).expect("a session");
        let subscription =
            aeron.add_subscription("aeron:udp?control-mode=manual", STREAM).expect("valid");
        let live = format!("aeron:udp?endpoint=localhost:{}", free_port());
        let (channel, destination) = ("aeron:udp?session-id=7", "aeron:udp?endpoint=localhost:0");
        let mut merge = ReplayMerge::builder(channel, destination, &*live)
            .start(session, subscription, recording_id)
            .expect("a merge");
        for _ in 0..polls {
            let _ = merge.poll(|_, _| {}, 10);
            std::thread::yield_now();
        }
        merge
    };
    make! { calls,
        "replays": { replay("aeron:ipc") }
        "UDP replays": { replay(&format!("aeron:udp?endpoint=localhost:{}", free_port())) }
        "replays to response channels": { replay("aeron:ipc?control-mode=response") }
        "refused replays to response channels": {
            let (channel, params) = ("aeron:ipc?control-mode=response", ReplayParams::new());
            archive.replay(77.into(), channel, REPLAY_STREAM, params).expect_err("unknown")
        }
        "persistent subscriptions": { persistent("aeron:ipc", false) }
        "replaying persistent subscriptions": { persistent("aeron:ipc", true) }
        "persistent subscriptions by UDP": { persistent("aeron:udp?endpoint=localhost:0", true) }
        "persistent subscriptions by response channels": {
            persistent("aeron:ipc?control-mode=response", true)
        }
        "abandoned merges": { merge(id, 0) }
        "abandoned merges under way": { merge(id, 50) }
        "merges of an unknown recording": { merge(77.into(), 50) }
    }
}
