//! The measurements of a round.

use clap::ValueEnum;
use cross_language_test::grpc::Language;
use cross_language_test::in_process::InProcess;
use cross_language_test::programs::{Caller, Server};

/// A way of calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
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
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::IpcYield => "ipc-yield",
            Self::GrpcUnix => "grpc-unix",
            Self::GrpcTcp => "grpc-tcp",
            Self::InProcess => "in-process",
            Self::IpcBackoff => "ipc-backoff",
            Self::UdpYield => "udp-yield",
            Self::IpcSpin => "ipc-spin",
        }
    }

    pub(crate) fn is_grpc(self) -> bool {
        matches!(self, Self::GrpcUnix | Self::GrpcTcp)
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

/// The languages that serve over Aeron, and Go, which serves over gRPC alone.
pub(crate) const SERVERS: [&str; 4] = ["rust", "java", "python", "go"];

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

pub(crate) fn grpc_language(name: &str) -> Option<Language> {
    match name {
        "rust" => Some(Language::Rust),
        "java" => Some(Language::Java),
        "python" => Some(Language::Python),
        "go" => Some(Language::Go),
        _ => None,
    }
}

pub(crate) fn in_process(name: &str) -> Option<InProcess> {
    match name {
        "rust" => Some(InProcess::Rust),
        "c" => Some(InProcess::C),
        "java-jni" => Some(InProcess::JavaJni),
        "java-ffm" => Some(InProcess::JavaFfm),
        "python-ctypes" => Some(InProcess::PythonCtypes),
        "python-pyo3" => Some(InProcess::PythonPyo3),
        "go" => Some(InProcess::Go),
        _ => None,
    }
}

/// The work of a caller's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

const PAYLOADS: [u32; 4] = [0, 32, 1_024, 102_400];

/// The runs over a transport with a server. Pairs with the server in Rust, or in the caller's language, have all of
/// them. Other pairs have the call without payload.
pub(crate) fn cells(transport: Transport, server: &str) -> Vec<Cell> {
    if transport == Transport::InProcess {
        return if server == "rust" { in_process_cells() } else { Vec::new() };
    }
    let callers: &[&'static str] = match (transport.is_grpc(), server) {
        (true, "go") => &["go"],
        (false, "go") => &[],
        (true, _) => &["rust", "java", "python", "go"],
        (false, _) => &["rust", "java", "python", "c", "go"],
    };
    let mut cells = Vec::new();
    for &caller in callers {
        let is_complete = server == "rust" || server == caller;
        let mut add = |encoding, work| cells.push(Cell { caller, encoding, work });
        let calls = |payload, callers| Work::Calls { payload, callers };
        let encoding = if transport.is_grpc() { "protobuf" } else { "binary" };
        match transport {
            Transport::IpcYield | Transport::GrpcUnix | Transport::GrpcTcp if is_complete => {
                for payload in PAYLOADS {
                    add(encoding, calls(payload, 1));
                    if transport == Transport::IpcYield {
                        add("json", calls(payload, 1));
                    }
                }
                add(encoding, calls(0, 2));
                add(encoding, calls(0, 4));
                add(encoding, Work::Connect);
            }
            Transport::IpcYield | Transport::GrpcUnix | Transport::GrpcTcp => {
                add(encoding, calls(0, 1));
            }
            Transport::IpcBackoff | Transport::UdpYield if is_complete => {
                add(encoding, calls(0, 1));
                add(encoding, calls(1_024, 1));
            }
            Transport::IpcSpin if is_complete => add(encoding, calls(0, 1)),
            _ => {}
        }
    }
    cells
}

fn in_process_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for caller in ["rust", "c", "java-jni", "java-ffm", "python-ctypes", "python-pyo3", "go"] {
        let mut add = |encoding, work| cells.push(Cell { caller, encoding, work });
        for payload in PAYLOADS {
            add("binary", Work::Calls { payload, callers: 1 });
        }
        add("json", Work::Calls { payload: 1_024, callers: 1 });
        add("binary", Work::Calls { payload: 0, callers: 2 });
        add("binary", Work::Calls { payload: 0, callers: 4 });
        add("binary", Work::Connect);
    }
    // Rust's own values, without bytes.
    for payload in PAYLOADS {
        let work = Work::Calls { payload, callers: 1 };
        cells.push(Cell { caller: "rust", encoding: "none", work });
    }
    cells
}

/// Calls, or cycles, before the timed ones, and timed ones, of each concurrent caller. Slow calls get fewer.
pub(crate) fn counts(transport: Transport, server: &str, cell: &Cell) -> (u32, u32) {
    let has = |language| server == language || cell.caller == language;
    let (has_python, has_java) = (has("python"), has("java"));
    match (transport, cell.work) {
        (_, Work::Connect) => (0, 30),
        // Two spinning processes and a driver on two cores wait for the operating system's slices.
        (Transport::IpcSpin, _) => (100, 1_000),
        (_, Work::Calls { payload: 10_000.., .. }) if has_java => (5_000, 1_000),
        (_, Work::Calls { payload: 10_000.., .. }) => (500, 1_000),
        // The compiler of a JVM needs so many calls of grpc-java until they become no faster.
        (Transport::GrpcUnix | Transport::GrpcTcp, Work::Calls { callers, .. })
            if has_java && !has_python =>
        {
            (60_000 / callers, 2_000)
        }
        (Transport::InProcess, _) => (100_000, 100_000),
        (Transport::IpcBackoff, _) => (2_000, 2_000),
        (Transport::GrpcUnix | Transport::GrpcTcp, _) if has_python => (1_000, 1_000),
        (Transport::GrpcUnix | Transport::GrpcTcp, _) => (5_000, 2_000),
        _ => (10_000, 10_000),
    }
}
