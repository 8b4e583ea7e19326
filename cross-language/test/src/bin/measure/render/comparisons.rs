//! Tables that compare transports, encodings and ways of serving.

use std::fmt::Write as _;

use cross_language_test::in_process::IN_PROCESS;
use cross_language_test::statistics::LEAST_FOR_P99;

use super::results::{Key, Results, calls, key};
use super::text::{language_of, name, number, pair_name, payload_name, ratio, thousands};
use super::{AERON_PAIRS, IPC, PAIRS, TCP, UNIX};
use crate::plan::{CALLERS, MIDDLE, MOST, PAYLOADS, Transport, Work};

pub(super) fn every_pair(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Every pair\n")?;
    writeln!(out, "`ping`, p50 in µs, one caller.\n")?;
    writeln!(
        out,
        "| caller → server | Aeron IPC | gRPC Unix | gRPC TCP | Unix / IPC | TCP / IPC |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|")?;
    for server in ["rust", "java", "python", "go"] {
        for caller in ["rust", "java", "python", "c", "go"] {
            let p50 = |transport| results.p50(&key(transport, (caller, server), calls(0, 1)));
            let (ipc, unix, tcp) = (p50(IPC), p50(UNIX), p50(TCP));
            if ipc.or(unix).or(tcp).is_some() {
                writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} |",
                    pair_name((caller, server)),
                    number(ipc),
                    number(unix),
                    number(tcp),
                    ratio(unix, ipc),
                    ratio(tcp, ipc)
                )?;
            }
        }
    }
    writeln!(out)
}

pub(super) fn payloads(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Payloads\n")?;
    writeln!(out, "`reverse`, p50 in µs, one caller. The text travels both ways.\n")?;
    writeln!(
        out,
        "| caller → server | bytes | Aeron IPC | gRPC Unix | gRPC TCP | Unix / IPC | TCP / IPC |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    for pair in PAIRS {
        for payload in &PAYLOADS[1..] {
            let p50 = |transport| results.p50(&key(transport, pair, calls(*payload, 1)));
            let (ipc, unix, tcp) = (p50(IPC), p50(UNIX), p50(TCP));
            if ipc.or(unix).or(tcp).is_some() {
                writeln!(
                    out,
                    "| {} | {payload} | {} | {} | {} | {} | {} |",
                    pair_name(pair),
                    number(ipc),
                    number(unix),
                    number(tcp),
                    ratio(unix, ipc),
                    ratio(tcp, ipc)
                )?;
            }
        }
    }
    writeln!(out)
}

pub(super) fn throughput(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Concurrent callers\n")?;
    writeln!(out, "`ping`, thousand calls/s of 1, 2 and 4 callers together.\n")?;
    writeln!(
        out,
        "| caller → server | IPC 1 | 2 | 4 | Unix 1 | 2 | 4 | TCP 1 | 2 | 4 | 4 callers: IPC / Unix | IPC / TCP |"
    )?;
    writeln!(out, "|---|{}", "--:|".repeat(11))?;
    for pair in PAIRS {
        let rate = |transport, callers| {
            results.median(&key(transport, pair, calls(0, callers)), "calls_per_s")
        };
        write!(out, "| {} |", pair_name(pair))?;
        for transport in [IPC, UNIX, TCP] {
            for callers in CALLERS {
                write!(out, " {} |", thousands(rate(transport, callers)))?;
            }
        }
        let [ipc, unix, tcp] = [IPC, UNIX, TCP].map(|transport| rate(transport, MOST));
        writeln!(out, " {} | {} |", ratio(ipc, unix), ratio(ipc, tcp))?;
    }
    writeln!(out)?;
    writeln!(out, "Thousand calls/s of {MOST} callers together, by payload and encoding.\n")?;
    writeln!(
        out,
        "| caller → server | IPC {MIDDLE} B | Unix {MIDDLE} B | TCP {MIDDLE} B | IPC / Unix | IPC / TCP | IPC JSON `ping` | IPC JSON {MIDDLE} B |"
    )?;
    writeln!(out, "|---|{}", "--:|".repeat(7))?;
    for pair in PAIRS {
        let rate = |key: &Key| results.median(key, "calls_per_s");
        let [ipc, unix, tcp] =
            [IPC, UNIX, TCP].map(|transport| rate(&key(transport, pair, calls(MIDDLE, MOST))));
        let json = |payload| {
            let binary = key(IPC, pair, calls(payload, MOST));
            thousands(rate(&Key { encoding: "json".to_owned(), ..binary }))
        };
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            pair_name(pair),
            thousands(ipc),
            thousands(unix),
            thousands(tcp),
            ratio(ipc, unix),
            ratio(ipc, tcp),
            json(0),
            json(MIDDLE)
        )?;
    }
    writeln!(out)
}

