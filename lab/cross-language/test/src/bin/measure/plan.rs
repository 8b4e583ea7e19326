//! The measurements of a round.

use cross_language_test::programs::{CALLERS, GRPC_CALLERS, Language, SERVERS};

/// A way of calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Server and caller yield.
    Ipc,
    GrpcUnix,
    GrpcTcp,
    /// Over loopback. Driver, server and caller yield.
    Udp,
    /// Server and caller back off, as they do by default.
    IpcBackoff,
    /// A process in C that answers over a Unix socket. Both ends block.
    SocketBlocking,
    /// The same, but both ends poll.
    SocketPolling,
    /// Calls of the service in Rust in the caller's process.
    InProcess,
}

pub(crate) const TRANSPORTS: [Transport; 8] = [
    Transport::Ipc,
    Transport::GrpcUnix,
    Transport::GrpcTcp,
    Transport::Udp,
    Transport::IpcBackoff,
    Transport::SocketBlocking,
    Transport::SocketPolling,
    Transport::InProcess,
];

impl Transport {
    /// The name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ipc => "Aeron IPC",
            Self::GrpcUnix => "gRPC, Unix socket",
            Self::GrpcTcp => "gRPC, TCP",
            Self::Udp => "Aeron UDP",
            Self::IpcBackoff => "Aeron IPC, backoff",
            Self::SocketBlocking => "Unix socket in C, blocking",
            Self::SocketPolling => "Unix socket in C, polling",
            Self::InProcess => "in one process",
        }
    }

    pub(crate) fn is_grpc(self) -> bool {
        matches!(self, Self::GrpcUnix | Self::GrpcTcp)
    }

    pub(crate) fn is_socket(self) -> bool {
        matches!(self, Self::SocketBlocking | Self::SocketPolling)
    }

    pub(crate) fn servers(self) -> &'static [Language] {
        match self {
            Self::InProcess => &[Language::Rust],
            _ if self.is_socket() => &[Language::C],
            _ => &SERVERS,
        }
    }
}

/// The work of a caller's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Calls of concurrent callers, with a text of so many bytes, 0 for `ping`.
    Calls { payload: u32, callers: u32 },
    /// Connecting, a call, closing.
    Connect,
}

impl Work {
    /// The beginning of a case's name.
    fn name(self) -> &'static str {
        match self {
            Self::Calls { callers: MOST, .. } => "four callers",
            Self::Calls { payload: 0, .. } => "ping",
            Self::Calls { payload: MIDDLE, .. } => "1,024 B",
            Self::Calls { .. } => "102,400 B",
            Self::Connect => "connecting",
        }
    }

    pub(crate) fn callers(self) -> u32 {
        if let Self::Calls { callers, .. } = self { callers } else { 1 }
    }
}

const MIDDLE: u32 = 1_024;
const LONG: u32 = 102_400;
/// Concurrent callers.
const MOST: u32 = 4;

const WORKS: [Work; 5] = [
    Work::Calls { payload: 0, callers: 1 },
    Work::Calls { payload: MIDDLE, callers: 1 },
    Work::Calls { payload: LONG, callers: 1 },
    Work::Calls { payload: 0, callers: MOST },
    Work::Connect,
];

/// One run of a caller's program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) caller: Language,
    server: Language,
    pub(crate) work: Work,
}

impl Cell {
    /// The name in results: `ping, Java → Rust`.
    pub(crate) fn case(&self) -> String {
        let name = |language: Language| format!("{language:?}");
        format!("{}, {} → {}", self.work.name(), name(self.caller), name(self.server))
    }

    /// Warm-up of the caller's program. The JVM compiles grpc-java for long.
    pub(crate) fn warmup_ms(&self, transport: Transport) -> u32 {
        let has_java = self.caller == Language::Java || self.server == Language::Java;
        match (has_java, transport.is_grpc()) {
            (true, true) => 5_000,
            (true, false) => 2_000,
            (false, _) => 500,
        }
    }

    /// Timed calls of each concurrent caller, or cycles. Slow calls get fewer.
    pub(crate) fn count(&self, transport: Transport) -> u32 {
        match self.work {
            Work::Connect => 50,
            Work::Calls { payload: LONG, .. } => 1_000,
            // A server that sleeps long checks for requests once in a millisecond.
            _ if transport == Transport::IpcBackoff => 5_000 / self.work.callers(),
            _ if transport.is_grpc() => 5_000 / self.work.callers(),
            _ => 100_000 / self.work.callers(),
        }
    }
}

/// The runs over a transport with a server. The server in Rust, and the caller in the server's language, have all works.
/// Other pairs have the call without payload.
pub(crate) fn cells(transport: Transport, server: Language) -> Vec<Cell> {
    let callers: &[Language] = match transport {
        _ if transport.is_grpc() => &GRPC_CALLERS,
        _ if transport.is_socket() => &[Language::C],
        _ => &CALLERS,
    };
    let mut cells = Vec::new();
    for &caller in callers {
        let works = match transport {
            _ if transport.is_socket() => &WORKS[..1],
            Transport::IpcBackoff if server == Language::Rust || server == caller => &WORKS[..4],
            _ if server == Language::Rust || server == caller => &WORKS,
            _ => &WORKS[..1],
        };
        cells.extend(works.iter().map(|&work| Cell { caller, server, work }));
    }
    cells
}

/// The place of a case among the others.
pub(crate) fn order(case: &str) -> usize {
    WORKS.iter().position(|work| case.starts_with(work.name())).unwrap_or(WORKS.len())
}
