//! Programs that run as processes of their own.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};

/// How often a wait for a program's output looks whether the user wants an end.
const TICK: Duration = Duration::from_millis(50);

/// How often a wait for a program's end looks whether it has come.
const TICK_OF_END: Duration = Duration::from_millis(1);

/// How long the last output of a program that has ended is waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How many of the last lines that a program has written to standard error a failure quotes.
const QUOTED_LINES: usize = 10;

/// A program that runs; it is killed on drop.
#[derive(Debug)]
pub struct Process {
    /// The program's name in failures.
    name: String,
    child: Child,
    /// Our own programs end when it is closed, even if this process is killed.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    timeout: Duration,
}

impl Process {
    /// Starts a program whose streams are piped. Failures call it by `name`, and `timeout` is how
    /// long a line of its output or its end is waited for.
    pub fn start(
        name: impl Into<String>,
        mut command: Command,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::spawn(name, command, timeout)
    }

    /// The same with the command's own streams.
    pub fn spawn(
        name: impl Into<String>,
        mut command: Command,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let name = name.into();
        let mut child = command
            .spawn()
            .map_err(|error| Failure::run(format_args!("cannot start {name}"), error))?;
        let stdin = child.stdin.take();
        let lines = read_lines(child.stdout.take());
        let errors = read_lines(child.stderr.take());
        Ok(Self { name, child, stdin, lines, errors, timeout })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to the program's standard input.
    pub fn order(&mut self, line: &str) -> io::Result<()> {
        let write = |stdin: &mut ChildStdin| writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        self.stdin.as_mut().map_or(Ok(()), write)
    }

    /// Lets the program go on, where it waits for a line.
    pub fn go_on(&mut self) -> Result<(), Failure> {
        self.order("").map_err(|error| self.failure(error))
    }

    /// The next line of the program's output, if it is there.
    pub fn try_line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// The next line of the remaining output of a program that has ended.
    pub fn last_line(&self) -> Option<String> {
        self.lines.recv_timeout(LAST_WORDS).ok()
    }

    /// Waits for the next line of the program's output. Fails if the program has ended, or is
    /// silent for too long, and with [`Failure::Interrupted`] when the interrupt is signalled.
    pub fn line(&mut self, interrupt: &ShutdownSignal) -> Result<String, Failure> {
        self.line_while(interrupt, || Ok(()))
    }

    /// The same as [`line`](Self::line), and also fails as soon as `check` does.
    pub fn line_while(
        &mut self,
        interrupt: &ShutdownSignal,
        mut check: impl FnMut() -> Result<(), Failure>,
    ) -> Result<String, Failure> {
        let start = Instant::now();
        while !interrupt.is_signalled() {
            check()?;
            match self.lines.recv_timeout(TICK) {
                Ok(line) => return Ok(line),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failure("it has ended")),
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= self.timeout => {
                    return Err(self.failure("it is silent"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Err(Failure::Interrupted)
    }

    /// The program's end, if it has come.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.child.try_wait().map_err(|error| self.failure(error))
    }

    /// Fails if the program has ended.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.ended()?.map_or(Ok(()), |status| Err(self.failure(status)))
    }

    /// Closes the program's standard input, and waits until the program has ended well. Our own
    /// programs take the close as a request to end. Also for programs that were asked in another
    /// way.
    pub fn finish(mut self, interrupt: &ShutdownSignal) -> Result<(), Failure> {
        drop(self.stdin.take());
        let start = Instant::now();
        loop {
            match self.ended()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(self.failure(status)),
                None if start.elapsed() >= self.timeout => {
                    return Err(self.failure("it does not end"));
                }
                None if interrupt.is_signalled() => return Ok(()),
                None => _ = interrupt.wait_timeout(TICK_OF_END),
            }
        }
    }

    /// Sends a signal to a program whose end was not noticed yet.
    #[cfg(unix)]
    pub fn signal(&self, signal: Signal) -> Result<(), Failure> {
        // The process is ours and was not waited for, so the number is not another one's.
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).map_err(|error| Failure::run("cannot signal", error))
    }

    /// A failure of the program, with its own last words.
    pub fn failure(&self, cause: impl Display) -> Failure {
        let words = self.last_words();
        let separator = if words.is_empty() { "" } else { ": " };
        Failure::run(&self.name, format_args!("{cause}{separator}{words}"))
    }

    /// The last lines of standard error. They are complete if the program has ended.
    pub fn last_words(&self) -> String {
        let mut words = Vec::new();
        while let Ok(line) = self.errors.recv_timeout(LAST_WORDS) {
            words.push(line);
        }
        words[words.len().saturating_sub(QUOTED_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines until the program closes the stream, or the receiver is gone.
fn read_lines(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        let stream = stream.into_iter().flat_map(|stream| BufReader::new(stream).lines());
        for line in stream.map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}
