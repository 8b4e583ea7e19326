//! Copying recordings between archives.

use std::sync::mpsc;

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingId, RecordingSignal, RecordingSignalKind, ReplayLength,
    ReplayParams, ReplicationParams,
};
use rusteron_test_support::archive::{
    ArchiveProcess, Options, STREAM, numbered, offer_numbered, record, replay_all,
};
use rusteron_test_support::{DEADLINE, await_some, await_that, free_port};

fn listening(server: &ArchiveProcess) -> (Archive, mpsc::Receiver<RecordingSignal>) {
    let (sender, receiver) = mpsc::channel();
    let mut context = server.context();
    context
        .set_recording_signal_consumer(move |signal| sender.send(*signal).expect("us"))
        .expect("a consumer");
    (Archive::connect(&server.aeron(), context).expect("a session"), receiver)
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

/// Returns whether the archive's driver has a counter with all of these texts in its label.
fn is_counted(archive: &Archive, texts: &[&str]) -> bool {
    let counters = archive.aeron().counters_reader();
    counters.iter().any(|counter| texts.iter().all(|text| counter.label.contains(text)))
}

fn replayed(archive: &Archive, recording_id: RecordingId) -> Vec<u64> {
    replay_all(archive, recording_id, ReplayParams::new().length(ReplayLength::Recorded))
}

#[test]
fn copy_follow_and_stop() {
    let source_server = ArchiveProcess::launch();
    let copy_server = ArchiveProcess::launch();
    let source = source_server.connect();
    let (copy, signals) = listening(&copy_server);
    let (mut publication, id, position) = record(&source, 1000);

    let params = ReplicationParams::new().stop_position(position);
    copy.replicate(id, source_server.control_channel(), 10, &params).expect("an id");
    let signal = await_signal(&copy, &signals, RecordingSignalKind::ReplicateEnd);
    assert_eq!(replayed(&copy, signal.recording_id), (0..1000).collect::<Vec<_>>());

    // The rest goes into the same recording, as long as there is more.
    let params = ReplicationParams::new().dst_recording_id(signal.recording_id);
    let replication =
        copy.replicate(id, source_server.control_channel(), 10, &params).expect("an id");
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
fn follow_tagged_copy() {
    let source_server = ArchiveProcess::launch();
    let copy_server = ArchiveProcess::launch();
    let source = source_server.connect();
    let (copy, signals) = listening(&copy_server);
    let (mut publication, id, _) = record(&source, 1000);

    let params = ReplicationParams::new().channel_tag_id(333).subscription_tag_id(777);
    let replication =
        copy.replicate(id, source_server.control_channel(), 10, &params).expect("an id");
    let extend = await_signal(&copy, &signals, RecordingSignalKind::Extend);
    // Only the tags identify the subscription: without the tags, nothing would come.
    let mut follower = copy
        .aeron()
        .add_subscription("aeron:udp?control-mode=manual|rejoin=false|tags=333,777", STREAM)
        .expect("a subscription");
    await_that("the stream of the copy", || follower.is_connected());
    let end = offer_numbered(&mut publication, 1000..1500);
    let mut received = Vec::new();
    await_that("the last message", || {
        follower.poll(|text, _| received.push(numbered(text)), 10).expect("open");
        received.last() == Some(&1499)
    });
    let first = received[0];
    assert_eq!(received, (first..1500).collect::<Vec<_>>());
    copy.await_recorded(extend.recording_id, end, DEADLINE).expect("a copy");
    copy.stop_replication(replication).expect("it was going on");
    assert_eq!(replayed(&copy, extend.recording_id), (0..1500).collect::<Vec<_>>());
}

#[test]
fn channel_and_session_id() {
    let source_server = ArchiveProcess::launch();
    let copy_server = ArchiveProcess::launch();
    let source = source_server.connect();
    let (copy, signals) = listening(&copy_server);
    let (_publication, id, position) = record(&source, 1000);
    let endpoint = format!("127.0.0.1:{}", free_port());
    let params = ReplicationParams::new()
        .replication_channel(format!("aeron:udp?endpoint={endpoint}"))
        .replication_session_id(-4711)
        .file_io_max_length(4096);
    let control_channel = source_server.control_channel();
    let replication = copy.replicate(id, &control_channel, 10, &params).expect("an id");
    let extend = await_signal(&copy, &signals, RecordingSignalKind::Extend);
    copy.await_recorded(extend.recording_id, position, DEADLINE).expect("a copy");
    // The source is being recorded, so that the replication goes on.
    assert!(is_counted(&copy, &[&endpoint, "-4711"]));
    let descriptor = copy.recording(extend.recording_id).expect("an answer").expect("a copy");
    assert_eq!(descriptor.session_id, -4711);
    copy.stop_replication(replication).expect("it was going on");
    assert_eq!(replayed(&copy, extend.recording_id), (0..1000).collect::<Vec<_>>());

    // The source cannot read less at a time than a packet has.
    let params = ReplicationParams::new().file_io_max_length(100);
    copy.replicate(id, &control_channel, 10, &params).expect("an id");
    let error = await_some("an error", || copy.check_for_error_response().err());
    assert!(error.message().contains("fileIoMaxLength"), "{error:?}");
}

#[test]
fn source_rejects() {
    let options = Options {
        properties: vec![
            "aeron.archive.authenticator.supplier=io.aeron.samples.archive.SampleAuthenticatorSupplier"
                .into(),
        ],
        ..Options::default()
    };
    let source_server = ArchiveProcess::launch_with(options);
    let copy_server = ArchiveProcess::launch();
    let (copy, signals) = listening(&copy_server);
    let refusal = |credentials: &[u8]| {
        let params = ReplicationParams::new().encoded_credentials(credentials);
        copy.replicate(17.into(), source_server.control_channel(), 10, &params).expect("an id");
        let error = await_some("an error", || copy.check_for_error_response().err());
        let end = await_signal(&copy, &signals, RecordingSignalKind::ReplicateEnd);
        assert_eq!(end.position, None);
        error
    };
    for strangers in [&b"nobody"[..], b""] {
        let error = refusal(strangers);
        assert_eq!(error.kind(), ArchiveErrorKind::ReplicationConnectionFailure, "{error:?}");
        assert!(error.message().contains("authentication rejected"), "{error:?}");
    }
    // Let in, but there is no such recording.
    let error = refusal(b"admin:admin");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
    assert_eq!(error.relevant_id(), Some(17), "{error:?}");
    assert_eq!(copy.recordings().count(), 0);
}

#[test]
fn unknown_destination_is_named() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (_publication, id, _) = record(&archive, 10);
    let params = ReplicationParams::new().dst_recording_id(88.into());
    let error = archive.replicate(id, server.control_channel(), 10, &params).expect_err("unknown");
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
    assert_eq!(error.relevant_id(), Some(88), "{error:?}");
}

#[test]
fn request_too_long() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let channel = format!("aeron:udp?endpoint=localhost:1|alias={}", "x".repeat(3000));
    let params = ReplicationParams::new()
        .replication_channel(channel.clone())
        .src_response_channel(channel.clone())
        .encoded_credentials(vec![0; 3000]);
    let error = archive.replicate(0.into(), &channel, 10, &params).expect_err("too much");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error}");
    let params = ReplicationParams::new().encoded_credentials(vec![0; 4000]);
    let error = archive.replicate(0.into(), "aeron:ipc", 10, &params).expect_err("too long");
    assert!(error.to_string().contains("4000 bytes"), "{error}");
}

#[test]
fn null_parameters_are_rejected() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let params = ReplicationParams::new;
    let refused = [
        ("stop_position", params().stop_position(-1)),
        ("dst_recording_id", params().dst_recording_id((-1).into())),
        ("channel_tag_id", params().channel_tag_id(-1)),
        ("subscription_tag_id", params().subscription_tag_id(-1)),
        ("file_io_max_length", params().file_io_max_length(usize::MAX)),
        ("replication_session_id", params().replication_session_id(-1)),
    ];
    for (name, params) in refused {
        let error = archive.replicate(0.into(), "aeron:ipc", 10, &params).expect_err("refused");
        assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument, "{error}");
        assert!(error.message().starts_with(name), "{error}");
    }
}
