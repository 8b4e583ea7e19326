//! Programs that run as processes of their own.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;

/// How often a wait for a program's output looks whether the user wants an end.
const TICK: Duration = Duration::from_millis(50);

/// How often a wait for a program's end looks whether it has come.
const TICK_OF_END: Duration = Duration::from_millis(1);

/// How many of the last lines that a program has written to standard error a failure quotes.
const QUOTED_LINES: usize = 10;

/// A program that runs; it is killed on drop.
#[derive(Debug)]
pub struct Program {
    /// The program's name in failures.
    name: String,
    child: Child,
    /// Our own programs end when it is closed, even if this process is killed.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    timeout: Duration,
}

impl Program {
    /// Starts a program. Failures call it by `name`, and `timeout` is how long a line of its output or its end
    /// is waited for.
    ///
    /// # Errors
    /// [`Failure::Run`] if it cannot be started.
    pub fn start(name: String, mut command: Command, timeout: Duration) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Failure::run(format_args!("cannot start {name}"), error))?;
        let stdin = child.stdin.take();
        let lines = read_lines(child.stdout.take());
        let errors = read_lines(child.stderr.take());
        Ok(Self { name, child, stdin, lines, errors, timeout })
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the program go on, where it waits for a line.
    ///
    /// # Errors
    /// [`Failure::Run`] with the program's standard error, if the program does not read any more.
    pub fn go_on(&mut self) -> Result<(), Failure> {
        let written = self
            .stdin
            .as_mut()
            .map_or(Ok(()), |stdin| stdin.write_all(b"\n").and_then(|()| stdin.flush()));
        written.map_err(|error| self.failure(error))
    }

    /// The next line of the program's output; `None` when the interrupt is requested.
    ///
    /// # Errors
    /// [`Failure::Run`] with the program's standard error, if the program has ended, or if it is silent
    /// for too long.
    pub fn line(&mut self, interrupt: &Interrupt) -> Result<Option<String>, Failure> {
        let start = Instant::now();
        while !interrupt.is_requested() {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failure("it has ended")),
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= self.timeout => {
                    return Err(self.failure("it is silent"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(None)
    }

    /// Makes sure that the program still runs.
    ///
    /// # Errors
    /// [`Failure::Run`] with the program's standard error.
    pub fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(status)),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Closes the program's standard input, and waits until the program has ended. Our own programs take the
    /// close as a request to end. Also for programs that were asked in another way.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not end, or not well.
    pub fn finish(mut self, interrupt: &Interrupt) -> Result<(), Failure> {
        drop(self.stdin.take());
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(self.failure(status)),
                Err(error) => return Err(self.failure(error)),
                Ok(None) if start.elapsed() >= self.timeout => {
                    return Err(self.failure("it does not end"));
                }
                Ok(None) if interrupt.is_requested() => return Ok(()),
                Ok(None) => {
                    interrupt.wait_until(Instant::now() + TICK_OF_END, || false);
                }
            }
        }
    }

    /// A failure of the program, with its own last words.
    pub fn failure(&self, cause: impl fmt::Display) -> Failure {
        let mut words = Vec::new();
        // They are complete when the stream is closed.
        while let Ok(line) = self.errors.recv_timeout(Duration::from_secs(1)) {
            words.push(line);
        }
        let skipped = words.len().saturating_sub(QUOTED_LINES);
        let words = words[skipped..].join("\n");
        let separator = if words.is_empty() { "" } else { ": " };
        Failure::run(&self.name, format_args!("{cause}{separator}{words}"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    // The thread ends when the program has closed the stream, or when the receiver is gone.
    thread::spawn(move || {
        for line in stream.into_iter().flat_map(|stream| BufReader::new(stream).lines()) {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}
