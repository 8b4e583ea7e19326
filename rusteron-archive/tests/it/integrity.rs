//! The messages that come out of an archive are those that went in. Merges lose and repeat nothing.
//!
//! The ignored tests are the same with more messages and more merges. `just prove-archive-integrity`
//! runs them, and prints how long they took.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ReplayLength, ReplayMerge, ReplayParams};
use rusteron_client::{ExclusivePublication, Subscription};
use rusteron_test_support::archive::{
    ArchiveProcess, Options, REPLAY_STREAM, STREAM, numbered, offer_numbered,
};
use rusteron_test_support::{DEADLINE, Random, await_that, connected_pair, free_port, retry};

/// The whole range of lengths that fit into one frame of 1,408 bytes and more: the longest are sent in
/// two.
const MESSAGE_LENGTHS: std::ops::RangeInclusive<usize> = 32..=1408;

/// Messages of all lengths with contents that look random, the same ones each time.
struct Messages {
    random: Random,
    pool: Vec<u8>,
    text: Vec<u8>,
}

impl Messages {
    fn new() -> Self {
        let mut random = Random::new(6);
        let pool = random.bytes(1 << 16);
        Self { random, pool, text: Vec::new() }
    }

    /// The next one, which begins with its number.
    fn next(&mut self, number: u64) -> &[u8] {
        let (min, max) = (*MESSAGE_LENGTHS.start(), *MESSAGE_LENGTHS.end());
        let length = min + self.random.below(max - min + 1);
        let start = self.random.below(self.pool.len() - length);
        self.text.clear();
        self.text.extend_from_slice(&number.to_le_bytes());
        self.text.extend_from_slice(&self.pool[start..start + length - size_of::<u64>()]);
        &self.text
    }
}

/// A checksum, to compare two sequences of messages.
#[derive(Debug, Default)]
struct Checksum {
    hasher: DefaultHasher,
    messages: u64,
    bytes: u64,
}

impl Checksum {
    fn add(&mut self, message: &[u8]) {
        self.hasher.write_usize(message.len());
        self.hasher.write(message);
        self.messages += 1;
        self.bytes += message.len() as u64;
    }

    fn result(&self) -> (u64, u64, u64) {
        (self.messages, self.bytes, self.hasher.finish())
    }
}

fn replay_equals_what_was_recorded(count: u64, options: Options) {
    let server = ArchiveProcess::launch_with(options);
    let archive = server.connect();
    let start = Instant::now();
    let (mut publication, recording_id) = archive
        .add_recorded_exclusive_publication("aeron:ipc?term-length=16m", STREAM)
        .expect("a publication");
    let mut messages = Messages::new();
    let mut sent = Checksum::default();
    let mut end = 0;
    for number in 0..count {
        let message = messages.next(number);
        end = retry(|| publication.offer(message)).expect("a position");
        sent.add(message);
    }
    archive.await_recorded(recording_id, end, DEADLINE).expect("a recording");
    drop(publication);
    let recorded = start.elapsed();

    let start = Instant::now();
    let params = ReplayParams::new().length(ReplayLength::Recorded);
    let mut subscription = archive
        .replay(recording_id, "aeron:ipc?term-length=16m", REPLAY_STREAM, params)
        .expect("a replay");
    let received = receive_all(&mut subscription, count);
    println!(
        "{count} messages, {} bytes: recorded in {recorded:.1?}, replayed in {:.1?}; checksum {:x}",
        sent.bytes,
        start.elapsed(),
        received.hasher.finish()
    );
    assert_eq!(received.result(), sent.result());
    assert_eq!(sent.messages, count);
    // Nothing comes after the end.
    await_that("the end of the replay", || {
        let more = subscription.poll(|_, _| (), 10).expect("an open subscription");
        assert_eq!(more, 0);
        !subscription.is_connected()
    });
}

/// Receives so many messages, in order.
fn receive_all(subscription: &mut Subscription, count: u64) -> Checksum {
    let mut received = Checksum::default();
    let mut last_progress = Instant::now();
    while received.messages < count {
        let fragments = subscription
            .poll(
                |message, _| {
                    let number = u64::from_le_bytes(*message.first_chunk().expect("a number"));
                    assert_eq!(number, received.messages);
                    received.add(message);
                },
                100,
            )
            .expect("an open subscription");
        if fragments > 0 {
            last_progress = Instant::now();
        } else {
            assert!(last_progress.elapsed() < DEADLINE, "after {} messages", received.messages);
            std::thread::yield_now();
        }
    }
    received
}

/// How many live messages a merge has to go on with.
const LIVE: u64 = 1000;

/// A live stream that never pauses, and the facts about it.
struct Live {
    published: AtomicU64,
    /// Numbers of messages with the positions at which they begin.
    starts: Mutex<Vec<(u64, i64)>>,
    is_over: AtomicBool,
}

