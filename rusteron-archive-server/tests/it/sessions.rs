//! Control sessions: connecting, answers, their ends.

use std::fs;
use std::sync::mpsc;

use rusteron_archive::{Archive, ArchiveErrorKind};
use rusteron_archive_server::Authorisation;
use rusteron_client::{Aeron, CounterSnapshot};
use rusteron_test_support::archive::fake_archive::{AUTH_CONNECT, Message};
use rusteron_test_support::archive::record;
use rusteron_test_support::{await_some, await_that, offer};

use crate::support::{Fixture, ipc_context, launch_driver};

/// Types of the counters of errors, of control sessions, and of one of them.
const ERRORS: i32 = 101;
const SESSIONS: i32 = 102;
const SESSION: i32 = 113;

fn counters(aeron: &Aeron, type_id: i32) -> Vec<CounterSnapshot> {
    aeron.counters_reader().iter().filter(|counter| counter.type_id == type_id).collect()
}

#[test]
fn connect_over_ipc_and_udp() {
    let fixture = Fixture::launch();
    let id = Some(fixture.server().archive_id());
    assert_eq!(fixture.connect().archive_id(), id);
    assert_eq!(fixture.connect_over_udp().archive_id(), id);
    assert!(!fixture.server().control_channel().ends_with(":0"));
}

#[test]
fn counters_show_sessions() {
    let fixture = Fixture::launch();
    let aeron = fixture.aeron();
    let archive = Archive::connect(&aeron, ipc_context()).expect("a session");
    let [count] = &*counters(&aeron, SESSIONS) else { panic!("one counter") };
    assert_eq!(count.value, 1);
    let [session] = &*counters(&aeron, SESSION) else { panic!("one session") };
    assert_eq!(session.value, archive.control_session_id().get());
    assert_ne!(session.reference_id, 0);
    assert!(session.label.starts_with("control-session: "), "{}", session.label);
    assert!(session.label.contains("sourceIdentity=aeron:ipc sessionId="), "{}", session.label);
    drop(archive);
    await_that("the end of the session", || {
        counters(&aeron, SESSION).is_empty() && counters(&aeron, SESSIONS)[0].value == 0
    });
}

#[test]
fn session_ends_with_its_client() {
    let fixture = Fixture::launch();
    let aeron = fixture.aeron();
    let other = fixture.aeron();
    // Without a farewell.
    std::mem::forget(Archive::connect(&other, ipc_context()).expect("a session"));
    assert_eq!(counters(&aeron, SESSION).len(), 1);
    let archive = fixture.connect();
    assert_eq!(counters(&aeron, SESSION).len(), 2);
    drop(archive);
    await_that("the end of one session", || counters(&aeron, SESSION).len() == 1);
}

/// A request whose answers nobody reads.
fn connect_request(response_channel: &str) -> Vec<u8> {
    let mut block = 1_i64.to_le_bytes().to_vec();
    block.extend(4711_i32.to_le_bytes());
    block.extend((1_i32 << 16 | 12 << 8).to_le_bytes());
    Message::new(AUTH_CONNECT, block, &[response_channel.as_bytes(), b"", b"a test"]).encode()
}

#[test]
fn strangers_leave_log_buffers_to_others() {
    const MAX_UNAUTHENTICATED_SESSIONS: usize = 64;
    let fixture = Fixture::launch();
    let aeron = fixture.aeron();
    let mut publication = aeron.add_exclusive_publication("aeron:ipc", 10).expect("added");
    let request = connect_request("aeron:ipc?term-length=1m|sparse=false");
    for _ in 0..MAX_UNAUTHENTICATED_SESSIONS {
        offer(&mut publication, &request);
    }
    // The server does not read on, which holds up the publisher.
    while publication.offer(&request).is_ok() {}
    let sessions = || counters(&aeron, SESSION).len();
    await_that("all sessions", || sessions() == MAX_UNAUTHENTICATED_SESSIONS);
    let dir = fixture.driver.aeron_dir().join("publications");
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let length = entry.and_then(|entry| entry.metadata()).expect("a file").len();
        assert!(length < 1 << 20, "a log buffer of {length} bytes");
    }
    // In place of one of them.
    let archive = fixture.connect();
    assert!(sessions() <= MAX_UNAUTHENTICATED_SESSIONS);
    assert_eq!(archive.archive_id(), Some(fixture.server().archive_id()));
}

