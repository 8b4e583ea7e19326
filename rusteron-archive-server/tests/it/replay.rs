//! Replays, beside what the tests of the client `rusteron-archive` ask of any archive.

use rusteron_archive::{ReplayLength, ReplayParams};
use rusteron_archive_server::Checksum;
use rusteron_test_support::archive::{REPLAY_STREAM, drain, record, replay_all};

use crate::support::{Fixture, recorded};

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
