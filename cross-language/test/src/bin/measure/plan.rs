//! The measurements of a round.

use clap::ValueEnum;
use cross_language_test::grpc::Language;
use cross_language_test::in_process::InProcess;
use cross_language_test::programs::{Caller, Server};

/// A way of calling. The names on the command line are those in the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Transport {
    /// Aeron IPC, server and caller yield
    IpcYield,
    /// gRPC over a Unix socket
    GrpcUnix,
    /// gRPC over TCP
    GrpcTcp,
    /// Calls of the service in Rust in the caller's process
    InProcess,
    /// Aeron IPC, server and caller back off
    IpcBackoff,
    /// Aeron UDP over loopback, driver, server and caller yield
    UdpYield,
    /// Aeron IPC, server and caller spin
    IpcSpin,
}

impl Transport {
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value().expect("no value is hidden");
        value.get_name().to_owned()
    }

    pub(crate) fn is_grpc(self) -> bool {
        matches!(self, Self::GrpcUnix | Self::GrpcTcp)
    }

    /// The encoding of most runs.
    pub(crate) fn encoding(self) -> &'static str {
        if self.is_grpc() { "protobuf" } else { "binary" }
    }

    /// The idle strategy of programs over Aeron.
    pub(crate) fn idle(self) -> &'static str {
        match self {
            Self::IpcSpin => "spin",
            Self::IpcBackoff => "backoff",
            _ => "yield",
        }
    }
}

/// The servers. Go serves over gRPC alone, as do the other ways of serving in Rust and Python, which are for comparing.
pub(crate) const SERVERS: [&str; 6] =
    ["rust", "java", "python", "go", "rust-multi", "python-threads"];

pub(crate) fn aeron_server(name: &str) -> Option<Server> {
    match name {
        "rust" => Some(Server::Rust),
        "java" => Some(Server::Java),
        "python" => Some(Server::Python),
        _ => None,
    }
}

pub(crate) fn aeron_caller(name: &str) -> Option<Caller> {
    match name {
        "rust" => Some(Caller::Rust),
        "java" => Some(Caller::Java),
        "python" => Some(Caller::Python),
        "c" => Some(Caller::C),
        "go" => Some(Caller::Go),
        _ => None,
    }
}

/// The language of a server or caller over gRPC, and the options of the server.
pub(crate) fn grpc_language(name: &str) -> Option<(Language, &'static [&'static str])> {
    match name {
        "rust" => Some((Language::Rust, &["--runtime", "current-thread"])),
        "rust-multi" => Some((Language::Rust, &["--runtime", "multi-thread"])),
        "java" => Some((Language::Java, &[])),
        "python" => Some((Language::Python, &["--kind", "aio"])),
        "python-threads" => Some((Language::Python, &["--kind", "threads"])),
        "go" => Some((Language::Go, &[])),
        _ => None,
    }
}

pub(crate) fn in_process(name: &str) -> Option<InProcess> {
    cross_language_test::in_process::IN_PROCESS.into_iter().find(|caller| caller.name() == name)
}

/// The work of a caller's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Work {
    /// Calls of concurrent callers, with a text of so many bytes.
    Calls { payload: u32, callers: u32 },
    /// Connecting, a call, closing.
    Connect,
}

/// One run of a caller's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) caller: &'static str,
    pub(crate) encoding: &'static str,
    pub(crate) work: Work,
}

/// Lengths of texts, in bytes; 0 stands for `ping`.
pub(crate) const PAYLOADS: [u32; 4] = [0, SHORT, MIDDLE, LONG];
pub(crate) const SHORT: u32 = 32;
pub(crate) const MIDDLE: u32 = 1_024;
pub(crate) const LONG: u32 = 102_400;
/// Concurrent callers.
pub(crate) const CALLERS: [u32; 3] = [1, 2, MOST];
pub(crate) const MOST: u32 = 4;

const fn calls(payload: u32, callers: u32) -> Work {
    Work::Calls { payload, callers }
}

/// The runs that the goals name: without payload, with 1 KB and 100 KB, and of four callers.
const CORE: [Work; 4] = [calls(0, 1), calls(MIDDLE, 1), calls(LONG, 1), calls(0, MOST)];

