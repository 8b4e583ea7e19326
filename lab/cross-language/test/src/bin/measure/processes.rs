//! The programs that are measured: their ends, and what they use.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use cross_language_test::programs::{LONG, Language, path};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, pipe2};
use rusteron_benchmarks::processes::process_usage::Usage;
use rusteron_client::IdleStrategyKind;
use rusteron_test_support::{ChildProcess, free_port, launch_with};

use crate::plan::Transport;

/// The line of a caller that begins to time its calls.
const MEASURING: &str = "measuring\n";
/// Most bytes of a packet. A pipe of packets splits longer writes.
const PACKET_LIMIT: usize = 4_096;

/// A server that runs, and what its callers need.
pub(crate) struct Endpoint {
    /// `None` if the service is in the caller's process.
    server: Option<ChildProcess>,
    /// Of the media driver, a process of its own.
    driver: Option<ChildProcess>,
    /// Of the media driver.
    aeron_dir: PathBuf,
    /// Options of a caller over Aeron.
    options: Vec<String>,
    /// Of a server over gRPC.
    address: String,
    _dir: tempfile::TempDir,
}

impl Endpoint {
    pub(crate) fn start(transport: Transport, server: Language) -> Result<Self, Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let address = match transport {
            Transport::GrpcUnix => format!("unix:{}", path(&dir.path().join("socket"))),
            // The kernel chooses the port.
            _ => TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string(),
        };
        let mut endpoint = Self {
            server: None,
            driver: None,
            aeron_dir: PathBuf::new(),
            options: Vec::new(),
            address,
            _dir: dir,
        };
        if transport.is_grpc() {
            endpoint.server = Some(server.start_grpc(&endpoint.address));
        } else if transport != Transport::InProcess && !transport.is_socket() {
            let idle = if transport == Transport::IpcBackoff { "backoff" } else { "yield" };
            let mut options = format!("--idle {idle}");
            if transport == Transport::Udp {
                options += &format!(
                    " --request-channel aeron:udp?endpoint=127.0.0.1:{} --response-channel \
                     aeron:udp?control=127.0.0.1:{}|control-mode=response",
                    free_port(),
                    free_port()
                );
            }
            endpoint.options = options.split(' ').map(str::to_owned).collect();
            let mut command = Command::new(std::env::current_exe()?);
            let idle = if transport == Transport::Udp { "yield" } else { "backoff" };
            command.args(["--driver", idle]).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut driver = ChildProcess::spawn(&mut command);
            let line = driver.await_line("driver ");
            endpoint.aeron_dir = line.trim_start_matches("driver ").into();
            endpoint.driver = Some(driver);
            endpoint.server = Some(server.start(&endpoint.aeron_dir, &endpoint.options()));
        }
        Ok(endpoint)
    }

    fn options(&self) -> Vec<&str> {
        self.options.iter().map(String::as_str).collect()
    }

    pub(crate) fn caller(
        &self,
        transport: Transport,
        caller: Language,
        options: &[&str],
    ) -> Command {
        match transport {
            Transport::InProcess => caller.in_process_caller(&[options]),
            Transport::SocketBlocking => Language::socket_caller(&[options]),
            Transport::SocketPolling => Language::socket_caller(&[options, &["--idle", "spin"]]),
            _ if transport.is_grpc() => caller.grpc_caller(&self.address, &[options, LONG]),
            _ => caller.caller(&self.aeron_dir, &[&self.options(), options, LONG]),
        }
    }

    /// The processes beside the caller's, with their names.
    pub(crate) fn processes(&self) -> Vec<(&'static str, u32)> {
        let process = |name, process: &Option<ChildProcess>| Some((name, process.as_ref()?.id()));
        [process("server", &self.server), process("driver", &self.driver)]
            .into_iter()
            .flatten()
            .collect()
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // The driver of no clients ends, and removes its directory.
        drop(self.server.take());
        if let Some(driver) = &mut self.driver {
            driver.close_input();
            for _ in 0..2_000 {
                if driver.try_wait().is_some() {
                    return;
                }
                thread::sleep(Duration::from_millis(5));
            }
            eprintln!("warning: media driver {} does not end, and is killed", driver.id());
        }
    }
}

