//! Tables of all runs, and of what they use.

use std::fmt::Write as _;

use cross_language_test::statistics::{LEAST_FOR_P95, LEAST_FOR_P99};

use super::results::{Key, Results, calls, key};
use super::text::{language_of, name, number, pair_name, thousands};
use super::{IPC, PAIRS, TCP, UNIX};
use crate::plan::{Transport, WARMUP_MS, Work};

/// Processor time and memory of the processes of a pair.
pub(super) fn resources(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Processor time and memory\n")?;
    writeln!(
        out,
        "`ping`, one caller. Processor time of a call in µs, and resident memory in MiB: caller, server, media driver.\n"
    )?;
    writeln!(out, "| caller → server | transport | CPU | of a call | memory |")?;
    writeln!(out, "|---|---|---|--:|---|")?;
    for pair in PAIRS {
        let transports = [IPC, Transport::IpcBackoff, Transport::UdpYield, UNIX, TCP];
        for transport in transports {
            let key = key(transport, pair, calls(0, 1));
            if let Some(p50) = results.p50(&key) {
                writeln!(
                    out,
                    "| {} | {} | {} | {} | {} |",
                    pair_name(pair),
                    transport.name(),
                    processor_times(results, &key),
                    number(Some(p50)),
                    memories(results, &key)
                )?;
            }
        }
    }
    writeln!(out)
}

const PROCESSES: [&str; 3] = ["caller", "server", "driver"];

/// Processor time of caller, server and driver for a call, in microseconds.
fn processor_times(results: &Results, key: &Key) -> String {
    let times =
        PROCESSES.map(|name| thousands(results.median(key, &format!("{name}_cpu_ns_per_call"))));
    times.join(", ")
}

/// Resident memory of caller, server and driver, in MiB.
fn memories(results: &Results, key: &Key) -> String {
    let memories = PROCESSES.map(|name| {
        let kib = results.median(key, &format!("{name}_rss_kib"));
        number(kib.map(|kib| kib / 1024.0))
    });
    memories.join(", ")
}

/// A table for each language of callers, with all their runs.
pub(super) fn callers(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Callers\n")?;
    writeln!(
        out,
        "Times in µs. A run shows p95 from {LEAST_FOR_P95} and p99 from {LEAST_FOR_P99} samples on. CPU and MiB are of \
        caller, server and media driver. Allocations are those of the caller. A warm-up that ended at its limit of \
        {:.0} s has a +.\n",
        f64::from(WARMUP_MS) / 1e3
    )?;
    for language in ["rust", "java", "python", "c", "go"] {
        writeln!(out, "### {}\n", name(language))?;
        writeln!(
            out,
            "| server | transport | encoding | call | callers | p50, µs (rounds) | mean | p95 | p99 | max | outliers | calls/s | warm-up | CPU | MiB | allocations | bytes allocated |"
        )?;
        writeln!(out, "|---|---|---|---|--:|---|{}---|---|--:|--:|", "--:|".repeat(7))?;
        for (key, rows) in
            results.runs.iter().filter(|(key, _)| language_of(&key.caller) == language)
        {
            let field = |field: &str| results.median(key, field);
            let p50 = results.spread(key, "p50_ns").map(|(least, median, greatest)| {
                let [least, median, greatest] =
                    [least, median, greatest].map(|ns| number(Some(ns / 1e3)));
                format!("{median} ({least}–{greatest})")
            });
            let total =
                |field: &str| rows.iter().filter_map(|row| row[field].as_u64()).sum::<u64>();
            let outliers = 100.0 * total("outliers") as f64 / total("calls").max(1) as f64;
            let (call, callers) = match key.work {
                Work::Connect => ("connect".to_owned(), 1),
                Work::Calls { payload: 0, callers } => ("ping".to_owned(), callers),
                Work::Calls { payload, callers } => (format!("{payload} B"), callers),
            };
            // A warm-up that became steady in each round has no mark.
            let is_steady = rows.iter().all(|row| row["is_steady"].as_bool().unwrap_or(true));
            let warmup = field("warmup_calls").map_or("–".to_owned(), |calls| {
                format!("{calls:.0}{}", if is_steady { "" } else { " +" })
            });
            writeln!(
                out,
                "| {} | {} | {} | {call} | {callers} | {} | {} | {} | {} | {} | {outliers:.1} % | {:.0} | {warmup} | {} | {} | {} | {} |",
                key.server,
                key.transport.name() + key.caller.trim_start_matches(language),
                key.encoding,
                p50.unwrap_or_default(),
                thousands(field("mean_ns")),
                thousands(field("p95_ns")),
                thousands(field("p99_ns")),
                thousands(field("max_ns")),
                field("calls_per_s").unwrap_or(0.0),
                processor_times(results, key),
                memories(results, key),
                number(field("allocations_per_call")),
                field("allocated_bytes_per_call")
                    .map_or("–".to_owned(), |bytes| format!("{bytes:.0}")),
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}
