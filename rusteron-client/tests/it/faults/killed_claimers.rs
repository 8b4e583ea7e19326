//! Publishers that are killed between a claim and its commit. The driver unblocks the claimed range, and
//! the log is the same as after a publisher in C was killed there.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::differential::operations::{HEADER_LENGTH, Media, Stream, Subject, TERM_LENGTH};
use rusteron_client::{Aeron, ExclusivePublication, Publication, Subscription};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    await_some, await_that, connect, context, launch_strict, log_file, log_tails, receive, retry,
};

/// The message that is offered before the claim.
const BEFORE: &[u8] = b"before the claim";
/// The message that is offered behind the claim, on a shared publication.
const BEHIND: &[u8] = b"behind the claim";
/// The length of the claim. Half of it is written.
const CLAIMED: usize = 300;

const JOB: &str = "RUSTERON_TEST_JOB";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Language {
    Rust,
    C,
}

/// A publisher in a process of its own, which is killed when this is dropped.
struct Claimer(Child);

impl Drop for Claimer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The test that a [`Claimer`] runs.
#[test]
#[ignore = "other tests start it, as a process of its own"]
fn claimer_process() {
    let Ok(job) = std::env::var(JOB) else { return };
    let job: Vec<_> = job.lines().collect();
    let [language, kind, stream_id, channel, notes, dir] = job[..] else { panic!("{job:?}") };
    let stream_id = stream_id.parse().expect("a stream id");
    let language = if language == "C" { Language::C } else { Language::Rust };
    let aeron = Aeron::connect(context(Path::new(dir))).expect("a client");
    if kind == "exclusive" {
        claim::<ExclusivePublication>(&aeron, channel, stream_id, language, notes);
    } else {
        claim::<Publication>(&aeron, channel, stream_id, language, notes);
    }
}

/// Claims, writes a half, notes where that was, and waits.
fn claim<P: Subject>(
    aeron: &Aeron,
    channel: &str,
    stream_id: i32,
    language: Language,
    notes: &str,
) {
    let mut publication = P::add(aeron, channel, stream_id);
    let log = publication.constants().original_registration_id;
    await_that("an available window", || publication.available_window().expect("open") > 0);
    let start = match language {
        Language::Rust => publication.offer(BEFORE).expect("an available window"),
        Language::C => publication.c_offer(BEFORE),
    };
    assert!(start > 0, "{start}");
    let wait = |end: i64| {
        let note = [log, start, end].map(i64::to_le_bytes).concat();
        // Under another name until it is whole.
        let unfinished = format!("{notes}-unfinished");
        std::fs::write(&unfinished, note).expect("a note");
        std::fs::rename(&unfinished, notes).expect("a note");
        // Until it is killed; or the test has ended in another way.
        let _ = std::io::stdin().read(&mut [0]);
        std::process::abort();
    };
    match language {
        Language::Rust => {
            let mut claim = publication.try_claim(CLAIMED).expect("an available window");
            claim[..CLAIMED / 2].fill(7);
            claim.set_reserved_value(-1);
            wait(claim.position());
        }
        Language::C => {
            let (end, claim) = publication.c_try_claim(CLAIMED);
            assert!(end > 0, "{end}");
            // SAFETY: with a position C has filled the claim in; what is claimed is writable.
            unsafe {
                let claim = claim.assume_init();
                claim.data.write_bytes(7, CLAIMED / 2);
                claim.frame_header.add(24).cast::<i64>().write(-1);
            }
            wait(end);
        }
    }
}

/// A stream whose publisher has claimed a range, and was killed.
struct Blocked {
    subscription: Subscription,
    other: Option<Publication>,
    log: File,
    /// Where the claim begins and ends.
    start: i64,
    end: i64,
}

