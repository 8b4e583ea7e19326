//! Subscriptions that begin in a recording, join the live stream, and fall back.

use std::fs;
use std::sync::mpsc;

use rusteron_archive::{
    Archive, ArchiveErrorKind, CredentialsSupplier, ErrorKind, MessageInfo, PersistentSubscription,
    PersistentSubscriptionContext, PersistentSubscriptionEvent, RecordingId, SourceLocation,
    StartPosition,
};
use rusteron_client::{Action, Position};
#[cfg(target_os = "linux")]
use rusteron_test_support::archive::mapped_log_buffers;
use rusteron_test_support::archive::{
    ArchiveProcess, REPLAY_STREAM, STREAM, await_recording, long_message, numbered, offer_numbered,
    record,
};
use rusteron_test_support::{DEADLINE, Random, await_some, await_that, offer};

fn context(recording_id: RecordingId) -> PersistentSubscriptionContext {
    PersistentSubscriptionContext::new(
        recording_id,
        "aeron:ipc",
        STREAM,
        "aeron:udp?endpoint=localhost:0",
        REPLAY_STREAM,
    )
    .expect("valid settings")
}

fn context_from(recording_id: RecordingId, start: StartPosition) -> PersistentSubscriptionContext {
    let mut context = context(recording_id);
    context.set_start_position(start).expect("a position");
    context
}

fn subscribe(
    server: &ArchiveProcess,
    archive: &Archive,
    context: PersistentSubscriptionContext,
) -> PersistentSubscription {
    PersistentSubscription::new(archive.aeron(), server.context(), context).expect("a subscription")
}

#[test]
fn replay_live_replay() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id, position) = record(&archive, 1000);
    let (sender, events) = mpsc::channel();
    let mut context = context_from(recording_id, StartPosition::Start);
    context.set_listener(move |event| sender.send(event.clone()).expect("us")).expect("a listener");
    let mut subscription = subscribe(&server, &archive, context);
    let mut received = Vec::new();
    let mut last = 0;
    await_that("the live stream", || {
        let poll = subscription.poll(
            |text, info| {
                received.push(numbered(text));
                last = info.position;
            },
            10,
        );
        poll.expect("a subscription");
        subscription.is_live()
    });
    assert_eq!(received, (0..1000).collect::<Vec<_>>());
    assert_eq!(last, position);
    assert!(matches!(events.try_recv(), Ok(PersistentSubscriptionEvent::LiveJoined)));

    std::thread::scope(|scope| {
        scope.spawn(|| offer_numbered(&mut publication, 1000..1500));
        await_that("what is live", || {
            let poll = subscription.poll(|text, _| received.push(numbered(text)), 10);
            poll.expect("a subscription");
            received.len() == 1500
        });
    });

    // The publisher goes, another one continues the recording, and is joined.
    drop(publication);
    await_that("the end of the stream", || {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
        archive.stop_position(recording_id).expect("an answer").is_some() && !subscription.is_live()
    });
    assert!(matches!(events.try_recv(), Ok(PersistentSubscriptionEvent::LiveLeft)));
    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    let channel = descriptor.continuation("aeron:ipc").expect("a channel").expect("an end");
    archive
        .extend_recording(recording_id, "aeron:ipc", STREAM, SourceLocation::Local, false)
        .expect("a subscription");
    let mut publication =
        archive.aeron().add_exclusive_publication(channel, STREAM).expect("a publication");
    assert_eq!(await_recording(&archive, publication.session_id()), recording_id);
    std::thread::scope(|scope| {
        scope.spawn(|| offer_numbered(&mut publication, 1500..2000));
        await_that("the rest, and the live stream", || {
            subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
            received.len() >= 2000 && subscription.is_live()
        });
    });
    assert_eq!(received, (0..2000).collect::<Vec<_>>());
}

#[test]
fn replay_channels() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (_publication, recording_id, _) = record(&archive, 500);
    let response = format!(
        "aeron:udp?control-mode=response|control=localhost:{}",
        rusteron_test_support::free_port()
    );
    for channel in ["aeron:ipc", &response] {
        let mut context = PersistentSubscriptionContext::new(
            recording_id,
            "aeron:ipc",
            STREAM,
            channel,
            REPLAY_STREAM,
        )
        .expect("valid settings");
        context.set_start_position(StartPosition::Start).expect("a position");
        let mut subscription =
            PersistentSubscription::new(archive.aeron(), server.udp_context(), context)
                .expect("a subscription");
        let mut received = Vec::new();
        await_that("the live stream", || {
            subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
            subscription.is_live()
        });
        assert_eq!(received, (0..500).collect::<Vec<_>>(), "{channel}");
    }
}

