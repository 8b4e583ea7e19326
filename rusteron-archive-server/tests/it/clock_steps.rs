//! Steps of the wall clock in an archive with its driver, and in its clients.
//!
//! The processes have a wall clock of their own. The machine's is never stepped.

use std::time::Duration;

use rusteron_archive::{Archive, ReplayMerge};
use rusteron_client::{Aeron, Context};
use rusteron_test_support::archive::{STREAM, numbered, offer_numbered};
use rusteron_test_support::{
    DEADLINE, Running, SteppedHome, await_that, command, free_port, job, read_line,
};

use crate::faults::{WITH_DRIVER, end, start};
use crate::support::ipc_context;

const STEP: Duration = Duration::from_secs(15);
const HOUR: Duration = Duration::from_secs(3600);

/// All timeouts are Aeron's.
fn archive(home: &SteppedHome) -> Running {
    let mut program = command(
        WITH_DRIVER,
        [
            "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:0",
            "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0",
            "-Daeron.archive.threading.mode=SHARED",
            "-Daeron.threading.mode=SHARED",
        ],
    );
    program.arg("--dir").arg(home.aeron_dir());
    program.arg("--archive-dir").arg(home.dir.path().join("archive"));
    home.clock.set(&mut program);
    start(program)
}

#[test]
#[ignore = "run by the tests below, in processes with another clock"]
fn client_process() {
    let (kind, dir) = job();
    let mut context = Context::new().expect("a context");
    context.set_dir(&dir).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    let session = || Archive::connect(&aeron, ipc_context()).expect("a session");
    match &*kind {
        "record" => record_at_each_line(&session()),
        "merge" => merge_after_lines(&session(), session()),
        _ => unreachable!("{kind}"),
    }
}

fn record_at_each_line(archive: &Archive) {
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a recording");
    println!("ready");
    while read_line() {
        let position = offer_numbered(&mut publication, 0..10);
        archive.await_recorded(recording_id, position, DEADLINE).expect("recorded");
        println!("recorded");
    }
}

/// Merges a replay with a live stream. The parent steps the clock between the first two polls.
fn merge_after_lines(archive: &Archive, other: Archive) {
    let (control, endpoint) = (free_port(), free_port());
    let channel = format!(
        "aeron:udp?control=localhost:{control}|control-mode=dynamic|fc=min|term-length=64k"
    );
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication(&channel, STREAM).expect("a recording");
    let position = offer_numbered(&mut publication, 0..10);
    archive.await_recorded(recording_id, position, DEADLINE).expect("recorded");
    let subscription = archive
        .aeron()
        .add_subscription("aeron:udp?control-mode=manual", STREAM)
        .expect("a subscription");
    let mut merge = ReplayMerge::builder(
        format!("aeron:udp?session-id={}", publication.session_id()),
        "aeron:udp?endpoint=localhost:0",
        format!("aeron:udp?endpoint=localhost:{endpoint}|control=localhost:{control}"),
    )
    .progress_timeout(DEADLINE)
    .live_timeout(DEADLINE)
    .start(other, subscription, recording_id)
    .expect("a merge");
    let mut received = Vec::new();
    let mut poll = || {
        merge.poll(|text, _| received.push(numbered(text)), 100).expect("a merge");
        merge.is_merged()
    };
    println!("ready");
    for _ in 0..2 {
        read_line();
        // Requests are sent, and there are no answers.
        (0..10).for_each(|_| assert!(!poll()));
        println!("polled");
    }
    await_that("the merge", poll);
    assert_eq!(received, (0..10).collect::<Vec<_>>());
    println!("merged");
}

#[test]
fn archive_and_clients_survive_steps() {
    let mut home = SteppedHome::new();
    let running = archive(&home);
    let mut client = home.client("record");
    for length in [STEP, HOUR] {
        home.step(|clock| clock.step_forward(length));
        home.step(|clock| clock.step_forward(length));
        home.step(|clock| clock.step_back(length));
        client.write_line("");
        assert_eq!(client.line(), "recorded");
    }
    client.close_input();
    assert!(client.wait().success());
    assert_eq!(end(running), Vec::<String>::new());
}

#[test]
fn killed_archive_restarts_after_step_back() {
    let mut home = SteppedHome::new();
    let mut killed = archive(&home);
    killed.kill();
    home.clock.step_back(HOUR);
    end(archive(&home));
}

#[test]
fn replay_merge_survives_step() {
    let mut home = SteppedHome::new();
    let running = archive(&home);
    let mut client = home.client("merge");
    // The merge makes no progress meanwhile.
    running.signal("STOP");
    client.write_line("");
    assert_eq!(client.line(), "polled");
    home.clock.step_forward(HOUR);
    client.write_line("");
    assert_eq!(client.line(), "polled");
    running.signal("CONT");
    assert_eq!(client.line(), "merged");
    drop(client);
    end(running);
}
