//! `--watch` on a terminal.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command as PtyCommand, Pty};

use crate::support::{DEADLINE, connect, launch, launch_in, send_signal};

const ROWS: u16 = 20;
const COLUMNS: u16 = 100;

/// A program in a terminal, and what the terminal shows.
struct Terminal {
    // Before the terminal: without it, its reader goes on for ever.
    child: Child,
    pty: Pty,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    raw: Vec<u8>,
}

impl Terminal {
    /// Runs `rusteron … --watch` between two looks at the settings of the terminal.
    fn watch(dir: &Path, arguments: &str) -> Self {
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(Size::new(ROWS, COLUMNS)).expect("a size");
        let script = format!(
            "stty -g; echo before; \
             sh -c 'echo process $$; exec \"$PROGRAM\" {arguments} --watch --interval 20ms'; \
             echo \"exit code $?\"; stty -g"
        );
        let child = PtyCommand::new("sh")
            .args(["-c", &script])
            .env("PROGRAM", env!("CARGO_BIN_EXE_rusteron"))
            .env("AERON_DIR", dir)
            .env("TERM", "xterm-256color")
            .spawn(pts)
            .expect("the shell starts");
        let output = read_in_background(&pty);
        let screen = vt100::Parser::new(ROWS, COLUMNS, 0);
        Self { child, pty, output, screen, raw: Vec::new() }
    }

    /// Waits until the terminal shows the expected content.
    #[track_caller]
    fn await_that(&mut self, what: &str, condition: impl Fn(&vt100::Screen) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !condition(self.screen.screen()) {
            let contents = || self.screen.screen().contents();
            assert!(Instant::now() < deadline, "waited in vain: {what}; {}", contents());
            match self.output.recv_timeout(Duration::from_secs(1)) {
                Ok(bytes) => {
                    self.screen.process(&bytes);
                    self.raw.extend(bytes);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("{what}: ended; {}", contents()),
            }
        }
    }

    #[track_caller]
    fn await_full_screen(&mut self) {
        self.await_that("the full screen", |screen| {
            screen.alternate_screen() && screen.hide_cursor() && screen.contents().contains("alive")
        });
    }

    /// Waits for the end, after which everything must be as it was.
    #[track_caller]
    fn await_restored(&mut self) {
        self.await_that("the end", |screen| {
            let contents = screen.contents();
            let lines: Vec<_> = contents.lines().collect();
            let after = lines.iter().position(|line| *line == "exit code 0");
            after.is_some_and(|after| lines.len() > after + 1 && lines[after + 1] == lines[0])
        });
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor());
        assert!(screen.contents().contains("before"), "{}", screen.contents());
        assert!(!screen.contents().contains("alive"), "{}", screen.contents());
        // The emulation does not know line wrap.
        let wrap = |on: &[u8]| self.raw.windows(on.len()).rposition(|bytes| bytes == on);
        assert!(wrap(b"\x1b[?7h") > wrap(b"\x1b[?7l"), "line wrap");
    }

    fn press(&mut self, keys: &[u8]) {
        self.pty.write_all(keys).expect("a terminal");
    }

    /// The process number of the program, which is printed before it starts.
    fn program(&self) -> u32 {
        let text = String::from_utf8_lossy(&self.raw);
        let line = text.lines().find_map(|line| line.strip_prefix("process "));
        line.and_then(|number| number.trim().parse().ok()).expect("a process number")
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
    use std::os::fd::AsFd;
    let copy = pty.as_fd().try_clone_to_owned().expect("a descriptor");
    let mut reader = std::fs::File::from(copy);
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
fn the_screen_is_redrawn_in_place_and_restored_when_a_key_ends_it() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let counter = aeron.add_counter(2000, b"", "moving").expect("a counter");
    for key in [&b"q"[..], b"\x03"] {
        counter.set(0);
        let mut terminal = Terminal::watch(driver.aeron_dir(), "stat --label moving");
        terminal.await_full_screen();
        for value in [111_111, 222_222] {
            counter.set(value);
            let text = grouped(value);
            terminal.await_that("the value", |screen| {
                let contents = screen.contents();
                // In place: one line for the counter, below the line for the driver.
                contents.lines().count() == 2 && contents.contains(&text)
            });
        }
        terminal.await_that("the rate", |screen| screen.contents().contains("0/s - moving"));
        terminal.press(key);
        terminal.await_restored();
    }
}

fn grouped(number: i64) -> String {
    format!(" {},{:03} ", number / 1000, number % 1000)
}

#[test]
fn the_screen_is_restored_when_a_signal_ends_it() {
    let driver = launch();
    for signal in ["INT", "TERM"] {
        let mut terminal = Terminal::watch(driver.aeron_dir(), "streams");
        terminal.await_full_screen();
        send_signal(terminal.program(), signal);
        terminal.await_restored();
    }
}

#[test]
fn more_lines_than_fit_are_scrolled_and_long_ones_cut() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let label = "very long ".repeat(30);
    let _counter = aeron.add_counter(2000, b"", &label).expect("a counter");
    let mut terminal = Terminal::watch(driver.aeron_dir(), "stat");
    terminal.await_full_screen();
    let first = |screen: &vt100::Screen| screen.contents().contains(" - Bytes sent");
    let last = |screen: &vt100::Screen| {
        let contents = screen.contents();
        contents.lines().last().is_some_and(|line| line.contains(" - very long very"))
    };
    terminal.await_that("the top", |screen| first(screen) && !last(screen));
    terminal.press(b"\x1b[F");
    // The line with the driver stays.
    terminal.await_that("the bottom", |screen| {
        last(screen) && !first(screen) && screen.contents().contains("alive")
    });
    terminal.press(b"\x1b[H");
    terminal.await_that("the top again", |screen| first(screen) && !last(screen));
    terminal.press(b"j");
    terminal.await_that("the second line", |screen| !first(screen));
    terminal.pty.resize(Size::new(80, COLUMNS)).expect("a size");
    terminal.screen.screen_mut().set_size(80, COLUMNS);
    terminal.await_that("everything", |screen| first(screen) && last(screen));
    terminal.press(b"q");
    terminal.await_restored();
}

#[test]
fn the_screen_says_when_the_driver_has_gone() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let driver = launch_in(&dir);
    let mut terminal = Terminal::watch(&dir, "stat");
    terminal.await_full_screen();
    drop(driver);
    terminal.await_that("its end", |screen| screen.contents().contains("ended in good order"));
    std::fs::remove_dir_all(&dir).expect("it can be deleted");
    terminal.await_that("its absence", |screen| {
        screen.contents().contains("no driver") && screen.contents().lines().count() == 1
    });
    terminal.press(b"q");
    terminal.await_restored();
}
