//! `rusteron archive verify`: of whole and of damaged recordings, on a terminal, and interrupted.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};

use pty_process::blocking::Command as PtyCommand;
use rusteron_archive::{Archive, RecordingId};
use rusteron_client::Subscription;
use rusteron_test_support::archive::{ArchiveProcess, STREAM, record};

use super::{archive, archive_json, archive_text, assert_fails};
use crate::support::{DEADLINE, Running, await_that, offer, run, send_signal};
use crate::terminal::{COLUMNS, Terminal};

/// A text that only the progress bar shows.
const PROGRESS: &str = "KiB/";

#[test]
fn accounts_for_every_byte() {
    let server = ArchiveProcess::launch();
    let session = server.connect();
    let (mut publication, id, _) = record(&session, 0);
    let id = id.to_string();
    let empty = archive_json(&server, &["verify", &id]);
    assert_eq!((&empty["messages"], &empty["checksum"]), (&0.into(), &"00000000".into()));

    // Messages of one fragment and of several, across the ends of terms and segments.
    let mut checksum = crc32fast::Hasher::new();
    let (mut payload, mut position) = (0, 0);
    for number in 0..300_usize {
        let message: Vec<u8> = (0..number * 37 % 5000).map(|i| (i * 7 + number) as u8).collect();
        checksum.update(&message);
        payload += message.len();
        position = offer(&mut publication, &message);
    }
    session.await_recorded(id.parse().expect("an id"), position, DEADLINE).expect("recorded");
    let checksum = format!("{:08x}", checksum.finalize());
    let verified = archive_json(&server, &["verify", &id, "--checksum", &checksum]);
    assert_eq!(
        (&verified["start_position"], &verified["end_position"]),
        (&0.into(), &position.into())
    );
    assert_eq!((&verified["messages"], &verified["payload_bytes"]), (&300.into(), &payload.into()));
    assert_eq!(
        (&verified["shortest_message"], &verified["longest_message"]),
        (&0.into(), &4995.into())
    );
    assert!(verified["frames"].as_u64() > Some(300), "{verified:#}");
    assert!(verified["padding_bytes"].as_u64() > Some(0), "{verified:#}");
    assert_eq!(verified["checksum"], checksum.as_str());
    let text = archive_text(&server, &["verify", &id]);
    assert!(text.ends_with(&format!("\nChecksum {checksum}\n")), "{text}");

    // As on a faulty disk, a byte of a payload changes.
    let file = server.archive_dir().join(format!("{id}-0.rec"));
    let mut file = fs::OpenOptions::new().read(true).write(true).open(file).expect("a segment");
    // Behind the frame of message 0, which is empty, and the next one's header.
    let mut byte = [0];
    file.seek(SeekFrom::Start(32 + 32 + 5)).expect("a seek");
    file.read_exact(&mut byte).expect("a byte");
    file.seek(SeekFrom::Current(-1)).expect("a seek");
    file.write_all(&[byte[0] ^ 1]).expect("a byte");
    let arguments = ["verify", &id, "--checksum", &checksum];
    assert_fails(archive(&server, &arguments), "the checksum is ");
    let not_hexadecimal = ["verify", &id, "--checksum", "x"];
    let finished = run(archive(&server, &not_hexadecimal));
    finished.assert_exit_code(2);
    assert!(finished.stderr.contains("--checksum"), "{finished:#?}");
}

/// Records several segments, and holds up every replay of them, once its window is full.
fn held_up(server: &ArchiveProcess) -> (Archive, i64, Subscription) {
    let session = server.connect();
    let (publication, recording_id, _) = record(&session, 5000);
    drop(publication);
    await_that("the end", || session.stop_position(recording_id).expect("an answer").is_some());
    // The subscription to the stream that the program replays to is never polled.
    let subscription = session.aeron().add_subscription("aeron:ipc", STREAM).expect("valid");
    await_that("the end of the publication", || !subscription.is_connected());
    (session, recording_id.get(), subscription)
}

/// Ends the replays. Their requester may be gone. The subscription that holds them up remains.
fn end_replays(session: &Archive, recording_id: RecordingId, hold: &Subscription) {
    session.stop_all_replays(Some(recording_id)).expect("an answer");
    await_that("the end of the replay", || !hold.is_connected());
}

