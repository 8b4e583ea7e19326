//! Recordings, beside what the tests of the client `rusteron-archive` ask of any archive.

use rusteron_archive::SourceLocation;
use rusteron_archive_server::ArchiveThreadingMode;
use rusteron_client::OfferError;
use rusteron_test_support::archive::{
    STREAM, await_recording, message, offer_numbered, record, replay_all,
};
use rusteron_test_support::{DEADLINE, await_that};

use crate::support::{Fixture, Turns, await_stop, recorded};

const LOCAL: SourceLocation = SourceLocation::Local;

#[test]
fn each_publisher_has_a_recording() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    archive.start_recording("aeron:ipc", STREAM, LOCAL, false).expect("a subscription");
    let aeron = archive.aeron();
    let publications: Vec<_> = (0..3)
        .map(|_| aeron.add_exclusive_publication("aeron:ipc", STREAM).expect("a publication"))
        .collect();
    let mut recordings = Vec::new();
    for (index, mut publication) in publications.into_iter().enumerate() {
        let recording_id = await_recording(&archive, publication.session_id());
        let count = 10 * (index as u64 + 1);
        let position = offer_numbered(&mut publication, 0..count);
        archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
        recordings.push((recording_id, count, publication));
    }
    archive.stop_recording("aeron:ipc", STREAM).expect("they were recorded");
    for (recording_id, count, _publication) in &recordings {
        await_stop(&archive, *recording_id);
        let numbers: Vec<_> = (0..*count).collect();
        assert_eq!(replay_all(&archive, *recording_id, recorded()), numbers);
    }
}

#[test]
fn paused_server_holds_up_publisher() {
    let mut fixture = Fixture::launch_with(|context| {
        context.set_threading_mode(ArchiveThreadingMode::Invoker).expect("a mode");
    });
    let turns = Turns::run(fixture.take());
    let archive = fixture.connect();
    let (mut publication, recording_id, _) = record(&archive, 1);
    turns.pause();
    // A turn that has begun goes on, so there can be space once more.
    let mut next = 1;
    let mut refusals = 0;
    await_that("back pressure", || {
        match publication.offer(&message(next)) {
            Ok(_) => next += 1,
            Err(OfferError::BackPressured) => refusals += 1,
            Err(OfferError::AdminAction) => {}
            Err(error) => panic!("{error}"),
        }
        refusals > 1000
    });
    turns.go_on();
    let position = offer_numbered(&mut publication, next..next + 100);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    let all: Vec<_> = (0..next + 100).collect();
    assert_eq!(replay_all(&archive, recording_id, recorded()), all);
    drop(archive);
    turns.end().close().expect("a good end");
}
