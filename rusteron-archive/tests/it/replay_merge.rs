//! Replays that go over to the live stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingId, RecordingSignalKind, ReplayMerge, ReplayMergeState,
    SourceLocation,
};
use rusteron_client::{ExclusivePublication, Subscription};
#[cfg(target_os = "linux")]
use rusteron_test_support::archive::mapped_log_buffers;
use rusteron_test_support::archive::{ArchiveProcess, STREAM, numbered, offer_numbered};
use rusteron_test_support::{DEADLINE, await_that, free_port};

/// A publication that is recorded, and where subscribers of it get in.
fn published(archive: &Archive) -> (ExclusivePublication, RecordingId, String) {
    let (control, endpoint) = (free_port(), free_port());
    let channel = format!(
        "aeron:udp?control=localhost:{control}|control-mode=dynamic|fc=min|term-length=64k"
    );
    let (publication, recording_id) =
        archive.add_recorded_exclusive_publication(&channel, STREAM).expect("a publication");
    let live = format!("aeron:udp?endpoint=localhost:{endpoint}|control=localhost:{control}");
    (publication, recording_id, live)
}

fn manual(archive: &Archive) -> Subscription {
    archive
        .aeron()
        .add_subscription("aeron:udp?control-mode=manual", STREAM)
        .expect("a subscription")
}

/// A merge of the whole recording of a publication, whose live stream is at `live`.
fn begin(
    session: Archive,
    archive: &Archive,
    publication: &ExclusivePublication,
    recording_id: RecordingId,
    live: &str,
) -> ReplayMerge {
    ReplayMerge::builder(
        format!("aeron:udp?session-id={}", publication.session_id()),
        "aeron:udp?endpoint=localhost:0",
        live,
    )
    .progress_timeout(DEADLINE)
    .live_timeout(DEADLINE)
    .start(session, manual(archive), recording_id)
    .expect("a merge")
}

/// Ends a publisher also when the test fails, which waits for its threads.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn merge_without_loss_or_repetition() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    for _round in 0..3 {
        let (mut publication, recording_id, live) = published(&archive);
        let mut next = 2000;
        let position = offer_numbered(&mut publication, 0..next);
        archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
        let mut merge = begin(server.connect(), &archive, &publication, recording_id, &live);
        assert!(!merge.is_merged() && !merge.has_failed() && !merge.is_live_added());
        assert_eq!(merge.state(), ReplayMergeState::ResolveReplayPort);
        let is_over = AtomicBool::new(false);
        let is_over = &is_over;
        let mut received = Vec::new();
        let first = next;
        std::thread::scope(|scope| {
            // Published while it merges.
            let stop = StopOnDrop(is_over);
            let publisher = scope.spawn(|| {
                let mut number = first;
                while !is_over.load(Ordering::Relaxed) {
                    offer_numbered(&mut publication, number..number + 10);
                    number += 10;
                    std::thread::sleep(Duration::from_millis(1));
                }
                number
            });
            await_that("the merge", || {
                merge.poll(|text, _| received.push(numbered(text)), 100).expect("a merge");
                merge.is_merged()
            });
            drop(stop);
            await_that("the end of the publisher", || {
                merge.poll(|text, _| received.push(numbered(text)), 100).expect("a merge");
                publisher.is_finished()
            });
            next = publisher.join().expect("a publisher");
        });
        assert!(merge.is_live_added());
        assert_eq!(merge.state(), ReplayMergeState::Merged);
        let (session, mut subscription) = merge.into_parts().expect("the parts");
        offer_numbered(&mut publication, next..next + 1);
        next += 1;
        await_that("the rest, live", || {
            subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
            received.last() == Some(&(next - 1))
        });
        assert_eq!(received, (0..next).collect::<Vec<_>>());
        assert!(session.is_connected());
    }
}