/// Ways of serving of one language, of which the faster stands in the other tables.
pub(super) fn ways_of_serving(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Ways of serving over gRPC\n")?;
    writeln!(out, "p50 in µs of `ping` and {MIDDLE} bytes; thousand calls/s of {MOST} callers.\n")?;
    writeln!(out, "| caller | transport | server | `ping` | {MIDDLE} B | {MOST} callers |")?;
    writeln!(out, "|---|---|---|--:|--:|--:|")?;
    for (caller, servers) in [
        ("rust", ["rust", "rust-multi"]),
        ("java", ["rust", "rust-multi"]),
        ("go", ["rust", "rust-multi"]),
        ("rust", ["python", "python-threads"]),
        ("python", ["python", "python-threads"]),
    ] {
        for transport in [UNIX, TCP] {
            for server in servers {
                let way = match server {
                    "rust" => "tonic, current thread",
                    "rust-multi" => "tonic, multi-thread",
                    "python" => "grpc.aio",
                    _ => "grpcio, threads",
                };
                let key = |work| key(transport, (caller, server), work);
                writeln!(
                    out,
                    "| {} | {} | {way} | {} | {} | {} |",
                    name(caller),
                    transport.name(),
                    number(results.p50(&key(calls(0, 1)))),
                    number(results.p50(&key(calls(MIDDLE, 1)))),
                    thousands(results.median(&key(calls(0, MOST)), "calls_per_s"))
                )?;
            }
        }
    }
    writeln!(out)
}

pub(super) fn encodings(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## JSON against binary\n")?;
    writeln!(out, "Aeron IPC, p50 in µs: binary, JSON, and JSON / binary.\n")?;
    writeln!(out, "| caller → server | {} |", PAYLOADS.map(payload_name).join(" | "))?;
    writeln!(out, "|---|{}", "---|".repeat(PAYLOADS.len()))?;
    for pair in &PAIRS[..AERON_PAIRS] {
        write!(out, "| {} |", pair_name(*pair))?;
        for payload in PAYLOADS {
            let binary = key(IPC, *pair, calls(payload, 1));
            let json = Key { encoding: "json".to_owned(), ..binary.clone() };
            let (binary, json) = (results.p50(&binary), results.p50(&json));
            write!(out, " {}, {}, {} |", number(binary), number(json), ratio(json, binary))?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

pub(super) fn waiting(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Waiting, and UDP\n")?;
    writeln!(out, "p50 in µs (p99, from {LEAST_FOR_P99} samples on).\n")?;
    writeln!(
        out,
        "| caller → server | bytes | IPC yield | IPC backoff | IPC spin | UDP loopback yield |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|")?;
    for pair in &PAIRS[..AERON_PAIRS] {
        for payload in PAYLOADS {
            write!(out, "| {} | {payload} |", pair_name(*pair))?;
            for transport in [IPC, Transport::IpcBackoff, Transport::IpcSpin, Transport::UdpYield] {
                let key = key(transport, *pair, calls(payload, 1));
                match results.p50(&key) {
                    None => write!(out, " – |")?,
                    p50 => {
                        let p99 = thousands(results.median(&key, "p99_ns"));
                        write!(out, " {} ({p99}) |", number(p50))?;
                    }
                }
            }
            writeln!(out)?;
        }
    }
    writeln!(out)
}

pub(super) fn connecting(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Connecting\n")?;
    writeln!(out, "Connecting, `ping` and closing, p50 in ms.\n")?;
    writeln!(out, "| caller → server | Aeron IPC | gRPC Unix | gRPC TCP |")?;
    writeln!(out, "|---|--:|--:|--:|")?;
    for pair in PAIRS {
        let p50 = |transport| {
            number(results.p50(&key(transport, pair, Work::Connect)).map(|us| us / 1e3))
        };
        writeln!(out, "| {} | {} | {} | {} |", pair_name(pair), p50(IPC), p50(UNIX), p50(TCP))?;
    }
    writeln!(out)
}

pub(super) fn in_process(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Calls in one process\n")?;
    writeln!(out, "The service in Rust through a C ABI, binary, p50 in µs.\n")?;
    writeln!(
        out,
        "| caller | {} | `ping` over IPC | thousand calls/s of {MOST} callers | {MOST} callers, {MIDDLE} B |",
        PAYLOADS.map(payload_name).join(" | ")
    )?;
    writeln!(out, "|---|{}", "--:|".repeat(PAYLOADS.len() + 3))?;
    for caller in IN_PROCESS {
        let caller = caller.name();
        let own =
            |payload, callers| key(Transport::InProcess, (caller, "rust"), calls(payload, callers));
        write!(out, "| {caller} |")?;
        for payload in PAYLOADS {
            write!(out, " {} |", number(results.p50(&own(payload, 1))))?;
        }
        let language = language_of(caller);
        writeln!(
            out,
            " {} | {} |",
            number(results.p50(&key(IPC, (language, "rust"), calls(0, 1)))),
            thousands(results.median(&own(0, MOST), "calls_per_s"))
        )?;
    }
    writeln!(out)
}