#[test]
fn start_position() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (_publication, recording_id, position) = record(&archive, 100);
    // In the middle, and at the very end.
    for first in [40, 100] {
        let context = context_from(recording_id, StartPosition::At(position / 100 * first as i64));
        let mut subscription = subscribe(&server, &archive, context);
        let mut received = Vec::new();
        await_that("the live stream", || {
            subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
            subscription.is_live()
        });
        assert_eq!(received, (first..100).collect::<Vec<_>>());
    }
    // Nothing has been recorded there yet.
    let beyond = StartPosition::At(position + position / 100);
    let mut subscription = subscribe(&server, &archive, context_from(recording_id, beyond));
    let error = await_some("the failure", || {
        subscription.poll(|text, _| panic!("{}", numbered(text)), 10).err()
    });
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidPosition, "{error:?}");
    assert_eq!(error.relevant_id(), Some(recording_id.get()), "{error:?}");
}

#[test]
fn start_live() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id, _) = record(&archive, 100);
    let mut subscription = subscribe(&server, &archive, context(recording_id));
    await_that("the live stream", || {
        subscription.poll(|text, _| panic!("{}", numbered(text)), 10).expect("open");
        subscription.is_live()
    });
    offer_numbered(&mut publication, 100..110);
    let mut received = Vec::new();
    await_that("what is live", || {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
        received.len() == 10
    });
    assert_eq!(received, (100..110).collect::<Vec<_>>());
}

#[test]
fn handler_panic_propagates() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (_publication, recording_id, position) = record(&archive, 100);
    let start = StartPosition::At(position / 100 * 50);
    let mut subscription = subscribe(&server, &archive, context_from(recording_id, start));
    let mut received = Vec::new();
    await_that("all messages", || {
        let poll = std::panic::AssertUnwindSafe(|| {
            subscription.poll(
                |text, _| {
                    received.push(numbered(text));
                    assert_ne!(received.last(), Some(&70), "on purpose");
                },
                10,
            )
        });
        if let Ok(poll) = std::panic::catch_unwind(poll) {
            poll.expect("a subscription");
        }
        received.len() >= 50
    });
    assert_eq!(received, (50..100).collect::<Vec<_>>());
}

/// Follows messages of one to six fragments, which are published all the time: from the recording into the
/// live stream, and on in that. `poll` has to append the position of each message that it takes.
fn follow_long_messages(mut poll: impl FnMut(&mut PersistentSubscription, &mut Vec<Position>)) {
    const RECORDED: u64 = 300;
    const LIVE: usize = 500;
    /// How many messages there may be that were not received yet, so that it catches up.
    const AHEAD: usize = 30;
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication("aeron:ipc", STREAM).expect("a publication");
    let mut published: Vec<_> =
        (0..RECORDED).map(|number| offer(&mut publication, &long_message(number))).collect();
    let end = published[published.len() - 1];
    archive.await_recorded(recording_id, end, DEADLINE).expect("a recording");

    let context = context_from(recording_id, StartPosition::Start);
    let mut subscription = subscribe(&server, &archive, context);
    let (mut received, mut received_before) = (Vec::new(), None);
    await_that("what is live", || {
        poll(&mut subscription, &mut received);
        if subscription.is_live() {
            received_before.get_or_insert(received.len());
        }
        if published.len() < received.len() + AHEAD {
            // Not awaited: this thread has to poll before an offer is accepted.
            published.extend(publication.offer(&long_message(published.len() as u64)));
        }
        received_before.is_some_and(|before| received.len() >= before + LIVE)
    });
    assert_eq!(received, published[..received.len()]);
}

#[test]
fn long_messages_replayed_and_live() {
    follow_long_messages(|subscription, received| {
        let handler = |text: &[u8], info: &MessageInfo| {
            assert_eq!(text, long_message(received.len() as u64));
            received.push(info.position);
        };
        subscription.poll(handler, 10).expect("open");
    });
}

#[test]
fn controlled_poll_redelivers_aborted() {
    let mut random = Random::new(1);
    let mut aborted = 0;
    follow_long_messages(|subscription, received| {
        let fragment_limit = 1 + random.below(12);
        let mut is_over = false;
        let handler = |text: &[u8], info: &MessageInfo| {
            assert!(!is_over, "the poll goes on after a handler that has ended it");
            assert_eq!(text, long_message(received.len() as u64));
            let actions = [Action::Abort, Action::Break, Action::Commit, Action::Continue];
            let action = actions[random.below(actions.len())];
            is_over = matches!(action, Action::Abort | Action::Break);
            if action == Action::Abort {
                aborted += 1;
            } else {
                received.push(info.position);
            }
            action
        };
        subscription.controlled_poll(handler, fragment_limit).expect("open");
    });
    assert_ne!(aborted, 0);
}