impl Live {
    fn publish(&self, publication: &mut ExclusivePublication) {
        const BURST: u64 = 20;
        let mut number = 0;
        let mut position = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            self.starts.lock().expect("no panic").push((number, position));
            position = offer_numbered(publication, number..number + BURST);
            number += BURST;
            self.published.store(number, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends it also when a merge fails, as the scope waits for its threads.
    fn end_on_drop(&self) -> impl Drop + '_ {
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        End(&self.is_over)
    }
}

fn merges_lose_and_repeat_nothing_under_load(merges: u64) {
    let server = ArchiveProcess::launch();
    let archive = server.connect();
    let control = free_port();
    let channel = format!(
        "aeron:udp?control=localhost:{control}|control-mode=dynamic|fc=min|ssc=true|\
         term-length=256k"
    );
    let (mut publication, recording_id) =
        archive.add_recorded_exclusive_publication(&channel, STREAM).expect("a publication");
    let replay = format!("aeron:udp?session-id={}", publication.session_id());
    let (mut load_publication, mut load_subscription) =
        connected_pair(archive.aeron(), "aeron:ipc?term-length=64k");
    let live = Live {
        published: AtomicU64::new(0),
        starts: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    let mut random = Random::new(100);
    let mut merged_messages = 0;
    let start = Instant::now();
    std::thread::scope(|scope| {
        let _end = live.end_on_drop();
        scope.spawn(|| live.publish(&mut publication));
        // The load: another stream at full speed, through the same media driver.
        scope.spawn(|| {
            while !live.is_over.load(Ordering::Relaxed) {
                let sent = load_publication.offer(&[0; 64]).is_ok();
                let received = load_subscription.poll(|_, _| (), 10).expect("open");
                if !sent && received == 0 {
                    std::thread::yield_now();
                }
            }
        });
        await_that("some messages", || live.published.load(Ordering::Relaxed) > 2000);
        for _merge in 0..merges {
            let (first, position) = {
                let starts = live.starts.lock().expect("no panic");
                // From a while ago, and at most from 20,000 messages ago.
                let back = 50 + random.below(950);
                starts[starts.len().saturating_sub(back)]
            };
            let session = session_on(&server, &archive);
            // The media driver may not have closed that of the last merge yet.
            let endpoint = free_port();
            // Nor that of the last replay, whose port the operating system could give out again: the
            // archive would then refuse a second session of this number.
            let replay_destination = format!("aeron:udp?endpoint=localhost:{}", free_port());
            let live_channel =
                format!("aeron:udp?endpoint=localhost:{endpoint}|control=localhost:{control}");
            let subscription = archive
                .aeron()
                .add_subscription("aeron:udp?control-mode=manual", STREAM)
                .expect("a subscription");
            let mut merge = ReplayMerge::builder(&replay, &replay_destination, &live_channel)
                .start_position(position)
                .progress_timeout(DEADLINE)
                .live_timeout(DEADLINE)
                .start(session, subscription, recording_id)
                .expect("a merge");
            let mut next = first;
            await_that("the merge", || {
                merge.poll(|text, _| expect(text, &mut next), 100).expect("a merge");
                merge.is_merged()
            });
            let (_session, mut subscription) = merge.into_parts().expect("the parts");
            let end = next.max(live.published.load(Ordering::Relaxed)) + LIVE;
            await_that("live messages", || {
                subscription.poll(|text, _| expect(text, &mut next), 100).expect("open");
                next >= end
            });
            merged_messages += next - first;
        }
    });
    println!(
        "{merges} merges in {:.1?}: {merged_messages} messages in order, of {} published",
        start.elapsed(),
        live.published.load(Ordering::Relaxed)
    );
    assert!(merged_messages >= merges * LIVE);
}

/// The next message and no other.
fn expect(text: &[u8], next: &mut u64) {
    assert_eq!(numbered(text), *next);
    *next += 1;
}

/// A further session of the same client.
fn session_on(server: &ArchiveProcess, archive: &Archive) -> Archive {
    Archive::connect(archive.aeron(), server.context()).expect("a session")
}

#[test]
fn replay_equals_recording() {
    let properties = vec!["aeron.archive.segment.file.length=16777216".to_owned()];
    replay_equals_what_was_recorded(200_000, Options { properties, ..Options::default() });
}

#[test]
fn ten_merges_under_load() {
    merges_lose_and_repeat_nothing_under_load(10);
}

#[test]
#[ignore = "writes 8 GB; just prove-archive-integrity"]
fn replay_of_ten_million_messages() {
    // On a disk, not in memory.
    let dir = tempfile::tempdir().expect("a directory");
    let properties = vec!["aeron.archive.segment.file.length=134217728".to_owned()];
    let archive_dir = Some(dir.path().join("archive"));
    replay_equals_what_was_recorded(
        10_000_000,
        Options { properties, archive_dir, ..Options::default() },
    );
}

#[test]
#[ignore = "takes minutes; just prove-archive-integrity"]
fn hundred_merges_under_load() {
    merges_lose_and_repeat_nothing_under_load(100);
}
