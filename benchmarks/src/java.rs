//! Programs in Java, as processes of their own.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;

use crate::options::JavaOptions;

/// How often a wait for a program's output looks whether the user wants an end.
const TICK: Duration = Duration::from_millis(50);

/// How many of the last lines that a program has written to standard error a failure quotes.
const QUOTED_LINES: usize = 10;

/// How much longer than for our own threads signs of life are waited for: a Java machine has to start, and
/// to compile, on what may be a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The Java side, if there is one on this machine.
#[derive(Debug, Clone)]
pub struct Java {
    /// The options for the Java machine.
    options: Vec<String>,
    versions: String,
}

impl Java {
    /// Looks for Java and Aeron's artifacts, which the script `java/run` fetches once.
    ///
    /// # Errors
    /// A text that says why there is none.
    fn find(options: &[String], interrupt: &Interrupt) -> Result<Self, String> {
        let mut java = Self { options: options.to_vec(), versions: String::new() };
        // The first start may have to wait for Maven.
        let patience = Duration::from_secs(300);
        let mut program = java
            .start("Versions.java", &[], &[], patience)
            .map_err(|failure| failure.to_string())?;
        let line = program.line(interrupt).map_err(|failure| failure.to_string())?;
        java.versions = line.ok_or_else(|| "it prints no versions".to_owned())?;
        Ok(java)
    }

    /// Looks for Java if a side needs it. Without it these sides are left out, and standard error says why.
    pub fn find_for<T>(
        sides: &mut Vec<T>,
        needs_java: impl Fn(&T) -> bool,
        options: &JavaOptions,
        interrupt: &Interrupt,
    ) -> Option<Self> {
        if !sides.iter().any(&needs_java) {
            return None;
        }
        match Self::find(&options.java_option, interrupt) {
            Ok(java) => Some(java),
            Err(reason) => {
                failure::warn(format_args!("the sides in Java are skipped: {reason}"));
                sides.retain(|side| !needs_java(side));
                None
            }
        }
    }

    /// The versions of Aeron, Java and Agrona's bounds checks, as Java says them.
    pub fn versions(&self) -> &str {
        &self.versions
    }

    /// Starts a main class of Aeron's, or a program in `java/` if the name ends in `.java`.
    ///
    /// `patience` is how long a line of its output is waited for.
    ///
    /// # Errors
    /// [`Failure::Run`] if it cannot be started.
    pub fn start(
        &self,
        main: &str,
        options: &[String],
        arguments: &[String],
        patience: Duration,
    ) -> Result<Program, Failure> {
        let mut command = Command::new(script());
        command.arg(main).args(&self.options).args(options).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Failure::run(format_args!("cannot start {main} in Java"), error))?;
        let stdin = child.stdin.take();
        let lines = read_lines(child.stdout.take());
        let errors = read_lines(child.stderr.take());
        let patience = patience + PATIENCE;
        Ok(Program { name: main.to_owned(), child, stdin, lines, errors, patience })
    }
}

/// The script that starts Java programs, in the source tree that this program was built from.
fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("java").join("run")
}

fn read_lines(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    // It ends when the program has closed the stream, or nobody listens.
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

/// A Java program that runs; it is killed on drop.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    /// Our own programs end when it is closed, even if this process is killed.
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: Receiver<String>,
    patience: Duration,
}

impl Program {
    /// The next line of its output; `None` when the interrupt is requested.
    ///
    /// # Errors
    /// [`Failure::Run`] with what it has written to standard error, if it has ended, or if it is silent
    /// for too long.
    pub fn line(&mut self, interrupt: &Interrupt) -> Result<Option<String>, Failure> {
        let start = Instant::now();
        while !interrupt.is_requested() {
            match self.lines.recv_timeout(TICK) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failure("it has ended")),
                Err(RecvTimeoutError::Timeout) if start.elapsed() >= self.patience => {
                    return Err(self.failure("it is silent"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(None)
    }

    /// Makes sure that it still runs.
    ///
    /// # Errors
    /// [`Failure::Run`] with what it has written to standard error.
    pub fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(status)),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Asks it to end, and waits until it has.
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
                Ok(None) if start.elapsed() >= self.patience => {
                    return Err(self.failure("it does not end"));
                }
                Ok(None) if interrupt.is_requested() => return Ok(()),
                Ok(None) => {
                    interrupt.wait_until(Instant::now() + Duration::from_millis(5), || false);
                }
            }
        }
    }

    /// A failure of the program, with its own last words.
    fn failure(&self, cause: impl fmt::Display) -> Failure {
        let mut words = Vec::new();
        // They are complete when the stream is closed.
        while let Ok(line) = self.errors.recv_timeout(Duration::from_secs(1)) {
            words.push(line);
        }
        let skipped = words.len().saturating_sub(QUOTED_LINES);
        let words = words[skipped..].join("\n");
        let separator = if words.is_empty() { "" } else { ": " };
        Failure::run(
            format_args!("{} in Java", self.name),
            format_args!("{cause}{separator}{words}"),
        )
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A number in a field of a program's output.
///
/// # Errors
/// [`Failure::Run`] that quotes the line if the field is none.
pub fn number<T: std::str::FromStr>(line: &str, field: Option<&str>) -> Result<T, Failure> {
    field
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| Failure::Run(format!("not understood: Java prints {line:?}")))
}