#[test]
fn client_without_conductor_thread() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (mut publication, recording_id, _) = record(&archive, 500);
    let aeron = server.aeron_with_invoker();
    let session = Archive::connect(&aeron, server.context()).expect("a session");
    let context = context_from(recording_id, StartPosition::Start);
    let mut subscription =
        PersistentSubscription::new(&aeron, server.context(), context).expect("a subscription");
    let mut received = Vec::new();
    let mut poll = |subscription: &mut PersistentSubscription| {
        let handler = |text: &[u8], _: &MessageInfo| {
            received.push(numbered(text));
            // The conductor's work is being done, which a request would wait for.
            let refused = session.start_position(recording_id).map_err(|error| error.kind());
            let kind = ArchiveErrorKind::Client(ErrorKind::CalledFromConductor);
            assert_eq!(refused, Err(kind));
        };
        subscription.poll(handler, 10).expect("open");
        received.len()
    };
    await_that("the live stream", || {
        poll(&mut subscription);
        subscription.is_live()
    });
    offer_numbered(&mut publication, 500..600);
    await_that("what is live", || poll(&mut subscription) == 600);
    assert_eq!(session.start_position(recording_id).expect("an answer"), 0);
    drop(subscription);
    assert!(received.into_iter().eq(0..600));
}

#[test]
fn damaged_recording_is_failure() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (publication, recording_id, _) = record(&archive, 1000);
    drop(publication);
    await_that("its end", || archive.stop_position(recording_id).expect("an answer").is_some());
    let segment = server.archive_dir().join(format!("{recording_id}-0.rec"));
    let length = fs::metadata(&segment).expect("a segment").len();
    fs::write(&segment, vec![0; length as usize]).expect("a damaged segment");
    let (sender, events) = mpsc::channel();
    let mut context = context_from(recording_id, StartPosition::Start);
    context.set_max_replays_without_progress(3).expect("a number");
    context.set_listener(move |event| sender.send(event.clone()).expect("us")).expect("a listener");
    let mut subscription = subscribe(&server, &archive, context);
    let error = await_some("its failure", || subscription.poll(|_, _| {}, 10).err());
    assert_eq!(error.kind(), ArchiveErrorKind::Refused, "{error}");
    assert!(error.message().starts_with("No progress beyond position=0 in 3 replays:"), "{error}");
    let mut events: Vec<_> = events.try_iter().map(|event| event_text(&event)).collect();
    assert!(events.pop().is_some_and(|last| last == error.message()), "{events:?}");
    let is_report = |event: &String| event.starts_with("The archive reports:");
    assert!(events.len() >= 2 && events.iter().all(is_report), "{events:?}");
}

fn event_text(event: &PersistentSubscriptionEvent) -> String {
    match event {
        PersistentSubscriptionEvent::Error(error) => error.message().to_owned(),
        event => format!("{event:?}"),
    }
}

#[test]
fn unknown_recording_is_failure() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let mut subscription = subscribe(&server, &archive, context(4711.into()));
    let error = await_some("the failure", || subscription.poll(|_, _| (), 10).err());
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error:?}");
    assert!(subscription.failure().is_some());
    assert!(!subscription.is_live() && !subscription.is_replaying());
}

/// Has nothing to say, in two ways.
enum Silent {
    Panics,
    IsTooLong,
}

impl CredentialsSupplier for Silent {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        match self {
            Self::Panics => panic!("on purpose"),
            Self::IsTooLong => vec![7; 3073],
        }
    }

    fn on_challenge(&mut self, _encoded_challenge: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}

#[test]
fn missing_credentials_are_failure() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (_publication, recording_id, _) = record(&archive, 10);
    for (supplier, kind, words) in [
        (Silent::Panics, ArchiveErrorKind::Client(ErrorKind::Other), "panicked"),
        (Silent::IsTooLong, ArchiveErrorKind::InvalidArgument, "3073 bytes"),
    ] {
        let (sender, events) = mpsc::channel();
        let mut context = context_from(recording_id, StartPosition::Start);
        context
            .set_listener(move |event| sender.send(event.clone()).expect("us"))
            .expect("a listener");
        let mut archive_context = server.context();
        archive_context.set_credentials_supplier(supplier).expect("a supplier");
        let subscription = PersistentSubscription::new(archive.aeron(), archive_context, context);
        let mut subscription = subscription.expect("a subscription");
        let error =
            await_some("the failure", || subscription.poll(|_, _| panic!("no message"), 10).err());
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(error.message().contains(words), "{error:?}");
        let again = subscription.poll(|_, _| panic!("no message"), 10).expect_err("for good");
        assert_eq!(again.to_string(), error.to_string());
        let state = subscription.counters().state;
        const FAILED: i64 = 17;
        assert_eq!(archive.aeron().counters_reader().value(state), Some(FAILED));
        let told: Vec<_> = events.try_iter().collect();
        let [PersistentSubscriptionEvent::Error(told)] = &told[..] else { panic!("{told:?}") };
        assert_eq!(told.kind(), kind);
    }
}

