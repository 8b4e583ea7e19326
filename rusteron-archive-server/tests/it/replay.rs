//! Replays, beside what the tests of the client `rusteron-archive` ask of any archive.

use std::fs::File;

use rusteron_archive::{Archive, ReplayLength, ReplayParams};
use rusteron_archive_server::Checksum;
use rusteron_test_support::archive::{REPLAY_STREAM, drain, record, replay_all};

use crate::support::{Fixture, await_error, connect_with_errors, ipc_context, recorded};

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

#[cfg(unix)]
#[test]
fn corrupt_payload_ends_the_replay() {
    use std::os::unix::fs::FileExt;

    let fixture = Fixture::launch_with(|context| {
        context
            .set_record_checksum(Some(Checksum::Crc32c))
            .and_then(|context| context.set_replay_checksum(Some(Checksum::Crc32c)))
            .expect("settings");
    });
    let (archive, errors) = connect_with_errors(&fixture.driver);
    let (_publication, recording_id, _) = record(&archive, 1000);
    // In the second term; the first one has 682 messages.
    let position = 64 * 1024 + 10 * 96;
    let segment = File::options().write(true).open(fixture.archive_dir().join("0-0.rec"));
    segment.expect("a segment").write_all_at(&[0], position + 32 + 20).expect("a write");
    let mut replay =
        archive.replay(recording_id, "aeron:ipc", REPLAY_STREAM, recorded()).expect("a replay");
    let count = drain(&mut replay).len();
    assert!(count <= 692, "{count}");
    let error = await_error(&archive, &errors).to_string();
    for text in [&*format!("CRC checksum mismatch at position={position} "), "recorded checksum="] {
        assert!(error.contains(text), "{error}");
    }
}

#[test]
fn last_value_of_a_freed_counter_is_the_end() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    let (_publication, recording_id, position) = record(&archive, 100);
    let limit = archive.aeron().add_counter(2001, b"", "the limit of a replay").expect("a counter");
    let params = ReplayParams::new()
        .length(ReplayLength::Bytes(position as u64))
        .bounding_limit_counter_id(limit.counter_id());
    let mut subscription =
        archive.replay(recording_id, "aeron:ipc", REPLAY_STREAM, params).expect("a replay");
    // Whenever the server looks.
    limit.set(position);
    drop(limit);
    assert_eq!(drain(&mut subscription), (0..100).collect::<Vec<_>>());
}