#[test]
fn invalid_arguments_are_rejected() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let merge = |channel: &str, replay: &str, destination: &str, live: &str| {
        let subscription = archive.aeron().add_subscription(channel, STREAM).expect("valid");
        ReplayMerge::builder(replay, destination, live)
            .start(server.connect(), subscription, 0.into())
            .map(drop)
            .expect_err("refused")
            .error()
            .clone()
    };
    let (udp, any) = ("aeron:udp?endpoint=localhost:1", "aeron:udp?endpoint=localhost:0");
    let (manual, plain) = ("aeron:udp?control-mode=manual", "aeron:udp?linger=0");
    let kind = ArchiveErrorKind::InvalidArgument;
    assert_eq!(merge("aeron:ipc", plain, any, udp).kind(), kind);
    assert_eq!(merge(any, plain, any, udp).kind(), kind);
    assert_eq!(merge(manual, "aeron:ipc", any, udp).kind(), kind);
    let error = merge(manual, plain, plain, udp);
    assert!(error.to_string().contains("endpoint"), "{error}");
    let error = merge(manual, "nonsense", any, udp);
    assert!(error.to_string().contains("invalid channel"), "{error}");

    // The session and the subscription of a rejected merge can be used again.
    let subscription = archive.aeron().add_subscription(manual, STREAM).expect("valid");
    let refused = ReplayMerge::builder(plain, any, udp).start_position(-1).start(
        server.connect(),
        subscription,
        0.into(),
    );
    let (error, session, subscription) = refused.map(drop).expect_err("refused").into_parts();
    assert!(error.to_string().contains("start_position: -1"), "{error}");
    let merge = ReplayMerge::builder(plain, any, udp)
        .start(session, subscription, 0.into())
        .expect("a merge");
    assert!(merge.into_parts().expect("the parts").0.is_connected());
}

#[test]
fn signals_while_merging() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id, _) = published(&archive);
    let position = offer_numbered(&mut publication, 0..100);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");

    let (sender, signals) = mpsc::channel();
    let mut context = server.context();
    context
        .set_recording_signal_consumer(move |signal| sender.send(*signal).expect("us"))
        .expect("a consumer");
    let session = Archive::connect(archive.aeron(), context).expect("a session");
    session
        .start_recording("aeron:ipc", STREAM + 7, SourceLocation::Local, false)
        .expect("a subscription");
    // Nothing comes from there, so that the merge has no end.
    let mut merge = begin(
        session,
        &archive,
        &publication,
        recording_id,
        &format!("aeron:udp?endpoint=localhost:{}", free_port()),
    );
    for _round in 0..2 {
        let other =
            archive.aeron().add_publication("aeron:ipc", STREAM + 7).expect("a publication");
        let mut await_signal = |kind| {
            rusteron_test_support::await_some("the signal", || {
                merge.poll(|_, _| (), 10).expect("a merge");
                signals.try_recv().ok().inspect(|signal| assert_eq!(signal.kind, kind))
            })
        };
        let started = await_signal(RecordingSignalKind::Start);
        drop(other);
        let stopped = await_signal(RecordingSignalKind::Stop);
        assert_eq!(started.recording_id, stopped.recording_id);
    }
    assert!(!merge.is_merged());
}

#[test]
fn unknown_recording() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let mut merge = ReplayMerge::builder(
        "aeron:udp?linger=0",
        "aeron:udp?endpoint=localhost:0",
        "aeron:udp?endpoint=localhost:1",
    )
    .start(server.connect(), manual(&archive), 4711.into())
    .expect("a merge");
    let error =
        rusteron_test_support::await_some("the failure", || merge.poll(|_, _| (), 10).err());
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
    assert_eq!((error.relevant_id(), error.code()), (Some(4711), 205));
    assert!(merge.has_failed());
    assert_eq!(merge.poll(|_, _| (), 10).expect("it does nothing any more"), 0);
    let (session, subscription) = merge.into_parts().expect("the parts");
    assert!(session.is_connected());
    assert!(!subscription.is_closed());
}