/// The program in a terminal.
fn verify_in_terminal(server: &ArchiveProcess, recording_id: RecordingId) -> Terminal {
    let program = archive(server, &["verify", &recording_id.to_string()]);
    let mut command = PtyCommand::new(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        command = match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Terminal::spawn(command)
}

#[track_caller]
fn await_progress(terminal: &mut Terminal) {
    terminal.await_that("the progress", |screen| screen.contents().contains(PROGRESS));
}

#[test]
fn terminal_shows_progress() {
    let server = ArchiveProcess::launch();
    let (_session, recording_id, hold) = held_up(&server);
    let mut terminal = verify_in_terminal(&server, RecordingId::new(recording_id));
    await_progress(&mut terminal);
    let shown = terminal.contents();
    assert!(shown.contains('█'), "{shown}");
    assert!(!shown.contains("Checksum"), "{shown}");
    drop(hold);
    let (status, shown) = terminal.finish();
    assert!(status.success(), "{status}: {shown}");
    assert!(shown.contains("5000 messages of 64 to 64 bytes, 320000 bytes in all"), "{shown}");
    assert!(shown.contains("\nChecksum "), "{shown}");
    assert!(!shown.contains(PROGRESS), "{shown}");
}

#[test]
fn interruption_has_its_own_line() {
    let server = ArchiveProcess::launch();
    let (session, recording_id, hold) = held_up(&server);
    let signals: [fn(&mut Terminal); 2] =
        [|terminal| terminal.press(b"\x03"), |terminal| send_signal(terminal.id(), "TERM")];
    for interrupt in signals {
        let mut terminal = verify_in_terminal(&server, RecordingId::new(recording_id));
        await_progress(&mut terminal);
        interrupt(&mut terminal);
        let (status, shown) = terminal.finish();
        assert_eq!(status.code(), Some(1), "{shown}");
        assert!(!shown.contains("Checksum"), "{shown}");
        let mut rows = terminal.screen().rows(0, COLUMNS);
        assert!(rows.any(|row| row == "rusteron: interrupted before the end"), "{shown}");
        end_replays(&session, RecordingId::new(recording_id), &hold);
    }
}

#[test]
fn pipe_gets_no_progress() {
    let server = ArchiveProcess::launch();
    let (session, recording_id, hold) = held_up(&server);
    let start = || {
        let arguments = ["verify", &recording_id.to_string()];
        let program = Running::start(archive(&server, &arguments));
        await_that("the replay", || hold.is_connected());
        program
    };
    for signal in ["INT", "TERM"] {
        let program = start();
        program.signal(signal);
        let finished = program.finish();
        finished.assert_exit_code(1);
        assert_eq!(finished.stderr, "rusteron: interrupted before the end\n");
        assert_eq!(finished.stdout, "");
        end_replays(&session, RecordingId::new(recording_id), &hold);
    }
    drop(hold);
    let text = archive_text(&server, &["verify", &recording_id.to_string()]);
    assert!(text.contains("Checksum "), "{text}");
}

#[test]
fn damage_is_refused() {
    const FRAME: u64 = 96;
    const FLAGS: u64 = 5;
    let server = ArchiveProcess::launch();
    let session = server.connect();
    // A faulty disk changes bits of a frame's header, or loses a whole file.
    let damage = |what: &dyn Fn(i64)| {
        let (publication, recording_id, _) = record(&session, 5000);
        drop(publication);
        await_that("the end", || session.stop_position(recording_id).expect("an answer").is_some());
        let recording = recording_id.to_string();
        archive_text(&server, &["verify", &recording]);
        what(recording_id.get());
        archive(&server, &["verify", &recording])
    };
    let segment = |recording_id: i64, position: u64| {
        server.archive_dir().join(format!("{recording_id}-{position}.rec"))
    };
    let write = |recording_id: i64, position: u64, bytes: &[u8]| {
        let file = fs::OpenOptions::new().write(true).open(segment(recording_id, 0));
        let mut file = file.expect("a segment");
        file.seek(SeekFrom::Start(position)).expect("a seek");
        file.write_all(bytes).expect("a byte");
    };
    // The flags: a message ends that has not begun, or does not end.
    let end_alone = |id| write(id, 7 * FRAME + FLAGS, &[0x40]);
    assert_fails(damage(&end_alone), "position 672: no message begins");
    let begin_alone = |id| write(id, 7 * FRAME + FLAGS, &[0x80]);
    assert_fails(damage(&begin_alone), "position 768: the message before is not whole");
    let without_segment = |id| fs::remove_file(segment(id, 131_072)).expect("a segment");
    let text = "the replay has ended at 131072, before 480448: recording segment not found";
    assert_fails(damage(&without_segment), text);
    // The third recording.
    let text = "the replay has ended at 131008, before its time: recording segment not found";
    assert_fails(archive(&server, &["tail", "2"]), text);
    assert_fails(archive(&server, &["tail", "77"]), "there is no recording 77");
}