#[test]
fn message_beyond_the_limit_is_never_whole() {
    let fixture = Fixture::launch();
    let limit = fixture.context().control_term_buffer_length();
    let aeron = fixture.aeron();
    let channel = "aeron:ipc?term-length=16m";
    let mut publication = aeron.add_exclusive_publication(channel, 10).expect("added");
    for length in [limit + 1, limit] {
        offer(&mut publication, &vec![0xff; length]);
    }
    offer(&mut publication, &connect_request("aeron:ipc"));
    await_that("the session behind them", || !counters(&aeron, SESSION).is_empty());
    // The server has counted the malformed message that it got.
    let [errors] = &*counters(&aeron, ERRORS) else { panic!("one counter") };
    assert_eq!(errors.value, 1);
}

#[test]
fn driver_gets_addresses_of_strangers() {
    let fixture = Fixture::launch();
    let aeron = fixture.aeron();
    let mut publication = aeron.add_exclusive_publication("aeron:ipc", 10).expect("added");
    // The system's resolver knows this name, and Rust does not take it for an address.
    offer(&mut publication, &connect_request("aeron:udp?endpoint=127.1:40123"));
    await_that("the publication of responses", || {
        let channel = "aeron:udp?endpoint=127.0.0.1:40123|";
        aeron.counters_reader().iter().any(|counter| counter.label.contains(channel))
    });
}

/// The client chooses the channel, whose text is in the reason. The reason goes through arrays on
/// the driver's stack.
#[test]
fn long_channel_shortens_the_rejections_reason() {
    let fixture = Fixture::launch();
    let (sender, reasons) = mpsc::channel();
    let mut context = rusteron_test_support::context(fixture.driver.aeron_dir());
    context
        .set_publication_error_handler(move |error| {
            sender.send(error.message.clone()).expect("a receiver");
        })
        .expect("a handler");
    let aeron = Aeron::connect(context).expect("a client");
    for alias in ["A".repeat(1050), format!("A{}", "ä".repeat(525))] {
        let control = fixture.server().control_channel();
        let mut publication = aeron.add_exclusive_publication(control, 10).expect("added");
        let mut block = 1_i64.to_le_bytes().to_vec();
        block.extend(4711_i32.to_le_bytes());
        block.extend((1_i32 << 16 | 12 << 8).to_le_bytes());
        let channel = format!("aeron:udp?endpoint=127.0.0.1:99999|alias={alias}");
        let texts: [&[u8]; 3] = [channel.as_bytes(), b"wrong credentials", b"a test"];
        offer(&mut publication, &Message::new(AUTH_CONNECT, block, &texts).encode());
        let reason = await_some("the rejection", || reasons.try_recv().ok());
        assert!((999..=1000).contains(&reason.len()), "{reason}");
        assert!(reason.contains(&alias[..499]), "{reason}");
    }
}

/// Refuses requests for start positions, template 52.
struct NoStartPosition;

impl Authorisation for NoStartPosition {
    fn is_authorised(&mut self, template_id: u16, _encoded_principal: &[u8]) -> bool {
        template_id != 52
    }
}

#[test]
fn denied_request_is_answered() {
    let fixture = Fixture::launch_with(|context| {
        context.set_authorisation(|| NoStartPosition).expect("an authorisation");
    });
    let archive = fixture.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    let error = archive.start_position(recording_id).expect_err("denied");
    assert_eq!(error.kind(), ArchiveErrorKind::UnauthorisedAction, "{error}");
    assert_eq!(archive.stop_position(recording_id).expect("allowed"), None);
}

#[test]
fn client_without_answers_is_told_why() {
    let fixture = Fixture::launch();
    // On another machine, where the client's publication is added as usual.
    let driver = launch_driver();
    let aeron = rusteron_test_support::connect(&driver);
    let publications = fixture.driver.aeron_dir().join("publications");
    fs::remove_dir_all(&publications).expect("a directory");
    let mut context = ipc_context();
    context
        .set_control_request_channel(fixture.server().control_channel())
        .and_then(|it| it.set_control_response_channel("aeron:udp?endpoint=localhost:0"))
        .expect("channels");
    let error = Archive::connect(&aeron, context).expect_err("no answer is possible");
    fs::create_dir(&publications).expect("a directory");
    assert_eq!(error.kind(), ArchiveErrorKind::Refused, "{error}");
    assert!(error.message().contains(" has rejected the session: "), "{error}");
    assert!(error.message().contains("Failed to create file"), "{error}");
}
