//! Charts.

use std::error::Error;
use std::fs;
use std::path::Path;

use rusteron_benchmarks::reports::chart::{BarChart, Heading};
use serde_json::Value;

use super::results::{Key, Results, calls, key};
use super::text::{language_of, pair_name, payload_name};
use super::{AERON_PAIRS, IPC, PAIRS, TCP, UNIX};
use crate::plan::{MIDDLE, MOST, PAYLOADS, Transport};
use crate::run::MACHINE;

/// The transports of a chart, with their names in its legend.
const CHART_TRANSPORTS: [(Transport, &str); 3] =
    [(IPC, "Aeron IPC"), (UNIX, "gRPC, Unix socket"), (TCP, "gRPC, TCP")];

pub(super) fn charts(results: &Results, dir: &Path) -> Result<(), Box<dyn Error>> {
    let machine: Value = serde_json::from_str(&fs::read_to_string(dir.join(MACHINE))?)?;
    let text = |pointer: &str| {
        machine.pointer(pointer).and_then(Value::as_str).unwrap_or("unknown").to_owned()
    };
    let notes = vec![
        format!(
            "{}, {} cores, Linux {}, {}",
            text("/host/cpu"),
            machine["host"]["cores"],
            text("/kernel"),
            text("/date")
        ),
        format!(
            "Aeron {}, {}; median of {} rounds, lines from least to greatest",
            text("/versions/aeron"),
            text("/versions/rustc"),
            results.rounds
        ),
    ];
    let heading = |title: &str| Heading { title: title.to_owned(), notes: notes.clone() };
    let series = || CHART_TRANSPORTS.iter().map(|(_, name)| (*name).to_owned()).collect();
    let pairs = &PAIRS[..AERON_PAIRS];
    let pair_groups = |call, field: &str, scale: f64| {
        let group = |pair: &(&str, &str)| {
            let bars = CHART_TRANSPORTS
                .iter()
                .map(|(transport, _)| results.bar(&key(*transport, *pair, call), field, scale));
            (pair_name(*pair), bars.collect())
        };
        // C has nothing to compare over gRPC.
        pairs.iter().filter(|(caller, _)| *caller != "c").map(group).collect()
    };
    BarChart {
        heading: heading("A call without payload: time until its result (lower is better)"),
        unit: "µs, p50".to_owned(),
        series: series(),
        groups: pair_groups(calls(0, 1), "p50_ns", 1e3),
        has_common_scale: true,
    }
    .write(&dir.join("ping.svg"))?;
    BarChart {
        heading: heading("Four callers at once: calls per second (higher is better)"),
        unit: "calls/s".to_owned(),
        series: series(),
        groups: pair_groups(calls(0, MOST), "calls_per_s", 1.0),
        has_common_scale: true,
    }
    .write(&dir.join("throughput.svg"))?;
    let payload_groups = PAYLOADS.iter().map(|payload| {
        let bars = CHART_TRANSPORTS.iter().map(|(transport, _)| {
            results.bar(&key(*transport, ("java", "rust"), calls(*payload, 1)), "p50_ns", 1e3)
        });
        (payload_name(*payload).replace('`', ""), bars.collect())
    });
    BarChart {
        heading: heading(
            "Java calls Rust: time by length of the text (lower is better; own scales)",
        ),
        unit: "µs, p50".to_owned(),
        series: series(),
        groups: payload_groups.collect(),
        has_common_scale: false,
    }
    .write(&dir.join("payloads.svg"))?;
    let encoding_groups = pairs.iter().map(|pair| {
        let binary = key(IPC, *pair, calls(MIDDLE, 1));
        let json = Key { encoding: "json".to_owned(), ..binary.clone() };
        (pair_name(*pair), [binary, json].map(|key| results.bar(&key, "p50_ns", 1e3)).to_vec())
    });
    BarChart {
        heading: heading("1,024 bytes over Aeron IPC: binary and JSON (lower is better)"),
        unit: "µs, p50".to_owned(),
        series: vec!["binary".to_owned(), "JSON".to_owned()],
        groups: encoding_groups.collect(),
        has_common_scale: true,
    }
    .write(&dir.join("encodings.svg"))?;
    let bindings = [
        ("rust", "Rust"),
        ("c", "C"),
        ("java-jni", "Java, JNI"),
        ("java-ffm", "Java, FFM"),
        ("python-ctypes", "Python, ctypes"),
        ("python-pyo3", "Python, PyO3"),
        ("go", "Go"),
    ];
    let isolation_groups = bindings.iter().map(|(caller, name)| {
        let in_process = key(Transport::InProcess, (caller, "rust"), calls(0, 1));
        let ipc = key(IPC, (language_of(caller), "rust"), calls(0, 1));
        let bars = [in_process, ipc].map(|key| results.bar(&key, "p50_ns", 1e3));
        ((*name).to_owned(), bars.to_vec())
    });
    BarChart {
        heading: heading("What isolation costs: a call without payload to Rust (lower is better)"),
        unit: "µs, p50".to_owned(),
        series: vec!["in one process".to_owned(), "Aeron IPC".to_owned()],
        groups: isolation_groups.collect(),
        has_common_scale: true,
    }
    .write(&dir.join("isolation.svg"))?;
    Ok(())
}