impl Blocked {
    fn new(driver: &MediaDriver, aeron: &Aeron, stream: Stream, kind: &str, in_: Language) -> Self {
        let Stream { stream_id, .. } = stream;
        let (any, channel) = stream.channels();
        let mut subscription = aeron.add_subscription(&any, stream_id).expect("a subscription");
        let dir = driver.aeron_dir();
        let notes = dir.join(format!("claim-{stream_id}"));
        let (dir, path) = (dir.display(), notes.display());
        let mut claimer = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--exact",
                "faults::killed_claimers::claimer_process",
                "--ignored",
                "--nocapture",
            ])
            .env(JOB, format!("{in_:?}\n{kind}\n{stream_id}\n{channel}\n{path}\n{dir}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map(Claimer)
            .expect("this program starts");
        let note = await_some("the claim", || {
            assert_eq!(claimer.0.try_wait().expect("its state"), None, "it is gone");
            std::fs::read(&notes).ok()
        });
        let [registration_id, start, end] =
            [0, 8, 16].map(|at| i64::from_le_bytes(note[at..at + 8].try_into().expect("8 bytes")));
        let log = log_file(driver, registration_id);
        let other = (kind == "shared")
            .then(|| aeron.add_publication(&any, stream_id).expect("a publication"));
        assert_eq!(receive(&mut subscription, 1), [BEFORE]);
        claimer.0.kill().expect("it can be killed");
        claimer.0.wait().expect("it ends");
        let behind = other.as_ref().map(|other| retry(|| other.offer(BEHIND)).expect("open"));
        Self { subscription, other, log, start, end: behind.unwrap_or(end) }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; (self.end - self.start) as usize];
        let start = self.start % (3 * TERM_LENGTH);
        self.log.seek(SeekFrom::Start(start as u64)).expect("a seek in the log");
        self.log.read_exact(&mut bytes).expect("the frames");
        bytes
    }

    /// Waits until the driver has unblocked the stream. Returns the log's bytes from the claim on, and the
    /// end of the log.
    fn await_padding(&mut self) -> (Vec<u8>, ([i64; 3], i32)) {
        let length = CLAIMED as i32 + HEADER_LENGTH as i32;
        let bytes = await_some("padding", || {
            let bytes = self.bytes();
            let found = i32::from_ne_bytes(bytes[..4].try_into().expect("4 bytes"));
            // First the driver stamps a whole header on the range, with a length of 0.
            assert!([length, 0, -length].contains(&found), "{found}");
            (found > 0).then_some(bytes)
        });
        (bytes, log_tails(&self.log, TERM_LENGTH as usize))
    }

    /// Checks the stream after the padding: the message of the other publisher follows, or the end.
    fn go_on(&mut self) {
        if self.other.is_some() {
            assert_eq!(receive(&mut self.subscription, 1), [BEHIND]);
            return;
        }
        await_that("the end", || {
            self.subscription.poll(|_, _| panic!("it was not committed"), 10).expect("open");
            self.subscription.image_count() == 0
        });
    }
}

#[test]
fn killed_claim_becomes_padding_as_in_c() {
    let drivers = [(Language::Rust, launch_strict()), (Language::C, launch_strict())];
    let mut contenders = drivers.each_ref().map(|(language, driver)| {
        let aeron = connect(driver);
        let mut streams = Vec::new();
        for media in [Media::Ipc, Media::Udp] {
            for kind in ["exclusive", "shared"] {
                let stream_id = streams.len() as i32;
                let stream = Stream { media, stream_id, term_offset: 1024, ..Stream::DEFAULT };
                streams.push(Blocked::new(driver, &aeron, stream, kind, *language));
            }
        }
        streams
    });
    let [rust, c] = &mut contenders;
    for (rust, c) in rust.iter_mut().zip(c) {
        assert_eq!((rust.start, rust.end), (c.start, c.end));
        let (by_rust, rust_tails) = rust.await_padding();
        let (by_c, c_tails) = c.await_padding();
        assert_eq!(by_rust, by_c);
        assert_eq!(rust_tails, c_tails);
        let (frame_type, half) = (&by_rust[6..8], &by_rust[32..32 + CLAIMED / 2]);
        assert_eq!(frame_type, [0, 0], "it is no padding");
        assert!(half.iter().all(|&byte| byte == 7), "it was not written to");
        rust.go_on();
        c.go_on();
    }
}