/// The runs over a transport with a server. Pairs with the server in Rust, or in the caller's language, have all of
/// them. Other pairs have the call without payload. `is_core` chooses those that the goals name.
pub(crate) fn cells(transport: Transport, server: &str, is_core: bool) -> Vec<Cell> {
    let mut cells = all_cells(transport, server);
    if is_core {
        // The goals compare pairs that both Aeron and gRPC have.
        let is_goal = aeron_server(server).is_some()
            && matches!(transport, Transport::IpcYield | Transport::GrpcUnix | Transport::GrpcTcp);
        cells.retain(|cell| {
            is_goal
                && grpc_language(cell.caller).is_some()
                && cell.encoding == transport.encoding()
                && CORE.contains(&cell.work)
        });
    }
    cells
}

fn all_cells(transport: Transport, server: &str) -> Vec<Cell> {
    if transport == Transport::InProcess {
        return if server == "rust" { in_process_cells() } else { Vec::new() };
    }
    let callers: &[&'static str] = match (transport.is_grpc(), server) {
        (true, "rust-multi") => &["rust", "java", "go"],
        (true, "python-threads") => &["rust", "python"],
        (true, "go") => &["go"],
        (true, _) => &["rust", "java", "python", "go"],
        (false, "rust" | "java" | "python") => &["rust", "java", "python", "c", "go"],
        (false, _) => &[],
    };
    let mut cells = Vec::new();
    for &caller in callers {
        let is_complete = server == "rust" || server == caller;
        let mut add = |encoding, work| cells.push(Cell { caller, encoding, work });
        let encoding = transport.encoding();
        match transport {
            _ if server.contains('-') => {
                add(encoding, calls(0, 1));
                add(encoding, calls(MIDDLE, 1));
                add(encoding, calls(0, MOST));
            }
            Transport::IpcYield | Transport::GrpcUnix | Transport::GrpcTcp if is_complete => {
                for payload in PAYLOADS {
                    add(encoding, calls(payload, 1));
                }
                add(encoding, calls(0, 2));
                add(encoding, calls(0, MOST));
                add(encoding, calls(MIDDLE, MOST));
                if transport == Transport::IpcYield {
                    for payload in PAYLOADS {
                        add("json", calls(payload, 1));
                    }
                    add("json", calls(0, MOST));
                    add("json", calls(MIDDLE, MOST));
                }
                add(encoding, Work::Connect);
            }
            Transport::IpcYield | Transport::GrpcUnix | Transport::GrpcTcp => {
                add(encoding, calls(0, 1));
            }
            Transport::UdpYield if is_complete => {
                for payload in PAYLOADS {
                    add(encoding, calls(payload, 1));
                }
            }
            Transport::IpcBackoff if is_complete => {
                add(encoding, calls(0, 1));
                add(encoding, calls(MIDDLE, 1));
            }
            Transport::IpcSpin if is_complete => add(encoding, calls(0, 1)),
            _ => {}
        }
    }
    cells
}

fn in_process_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for caller in cross_language_test::in_process::IN_PROCESS {
        let caller = caller.name();
        let mut add = |encoding, work| cells.push(Cell { caller, encoding, work });
        for payload in PAYLOADS {
            add("binary", calls(payload, 1));
        }
        add("json", calls(MIDDLE, 1));
        add("binary", calls(0, 2));
        add("binary", calls(0, MOST));
        add("binary", calls(MIDDLE, MOST));
        add("binary", Work::Connect);
    }
    // Rust's own values, without bytes.
    for payload in PAYLOADS {
        cells.push(Cell { caller: "rust", encoding: "none", work: calls(payload, 1) });
    }
    cells
}

/// Timed calls of each concurrent caller, or cycles. Slow calls get fewer.
pub(crate) fn count(transport: Transport, server: &str, cell: &Cell) -> u32 {
    let has_python = server.starts_with("python") || cell.caller == "python";
    match (transport, cell.work) {
        (_, Work::Connect) => 200,
        (_, Work::Calls { payload: LONG, .. }) => 1_000,
        // A server that has slept long looks for requests once in a millisecond.
        (Transport::IpcBackoff, _) => 1_000,
        (Transport::GrpcUnix | Transport::GrpcTcp, Work::Calls { callers, .. }) if has_python => {
            2_000 / callers
        }
        (Transport::GrpcUnix | Transport::GrpcTcp, Work::Calls { callers, .. }) => 10_000 / callers,
        (Transport::InProcess, _) => 100_000,
        _ => 10_000,
    }
}

/// The longest warm-up of a run, in milliseconds. Most become steady sooner. grpc-java often does not.
pub(crate) const WARMUP_MS: u32 = 15_000;
/// Time of the calls in which allocations, processor time and memory are looked at, in milliseconds.
pub(crate) const COUNTED_MS: u32 = 200;
