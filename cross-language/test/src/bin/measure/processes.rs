//! The programs that are measured: their ends, and what they use.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use rusteron_client::IdleStrategyKind;
use rusteron_test_support::{ChildProcess, launch_with};
use serde_json::{Value, json};

/// Longer than any run of a caller's program.
const DEADLINE: Duration = Duration::from_secs(120);
/// A media driver without clients ends within this time.
const DRIVER_END: Duration = Duration::from_secs(30);
/// The part of the counted calls that is looked at.
const LOOK: Duration = Duration::from_millis(120);
/// The line of a caller that begins to count its calls.
const COUNTING: &str = "counting";

/// The media driver, a process of its own: this program with another command.
#[derive(Debug)]
pub(crate) struct Driver {
    process: ChildProcess,
    pub(crate) aeron_dir: String,
}

impl Driver {
    /// Starts a driver whose thread waits by an idle strategy.
    pub(crate) fn start(idle: IdleStrategyKind) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["driver", "--idle", &idle.to_string()]);
        let mut process = ChildProcess::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let line = process.await_line("driver ");
        Ok(Self { process, aeron_dir: line.trim_start_matches("driver ").to_owned() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The driver removes its directory. One that has crashed, or hangs, must not end or stop the measuring.
        self.process.close_input();
        let deadline = Instant::now() + DRIVER_END;
        while self.process.try_wait().is_none() {
            if Instant::now() >= deadline {
                eprintln!(
                    "warning: media driver {} does not end, and is killed",
                    self.process.id()
                );
                return self.process.kill();
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Runs a media driver until standard input has a line or ends.
pub(crate) fn drive(idle: IdleStrategyKind) -> Result<(), Box<dyn Error>> {
    let driver = launch_with(|context| context.set_shared_idle_strategy(idle));
    println!("driver {}", driver.aeron_dir().display());
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// A process that a row tells about.
pub(crate) struct Watched {
    pub(crate) name: &'static str,
    pub(crate) id: u32,
}

/// Use of processors and memory during the counted calls.
pub(crate) struct Resources {
    /// For each process: name, busy processors, resident memory in KiB.
    processes: Vec<(&'static str, Option<f64>, Option<u64>)>,
}

impl Resources {
    fn look(watched: &[Watched]) -> Self {
        let start = Instant::now();
        let before: Vec<_> = watched.iter().map(|process| processor_time(process.id)).collect();
        thread::sleep(LOOK);
        let after: Vec<_> = watched.iter().map(|process| processor_time(process.id)).collect();
        let elapsed = start.elapsed().as_secs_f64();
        let busy = before.into_iter().zip(after).map(|(before, after)| {
            let (before, after) = before.zip(after)?;
            Some((after - before).as_secs_f64() / elapsed)
        });
        let processes = watched.iter().zip(busy);
        let processes =
            processes.map(|(process, busy)| (process.name, busy, resident_kib(process.id)));
        Self { processes: processes.collect() }
    }

    /// The fields of a row, with the time of a call: that of all callers, divided by their calls.
    pub(crate) fn fields(&self, call_ns: f64) -> Value {
        let mut fields = json!({});
        for (name, busy, resident) in &self.processes {
            fields[format!("{name}_cpu_ns_per_call")] =
                json!(busy.map(|busy| (busy * call_ns).round()));
            fields[format!("{name}_rss_kib")] = json!(resident);
        }
        fields
    }
}

fn processor_time(id: u32) -> Option<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(id.try_into().ok()?)).ok()?;
    Some(clock_gettime(clock).ok()?.into())
}

fn resident_kib(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The last line of a caller's output, and its use of resources if it has counted calls.
pub(crate) struct Output {
    pub(crate) report: String,
    pub(crate) resources: Option<Resources>,
}

/// Runs a caller's program, which has to end well before the deadline.
pub(crate) fn run_caller(
    mut command: Command,
    others: impl IntoIterator<Item = Watched>,
) -> Result<Output, Box<dyn Error>> {
    let end = Instant::now() + DEADLINE;
    let mut child = command.spawn()?;
    let stdout = child.stdout.take().ok_or("no output")?;
    let mut stderr = child.stderr.take().ok_or("no errors' output")?;
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let errors = thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let watched: Vec<Watched> =
        others.into_iter().chain([Watched { name: "caller", id: child.id() }]).collect();
    let mut output = Output { report: String::new(), resources: None };
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(Ok(line)) if line == COUNTING => output.resources = Some(Resources::look(&watched)),
            Ok(Ok(line)) => output.report = line,
            Ok(Err(error)) => return Err(ended(child, error.into())),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => return Err(ended(child, late())),
        }
    }
    // Its output is closed, and its end near.
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() >= end => return Err(ended(child, late())),
            None => thread::sleep(Duration::from_millis(1)),
        }
    };
    if !status.success() {
        return Err(format!("{status}: {}", errors.join().unwrap_or_default()).into());
    }
    Ok(output)
}

fn late() -> Box<dyn Error> {
    format!("no end within {DEADLINE:?}").into()
}

/// Ends a program that does not end by itself.
fn ended(mut child: Child, error: Box<dyn Error>) -> Box<dyn Error> {
    // Fails if the program has ended meanwhile.
    let _ = child.kill();
    let _ = child.wait();
    error
}
