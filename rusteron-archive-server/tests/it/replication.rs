//! Replication between servers, of ours and of Java's, and sources that vanish.

use std::sync::mpsc;

use rusteron_archive::{
    Archive, RecordingId, RecordingSignal, RecordingSignalKind, ReplicationParams,
};
use rusteron_client::{Aeron, CounterSnapshot, ExclusivePublication};
use rusteron_test_support::archive::{
    ArchiveProcess, Options, STREAM, offer_numbered, record, replay_all,
};
use rusteron_test_support::{DEADLINE, await_some, await_that, free_port};

use crate::support::{Fixture, await_stop, ipc_context, recorded};

/// The counters of a publication's position, of a subscription's channel, and of a recording's position.
const STREAMS: [i32; 3] = [12, 7, 100];

pub(crate) fn launch() -> Fixture {
    Fixture::launch_with(|context| {
        context.set_replication_channel("aeron:udp?endpoint=localhost:0").expect("a channel");
    })
}

/// A session, and the signals that it gets.
pub(crate) struct Listener {
    pub(crate) archive: Archive,
    signals: mpsc::Receiver<RecordingSignal>,
}

impl Listener {
    pub(crate) fn connect(aeron: &Aeron) -> Self {
        let (sender, signals) = mpsc::channel();
        let mut context = ipc_context();
        context
            .set_recording_signal_consumer(move |signal| sender.send(*signal).expect("us"))
            .expect("a consumer");
        Self { archive: Archive::connect(aeron, context).expect("a session"), signals }
    }

    pub(crate) fn await_signal(&self, kind: RecordingSignalKind) -> RecordingSignal {
        await_some("the signal", || {
            self.archive.poll_for_recording_signals().expect("a connection");
            self.signals.try_iter().find(|signal| signal.kind == kind)
        })
    }

    /// Awaits the end of a replication whose source goes: by an error, if its answers are missed before its stream.
    pub(crate) fn await_end(&self) {
        await_that("the end of the replication", || {
            let _ = self.archive.poll_for_recording_signals();
            self.signals.try_iter().any(|it| it.kind == RecordingSignalKind::ReplicateEnd)
        });
    }
}

/// Copies a stopped recording, then the rest of it, with tags, and by response channels.
fn copy(source: &Archive, control_channel: &str, copy: &Listener) {
    let (publication, id, end) = record(source, 3000);
    drop(publication);
    await_stop(source, id);
    let controls = [(); 2].map(|()| format!("localhost:{}", free_port()));
    let [channel, answers] = controls
        .each_ref()
        .map(|control| format!("aeron:udp?control-mode=response|control={control}"));
    let all = [
        ReplicationParams::new().channel_tag_id(3).subscription_tag_id(4),
        ReplicationParams::new().replication_channel(channel).src_response_channel(answers),
        ReplicationParams::new().stop_position(96 * 100),
        ReplicationParams::new(),
    ];
    let mut last = None;
    for params in all {
        copy.archive.replicate(id, control_channel, 10, &params).expect("an id");
        let signal = copy.await_signal(RecordingSignalKind::ReplicateEnd);
        last = Some(signal.recording_id);
    }
    let copies: Vec<_> = copy.archive.recordings().map(|it| it.expect("a copy")).collect();
    let counts = [3000, 3000, 100, 3000];
    for (recording, count) in copies.iter().zip(counts) {
        let numbers = replay_all(&copy.archive, recording.recording_id, recorded());
        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        assert_eq!(
            recording.start_time,
            source.recording(id).expect("an answer").expect("it").start_time
        );
    }
    // The rest of the one that was cut.
    let params = ReplicationParams::new().dst_recording_id(2.into());
    copy.archive.replicate(id, control_channel, 10, &params).expect("an id");
    let sync = copy.await_signal(RecordingSignalKind::Sync);
    assert_eq!((sync.recording_id, sync.position), (2.into(), Some(end)));
    copy.await_signal(RecordingSignalKind::ReplicateEnd);
    assert_eq!(replay_all(&copy.archive, 2.into(), recorded()), (0..3000).collect::<Vec<_>>());
    // In sync.
    let params = ReplicationParams::new().dst_recording_id(last.expect("a copy"));
    copy.archive.replicate(id, control_channel, 10, &params).expect("an id");
    let sync = copy.await_signal(RecordingSignalKind::Sync);
    assert_eq!(sync.position, Some(end));
}

#[test]
fn server_copies_from_server() {
    let (source, target) = (launch(), launch());
    let channel = source.server().control_channel().to_owned();
    copy(&source.connect(), &channel, &Listener::connect(&target.aeron()));
}

#[test]
fn server_copies_from_java() {
    let Some(source) = ArchiveProcess::launch_java(Options::default()) else { return };
    let target = launch();
    copy(&source.connect(), &source.control_channel(), &Listener::connect(&target.aeron()));
}

#[test]
fn java_copies_from_server() {
    let Some(target) = ArchiveProcess::launch_java(Options::default()) else { return };
    let source = launch();
    let channel = source.server().control_channel().to_owned();
    copy(&source.connect(), &channel, &Listener::connect(&target.aeron()));
}

