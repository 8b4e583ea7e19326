//! `--watch` on a terminal.

use std::io::Read;
use std::path::Path;
use std::process::Child;

use pty_process::Size;
use pty_process::blocking::Command;

use crate::support::{WATCHED, await_some, connect, launch, send_signal};
use crate::terminal::{COLUMNS, Terminal};

/// Runs `rusteron … --watch` between two prints of the terminal's settings.
fn watch(dir: &Path, arguments: &str) -> Terminal {
    let script = format!(
        "stty -g; echo before; \
         sh -c 'echo process $$; exec \"$PROGRAM\" {arguments} --watch --interval 20ms'; \
         echo \"exit code $?\"; stty -g"
    );
    let command = Command::new("sh")
        .args(["-c", &script])
        .env("PROGRAM", env!("CARGO_BIN_EXE_rusteron"))
        .env("AERON_DIR", dir);
    Terminal::spawn(command)
}

#[track_caller]
fn await_full_screen(terminal: &mut Terminal) {
    terminal.await_that("the full screen", |screen| {
        screen.alternate_screen() && screen.hide_cursor() && screen.contents().contains("alive")
    });
}

/// Waits for the end of the program. The terminal must then be as before.
#[track_caller]
fn await_restored(terminal: &mut Terminal) {
    terminal.await_that("the end", |screen| {
        let contents = screen.contents();
        let lines: Vec<_> = contents.lines().collect();
        let after = lines.iter().position(|line| *line == "exit code 0");
        after.is_some_and(|after| lines.len() > after + 1 && lines[after + 1] == lines[0])
    });
    let (screen, contents) = (terminal.screen(), terminal.contents());
    assert!(!screen.alternate_screen() && !screen.hide_cursor());
    assert!(contents.contains("before"), "{contents}");
    assert!(!contents.contains("alive"), "{contents}");
    // The emulation does not know line wrap.
    let wrap = |on: &[u8]| terminal.raw.windows(on.len()).rposition(|bytes| bytes == on);
    assert!(wrap(b"\x1b[?7h") > wrap(b"\x1b[?7l"), "line wrap");
}

/// The process number of the program, which is printed before it starts.
fn program(terminal: &Terminal) -> u32 {
    let text = String::from_utf8_lossy(&terminal.raw);
    let line = text.lines().find_map(|line| line.strip_prefix("process "));
    line.and_then(|number| number.trim().parse().ok()).expect("a process number")
}

#[test]
fn redraws_in_place_until_key() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let counter = aeron.add_counter(2000, b"", "moving").expect("a counter");
    for key in [&b"q"[..], b"\x03"] {
        counter.set(0);
        let mut terminal = watch(driver.aeron_dir(), "stat --label moving");
        await_full_screen(&mut terminal);
        for (value, text) in [(111_111, " 111,111 "), (222_222, " 222,222 ")] {
            counter.set(value);
            terminal.await_that("the value", |screen| {
                let contents = screen.contents();
                // In place: one line for the counter, below the line for the driver.
                contents.lines().count() == 2 && contents.contains(text)
            });
        }
        terminal.await_that("the rate", |screen| screen.contents().contains("0/s - moving"));
        terminal.press(key);
        await_restored(&mut terminal);
    }
}

#[test]
fn signal_restores_terminal() {
    let driver = launch();
    for signal in ["INT", "TERM"] {
        let mut terminal = watch(driver.aeron_dir(), "streams");
        await_full_screen(&mut terminal);
        send_signal(program(&terminal), signal);
        await_restored(&mut terminal);
    }
}

#[test]
fn scrolls_rows_and_cuts_columns() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let label = format!("{}end", "very long ".repeat(30));
    let _counter = aeron.add_counter(2000, b"", &label).expect("a counter");
    let mut terminal = watch(driver.aeron_dir(), "stat");
    await_full_screen(&mut terminal);
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
    // The columns that are cut come into view.
    terminal.press(&b"\x1b[C".repeat(50));
    terminal.await_that("the label's end", |screen| {
        let contents = screen.contents();
        contents.lines().last().is_some_and(|line| line.ends_with(" long end"))
            && contents.contains("alive")
    });
    terminal.press(&b"h".repeat(50));
    terminal.await_that("the first column", last);
    terminal.press(b"\x1b[H");
    terminal.await_that("the top again", |screen| first(screen) && !last(screen));
    terminal.press(b"j");
    terminal.await_that("the second line", |screen| !first(screen));
    terminal.resize(80);
    terminal.await_that("everything", |screen| first(screen) && last(screen));
    terminal.press(b"q");
    await_restored(&mut terminal);
}

/// Runs a shell's script until the screen is drawn, and closes the terminal. Returns the program's exit code.
fn exit_code_after_hangup(dir: &Path, script: &str) -> Option<i32> {
    let (mut pty, pts) = pty_process::blocking::open().expect("a terminal");
    pty.resize(Size::new(20, COLUMNS)).expect("a size");
    let command = Command::new("sh").args(["-c", script]);
    let command = command.env("PROGRAM", env!("CARGO_BIN_EXE_rusteron")).env("AERON_DIR", dir);
    let child = command.env("TERM", "xterm-256color").spawn(pts).expect("the program starts");
    let mut child = Killed(child);
    let mut output = Vec::new();
    while !String::from_utf8_lossy(&output).contains("alive") {
        let mut bytes = [0; 4096];
        let count = pty.read(&mut bytes).expect("the screen");
        output.extend(&bytes[..count]);
    }
    // No other descriptor of this side of the terminal is open.
    drop(pty);
    await_some("the end", || child.0.try_wait().expect("a status")).code()
}

/// A process that does not outlive a failed test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn hangup_ends_each_command() {
    let driver = launch();
    for name in WATCHED {
        let script = format!("exec \"$PROGRAM\" {name} --watch --interval 20ms");
        assert_eq!(exit_code_after_hangup(driver.aeron_dir(), &script), Some(0), "{name}");
    }
}

#[test]
fn gone_terminal_ends_without_signal() {
    let driver = launch();
    // The interval is longer than the test waits.
    let script = "trap '' HUP; exec \"$PROGRAM\" stat --watch --interval 1h";
    assert_eq!(exit_code_after_hangup(driver.aeron_dir(), script), Some(0));
}