#[test]
fn progress_timeout() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id, live) = published(&archive);
    let position = offer_numbered(&mut publication, 0..500);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    let mut merge = ReplayMerge::builder(
        format!("aeron:udp?session-id={}", publication.session_id()),
        "aeron:udp?endpoint=localhost:0",
        &live,
    )
    .progress_timeout(Duration::from_millis(500))
    .start(server.connect(), manual(&archive), recording_id)
    .expect("a merge");
    // No subscriber consumes the messages that would advance the merge.
    let error = rusteron_test_support::await_some("the failure", || merge.do_work().err());
    assert_eq!(error.kind(), ArchiveErrorKind::Timeout, "{error:?}");
    assert!(error.message().contains("no progress within 500.0ms: waits for"), "{error:?}");
    assert!(merge.has_failed() && !merge.is_merged());
    assert_eq!(merge.do_work().expect("it does nothing any more"), 0);
    let (session, subscription) = merge.into_parts().expect("the parts");
    assert_eq!(session.start_position(recording_id).expect("an answer"), 0);
    assert!(!subscription.is_closed());
}

#[test]
fn missing_live_stream_is_timeout() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id, _) = published(&archive);
    let position = offer_numbered(&mut publication, 0..500);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    let live = format!("aeron:udp?endpoint=localhost:{}", free_port());
    let mut merge = ReplayMerge::builder(
        format!("aeron:udp?session-id={}", publication.session_id()),
        "aeron:udp?endpoint=localhost:0",
        &live,
    )
    .progress_timeout(DEADLINE)
    .live_timeout(Duration::from_millis(200))
    .start(server.connect(), manual(&archive), recording_id)
    .expect("a merge");
    let mut received = 0;
    let mut states = Vec::new();
    let error = rusteron_test_support::await_some("the failure", || {
        let outcome = merge.poll(|_, _| received += 1, 100);
        states.push(merge.state());
        outcome.err()
    });
    assert_eq!(
        (error.kind(), error.relevant_id()),
        (ArchiveErrorKind::Timeout, Some(recording_id.get()))
    );
    assert!(error.message().contains(&format!("at {live}, stream {STREAM}")), "{error}");
    assert_eq!(received, 500);
    states.dedup();
    assert!(states.ends_with(&[ReplayMergeState::AttemptLiveJoin, ReplayMergeState::Failed]));
    assert!(merge.has_failed());
    assert_eq!(merge.do_work().expect("it does nothing any more"), 0);
    assert!(merge.into_parts().expect("the parts").0.is_connected());
}

/// A merge whose replay destination the driver refuses when it gets to it.
fn without_destination(session: Archive, archive: &Archive) -> ReplayMerge {
    ReplayMerge::builder(
        "aeron:udp?linger=0",
        // The domain `.invalid` is reserved: no such host exists.
        "aeron:udp?endpoint=host.invalid:0",
        "aeron:udp?endpoint=localhost:1",
    )
    // A name server that loses a query makes the driver wait for 5 s, which is the default.
    .progress_timeout(DEADLINE)
    .start(session, manual(archive), 0.into())
    .expect("a merge")
}

#[test]
fn unresolved_destination_returns_parts() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let mut merge = without_destination(server.connect(), &archive);
    let error = rusteron_test_support::await_some("the failure", || merge.do_work().err());
    assert!(error.message().contains("host.invalid"), "{error:?}");
    assert!(merge.has_failed() && !merge.is_merged());
    assert_eq!(merge.do_work().expect("it does nothing any more"), 0);
    let (session, subscription) = merge.into_parts().expect("the parts");
    assert!(!subscription.is_closed());
    session.stop_all_replays(None).expect("the session goes on");

    // Not polled at all, so that the refusal comes while it is being closed.
    let merge = without_destination(session, &archive);
    let (session, subscription) = merge.into_parts().expect("the parts");
    assert!(session.is_connected() && !subscription.is_closed());
}

#[test]
#[cfg(target_os = "linux")]
fn unresolved_destination_leaks_nothing() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let at_the_start = mapped_log_buffers(&server);
    for is_polled in [true, false] {
        let mut merge = without_destination(server.connect(), &archive);
        assert!(mapped_log_buffers(&server) > at_the_start, "those of the session");
        if is_polled {
            rusteron_test_support::await_some("the failure", || merge.do_work().err());
        }
        drop(merge);
        await_that("the end of the session", || mapped_log_buffers(&server) == at_the_start);
    }
}

