//! Tests of recorder and replayer as agents, with a media driver.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rusteron_client::{Aeron, ChannelUri, ExclusivePublication, Subscription};
use rusteron_core::agent::Agent;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{Random, await_some, await_that, connect, free_port, launch};

use crate::conductor::effect::{
    Progress, ReplayLimit, ReplayProgress, StartRecording, StartReplay,
};
use crate::conductor::event::Event;
use crate::ids::{RecordingId, ReplayId};
use crate::recorder::{BlockWriter, IoCounters, Recorder, RecorderCommand};
use crate::replayer::{BlockReader, Replayer, ReplayerCommand};
use crate::segment::Geometry;
use crate::storage::faulty::FaultyStorage;
use crate::storage::{Storage, SyncLevel};
use crate::worker_event::{Returned, WorkerEvent};

const CHANNEL: &str = "aeron:ipc?term-length=64k";
const RECORDED_STREAM: i32 = 1001;
const REPLAY_STREAM: i32 = 1002;
const TERM: i32 = 64 << 10;
const FILE_IO_MAX: usize = 64 << 10;
const RECORDING: RecordingId = RecordingId::new(7);
const REPLAY: ReplayId = ReplayId::new(1);

/// A client with both agents, which run in turns.
struct Archive {
    storage: FaultyStorage,
    recorder: Recorder,
    to_recorder: Sender<RecorderCommand>,
    from_recorder: Receiver<WorkerEvent>,
    replayer: Replayer,
    to_replayer: Sender<ReplayerCommand>,
    from_replayer: Receiver<WorkerEvent>,
    aeron: Aeron,
    _driver: MediaDriver,
}

fn counters(aeron: &Aeron) -> IoCounters {
    let counter = || aeron.add_counter(1001, &[], "test").unwrap();
    IoCounters { max_time: counter(), bytes: counter(), time: counter() }
}

impl Archive {
    fn launch(connect_timeout: Duration) -> Self {
        let driver = launch();
        let aeron = connect(&driver);
        let storage = FaultyStorage::default();
        let (to_recorder, recorder_commands) = channel();
        let (recorder_events, from_recorder) = channel();
        let (to_replayer, replayer_commands) = channel();
        let (replayer_events, from_replayer) = channel();
        let recorder = Recorder::new(
            recorder_commands,
            recorder_events,
            FILE_IO_MAX,
            BlockWriter::new(Arc::new(storage.clone()), SyncLevel::None, None),
            counters(&aeron),
        );
        let replayer = Replayer::new(
            replayer_commands,
            replayer_events,
            aeron.clone(),
            connect_timeout,
            BlockReader::new(Arc::new(storage.clone()), None),
            counters(&aeron),
        );
        Self {
            storage,
            recorder,
            to_recorder,
            from_recorder,
            replayer,
            to_replayer,
            from_replayer,
            aeron,
            _driver: driver,
        }
    }

    fn turn(&mut self) {
        self.recorder.do_work().unwrap();
        self.replayer.do_work().unwrap();
    }

    /// Records the last image of a subscription. Returns a replay that follows.
    fn start_recording(&mut self, mut subscription: Subscription) -> (StartReplay, Arc<Progress>) {
        let image =
            await_some("an image", || subscription.images().last().map(|image| image.constants()));
        let progress = Progress::from(image.join_position);
        let geometry = Geometry {
            recording_id: RECORDING,
            start_position: image.join_position,
            initial_term_id: image.initial_term_id,
            term_length: TERM,
            segment_length: TERM,
            stream_id: RECORDED_STREAM,
        };
        let start = StartRecording {
            geometry,
            subscription: subscription.registration_id().into(),
            image: image.correlation_id.into(),
            session_id: image.session_id,
            mtu: image.mtu_length as i32,
            stripped_channel: "aeron:ipc".to_owned(),
            source_identity: image.source_identity.clone(),
            join_position: image.join_position,
            is_new: true,
            progress: Arc::clone(&progress),
        };
        let counter = self.aeron.add_counter(1000, &[], "position").unwrap();
        let send = |command| self.to_recorder.send(command).unwrap();
        send(RecorderCommand::AddSubscription(Box::new(subscription)));
        send(RecorderCommand::StartRecording(Box::new(start), counter));
        let start = StartReplay {
            replay: REPLAY,
            geometry,
            channel: String::new(),
            stream_id: REPLAY_STREAM,
            position: image.join_position,
            progress: ReplayProgress::new(0),
            end_position: i64::MAX,
            stop_position: image.join_position,
            limit: ReplayLimit::Recording(Arc::clone(&progress)),
            mtu: image.mtu_length as i32,
            file_io_max: FILE_IO_MAX as i32,
        };
        (start, progress)
    }

