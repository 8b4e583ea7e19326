//! Publishers that are killed in the middle of a batch. Subscribers get the first of each publisher's
//! messages, in order and whole. The stream of publishers that share a log goes on. A stream of a
//! publisher's own ends.

use std::alloc::{Layout, alloc};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rusteron_client::{
    Aeron, Backoff, Header, IdleStrategy, OfferedBatch, Publication, Subscription, SystemCounter,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    Random, SHORT_TERMS, await_that, connect, context, launch_strict, udp_channel,
};

/// Number of messages that each publisher offers before its end. These are certain to arrive.
const BEFORE: usize = 5;
/// Number of messages of the batch in which a publisher dies.
const BATCH: usize = 40;

/// A message that names its publisher and its number. Length and filling follow from both.
fn message(publisher: u64, number: usize) -> Vec<u8> {
    let mut message = [publisher, number as u64].map(u64::to_le_bytes).concat();
    message.resize(100 + number * 37 % 150, number as u8);
    message
}

/// Number of messages that have arrived from each publisher.
#[derive(Default)]
struct Received(HashMap<u64, usize>);

impl Received {
    /// Receives the available messages. None may be missing, torn or out of order.
    fn poll(&mut self, subscription: &mut Subscription) {
        let handler = |bytes: &[u8], _: &Header<'_>| {
            let (publisher, _) = bytes.split_first_chunk().expect("its publisher");
            let publisher = u64::from_le_bytes(*publisher);
            let next = self.0.entry(publisher).or_default();
            assert!(
                bytes == message(publisher, *next),
                "message {next} of publisher {publisher} is missing: {bytes:?}"
            );
            *next += 1;
        };
        subscription.poll(handler, 20).expect("open");
    }

    fn of(&self, publisher: u64) -> usize {
        self.0.get(&publisher).copied().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Exclusive,
    Shared,
}

/// Where the run of a batch began that the message with this number is in. Nothing but the lengths of the
/// messages ends runs in these tests.
fn start_of_run(number: usize) -> usize {
    let mut start = BEFORE;
    loop {
        let (mut end, mut bytes) = (start, 0);
        while end - start < 16 && bytes < 2048 {
            bytes += (message(0, end).len() + 32).next_multiple_of(32);
            end += 1;
        }
        if end > number {
            return start;
        }
        start = end;
    }
}

/// The end of a publisher.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Death {
    /// When the publication asks for the bytes of the message with this number.
    Asked(usize),
    /// When it is copying the message with this number, and has come to its middle.
    Copied(usize),
    /// At any time. Until then it notes how many messages were accepted.
    Killed,
}

mod ffi {
    unsafe extern "C" {
        pub(crate) fn raise(signal: i32) -> i32;
        pub(crate) fn signal(signal: i32, handler: extern "C" fn(i32)) -> usize;
        pub(crate) fn mprotect(address: *mut u8, length: usize, protection: i32) -> i32;
    }
}

const SIGKILL: i32 = 9;

extern "C" fn die(_: i32) {
    // SAFETY: any process may send this to itself, in a signal handler too.
    unsafe { ffi::raise(SIGKILL) };
}

/// A copy of a message. A read of its second half kills the process.
fn deadly(message: &[u8]) -> &'static [u8] {
    /// A multiple of every page size there is.
    const PAGES: usize = 1 << 16;
    const NO_ACCESS: i32 = 0;
    let readable = message.len() / 2;
    let layout = Layout::from_size_align(2 * PAGES, PAGES).expect("a layout");
    // SAFETY: the allocation is written to within its length and never given back; no Rust code but that
    // under test reads the second half, and nothing happens after that. The handler does what is
    // allowed in one.
    unsafe {
        // As Linux and macOS number what such an access causes: SIGBUS or SIGSEGV.
        for signal in [7, 10, 11] {
            ffi::signal(signal, die);
        }
        let memory = alloc(layout);
        assert!(!memory.is_null());
        let start = memory.add(PAGES - readable);
        start.copy_from(message.as_ptr(), message.len());
        assert_eq!(ffi::mprotect(memory.add(PAGES), PAGES, NO_ACCESS), 0);
        std::slice::from_raw_parts(start, message.len())
    }
}

