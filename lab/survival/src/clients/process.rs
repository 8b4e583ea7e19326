//! A part, as the supervisor sees it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rusteron_benchmarks::command_line::failure::Failure;
use rustix::process::{Resource, Rlimit, Signal, prlimit};

use crate::clients::words::{Notice, Order, from_line, to_line};
use crate::process::Running;

/// How long the last words of a process that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A process that runs; it is killed on drop.
#[derive(Debug)]
pub(crate) struct Process {
    running: Running,
    stdin: Option<ChildStdin>,
    notices: Receiver<Notice>,
    errors: Receiver<String>,
    descriptors: Rlimit,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(command)?;
        let stdin = running.child.stdin.take();
        let notices = read(running.child.stdout.take(), |line| from_line(&line));
        let errors = read(running.child.stderr.take(), Some);
        let descriptors = rustix::process::getrlimit(Resource::Nofile);
        Ok(Self { running, stdin, notices, errors, descriptors })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.running.pid.as_raw_nonzero().get()
    }

    /// Returns the next notice of the process that was not looked at yet.
    pub(crate) fn notice(&self) -> Option<Notice> {
        self.notices.try_recv().ok()
    }

    /// Returns the next of the remaining notices, once the process has ended.
    pub(crate) fn last_notice(&self) -> Option<Notice> {
        self.notices.recv_timeout(LAST_WORDS).ok()
    }

    pub(crate) fn order(&mut self, order: Order) {
        // One that has ended is noticed elsewhere.
        if let Some(stdin) = &mut self.stdin {
            let _ = writeln!(stdin, "{}", to_line(&order)).and_then(|()| stdin.flush());
        }
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        self.running.signal(signal)
    }

    /// Lets the process have no more descriptors from this number on. The process keeps its
    /// descriptors.
    pub(crate) fn limit_descriptors(&self, first: u64) -> Result<(), Failure> {
        self.limit(Rlimit { current: Some(first), maximum: self.descriptors.maximum })
    }

    pub(crate) fn restore_descriptors(&self) -> Result<(), Failure> {
        self.limit(self.descriptors)
    }

    fn limit(&self, limit: Rlimit) -> Result<(), Failure> {
        prlimit(Some(self.running.pid), Resource::Nofile, limit)
            .map(drop)
            .map_err(|error| Failure::run("cannot set a limit", error))
    }

    /// Its end, if it has come.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.running.ended()
    }

    /// The end of the process's standard error output, once the process has ended.
    pub(crate) fn last_words(&self) -> String {
        let mut words = Vec::new();
        while let Ok(line) = self.errors.recv_timeout(LAST_WORDS) {
            words.push(line);
        }
        words[words.len().saturating_sub(10)..].join(" | ")
    }
}

/// Reads lines until the stream is closed, or no one listens.
fn read<T: Send + 'static>(
    stream: Option<impl Read + Send + 'static>,
    parse: impl Fn(String) -> Option<T> + Send + 'static,
) -> Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let lines = stream.into_iter().flat_map(|stream| BufReader::new(stream).lines());
        for item in lines.map_while(Result::ok).filter_map(parse) {
            if sender.send(item).is_err() {
                return;
            }
        }
    });
    receiver
}
