//! A program in a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty};

use crate::support::DEADLINE;

const ROWS: u16 = 20;
pub(crate) const COLUMNS: u16 = 100;

/// A program in a terminal, and the contents of the terminal. Dropping it kills the program.
pub(crate) struct Terminal {
    // Before the terminal: without it, its reader goes on for ever.
    child: Child,
    pty: Pty,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    /// All bytes that the terminal has received.
    pub(crate) raw: Vec<u8>,
}

impl Terminal {
    pub(crate) fn spawn(command: Command) -> Self {
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(Size::new(ROWS, COLUMNS)).expect("a size");
        let child = command.env("TERM", "xterm-256color").spawn(pts).expect("the program starts");
        let output = read_in_background(&pty);
        let parser = vt100::Parser::new(ROWS, COLUMNS, 0);
        Self { child, pty, output, parser, raw: Vec::new() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub(crate) fn contents(&self) -> String {
        self.screen().contents()
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        self.pty.write_all(keys).expect("a terminal");
    }

    pub(crate) fn resize(&mut self, rows: u16) {
        self.pty.resize(Size::new(rows, COLUMNS)).expect("a size");
        self.parser.screen_mut().set_size(rows, COLUMNS);
    }

    /// Waits until the terminal shows the expected content.
    #[track_caller]
    pub(crate) fn await_that(&mut self, what: &str, condition: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !condition(self.screen()) {
            assert!(Instant::now() < deadline, "waited in vain: {what}; {}", self.contents());
            match self.output.recv_timeout(Duration::from_secs(1)) {
                Ok(bytes) => self.process(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("{what}: ended; {}", self.contents()),
            }
        }
    }

    /// Waits for the end of the program, and of its output. Returns the last contents.
    pub(crate) fn finish(&mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("its end");
        while let Ok(bytes) = self.output.recv() {
            self.process(&bytes);
        }
        (status, self.contents())
    }

    fn process(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
        self.raw.extend(bytes);
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
    let mut reader = File::from(copy);
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