struct Message {
    bytes: Vec<u8>,
    death: Option<Death>,
    deadly: Option<&'static [u8]>,
}

impl Message {
    fn new(publisher: u64, number: usize, death: Death) -> Self {
        let bytes = message(publisher, number);
        let is_copied = death == Death::Copied(number);
        let is_last = is_copied || death == Death::Asked(number);
        let deadly = is_copied.then(|| deadly(&bytes));
        Self { bytes, death: is_last.then_some(death), deadly }
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        match self.death {
            Some(Death::Asked(_)) => {
                die(0);
                unreachable!("nothing happens after that")
            }
            _ => self.deadly.unwrap_or(&self.bytes),
        }
    }
}

const JOB: &str = "RUSTERON_TEST_JOB";

/// A publisher in a process of its own, which is killed when this is dropped.
struct Publisher {
    id: u64,
    child: Child,
    death: Death,
    /// In which it notes how many of its messages were accepted.
    notes: File,
}

impl Publisher {
    fn start(driver: &MediaDriver, id: u64, stream: &Stream, death: Death) -> Self {
        let path = driver.aeron_dir().join(format!("accepted-{id}"));
        let notes = File::options().read(true).write(true).create_new(true).open(&path);
        let (verb, number) = match death {
            Death::Asked(number) => ("asked", number),
            Death::Copied(number) => ("copied", number),
            Death::Killed => ("killed", 0),
        };
        let Stream { kind, channel, stream_id, .. } = stream;
        let (path, dir) = (path.display(), driver.aeron_dir().display());
        let job = format!("{id} {kind:?} {verb} {number} {channel} {stream_id}\n{path}\n{dir}");
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--exact",
                "faults::killed_publishers::publisher_process",
                "--ignored",
                "--nocapture",
            ])
            .env(JOB, job)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("this program starts");
        Self { id, child, death, notes: notes.expect("a file") }
    }

    /// Returns whether the publisher has offered its first messages.
    fn is_ready(&mut self) -> bool {
        assert_eq!(self.child.try_wait().expect("its state"), None, "it is gone");
        self.accepted() >= BEFORE
    }

    /// Lets it die, or kills it, and waits until it is gone.
    fn end(&mut self) {
        // It goes on when this is closed.
        drop(self.child.stdin.take());
        if self.death == Death::Killed {
            self.child.kill().expect("it can be killed");
        }
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(SIGKILL), "{:?}: {status}", self.death);
    }

    /// A lower bound of its accepted messages.
    fn accepted(&self) -> usize {
        let mut bytes = [0; 8];
        // Nothing is there before the first.
        self.notes.read_exact_at(&mut bytes, 0).map_or(0, |()| usize::from_le_bytes(bytes))
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The test that a [`Publisher`] runs.
#[test]
#[ignore = "other tests start it, as a process of its own"]
fn publisher_process() {
    let Ok(job) = std::env::var(JOB) else { return };
    let job: Vec<_> = job.splitn(8, [' ', '\n']).collect();
    let [id, kind, verb, number, channel, stream_id, notes, dir] = job[..] else {
        panic!("{job:?}")
    };
    let (id, number) = (id.parse().expect("an id"), number.parse().expect("a number"));
    let stream_id = stream_id.parse().expect("a stream id");
    let death = match verb {
        "asked" => Death::Asked(number),
        "copied" => Death::Copied(number),
        _ => Death::Killed,
    };
    let notes = File::options().write(true).open(notes).expect("a file");
    let aeron = Aeron::connect(context(Path::new(dir))).expect("a client");
    if kind == "Exclusive" {
        let mut publication = aeron.add_exclusive_publication(channel, stream_id).expect("added");
        publish(id, death, &notes, |messages| accepted(publication.offer_batch(messages)));
    } else {
        let publication = aeron.add_publication(channel, stream_id).expect("added");
        publish(id, death, &notes, |messages| accepted(publication.offer_batch(messages)));
    }
}

/// Number of messages that an open publication has accepted.
fn accepted(batch: OfferedBatch) -> usize {
    if let Some(error) = batch.stopped_by {
        assert!(error.is_retryable(), "{error}");
    }
    batch.accepted
}

/// Offers until it is over.
fn publish(id: u64, death: Death, notes: &File, mut offer: impl FnMut(&[Message]) -> usize) {
    let mut accepted = 0;
    let mut idle = Backoff::default();
    let mut offer_to = |end: usize| {
        let messages: Vec<_> = (accepted..end).map(|n| Message::new(id, n, death)).collect();
        let mut left = &messages[..];
        while !left.is_empty() {
            let count = offer(left);
            left = &left[count..];
            accepted += count;
            if count > 0 {
                notes.write_all_at(&accepted.to_le_bytes(), 0).expect("a note");
            }
            idle.idle(count);
        }
        accepted
    };
    let mut end = offer_to(BEFORE);
    if death == Death::Killed {
        // So that it ends when the test does, however that comes about.
        std::thread::spawn(|| {
            while std::io::stdin().read(&mut [0]).is_ok_and(|length| length > 0) {}
            die(0);
        });
    } else {
        let _ = std::io::stdin().read(&mut [0]);
    }
    loop {
        end = offer_to(end + BATCH);
    }
}

/// The subscriber of a publisher that is to die, and for a shared stream another publisher.
struct Stream {
    kind: Kind,
    channel: String,
    stream_id: i32,
    subscription: Subscription,
    other: Option<Publication>,
    received: Received,
    offered_by_other: usize,
}

/// The other publisher's.
const OTHER: u64 = 0;

impl Stream {
    fn new(aeron: &Aeron, kind: Kind, channel: String, stream_id: i32) -> Self {
        let subscription = aeron.add_subscription(&channel, stream_id).expect("a subscription");
        let other = (kind == Kind::Shared)
            .then(|| aeron.add_publication(&channel, stream_id).expect("a publication"));
        let received = Received::default();
        Self { kind, channel, stream_id, subscription, other, received, offered_by_other: 0 }
    }

    fn poll(&mut self) {
        self.received.poll(&mut self.subscription);
    }

    /// Offers messages besides the publisher that dies. Does not wait: the dead publisher can block the stream.
    fn offer_by_other(&mut self, count: usize) {
        let Some(other) = &self.other else { return };
        for _ in 0..count {
            let message = message(OTHER, self.offered_by_other);
            match other.offer(&message) {
                Ok(_) => self.offered_by_other += 1,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    }

    /// After its publishers are dead: whether everything of the other one has come, or the end.
    fn is_over(&mut self, last: usize) -> bool {
        let is_offering = self.offered_by_other < last;
        self.offer_by_other(is_offering.into());
        self.poll();
        match self.other {
            Some(_) => self.received.of(OTHER) == last,
            None => self.subscription.image_count() == 0,
        }
    }
}

/// Polls streams whose publishers are dead until everything has come.
///
/// Polls all streams at the same time. In an exclusive stream over IPC, the driver looks for frames of a dead
/// publisher only at the positions that the subscribers had at the client timeout.
fn await_what_follows(streams: &mut [Stream]) {
    let mut left: Vec<_> =
        streams.iter_mut().map(|stream| (stream.offered_by_other + 20, stream)).collect();
    await_that("what follows the dead publishers", || {
        left.retain_mut(|(last, stream)| !stream.is_over(*last));
        left.is_empty()
    });
}

/// Publishers that die at the same message of exclusive streams, over IPC and UDP. No message of the run in
/// which they die arrives. Every message of earlier runs arrives. Returns the number of streams that the driver
/// had to unblock.
fn dying(death: fn(usize) -> Death) -> i64 {
    let driver = launch_strict();
    let aeron = connect(&driver);
    let (mut streams, mut last_numbers) = (Vec::new(), Vec::new());
    // At the beginning, inside and at the end of the first claimed run, and in the run after it.
    for number in [0, 1, 9, 15, 16, BATCH - 1] {
        for kind in [Kind::Exclusive, Kind::Shared] {
            for channel in [SHORT_TERMS.to_owned(), format!("{}|term-length=64k", udp_channel())] {
                let id = streams.len() as u64 + 1;
                let mut stream = Stream::new(&aeron, kind, channel, id as i32);
                let mut publisher = Publisher::start(&driver, id, &stream, death(BEFORE + number));
                await_that("the publisher", || publisher.is_ready());
                stream.offer_by_other(3);
                publisher.end();
                stream.offer_by_other(3);
                last_numbers.push(BEFORE + number);
                streams.push(stream);
                streams.iter_mut().for_each(Stream::poll);
            }
        }
    }
    await_what_follows(&mut streams);
    for (stream, number) in streams.iter().zip(last_numbers) {
        let received = stream.received.of(stream.stream_id as u64);
        let what = (stream.kind, &stream.channel);
        // It may be asked for the next message already when it is about to send a run.
        let is_asked = matches!(death(number), Death::Asked(_));
        let earliest = start_of_run(number - usize::from(is_asked));
        assert!(
            [earliest, start_of_run(number)].contains(&received),
            "{received} messages came of a publisher that died at {number}: {what:?}"
        );
    }
    SystemCounter::UnblockedPublications.read(&aeron.counters_reader()).expect("a counter")
}

#[test]
fn death_while_copying_leaves_no_hole() {
    let unblocked = dying(Death::Copied);
    // All of them died inside.
    assert!(unblocked >= 24, "only {unblocked} were unblocked");
}

#[test]
fn death_between_messages_leaves_no_hole() {
    dying(Death::Asked);
}

#[test]
fn death_at_any_time_leaves_no_hole() {
    const ROUNDS: u64 = 2;
    let driver = launch_strict();
    let aeron = connect(&driver);
    let mut random = Random::new(5);
    let udp = format!("{}|term-length=64k", udp_channel());
    let other_udp = format!("{}|term-length=64k", udp_channel());
    let mut streams = [
        Stream::new(&aeron, Kind::Exclusive, SHORT_TERMS.to_owned(), 1),
        Stream::new(&aeron, Kind::Shared, SHORT_TERMS.to_owned(), 2),
        Stream::new(&aeron, Kind::Exclusive, udp, 3),
        Stream::new(&aeron, Kind::Shared, other_udp, 4),
    ];
    for round in 0..ROUNDS {
        // Two for each stream, so that publishers that share a stream are in each other's way.
        let mut publishers: Vec<_> = (0..2 * streams.len())
            .map(|index| {
                let id = 1 + round * 100 + index as u64;
                let index = index % streams.len();
                (index, Publisher::start(&driver, id, &streams[index], Death::Killed))
            })
            .collect();
        await_that("the publishers", || {
            // Ready publishers go on, and are in the way of the others.
            streams.iter_mut().for_each(Stream::poll);
            publishers.iter_mut().all(|(_, publisher)| publisher.is_ready())
        });
        let mut alive = publishers.iter_mut();
        let mut polls = 0;
        let mut next_death = 50;
        await_that("the deaths", || {
            for stream in &mut streams {
                stream.offer_by_other(1);
                stream.poll();
            }
            polls += 1;
            if polls < next_death {
                return false;
            }
            next_death = polls + random.below(50);
            let Some((_, publisher)) = alive.next() else { return true };
            publisher.end();
            false
        });
        await_what_follows(&mut streams);
        for (index, publisher) in &publishers {
            let (accepted, received) =
                (publisher.accepted(), streams[*index].received.of(publisher.id));
            // It can have died after a batch, and before it noted that.
            assert!(
                (accepted..=accepted + BATCH).contains(&received),
                "{accepted} messages of publisher {} were accepted, {received} came",
                publisher.id
            );
        }
    }
}