/// Copies a recording in progress, and goes on with the live stream when the source has gone.
pub(crate) fn merge(source: &Archive, control_channel: &str, copy: &Listener) {
    let live = format!("aeron:udp?endpoint=224.20.30.49:{}|interface=localhost", free_port());
    let (mut publication, id) = source
        .add_recorded_exclusive_publication(format!("{live}|term-length=64k"), STREAM)
        .expect("a publication");
    let position = offer_numbered(&mut publication, 0..1000);
    source.await_recorded(id, position, DEADLINE).expect("a recording");
    let params = ReplicationParams::new().live_destination(&*live);
    copy.archive.replicate(id, control_channel, 10, &params).expect("an id");
    let merge = copy.await_signal(RecordingSignalKind::Merge);
    source.stop_recording_exclusive_publication(&publication).expect("it was being recorded");
    let end = offer_numbered(&mut publication, 1000..1500);
    copy.archive.await_recorded(merge.recording_id, end, DEADLINE).expect("the live stream");
    drop(publication);
    assert_eq!(await_stop(&copy.archive, merge.recording_id), end);
    let numbers = replay_all(&copy.archive, merge.recording_id, recorded());
    assert_eq!(numbers, (0..1500).collect::<Vec<_>>());
}

#[test]
fn server_merges_with_live_stream_of_java() {
    let Some(source) = ArchiveProcess::launch_java(Options::default()) else { return };
    let target = launch();
    merge(&source.connect(), &source.control_channel(), &Listener::connect(&target.aeron()));
}

#[test]
fn java_merges_with_live_stream_of_server() {
    let Some(target) = ArchiveProcess::launch_java(Options::default()) else { return };
    let source = launch();
    let channel = source.server().control_channel().to_owned();
    merge(&source.connect(), &channel, &Listener::connect(&target.aeron()));
}

fn streams(aeron: &Aeron) -> Vec<CounterSnapshot> {
    let counters = aeron.counters_reader();
    counters.iter().filter(|counter| STREAMS.contains(&counter.type_id)).collect()
}

/// Copies a recording in progress. Returns the publication, the ids of recording and copy, and the position of both.
fn copy_in_progress(
    source: &Archive,
    control_channel: &str,
    copy: &Listener,
) -> (ExclusivePublication, RecordingId, RecordingId, i64) {
    let (publication, id, position) = record(source, 1000);
    copy.archive.replicate(id, control_channel, 10, &ReplicationParams::new()).expect("an id");
    let copied = copy.await_signal(RecordingSignalKind::Extend).recording_id;
    copy.archive.await_recorded(copied, position, DEADLINE).expect("a copy");
    (publication, id, copied, position)
}

#[test]
fn source_that_ends_leaves_nothing_behind() {
    let target = launch();
    let copy = Listener::connect(&target.aeron());
    let aeron = target.aeron();
    let before = streams(&aeron).len();
    let mut source = launch();
    let archive = source.connect();
    let channel = source.server().control_channel().to_owned();
    let (_publication, id, copied, position) = copy_in_progress(&archive, &channel, &copy);
    drop(archive);
    source.take().close().expect("a good end");
    copy.await_end();
    assert_eq!(await_stop(&copy.archive, copied), position);
    await_that("the end of all streams", || streams(&aeron).len() <= before);
    let numbers = replay_all(&copy.archive, copied, recorded());
    assert_eq!(numbers, (0..1000).collect::<Vec<_>>());
    // Nothing answers any more.
    let params = ReplicationParams::new().dst_recording_id(copied);
    let replication = copy.archive.replicate(id, &channel, 10, &params).expect("an id");
    copy.archive.stop_replication(replication).expect("it goes on");
    copy.await_signal(RecordingSignalKind::ReplicateEnd);
    await_that("the end of all streams", || streams(&aeron).len() <= before);
}

#[test]
fn killed_copy_is_completed() {
    let source = launch();
    let mut target = ArchiveProcess::launch_rust(Options::default());
    let archive = source.connect();
    let channel = source.server().control_channel();
    let (publication, id, end) = record(&archive, 20_000);
    drop(publication);
    assert_eq!(await_stop(&archive, id), end);
    let copy = Listener::connect(&target.aeron());
    copy.archive.replicate(id, channel, 10, &ReplicationParams::new()).expect("an id");
    let copied = copy.await_signal(RecordingSignalKind::Extend).recording_id;
    copy.archive.await_recorded(copied, 1, DEADLINE).expect("a copy");
    target.kill();
    drop(copy);

    target.restart();
    let copy = Listener::connect(&target.aeron());
    let stop = await_stop(&copy.archive, copied);
    assert!((1..=end).contains(&stop), "{stop} of {end}");
    let params = ReplicationParams::new().dst_recording_id(copied);
    copy.archive.replicate(id, channel, 10, &params).expect("an id");
    let ended = copy.await_signal(RecordingSignalKind::ReplicateEnd);
    assert_eq!((ended.recording_id, await_stop(&copy.archive, copied)), (copied, end));
    let numbers = replay_all(&copy.archive, copied, recorded());
    assert_eq!(numbers, (0..20_000).collect::<Vec<_>>());
}
