//! Copying recordings between archives.

mod support;

use std::sync::mpsc;

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingSignal, RecordingSignalKind, ReplayLength, ReplayParams,
    ReplicationParams,
};
use support::{JavaArchive, await_some, await_that, offer_numbered, record, replay_all};

fn listening(java: &JavaArchive) -> (Archive, mpsc::Receiver<RecordingSignal>) {
    let (sender, receiver) = mpsc::channel();
    let mut context = java.context();
    context
        .set_recording_signal_consumer(move |signal| sender.send(*signal).expect("us"))
        .expect("a consumer");
    (Archive::connect(&java.aeron(), context).expect("a session"), receiver)
}

fn await_signal(
    archive: &Archive,
    signals: &mpsc::Receiver<RecordingSignal>,
    kind: RecordingSignalKind,
) -> RecordingSignal {
    await_some("the signal", || {
        archive.poll_for_recording_signals().expect("a connection");
        signals.try_iter().find(|signal| signal.kind == kind)
    })
}

fn replayed(archive: &Archive, recording_id: i64) -> Vec<u64> {
    replay_all(archive, recording_id, ReplayParams::new().length(ReplayLength::Recorded))
}

#[test]
fn a_recording_is_copied_followed_and_stopped_at_a_position() {
    let Some(source_java) = JavaArchive::launch() else { return };
    let Some(copy_java) = JavaArchive::launch() else { return };
    let source = source_java.connect();
    let (copy, signals) = listening(&copy_java);
    let (mut publication, id, position) = record(&source, 1000);

    let params = ReplicationParams::new().stop_position(position);
    copy.replicate(id, source_java.control_channel(), 10, &params).expect("an id");
    let signal = await_signal(&copy, &signals, RecordingSignalKind::ReplicateEnd);
    assert_eq!(replayed(&copy, signal.recording_id), (0..1000).collect::<Vec<_>>());

    // The rest goes into the same recording, as long as there is more.
    let params = ReplicationParams::new().dst_recording_id(signal.recording_id);
    let replication =
        copy.replicate(id, source_java.control_channel(), 10, &params).expect("an id");
    let end = offer_numbered(&mut publication, 1000..2000);
    await_that("the copy of the rest", || {
        copy.max_recorded_position(signal.recording_id).expect("a position") == end
    });
    copy.stop_replication(replication).expect("it was going on");
    assert!(!copy.try_stop_replication(replication).expect("an answer"));
    let error = copy.stop_replication(replication).expect_err("it is over");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownReplication, "{error}");
    assert_eq!(replayed(&copy, signal.recording_id), (0..2000).collect::<Vec<_>>());
}

#[test]
fn what_does_not_fit_into_a_request_is_refused() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let channel = format!("aeron:udp?endpoint=localhost:1|alias={}", "x".repeat(3000));
    let params = ReplicationParams::new()
        .replication_channel(channel.clone())
        .src_response_channel(channel.clone())
        .encoded_credentials(vec![0; 3000]);
    let error = archive.replicate(0, &channel, 10, &params).expect_err("too much");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error}");
    let params = ReplicationParams::new().encoded_credentials(vec![0; 4000]);
    let error = archive.replicate(0, "aeron:ipc", 10, &params).expect_err("too long");
    assert!(error.to_string().contains("4000 bytes"), "{error}");
}