/// Runs a media driver until standard input ends.
pub(crate) fn drive(idle: IdleStrategyKind) -> Result<(), Box<dyn Error>> {
    let driver = launch_with(|context| context.set_shared_idle_strategy(idle));
    println!("driver {}", driver.aeron_dir().display());
    std::io::stdin().read_line(&mut String::new())?;
    Ok(())
}

/// A caller's output, and what the processes used while it timed its calls.
pub(crate) struct Output {
    /// The time of all calls, then that of each, in nanoseconds.
    pub(crate) times: Vec<f64>,
    /// Name, processor time, and resident memory in MiB.
    pub(crate) resources: Vec<(&'static str, Duration, f64)>,
}

/// Runs a caller's program.
pub(crate) fn run_caller(
    mut command: Command,
    others: &[(&'static str, u32)],
) -> Result<Output, Box<dyn Error>> {
    let (mut stdout, child_stdout) = narrow_pipe()?;
    let mut child = command.stdout(child_stdout).spawn()?;
    // It has an end of the pipe, which would otherwise stay open.
    drop(command);
    let processes = [&[("caller", child.id())], others].concat();
    let mut text = Vec::new();
    while read_packet(&mut stdout, &mut text)? > 0 && !text.ends_with(b"\n") {}
    let mut used = Vec::new();
    if text == MEASURING.as_bytes() {
        text.clear();
        let before: Vec<_> = processes.iter().map(|(_, id)| processor_time(*id)).collect();
        poll(&mut [PollFd::new(stdout.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE)?;
        // The time of all calls is in the pipe. Until it is read, the caller cannot write more.
        used = processes
            .iter()
            .zip(before)
            .map(|((name, id), before)| {
                let times = processor_time(*id).zip(before);
                let busy = times.map(|(time, before)| time.saturating_sub(before));
                (*name, busy.zip(Usage::of(*id).ok().map(|usage| usage.resident)))
            })
            .collect();
    }
    while read_packet(&mut stdout, &mut text)? > 0 {}
    let status = child.wait()?;
    if !status.success() {
        let mut errors = String::new();
        child.stderr.take().ok_or("no errors' output")?.read_to_string(&mut errors)?;
        return Err(format!("{status}: {errors}").into());
    }
    let mut output = Output { times: Vec::new(), resources: Vec::new() };
    for (name, used) in used {
        let (busy, mebibytes) = used.ok_or_else(|| format!("the {name} has ended too early"))?;
        output.resources.push((name, busy, mebibytes));
    }
    for line in std::str::from_utf8(&text)?.lines() {
        output.times.push(line.parse()?);
    }
    Ok(output)
}

/// Appends the next packet of a pipe. Returns its length, which is 0 at the end.
fn read_packet(pipe: &mut File, text: &mut Vec<u8>) -> std::io::Result<usize> {
    // A shorter read would discard the rest of the packet.
    let mut packet = [0; PACKET_LIMIT];
    let length = pipe.read(&mut packet)?;
    text.extend_from_slice(&packet[..length]);
    Ok(length)
}

/// Returns the ends of a pipe that holds one write. The next one waits until that is read.
fn narrow_pipe() -> Result<(File, OwnedFd), Box<dyn Error>> {
    // Each write is a packet, for which the pipe has a page.
    let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_DIRECT)?;
    fcntl(&write, FcntlArg::F_SETPIPE_SZ(1))?;
    Ok((read.into(), write))
}

/// Calls take microseconds, and `/proc` counts in hundredths of a second.
fn processor_time(id: u32) -> Option<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(id.try_into().ok()?)).ok()?;
    Some(clock_gettime(clock).ok()?.into())
}