/// The refusal can come at any instant of a poll.
#[test]
fn refusal_within_a_poll_returns_parts() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let mut session = server.connect();
    for _round in 0..100 {
        let mut merge = without_destination(session, &archive);
        // Without a pause, so that a refusal often comes during a poll.
        let deadline = Instant::now() + DEADLINE;
        let error = loop {
            if let Err(error) = merge.do_work() {
                break error;
            }
            assert!(Instant::now() < deadline, "no refusal");
        };
        assert!(error.message().contains("host.invalid"), "{error:?}");
        (session, _) = merge.into_parts().expect("the parts");
    }
}

#[test]
fn drop_at_any_time() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id, live) = published(&archive);
    let position = offer_numbered(&mut publication, 0..500);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    for polls in [0, 1, 10, 1000] {
        let mut merge = ReplayMerge::builder(
            format!("aeron:udp?session-id={}", publication.session_id()),
            "aeron:udp?endpoint=localhost:0",
            &live,
        )
        .start(server.connect(), manual(&archive), recording_id)
        .expect("a merge");
        for _ in 0..polls {
            merge.poll(|_, _| (), 1).expect("a merge");
        }
        if polls == 10 {
            // On the conductor's thread, which closing waits for.
            let aeron = archive.aeron().clone();
            let (sender, receiver) = std::sync::mpsc::channel();
            let mut merge = Some(merge);
            let subscription = aeron
                .subscription_builder("aeron:ipc", 9)
                .on_available_image(move |_| {
                    drop(merge.take());
                    let _ = sender.send(());
                })
                .add()
                .expect("a subscription");
            let _publication = aeron.add_publication("aeron:ipc", 9).expect("a publication");
            receiver.recv_timeout(DEADLINE).expect("no deadlock");
            drop(subscription);
        }
    }
    archive.stop_all_replays(None).expect("the archive goes on");
}

#[test]
fn client_without_conductor_thread() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id, live) = published(&archive);
    let position = offer_numbered(&mut publication, 0..500);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    let aeron = server.aeron_with_invoker();
    let own = Archive::connect(&aeron, server.context()).expect("a session");
    let begin = |publication: &_| {
        let session = Archive::connect(&aeron, server.context()).expect("a session");
        begin(session, &own, publication, recording_id, &live)
    };
    let mut given_up = begin(&publication);
    await_that("an image", || {
        aeron.do_work().expect("an open client");
        given_up.do_work().expect("a merge");
        given_up.image().is_some()
    });
    drop(given_up);

    let mut merge = begin(&publication);
    let mut received = Vec::new();
    await_that("the merge", || {
        aeron.do_work().expect("an open client");
        merge.poll(|text, _| received.push(numbered(text)), 10).expect("a merge");
        merge.is_merged()
    });
    let (session, mut subscription) = merge.into_parts().expect("its parts");
    offer_numbered(&mut publication, 500..600);
    await_that("what is live", || {
        aeron.do_work().expect("an open client");
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
        received.len() >= 600
    });
    assert!(received.into_iter().eq(0..600));
    assert_eq!(session.start_position(recording_id).expect("an answer"), 0);
}

#[test]
#[cfg(target_os = "linux")]
fn image_ends_with_stream() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let at_the_start = mapped_log_buffers(&server);
    let session = || Archive::connect(archive.aeron(), server.context()).expect("a session");
    let mapped_by_a_session = {
        let _session = session();
        mapped_log_buffers(&server) - at_the_start
    };
    assert_ne!(mapped_by_a_session, 0);
    for _round in 0..3 {
        let (mut publication, recording_id, live) = published(&archive);
        let position = offer_numbered(&mut publication, 0..500);
        archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
        let mut merge = begin(session(), &archive, &publication, recording_id, &live);
        await_that("the merge", || {
            merge.poll(|_, _| (), 100).expect("a merge");
            merge.is_merged()
        });
        let (_session, mut subscription) = merge.into_parts().expect("the parts");
        // While the subscription is still there: C forgets one count too many when it goes with an image.
        drop(publication);
        await_that("the end of the stream", || {
            subscription.poll(|_, _| (), 10).expect("open");
            !subscription.is_connected()
        });
    }
    await_that("the end of every mapping", || mapped_log_buffers(&server) == at_the_start);
}