    fn start_replay(&self, start: StartReplay) {
        let channel = ChannelUri::ipc()
            .initial_position(start.position, start.geometry.initial_term_id, TERM as usize)
            .mtu(start.mtu as usize)
            .build()
            .unwrap();
        let publication = self.aeron.add_exclusive_publication(&channel, REPLAY_STREAM).unwrap();
        let command = ReplayerCommand::StartReplay(Box::new(start), Box::new(publication));
        self.to_replayer.send(command).unwrap();
    }
}

fn messages(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|_| {
            // The longest ones have several fragments.
            let end = if random.percent(10) { 8192 } else { 300 };
            let length = random.below(end);
            vec![random.next() as u8; length]
        })
        .collect()
}

/// Offers the next messages that the publication accepts.
fn offer(publication: &mut ExclusivePublication, messages: &[Vec<u8>], next: &mut usize) {
    while messages.get(*next).is_some_and(|message| publication.offer(message).is_ok()) {
        *next += 1;
    }
}

#[test]
fn live_stream_is_recorded_and_followed() {
    let mut archive = Archive::launch(Duration::from_secs(100));
    let aeron = archive.aeron.clone();
    let mut publication = aeron.add_exclusive_publication(CHANNEL, RECORDED_STREAM).unwrap();
    let subscription = aeron.add_subscription(CHANNEL, RECORDED_STREAM).unwrap();
    let subscription_id = subscription.registration_id();
    let mut replayed = aeron.add_subscription("aeron:ipc", REPLAY_STREAM).unwrap();
    let (start, progress) = archive.start_recording(subscription);
    archive.start_replay(start);

    let sent = messages(&mut Random::new(1), 2000);
    let mut next = 0;
    let mut received = Vec::new();
    await_that("all messages", || {
        offer(&mut publication, &sent, &mut next);
        archive.turn();
        replayed.poll(|message, _| received.push(message.to_vec()), 100).unwrap();
        received.len() == sent.len()
    });
    assert!(received == sent);
    let end = publication.position().unwrap();
    assert_eq!(progress.position.load(Ordering::Acquire), end);

    // The end of the publication ends the recording, and that the replay.
    drop(publication);
    let mut events = Vec::new();
    await_that("both ends", || {
        archive.turn();
        events.extend(archive.from_replayer.try_iter());
        events.len() == 2
    });
    let session_id = match &events[0] {
        WorkerEvent { event: Some(Event::ReplayStarted(REPLAY, Ok(id))), returned: None } => *id,
        other => panic!("{other:?}"),
    };
    match &events[1] {
        WorkerEvent {
            event: Some(Event::ReplayEnded(REPLAY, None)),
            returned: Some(Returned::Publication(publication)),
        } => {
            assert_eq!(publication.session_id(), session_id);
            assert_eq!(publication.position().unwrap(), end);
        }
        other => panic!("{other:?}"),
    }
    match archive.from_recorder.try_recv().unwrap() {
        WorkerEvent {
            event: Some(Event::RecordingStopped(RECORDING, position, None)),
            returned: Some(Returned::Counter(counter)),
        } => {
            assert_eq!((position, counter.get()), (end, end));
        }
        other => panic!("{other:?}"),
    }
    assert!(progress.has_ended.load(Ordering::Acquire));

    let command = RecorderCommand::ReturnSubscription(subscription_id.into());
    archive.to_recorder.send(command).unwrap();
    archive.turn();
    match archive.from_recorder.try_recv().unwrap() {
        WorkerEvent { event: None, returned: Some(Returned::Subscription(subscription)) } => {
            assert_eq!(subscription.registration_id(), subscription_id);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn aborts_and_returns_report_what_ended() {
    let mut archive = Archive::launch(Duration::from_secs(100));
    let aeron = archive.aeron.clone();
    let mut publication = aeron.add_exclusive_publication(CHANNEL, RECORDED_STREAM).unwrap();
    let subscription = aeron.add_subscription(CHANNEL, RECORDED_STREAM).unwrap();
    let subscription_id = subscription.registration_id();
    let (start, progress) = archive.start_recording(subscription);
    await_that("an offer", || publication.offer(b"message").is_ok());
    await_that("a recorded message", || {
        archive.turn();
        progress.position.load(Ordering::Acquire) > 0
    });
    // Without a subscriber, the replay has started, and waits.
    archive.start_replay(start);
    await_that("the replay's start", || {
        archive.turn();
        archive.from_replayer.try_recv().is_ok()
    });
    archive.to_replayer.send(ReplayerCommand::AbortReplay(99.into())).unwrap();
    archive.turn();
    assert!(archive.from_replayer.try_recv().is_err());
    archive.to_replayer.send(ReplayerCommand::AbortReplay(REPLAY)).unwrap();
    archive.to_replayer.send(ReplayerCommand::AbortReplay(REPLAY)).unwrap();
    archive.turn();
    let event = archive.from_replayer.try_recv().unwrap();
    assert!(matches!(event.event, Some(Event::ReplayEnded(REPLAY, None))));
    assert!(archive.from_replayer.try_recv().is_err());

    for command in
        [RecorderCommand::AbortRecording(99.into()), RecorderCommand::ReturnSubscription(99.into())]
    {
        archive.to_recorder.send(command).unwrap();
    }
    archive.turn();
    assert!(archive.from_recorder.try_recv().is_err());
    // Its recordings end before the subscription comes back.
    for command in [
        RecorderCommand::ReturnSubscription(subscription_id.into()),
        RecorderCommand::AbortRecording(RECORDING),
    ] {
        archive.to_recorder.send(command).unwrap();
    }
    archive.turn();
    let events: Vec<_> = archive.from_recorder.try_iter().collect();
    assert!(
        matches!(
            events[..],
            [
                WorkerEvent { event: Some(Event::RecordingStopped(RECORDING, 64, None)), .. },
                WorkerEvent { event: None, returned: Some(Returned::Subscription(_)) },
            ]
        ),
        "{events:?}"
    );
}

#[test]
fn transports_are_those_of_the_recorded_image() {
    let mut archive = Archive::launch(Duration::from_secs(100));
    let aeron = archive.aeron.clone();
    let udp = format!("aeron:udp?endpoint=localhost:{}|term-length=64k", free_port());
    let _first = aeron.add_exclusive_publication(CHANNEL, RECORDED_STREAM).unwrap();
    let _recorded = aeron.add_exclusive_publication(&*udp, RECORDED_STREAM).unwrap();
    let manual = "aeron:udp?control-mode=manual";
    let mut subscription = aeron.add_subscription(manual, RECORDED_STREAM).unwrap();
    // An image over IPC has no transport.
    subscription.add_destination(CHANNEL).unwrap();
    await_that("the first image", || subscription.images().count() == 1);
    subscription.add_destination(&*udp).unwrap();
    await_that("the second image's transport", || {
        subscription.images().last().is_some_and(|image| image.active_transport_count() == 1)
    });
    archive.start_recording(subscription);
    archive.to_recorder.send(RecorderCommand::CountTransports(RECORDING)).unwrap();
    archive.turn();
    let event = archive.from_recorder.try_recv().unwrap().event;
    assert!(matches!(event, Some(Event::Transports(RECORDING, 1))), "{event:?}");
}

#[test]
fn closing_agents_give_everything_back() {
    let mut archive = Archive::launch(Duration::from_secs(100));
    let aeron = archive.aeron.clone();
    let _publication = aeron.add_exclusive_publication(CHANNEL, RECORDED_STREAM).unwrap();
    let subscription = aeron.add_subscription(CHANNEL, RECORDED_STREAM).unwrap();
    let (start, progress) = archive.start_recording(subscription);
    archive.start_replay(start);
    // The commands are still in their channels.
    archive.recorder.on_close().unwrap();
    archive.replayer.on_close().unwrap();
    let events: Vec<_> = archive.from_recorder.try_iter().collect();
    assert!(
        matches!(
            events[..],
            [
                WorkerEvent { event: Some(Event::RecordingStopped(RECORDING, 0, None)), .. },
                WorkerEvent { event: None, returned: Some(Returned::Subscription(_)) },
            ]
        ),
        "{events:?}"
    );
    assert!(progress.has_ended.load(Ordering::Acquire));
    let events: Vec<_> = archive.from_replayer.try_iter().collect();
    match &events[..] {
        [
            WorkerEvent {
                event: Some(Event::ReplayStarted(REPLAY, Err(failure))),
                returned: Some(Returned::Publication(_)),
            },
        ] => assert_eq!(failure.text, "replay ended before it started"),
        other => panic!("{other:?}"),
    }
    assert!(archive.storage.names().unwrap().is_empty());
}

#[test]
fn replay_without_segment_or_subscriber_fails_in_time() {
    let mut archive = Archive::launch(Duration::ZERO);
    let aeron = archive.aeron.clone();
    let _publication = aeron.add_exclusive_publication(CHANNEL, RECORDED_STREAM).unwrap();
    let subscription = aeron.add_subscription(CHANNEL, RECORDED_STREAM).unwrap();
    let mut replayed = aeron.add_subscription("aeron:ipc", REPLAY_STREAM).unwrap();
    let (start, _progress) = archive.start_recording(subscription);
    archive.start_replay(start);
    await_that("an image", || replayed.is_connected());
    let image = replayed.image_at_index(0).unwrap();
    let event = await_some("the end", || {
        archive.replayer.do_work().unwrap();
        archive.from_replayer.try_recv().ok()
    });
    match event.event {
        Some(Event::ReplayStarted(REPLAY, Err(failure))) => {
            assert!(failure.text.starts_with("recording segment file not created, "));
        }
        other => panic!("{other:?}"),
    }
    // The subscriber learns that this is not the end of the recording.
    drop(event.returned);
    await_that("the end of the image", || image.is_closed());
    assert!(image.is_publication_revoked());
}
