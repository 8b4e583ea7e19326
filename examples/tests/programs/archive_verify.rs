//! `archive_tool verify`: on a terminal, interrupted, and of recordings that are damaged.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command as PtyCommand, Pty};
use rusteron_archive::Archive;
use rusteron_client::Subscription;

use crate::archive::{ARCHIVE_TOOL, assert_fails, succeed, with_archive};
use crate::child::{Running, send_signal};
use rusteron_test_support::archive::{JavaArchive, STREAM, record};
use rusteron_test_support::{DEADLINE, await_that};

const ROWS: u16 = 20;
const COLUMNS: u16 = 100;

/// A text that only the progress bar shows.
const PROGRESS: &str = "KiB/";

/// Records several segments, and holds up every replay of them, once its window is full.
fn held_up(java: &JavaArchive) -> (Archive, i64, Subscription) {
    let archive = java.connect();
    let (publication, recording_id, _) = record(&archive, 5000);
    drop(publication);
    await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
    // Of the stream that the tool replays to, and never polled.
    let subscription = archive.aeron().add_subscription("aeron:ipc", STREAM).expect("valid");
    await_that("the end of the publication", || !subscription.is_connected());
    (archive, recording_id, subscription)
}

/// Ends the replays. Their requester may be gone; the subscription that holds them up is there.
fn end_replays(archive: &Archive, recording_id: i64, hold: &Subscription) {
    archive.stop_all_replays(Some(recording_id)).expect("an answer");
    await_that("the end of the replay", || !hold.is_connected());
}

/// The tool in a terminal, and what the terminal shows.
struct Terminal {
    // Before the terminal: without it, its reader goes on for ever.
    child: Child,
    pty: Pty,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Terminal {
    fn verify(java: &JavaArchive, recording_id: i64) -> Self {
        let tool = with_archive(java, ARCHIVE_TOOL, &["verify", &recording_id.to_string()]);
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(Size::new(ROWS, COLUMNS)).expect("a size");
        let mut command = PtyCommand::new(ARCHIVE_TOOL).args(tool.get_args());
        for (name, value) in tool.get_envs() {
            command = match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let child = command.env("TERM", "xterm-256color").spawn(pts).expect("the tool starts");
        let output = read_in_background(&pty);
        let screen = vt100::Parser::new(ROWS, COLUMNS, 0);
        Self { child, pty, output, screen }
    }

    fn contents(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until the terminal shows a text.
    #[track_caller]
    fn await_text(&mut self, text: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !self.contents().contains(text) {
            assert!(Instant::now() < deadline, "waited in vain: {text}; {}", self.contents());
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_secs(1)) {
                self.screen.process(&bytes);
            }
        }
    }

    /// Waits for the end of the program and of all that it prints.
    fn finish(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("its end");
        for bytes in &self.output {
            self.screen.process(&bytes);
        }
        (status, self.contents())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_in_background(pty: &Pty) -> Receiver<Vec<u8>> {
    let copy = pty.as_fd().try_clone_to_owned().expect("a descriptor");
    let mut reader = fs::File::from(copy);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        // An error is the end: no process has the other side open any more.
        while let Ok(count @ 1..) = reader.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[test]
fn a_terminal_shows_the_progress_until_the_end() {
    let Some(java) = JavaArchive::launch() else { return };
    let (_archive, recording_id, hold) = held_up(&java);
    let mut terminal = Terminal::verify(&java, recording_id);
    terminal.await_text(PROGRESS);
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
fn an_interrupted_verification_says_so_on_a_line_of_its_own() {
    let Some(java) = JavaArchive::launch() else { return };
    let (archive, recording_id, hold) = held_up(&java);
    let signals: [fn(&mut Terminal); 2] = [
        |terminal| terminal.pty.write_all(b"\x03").expect("a terminal"),
        |terminal| send_signal(terminal.child.id(), "TERM"),
    ];
    for interrupt in signals {
        let mut terminal = Terminal::verify(&java, recording_id);
        terminal.await_text(PROGRESS);
        interrupt(&mut terminal);
        let (status, shown) = terminal.finish();
        assert_eq!(status.code(), Some(1), "{shown}");
        assert!(!shown.contains("Checksum"), "{shown}");
        let mut rows = terminal.screen.screen().rows(0, COLUMNS);
        assert!(rows.any(|row| row == "error: interrupted before the end"), "{shown}");
        end_replays(&archive, recording_id, &hold);
    }
}

#[test]
fn a_pipe_gets_no_progress_and_a_signal_ends_a_verification() {
    let Some(java) = JavaArchive::launch() else { return };
    let (archive, recording_id, hold) = held_up(&java);
    let start = || {
        let arguments = ["verify", &recording_id.to_string()];
        let tool = Running::start(with_archive(&java, ARCHIVE_TOOL, &arguments));
        await_that("the replay", || hold.is_connected());
        tool
    };
    for signal in ["INT", "TERM"] {
        let tool = start();
        tool.signal(signal);
        let finished = tool.finish();
        finished.assert_exit_code(1);
        assert_eq!(finished.stderr, "error: interrupted before the end\n");
        assert_eq!(finished.stdout, "");
        end_replays(&archive, recording_id, &hold);
    }
    drop(hold);
    let finished = succeed(&java, ARCHIVE_TOOL, &["verify", &recording_id.to_string()]);
    assert!(finished.stdout.contains("Checksum "), "{finished:#?}");
}

#[test]
fn a_recording_that_is_damaged_is_not_verified() {
    const FRAME: u64 = 96;
    const FLAGS: u64 = 5;
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    // Each is what a disk forgets: bits of a frame's header, or a whole file.
    let damage = |what: &dyn Fn(i64)| {
        let (publication, recording_id, _) = record(&archive, 5000);
        drop(publication);
        await_that("the end", || archive.stop_position(recording_id).expect("an answer").is_some());
        let recording = recording_id.to_string();
        succeed(&java, ARCHIVE_TOOL, &["verify", &recording]);
        what(recording_id);
        with_archive(&java, ARCHIVE_TOOL, &["verify", &recording])
    };
    let segment = |recording_id: i64, position: u64| {
        java.archive_dir().join(format!("{recording_id}-{position}.rec"))
    };
    let write = |recording_id: i64, position: u64, bytes: &[u8]| {
        let file = fs::OpenOptions::new().write(true).open(segment(recording_id, 0));
        let mut file = file.expect("a segment");
        file.seek(SeekFrom::Start(position)).expect("a place");
        file.write_all(bytes).expect("a byte");
    };
    // The flags: a message ends that has not begun, or does not end.
    let end_alone = |id| write(id, 7 * FRAME + FLAGS, &[0x40]);
    assert_fails(damage(&end_alone), "position 672: no message begins");
    let begin_alone = |id| write(id, 7 * FRAME + FLAGS, &[0x80]);
    assert_fails(damage(&begin_alone), "position 768: the message before is not whole");
    let without_segment = |id| fs::remove_file(segment(id, 131_072)).expect("a segment");
    assert_fails(damage(&without_segment), "the replay has ended at 131072, before 480448");
}
