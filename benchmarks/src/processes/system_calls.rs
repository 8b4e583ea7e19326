//! Datagrams and system calls of processes, counted by Linux's tracepoints.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command_line::failure::Failure;

/// The datagrams, and the system calls that have moved some.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemCalls {
    /// Datagrams with messages that the sending process has handed to a network device.
    pub datagrams: u64,
    /// System calls of the sending process that have sent datagrams.
    pub sends: u64,
    /// System calls of the receiving process that have read datagrams.
    pub reads: u64,
}

/// A tracepoint, its filter, and the role of its hits.
#[derive(Debug)]
struct Event {
    tracepoint: &'static str,
    filter: String,
    role: Role,
}

#[derive(Debug, Clone, Copy)]
enum Role {
    /// Each hit is so many datagrams.
    Datagrams(u64),
    Send,
    Read,
}

/// The longest datagram of Aeron's without messages: status messages, NAKs, set-ups.
const CONTROL_LENGTH: usize = 48;

/// The same, with the headers of IPv4 and Ethernet.
const CONTROL_PACKET_LENGTH: usize = 90;

/// In the order of their counts.
fn events() -> Vec<Event> {
    let transmit = "net:net_dev_start_xmit";
    let single = format!("gso_segs == 0 && len > {CONTROL_PACKET_LENGTH}");
    // perf counts hits and adds nothing up: so each bit of the number of segments has its own event.
    let bits = (0..7).map(|bit| 1_u64 << bit);
    let datagrams = bits.map(|bit| (transmit, format!("gso_segs & {bit}"), Role::Datagrams(bit)));
    // These two return a number of datagrams, the others return bytes.
    let some = || "ret > 0".to_owned();
    let long = || format!("ret > {CONTROL_LENGTH}");
    [(transmit, single, Role::Datagrams(1))]
        .into_iter()
        .chain(datagrams)
        .chain([
            ("syscalls:sys_exit_sendmmsg", some(), Role::Send),
            ("syscalls:sys_exit_sendmsg", long(), Role::Send),
            ("syscalls:sys_exit_sendto", long(), Role::Send),
            ("syscalls:sys_exit_recvmmsg", some(), Role::Read),
            ("syscalls:sys_exit_recvmsg", long(), Role::Read),
            ("syscalls:sys_exit_recvfrom", long(), Role::Read),
        ])
        .map(|(tracepoint, filter, role)| Event { tracepoint, filter, role })
        .collect()
}

impl SystemCalls {
    /// Counts for some time. Tracepoints slow the processes down.
    ///
    /// # Errors
    /// [`Failure::Run`] with the words of the program `perf`, if that program, a tracepoint or the permission is
    /// missing.
    pub fn count(sender: u32, receiver: u32, time: Duration) -> Result<Self, Failure> {
        let events = events();
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "--per-thread", "-p"]);
        // perf counts a process twice that is named twice.
        let is_one = sender == receiver;
        command.arg(if is_one { sender.to_string() } else { format!("{sender},{receiver}") });
        for event in &events {
            command.args(["-e", event.tracepoint, "--filter", &event.filter]);
        }
        let seconds = format!("{:.3}", time.as_secs_f64());
        let sender = threads(sender)?;
        let receiver = threads(receiver)?;
        let output = command
            .args(["--", "sleep", &seconds])
            .output()
            .map_err(|error| Failure::run("cannot run `perf stat`", error))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let words = text.trim().lines().next().unwrap_or_default();
            return Err(Failure::run(format_args!("`perf stat`, {}", output.status), words));
        }
        Self::parse(&text, &events, &sender, &receiver).ok_or_else(|| {
            let words = text.trim().lines().next().unwrap_or_default();
            Failure::Run(format!("not understood: `perf stat` prints {words:?}"))
        })
    }

    /// Adds up the lines of `perf stat`: for each event in its order, one for each thread.
    fn parse(text: &str, events: &[Event], sender: &[u32], receiver: &[u32]) -> Option<Self> {
        let mut calls = Self::default();
        let mut index = 0;
        let mut counted: Vec<&str> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let mut fields = line.split(',');
            let (thread, count) = (fields.next()?, fields.next()?);
            // The next event begins with the first thread again.
            if counted.contains(&thread) {
                index += 1;
                counted.clear();
            }
            counted.push(thread);
            let id = thread.rsplit_once('-')?.1.parse().ok()?;
            // A thread that has ended meanwhile has no count.
            let count = count.parse::<u64>().unwrap_or(0);
            let (is_sender, is_receiver) = (sender.contains(&id), receiver.contains(&id));
            match events.get(index)?.role {
                Role::Datagrams(each) if is_sender => calls.datagrams += each * count,
                Role::Send if is_sender => calls.sends += count,
                Role::Read if is_receiver => calls.reads += count,
                _ => {}
            }
        }
        (index + 1 == events.len()).then_some(calls)
    }

    /// Datagrams per system call that sends; `None` if there was none.
    pub fn datagrams_per_send(&self) -> Option<f64> {
        (self.sends > 0).then(|| self.datagrams as f64 / self.sends as f64)
    }

    /// Datagrams per system call that reads; `None` if there was none.
    pub fn datagrams_per_read(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.datagrams as f64 / self.reads as f64)
    }
}

/// The threads of a process.
fn threads(pid: u32) -> Result<Vec<u32>, Failure> {
    let path = format!("/proc/{pid}/task");
    let entries = fs::read_dir(Path::new(&path))
        .map_err(|error| Failure::run(format_args!("cannot read {path}"), error))?;
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_up_by_event_and_process() {
        let events = events();
        let mut text = String::new();
        for index in 0..events.len() {
            let count = if index == 0 { "5" } else { "2" };
            text += &format!("a-b-11,{count},,event,1,100.00,,\nc-12,7,,event,1,100.00,,\n");
            text += "c-13,<not counted>,,event,0,100.00,,\n";
        }
        let calls = SystemCalls::parse(&text, &events, &[11], &[12, 13]).expect("counts");
        assert_eq!(calls, SystemCalls { datagrams: 5 + 2 * 127, sends: 6, reads: 21 });
        assert_eq!(calls.datagrams_per_send(), Some(259.0 / 6.0));
        let calls = SystemCalls::parse(&text, &events, &[11], &[]).expect("counts");
        assert_eq!(calls.datagrams_per_read(), None);
        for text in ["", "error", "a-1,5,,event,1,100.00,,\n"] {
            assert_eq!(SystemCalls::parse(text, &events, &[1], &[1]), None, "{text}");
        }
    }
}
