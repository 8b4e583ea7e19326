//! Clients that send requests, and never read the answers.

use std::fs;
use std::sync::mpsc::{self, Receiver};

use rusteron_archive::Archive;
use rusteron_client::{Aeron, ExclusivePublication};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::fake_archive::{
    AUTH_CONNECT, CONTROL_RESPONSE, MAX_RECORDED_POSITION, Message,
};
use rusteron_test_support::archive::{offer_numbered, record};
use rusteron_test_support::{DEADLINE, Running, await_some, offer};

use crate::bad_days::{archive, assert_contains, connect, end, start};
use crate::support::launch_driver;

/// A session of a client that never reads its answers, and why the server has ended it.
struct Deaf {
    publication: ExclusivePublication,
    session: i64,
    reasons: Receiver<String>,
    _aeron: Aeron,
    _responses: rusteron_client::Subscription,
}

impl Deaf {
    const STREAM: i32 = 4040;

    fn connect(driver: &MediaDriver) -> Self {
        let (sender, reasons) = mpsc::channel();
        let mut context = rusteron_test_support::context(driver.aeron_dir());
        context
            .set_publication_error_handler(move |error| _ = sender.send(error.message.clone()))
            .expect("a handler");
        let aeron = Aeron::connect(context).expect("a client");
        let mut responses = aeron.add_subscription("aeron:ipc", Self::STREAM).expect("added");
        let mut publication = aeron.add_exclusive_publication("aeron:ipc", 10).expect("added");
        let mut block = 1_i64.to_le_bytes().to_vec();
        block.extend(Self::STREAM.to_le_bytes());
        block.extend((1_i32 << 16 | 12 << 8).to_le_bytes());
        let request = Message::new(AUTH_CONNECT, block, &[b"aeron:ipc", b"", b"a deaf client"]);
        offer(&mut publication, &request.encode());
        let session = await_some("a session", || {
            let mut session = None;
            let polled = responses.poll(
                |message, _| {
                    if message[2..4] == CONTROL_RESPONSE.to_le_bytes() {
                        session = message[24..].first_chunk().copied().map(i64::from_le_bytes);
                    }
                },
                1,
            );
            polled.expect("an open subscription");
            session
        });
        Self { publication, session, reasons, _aeron: aeron, _responses: responses }
    }

    /// Sends so many requests, or fewer if the session ends before, and returns why it has ended. Another session goes
    /// on meanwhile.
    fn flood(&mut self, mut requests: usize, other: &Archive) -> String {
        let fields = [self.session, 2, 0].into_iter().flat_map(i64::to_le_bytes).collect();
        let request = Message::new(MAX_RECORDED_POSITION, fields, &[]).encode();
        await_some("the end of the session", || {
            assert_eq!(other.start_position(0).expect("an answer"), 0);
            for _ in 0..requests.min(100) {
                if self.publication.offer(&request).is_err() {
                    break;
                }
                requests -= 1;
            }
            self.reasons.try_recv().ok()
        })
    }
}

#[test]
fn client_that_stops_reading_ends_alone() {
    // Answers that wait are bounded in number and in time.
    for (timeout, requests, reason) in [
        ("2s", 2_000, "failed to send response for more than connectTimeoutMs=2000"),
        ("600s", 100_000, "too many responses wait for a client that does not read them"),
    ] {
        let driver = launch_driver();
        let dir = tempfile::tempdir().expect("a directory");
        let timeout = format!("aeron.archive.connect.timeout={timeout}");
        let server = start(archive(driver.aeron_dir(), dir.path(), &[&timeout]));
        let other = connect(&driver);
        let (mut publication, recording_id, _) = record(&other, 10);
        let before = memory(&server);
        let mut deaf = Deaf::connect(&driver);
        assert_eq!(deaf.flood(requests, &other), reason);
        let grown = memory(&server).saturating_sub(before);
        assert!(grown < 48 << 10, "{grown} KiB");
        let position = offer_numbered(&mut publication, 10..20);
        other.await_recorded(recording_id, position, DEADLINE).expect("a recording");
        let session = deaf.session;
        drop((deaf, publication, other));
        let lines = end(server);
        // Requests that were on their way can make another line.
        assert!(lines.len() <= 2, "{lines:?}");
        let session = format!("archive: controlSessionId={session} ");
        assert_contains(&lines[0], &[&session, "controlResponseStreamId=4040 ", reason]);
    }
}

/// The memory of a process, in KiB.
fn memory(server: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("a status");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("memory");
    resident.trim().trim_end_matches(" kB").parse().expect("a number")
}
