//! The goals, and how far they are met.

use std::fmt::Write as _;

use super::results::{Key, Results, calls, key};
use super::text::{number, pair_name};
use super::{IPC, TCP, UNIX};
use crate::plan::{LONG, MIDDLE, MOST, Transport, Work};

/// A goal: how many times better than gRPC every pair is.
struct Goal {
    text: String,
    least: f64,
    grpc: Transport,
    work: Work,
}

/// The goals, with the pairs of least and greatest ratio.
pub(super) fn goals(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Goals\n")?;
    writeln!(out, "| goal | measured: least and greatest ratio | met |")?;
    writeln!(out, "|---|---|---|")?;
    let mut goals = Vec::new();
    for (work, text, least) in [
        (calls(0, 1), "`ping` over Aeron IPC".to_owned(), [10.0, 20.0]),
        (calls(MIDDLE, 1), format!("{MIDDLE} bytes"), [5.0, 5.0]),
        (calls(LONG, 1), format!("{LONG} bytes"), [5.0, 5.0]),
        (calls(0, MOST), format!("calls/s of {MOST} callers"), [10.0, 10.0]),
    ] {
        for ((grpc, name), least) in [(UNIX, "Unix socket"), (TCP, "TCP")].into_iter().zip(least) {
            let text = format!("{text}: {least} times as fast as gRPC, {name}");
            goals.push(Goal { text, least, grpc, work });
        }
    }
    for goal in goals {
        let mut ratios = Vec::new();
        for server in ["rust", "java", "python"] {
            for caller in ["rust", "java", "python", "go"] {
                let pair = (caller, server);
                let [ipc, grpc] = [IPC, goal.grpc].map(|transport| key(transport, pair, goal.work));
                let ratio = match goal.work {
                    Work::Calls { callers: 1, .. } => {
                        results.p50(&grpc).zip(results.p50(&ipc)).map(|(grpc, ipc)| grpc / ipc)
                    }
                    _ => {
                        let rate = |key: &Key| results.median(key, "calls_per_s");
                        rate(&ipc).zip(rate(&grpc)).map(|(ipc, grpc)| ipc / grpc)
                    }
                };
                ratios.extend(ratio.map(|ratio| (ratio, pair_name(pair))));
            }
        }
        ratios.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (Some(least), Some(greatest)) = (ratios.first(), ratios.last()) else { continue };
        let missed: Vec<String> = ratios
            .iter()
            .filter(|(ratio, _)| *ratio < goal.least)
            .map(|(ratio, pair)| format!("{pair} {ratio:.1}"))
            .collect();
        writeln!(
            out,
            "| {} | {:.1} ({}) to {:.1} ({}) | {} |",
            goal.text,
            least.0,
            least.1,
            greatest.0,
            greatest.1,
            if missed.is_empty() { "yes".to_owned() } else { format!("no: {}", missed.join(", ")) }
        )?;
    }
    let java = |payload| number(results.p50(&key(IPC, ("java", "rust"), calls(payload, 1))));
    writeln!(
        out,
        "| Java → Rust, binary, below 5 µs | {} µs; with {MIDDLE} bytes {} µs | |",
        java(0),
        java(MIDDLE)
    )?;
    writeln!(out)
}
