//! The client that a killed archive leaves on a media driver that lives on: the next archive of its id closes it, and
//! never that of a living archive.

use std::path::Path;

use rusteron_archive::Archive;
use rusteron_client::{Aeron, CountersReader};
use rusteron_core::cnc::i64_at;
use rusteron_test_support::archive::record;
use rusteron_test_support::{
    DriverProcess, await_some, await_that, context, has_java, java_driver_with,
    media_driver_beside, watchful_context,
};

use crate::faults::{ARCHIVE, archive, assert_contains, end, refused, start};
use crate::support::{extend, ipc_context};

const ID: &str = "aeron.archive.id=7";
const OTHER_ID: &str = "aeron.archive.id=8";
/// Types of counters.
const CLIENT_HEARTBEAT: i32 = 11;
const ERRORS: i32 = 101;
const REPLAY_SESSIONS: i32 = 112;

/// The clients that have a counter of this type of archive 7.
fn owners(counters: &CountersReader<'_>, type_id: i32) -> Vec<i64> {
    let is_of_7 = |key: &[u8]| i64_at(key, 0) == Some(7);
    let found = counters.iter().filter(|it| it.type_id == type_id && is_of_7(&it.key));
    found.map(|it| it.owner_id).collect()
}

/// The only archive 7. All of its counters have one owner.
#[track_caller]
fn owner(counters: &CountersReader<'_>) -> i64 {
    let owner = owners(counters, ERRORS);
    assert_eq!(owner.len(), 1, "{owner:?}");
    for type_id in ERRORS + 1..=REPLAY_SESSIONS {
        assert_eq!(owners(counters, type_id), owner, "type {type_id}");
    }
    owner[0]
}

/// The driver sets the heartbeat of a client to zero when it is told to close the client.
fn heartbeat(aeron: &Aeron, client_id: i64) -> Option<i64> {
    let counters = aeron.counters_reader();
    counters.value(counters.find_by_type_id_and_registration_id(CLIENT_HEARTBEAT, client_id)?)
}

/// A client that does no work on its own.
fn connect_silently(aeron_dir: &Path) -> Aeron {
    let mut context = context(aeron_dir);
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    Aeron::connect(context).expect("a client")
}

#[test]
fn next_archive_of_the_id_starts_before_the_timeout() {
    if !has_java() {
        return;
    }
    let home = rusteron_test_support::memory_dir("rusteron-killed-").expect("a directory");
    let (dir, other) = (home.path().join("archive"), home.path().join("other"));
    let aeron_dir = home.path().join("driver");
    // Ours knows at once that the archive's process has ended.
    let _driver = java_driver_with(&aeron_dir, |command| {
        command.args([
            "-Daeron.ipc.term.buffer.length=64k",
            "-Daeron.client.liveness.timeout=1200s",
            "-Daeron.publication.unblock.timeout=2400s",
        ])
    });
    let aeron = Aeron::connect(context(&aeron_dir)).expect("a client");
    let mut recording = None;
    for kill in 0..3 {
        let mut server = start(archive(&aeron_dir, &dir, &[ID]));
        let killed = owner(&aeron.counters_reader());
        let session = Archive::connect(&aeron, ipc_context()).expect("a session");
        if let Some(recording_id) = recording {
            extend(&session, recording_id, kill * 100..(kill + 1) * 100);
        } else {
            let (publication, recording_id, _) = record(&session, 100);
            recording = Some(recording_id);
            drop(publication);
        }
        let line = refused(archive(&aeron_dir, &other, &[ID]), 75);
        assert_contains(&line, &["archiveId=7", "AERON_ARCHIVE_ID"]);
        assert_eq!(owner(&aeron.counters_reader()), killed);
        server.kill();
        drop(session);
        // Only the archive of the same directory knows the client.
        let line = refused(archive(&aeron_dir, &other, &[ID]), 75);
        assert_contains(&line, &["archiveId=7", "AERON_ARCHIVE_ID"]);
        assert_eq!(owner(&aeron.counters_reader()), killed);
    }
    // With another id, there is nothing to wait for, and the client is closed all the same.
    let server = start(archive(&aeron_dir, &dir, &[OTHER_ID]));
    await_that("the end of the killed archive's counters", || {
        owners(&aeron.counters_reader(), ERRORS).is_empty()
    });
    assert_eq!(end(server), [""; 0]);
}

#[test]
fn client_of_a_driver_started_in_between_is_not_closed() {
    let home = rusteron_test_support::memory_dir("rusteron-killed-").expect("a directory");
    let (aeron_dir, dir) = (home.path().join("driver"), home.path().join("archive"));
    let launch = || {
        let timeouts =
            ["-Daeron.client.liveness.timeout=600s", "-Daeron.publication.unblock.timeout=1200s"];
        let program = media_driver_beside(ARCHIVE);
        let driver = DriverProcess::start(program, &aeron_dir, &timeouts);
        let aeron = await_some("a driver", || Aeron::connect(watchful_context(&aeron_dir)).ok());
        (driver, aeron)
    };
    let (mut driver, aeron) = launch();
    // The next driver gives this many ids before that of the killed client.
    for _ in 0..20 {
        aeron.next_correlation_id();
    }
    let mut server = start(archive(&aeron_dir, &dir, &[ID]));
    let killed = owner(&aeron.counters_reader());
    server.kill();
    drop(aeron);
    driver.signal("TERM");
    assert_eq!(driver.end().0, 0);

    let (_driver, aeron) = launch();
    while aeron.next_correlation_id() < killed - 1 {}
    let foreign = connect_silently(&aeron_dir);
    assert_eq!(foreign.client_id(), killed);
    // Its counter is that of an archive.
    let _errors = foreign.add_counter(ERRORS, &7_i64.to_le_bytes(), "Archive Errors");
    let server = start(archive(&aeron_dir, &dir, &[OTHER_ID]));
    assert!(heartbeat(&aeron, killed).is_some_and(|time| time > 0));
    assert_eq!(end(server), [""; 0]);
    let line = refused(archive(&aeron_dir, &dir, &[ID]), 75);
    assert_contains(&line, &["archiveId=7", "AERON_ARCHIVE_ID"]);
}
