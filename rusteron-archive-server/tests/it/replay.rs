//! Replays, beside what the tests of the client `rusteron-archive` ask of any archive.

use rusteron_archive::Archive;
use rusteron_archive_server::Checksum;
use rusteron_test_support::archive::{REPLAY_STREAM, drain, record, replay_all};

use crate::support::{Fixture, ipc_context, recorded};

#[test]
fn checksums_are_written_and_checked() {
    let fixture = Fixture::launch_with(|context| {
        context
            .set_record_checksum(Some(Checksum::Crc32c))
            .and_then(|context| context.set_replay_checksum(Some(Checksum::Crc32c)))
            .expect("settings");
    });
    let archive = fixture.connect();
    let (_publication, recording_id, _) = record(&archive, 100);
    assert_eq!(replay_all(&archive, recording_id, recorded()), (0..100).collect::<Vec<_>>());
}

/// The server resolves the name of a session's control address, and the media driver that of a
/// replay.
#[test]
fn replay_shares_the_control_address_of_responses() {
    let fixture = Fixture::launch();
    let port = rusteron_test_support::free_port();
    let channel = format!("aeron:udp?control-mode=response|control=localhost:{port}");
    let mut context = ipc_context();
    context
        .set_control_request_channel(fixture.server().control_channel())
        .and_then(|context| context.set_control_response_channel(&channel))
        .expect("channels");
    let archive = Archive::connect(&fixture.aeron(), context).expect("a session");
    let (_publication, recording_id, _) = record(&archive, 100);
    let mut subscription =
        archive.replay(recording_id, &channel, REPLAY_STREAM, recorded()).expect("a replay");
    assert_eq!(drain(&mut subscription), (0..100).collect::<Vec<_>>());
}
