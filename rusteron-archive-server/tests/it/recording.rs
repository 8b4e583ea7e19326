//! Recordings, beside what the tests of the client `rusteron-archive` ask of any archive.

use std::net::UdpSocket;
use std::time::Duration;

use rusteron_archive::{ArchiveErrorKind, SourceLocation};
use rusteron_archive_server::ArchiveThreadingMode;
use rusteron_client::OfferError;
use rusteron_test_support::archive::{
    STREAM, await_recording, message, offer_numbered, record, replay_all,
};
use rusteron_test_support::{DEADLINE, await_that, free_port};

use crate::support::{Fixture, Turns, await_error, await_stop, connect_with_errors, recorded};

const LOCAL: SourceLocation = SourceLocation::Local;

#[test]
fn each_publisher_has_a_recording() {
    let fixture = Fixture::launch();
    let archive = fixture.connect();
    archive.start_recording("aeron:ipc", STREAM, LOCAL, false).expect("a subscription");
    let aeron = archive.aeron();
    let publications: Vec<_> = (0..3)
        .map(|_| aeron.add_exclusive_publication("aeron:ipc", STREAM).expect("a publication"))
        .collect();
    let mut recordings = Vec::new();
    for (index, mut publication) in publications.into_iter().enumerate() {
        let recording_id = await_recording(&archive, publication.session_id());
        let count = 10 * (index as u64 + 1);
        let position = offer_numbered(&mut publication, 0..count);
        archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
        recordings.push((recording_id, count, publication));
    }
    archive.stop_recording("aeron:ipc", STREAM).expect("they were recorded");
    for (recording_id, count, _publication) in &recordings {
        await_stop(&archive, *recording_id);
        let numbers: Vec<_> = (0..*count).collect();
        assert_eq!(replay_all(&archive, *recording_id, recorded()), numbers);
    }
}

#[test]
fn paused_server_holds_up_publisher() {
    let mut fixture = Fixture::launch_with(|context| {
        context.set_threading_mode(ArchiveThreadingMode::Invoker).expect("a mode");
    });
    let turns = Turns::run(fixture.take());
    let archive = fixture.connect();
    let (mut publication, recording_id, _) = record(&archive, 1);
    turns.pause();
    // A turn that has begun goes on, so there can be space once more.
    let mut next = 1;
    let mut refusals = 0;
    await_that("back pressure", || {
        match publication.offer(&message(next)) {
            Ok(_) => next += 1,
            Err(OfferError::BackPressured) => refusals += 1,
            Err(OfferError::AdminAction) => {}
            Err(error) => panic!("{error}"),
        }
        refusals > 1000
    });
    turns.go_on();
    let position = offer_numbered(&mut publication, next..next + 100);
    archive.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    let all: Vec<_> = (0..next + 100).collect();
    assert_eq!(replay_all(&archive, recording_id, recorded()), all);
    drop(archive);
    turns.end().close().expect("a good end");
}

#[test]
fn limit_of_recordings_is_kept() {
    let fixture = Fixture::launch_with(|context| {
        context.set_max_concurrent_recordings(1).expect("a number");
    });
    let archive = fixture.connect();
    let (publication, recording_id, _) = record(&archive, 1);
    let error = archive.start_recording("aeron:ipc", 77, LOCAL, false).expect_err("a second");
    assert_eq!(error.kind(), ArchiveErrorKind::MaxRecordings, "{error}");
    archive.stop_recording_exclusive_publication(&publication).expect("it was recorded");
    await_stop(&archive, recording_id);
    archive.start_recording("aeron:ipc", 77, LOCAL, false).expect("the only one");
}

/// A host that sends a stream of its own making over UDP.
struct Host {
    socket: UdpSocket,
    endpoint: (&'static str, u16),
    position: usize,
}

impl Host {
    const SESSION: i32 = 77;
    const TERM_ID: i32 = 7;

    /// Sends SETUP frames until the driver has an image.
    fn connect(endpoint: (&'static str, u16)) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        let (term_length, mtu) = (64 * 1024, 1408);
        let mut setup = vec![40, 0, 0, 0, 0, 0, 5, 0];
        for field in
            [0, Self::SESSION, STREAM, Self::TERM_ID, Self::TERM_ID, term_length, mtu, 0_i32]
        {
            setup.extend(field.to_le_bytes());
        }
        await_that("a status message", || {
            socket.send_to(&setup, endpoint).expect("a datagram");
            let mut frame = [0; 2048];
            socket.recv(&mut frame).is_ok() && frame[6] == 3
        });
        Self { socket, endpoint, position: 0 }
    }

    /// Sends one datagram with a frame of 64 bytes for each term id.
    fn send(&mut self, term_ids: &[i32]) {
        let mut datagram = Vec::new();
        for term_id in term_ids {
            let mut frame = vec![64, 0, 0, 0, 0, 0xc0, 1, 0];
            for field in [self.position as i32, Self::SESSION, STREAM, *term_id, 0, 0] {
                frame.extend(field.to_le_bytes());
            }
            frame.resize(64, 1);
            datagram.extend(frame);
            self.position += 64;
        }
        self.socket.send_to(&datagram, self.endpoint).expect("a datagram");
    }
}

#[test]
fn forged_frame_ends_its_recording_alone() {
    let fixture = Fixture::launch();
    let (archive, errors) = connect_with_errors(&fixture.driver);
    let (mut other, other_id, _) = record(&archive, 10);
    let endpoint = ("127.0.0.1", free_port());
    let channel = format!("aeron:udp?endpoint={}:{}", endpoint.0, endpoint.1);
    archive.start_recording(&*channel, STREAM, SourceLocation::Remote, false).expect("a start");
    let mut host = Host::connect(endpoint);
    let recording_id = await_recording(&archive, Host::SESSION);
    host.send(&[Host::TERM_ID]);
    // The driver looks at the first frame of a datagram only.
    host.send(&[Host::TERM_ID, Host::TERM_ID + 5]);
    await_that("the stop", || archive.stop_position(recording_id).expect("an answer").is_some());
    assert_eq!(await_stop(&archive, recording_id), 128);
    let error = await_error(&archive, &errors).to_string();
    assert!(error.contains("position 128") && error.contains("wrong term id 12"), "{error}");
    // The others go on.
    let end = offer_numbered(&mut other, 10..20);
    archive.await_recorded(other_id, end, DEADLINE).expect("a recording");
}