#[test]
fn counters() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let (publication, recording_id, _) = record(&archive, 100);
    let context = context_from(recording_id, StartPosition::Start);
    let mut subscription = subscribe(&server, &archive, context);
    let counters = subscription.counters();
    let another = server.aeron();
    let values = || {
        let ids =
            [counters.state, counters.join_difference, counters.live_left, counters.live_joined];
        ids.map(|id| another.counters_reader().value(id).expect("a counter"))
    };
    assert_eq!(values(), [0, i64::MIN, 0, 0]);
    for (id, name) in [
        (counters.state, "State"),
        (counters.join_difference, "Join Difference"),
        (counters.live_left, "Live Left Count"),
        (counters.live_joined, "Live Joined Count"),
    ] {
        let label = another.counters_reader().label(id).expect("a counter");
        assert!(label.starts_with(&format!("Persistent Subscription {name}: ")), "{label}");
    }
    await_that("the live stream", || {
        subscription.poll(|_, _| (), 10).expect("open");
        subscription.is_live()
    });
    let [state, join_difference, left, joined] = values();
    assert_eq!((state, left, joined), (16, 0, 1));
    assert!(join_difference >= 0, "{join_difference}");
    drop(publication);
    await_that("the end of the stream", || {
        subscription.poll(|_, _| (), 10).expect("open");
        !subscription.is_live()
    });
    let [state, _, left, joined] = values();
    assert!(state < 16, "{state}");
    assert_eq!((left, joined), (1, 1));
}

#[test]
fn invalid_settings_are_rejected() {
    let new = |recording_id, channel| {
        PersistentSubscriptionContext::new(recording_id, channel, 1, "aeron:ipc", 2)
    };
    let error = new((-5).into(), "aeron:ipc").expect_err("refused");
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidArgument);
    assert_eq!(error.message(), "recording_id: -5 is negative");
    assert!(
        new(0.into(), "nonsense").expect_err("refused").to_string().contains("invalid channel")
    );
    let mut context = new(0.into(), "aeron:ipc").expect("valid settings");
    let error = context.set_start_position(StartPosition::At(-7)).expect_err("refused");
    assert_eq!(error.message(), "start_position: -7 is negative");
}

#[test]
#[cfg(target_os = "linux")]
fn images_end_with_streams() {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let at_the_start = mapped_log_buffers(&server);
    let (mut publication, recording_id, _) = record(&archive, 100);
    let context = context_from(recording_id, StartPosition::Start);
    let mut subscription = subscribe(&server, &archive, context);
    let mut received = Vec::new();
    await_that("the live stream", || {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
        subscription.is_live() && received.len() == 100
    });
    // The live image goes while its subscription is there, and another image replaces it.
    drop(publication);
    await_that("the end of the stream", || {
        subscription.poll(|_, _| (), 10).expect("open");
        archive.stop_position(recording_id).expect("an answer").is_some() && !subscription.is_live()
    });
    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    let channel = descriptor.continuation("aeron:ipc").expect("a channel").expect("an end");
    archive
        .extend_recording(recording_id, "aeron:ipc", STREAM, SourceLocation::Local, true)
        .expect("a subscription");
    publication =
        archive.aeron().add_exclusive_publication(channel, STREAM).expect("a publication");
    assert_eq!(await_recording(&archive, publication.session_id()), recording_id);
    offer_numbered(&mut publication, 100..200);
    await_that("the live stream again", || {
        subscription.poll(|text, _| received.push(numbered(text)), 10).expect("open");
        subscription.is_live() && received.len() == 200
    });
    drop(publication);
    await_that("the end of the stream again", || {
        subscription.poll(|_, _| (), 10).expect("open");
        !subscription.is_live()
    });
    drop(subscription);
    assert!(received.into_iter().eq(0..200));
    await_that("the end of every mapping", || mapped_log_buffers(&server) == at_the_start);
}
