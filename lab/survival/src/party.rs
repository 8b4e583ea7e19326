//! The processes of a campaign, from both sides. They are told by arguments what to do, and talk to
//! the supervisor by lines of JSON.

use std::io::{self, BufRead, Write};
use std::iter;
use std::process::{self, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_core::program::Failure;
use rusteron_test_support::programs;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The supervisor's orders to a party, on the party's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Publishers: send messages of this checkpoint and nothing else, slowly. 0: go on.
    Checkpoint(u64),
    /// Fork a child that uses all handles, drops them and ends.
    Fork,
    /// End in good order.
    End,
}

/// A party's notices to the supervisor, on the party's standard output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Notice {
    /// The server runs, or a client has all its publications or subscriptions.
    Ready,
    /// A client has ended.
    Ended(String),
    /// A connection, a publication, a subscription or a driver was refused.
    Refused(String),
    /// A subscriber's client has received its first message.
    Resumed,
    /// The number of messages that were sent or received since the process was started, and of
    /// those not seen because the driver had timed out the subscriber.
    Messages(u64, u64),
    /// A publisher sends messages of this checkpoint with these publications.
    Publishing(u64, Vec<u64>),
    /// A subscriber has got a message of this checkpoint from this publication.
    Received(u64, u64),
    /// A condition is violated: which, how often, and what exactly.
    Violation(String, u64, String),
}

/// A process of a campaign, as its supervisor sees it; it is killed on drop.
#[derive(Debug)]
pub(crate) struct Party {
    process: programs::Process,
    resumes_at: Option<Instant>,
}

impl Party {
    /// Starts this program for a process of a campaign. `change` can give the process other streams
    /// and variables.
    pub(crate) fn start(
        campaign: &str,
        options: &impl Serialize,
        change: impl FnOnce(&mut Command),
    ) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::run("cannot find this program", error))?;
        let supervisor = process::id().to_string();
        let arguments = ["party", campaign, &to_line(options), "--supervisor", &supervisor];
        let mut command = rusteron_test_support::command(&program.to_string_lossy(), arguments);
        command.env("RUST_BACKTRACE", "0").stdin(Stdio::piped());
        change(&mut command);
        // The supervisor waits for its parties by its own deadlines.
        let process = programs::Process::spawn(campaign, command, Duration::ZERO)?;
        Ok(Self { process, resumes_at: None })
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.process.pid()).unwrap_or_default()
    }

    /// Returns the next notice that was not looked at yet. Waits for the rest of a process that has
    /// ended.
    pub(crate) fn notice(&self, has_ended: bool) -> Option<Notice> {
        let line = || if has_ended { self.process.last_line() } else { self.process.try_line() };
        iter::from_fn(line).find_map(|line| from_line(&line))
    }

    pub(crate) fn order(&mut self, order: Order) {
        // One that has ended is noticed elsewhere.
        let _ = self.process.order(&to_line(&order));
    }

    pub(crate) fn kill(&self) -> Result<(), Failure> {
        self.process.signal(Signal::KILL)
    }

    /// Pauses the process until [`resume`](Self::resume) finds that the time is over.
    pub(crate) fn pause(&mut self, pause: Duration) -> Result<(), Failure> {
        self.process.signal(Signal::STOP)?;
        self.resumes_at = Some(Instant::now() + pause);
        Ok(())
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.resumes_at.is_some()
    }

    /// Cuts a pause short. Returns whether it would have lasted longer.
    pub(crate) fn cut_pause(&mut self) -> bool {
        let now = Instant::now();
        let is_cut = self.resumes_at.is_some_and(|at| at > now);
        self.resumes_at = self.resumes_at.map(|at| at.min(now));
        is_cut
    }

    /// Lets a paused process go on if its time has come. Returns whether it has.
    pub(crate) fn resume(&mut self) -> Result<bool, Failure> {
        let is_due = self.resumes_at.is_some_and(|at| at <= Instant::now());
        if is_due {
            self.process.signal(Signal::CONT)?;
            self.resumes_at = None;
        }
        Ok(is_due)
    }

    /// Its end, if it has come.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.process.ended()
    }

    /// An end, with the last lines of the process's standard error output.
    pub(crate) fn describe(&self, status: ExitStatus) -> String {
        format!("{status}: {}", self.process.last_words())
    }
}

/// The supervisor's orders that were not looked at yet, as a party sees them.
pub(crate) struct Orders(Receiver<Order>);

impl Orders {
    pub(crate) fn read() -> Self {
        let (sender, orders) = mpsc::channel();
        thread::spawn(move || {
            let lines = io::stdin().lock().lines().map_while(Result::ok);
            for order in lines.filter_map(|line| from_line(&line)) {
                if sender.send(order).is_err() {
                    return;
                }
            }
        });
        Self(orders)
    }

    pub(crate) fn next(&self) -> Option<Order> {
        self.wait(Duration::ZERO)
    }

    pub(crate) fn wait(&self, timeout: Duration) -> Option<Order> {
        match self.0.recv_timeout(timeout) {
            Ok(order) => Some(order),
            Err(RecvTimeoutError::Timeout) => None,
            // The supervisor has closed the stream.
            Err(RecvTimeoutError::Disconnected) => Some(Order::End),
        }
    }
}

/// Tells the supervisor something.
pub(crate) fn say(notice: &Notice) {
    // Without a supervisor this process is about to die.
    let _ = writeln!(io::stdout(), "{}", to_line(notice));
}

/// Lets this process die with its supervisor.
pub(crate) fn follow(supervisor: i32) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::run("cannot follow the supervisor", error))?;
    // It may have died before.
    let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if parent == supervisor {
        return Ok(());
    }
    Err(Failure::Run(format!("started by {parent}, not by {supervisor}")))
}

/// Reads what a party is to do.
pub(crate) fn parse<T: DeserializeOwned>(options: &str) -> Result<T, Failure> {
    from_line(options).ok_or_else(|| Failure::usage("<OPTIONS>", options, "of another program"))
}

fn to_line(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

fn from_line<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let notice = Notice::Violation("lost".to_owned(), u64::MAX, "a\n b".to_owned());
        let line = to_line(&notice);
        assert!(!line.contains('\n'));
        assert_eq!((from_line(&line), from_line::<Notice>(&line[1..])), (Some(notice), None));
        assert_eq!(from_line(&to_line(&Order::Checkpoint(7))), Some(Order::Checkpoint(7)));
    }
}
