//! Tables and charts of the results.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rusteron_benchmarks::reports::chart::{Bar, BarChart, Heading};
use serde_json::Value;

use crate::run::{MACHINE, read};
use crate::statistics::spread;

/// The kind of a run, which all its rounds share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    transport: String,
    caller: String,
    server: String,
    encoding: String,
    /// Bytes and concurrent callers. `None` stands for connect cycles.
    call: Option<(u64, u64)>,
}

/// All rounds of all runs.
struct Results {
    runs: BTreeMap<Key, Vec<Value>>,
    /// Rows of servers, by transport and language.
    servers: BTreeMap<(String, String), Vec<Value>>,
    /// Of the run with the most rounds.
    rounds: usize,
}

const IPC: &str = "ipc-yield";
const UNIX: &str = "grpc-unix";
const TCP: &str = "grpc-tcp";
const IN_PROCESS: &str = "in-process";
/// The pairs that have all measurements.
const PAIRS: [(&str, &str); 8] = [
    ("rust", "rust"),
    ("java", "rust"),
    ("python", "rust"),
    ("c", "rust"),
    ("go", "rust"),
    ("java", "java"),
    ("python", "python"),
    ("go", "go"),
];
const PAYLOADS: [u64; 4] = [0, 32, 1_024, 102_400];

impl Results {
    fn read(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let mut results = Self { runs: BTreeMap::new(), servers: BTreeMap::new(), rounds: 0 };
        for row in read(dir)? {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            if row["p50_ns"].is_null() {
                let key = (text("transport"), text("server"));
                results.servers.entry(key).or_default().push(row);
                continue;
            }
            let key = Key {
                transport: text("transport"),
                caller: text("caller"),
                server: text("server"),
                encoding: text("encoding"),
                call: row["payload"].as_u64().zip(row["callers"].as_u64()),
            };
            let rows = results.runs.entry(key).or_default();
            rows.push(row);
            results.rounds = results.rounds.max(rows.len());
        }
        Ok(results)
    }

    /// Least, median and greatest value of the rounds.
    fn spread(&self, key: &Key, field: &str) -> Option<(f64, f64, f64)> {
        let rows = self.runs.get(key)?;
        spread(rows.iter().filter_map(|row| row[field].as_f64()).collect())
    }

    fn median(&self, key: &Key, field: &str) -> Option<f64> {
        Some(self.spread(key, field)?.1)
    }

    /// The median over the rounds of p50, in microseconds.
    fn p50(&self, key: &Key) -> Option<f64> {
        Some(self.median(key, "p50_ns")? / 1e3)
    }

    fn bar(&self, key: &Key, field: &str, scale: f64) -> Option<Bar> {
        let (least, median, greatest) = self.spread(key, field)?;
        Some(Bar {
            lower_quartile: least / scale,
            median: median / scale,
            upper_quartile: greatest / scale,
        })
    }
}

/// The key of one of a pair's runs, in the transport's main encoding.
fn key(transport: &str, (caller, server): (&str, &str), call: Option<(u64, u64)>) -> Key {
    let encoding = if transport.starts_with("grpc") { "protobuf" } else { "binary" };
    Key {
        transport: transport.to_owned(),
        caller: caller.to_owned(),
        server: server.to_owned(),
        encoding: encoding.to_owned(),
        call,
    }
}

fn name(language: &str) -> String {
    let (first, rest) = language.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// The language of a caller: `java` of `java-jni`.
fn language_of(caller: &str) -> &str {
    caller.split('-').next().unwrap_or(caller)
}

fn pair_name((caller, server): (&str, &str)) -> String {
    format!("{} → {}", name(caller), name(server))
}

fn number(value: Option<f64>) -> String {
    match value {
        None => "–".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) if value >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.2}"),
    }
}

fn thousands(value: Option<f64>) -> String {
    number(value.map(|value| value / 1e3))
}

fn ratio(of: Option<f64>, to: Option<f64>) -> String {
    match of.zip(to) {
        Some((of, to)) if to > 0.0 => format!("{:.1}", of / to),
        _ => "–".to_owned(),
    }
}

/// Writes tables and charts.
pub(crate) fn render(dir: &Path) -> Result<(), Box<dyn Error>> {
    let results = Results::read(dir)?;
    if results.runs.is_empty() {
        return Err(format!("no results in {}: measure first", dir.display()).into());
    }
    let tables = tables(&results)?;
    fs::write(dir.join("tables.md"), &tables)?;
    charts(&results, dir)?;
    println!("{}", dir.join("tables.md").display());
    Ok(())
}

fn tables(results: &Results) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let out = &mut text;
    every_pair(results, out)?;
    payloads(results, out)?;
    throughput(results, out)?;
    encodings(results, out)?;
    waiting(results, out)?;
    connecting(results, out)?;
    in_process(results, out)?;
    servers(results, out)?;
    callers(results, out)?;
    Ok(text)
}

fn every_pair(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Every pair\n")?;
    writeln!(out, "`ping`, p50 in µs, one caller.\n")?;
    writeln!(
        out,
        "| caller → server | Aeron IPC | gRPC Unix | gRPC TCP | Unix / IPC | TCP / IPC |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|")?;
    for server in ["rust", "java", "python", "go"] {
        for caller in ["rust", "java", "python", "c", "go"] {
            let p50 = |transport| results.p50(&key(transport, (caller, server), Some((0, 1))));
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

fn payloads(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Payloads\n")?;
    writeln!(out, "`reverse`, p50 in µs, one caller. The text travels both ways.\n")?;
    writeln!(
        out,
        "| caller → server | bytes | Aeron IPC | gRPC Unix | gRPC TCP | Unix / IPC | TCP / IPC |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    for pair in PAIRS {
        for payload in &PAYLOADS[1..] {
            let p50 = |transport| results.p50(&key(transport, pair, Some((*payload, 1))));
            let (ipc, unix, tcp) = (p50(IPC), p50(UNIX), p50(TCP));
            if ipc.or(unix).is_some() {
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

fn throughput(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Concurrent callers\n")?;
    writeln!(out, "`ping`, thousand calls/s of 1, 2 and 4 callers together.\n")?;
    writeln!(
        out,
        "| caller → server | IPC 1 | 2 | 4 | Unix 1 | 2 | 4 | TCP 1 | 2 | 4 | 4 callers: IPC / Unix | IPC / TCP |"
    )?;
    writeln!(out, "|---|{}", "--:|".repeat(11))?;
    for pair in PAIRS {
        let rate = |transport, callers| {
            results.median(&key(transport, pair, Some((0, callers))), "calls_per_s")
        };
        write!(out, "| {} |", pair_name(pair))?;
        for transport in [IPC, UNIX, TCP] {
            for callers in [1, 2, 4] {
                write!(out, " {} |", thousands(rate(transport, callers)))?;
            }
        }
        let [ipc, unix, tcp] = [IPC, UNIX, TCP].map(|transport| rate(transport, 4));
        writeln!(out, " {} | {} |", ratio(ipc, unix), ratio(ipc, tcp))?;
    }
    writeln!(out)
}

fn encodings(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## JSON against binary\n")?;
    writeln!(out, "Aeron IPC, p50 in µs: binary, JSON, and JSON / binary.\n")?;
    writeln!(out, "| caller → server | `ping` | 32 bytes | 1,024 bytes | 102,400 bytes |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    for pair in &PAIRS[..7] {
        write!(out, "| {} |", pair_name(*pair))?;
        for payload in PAYLOADS {
            let binary = key(IPC, *pair, Some((payload, 1)));
            let json = Key { encoding: "json".to_owned(), ..binary.clone() };
            let (binary, json) = (results.p50(&binary), results.p50(&json));
            write!(out, " {}, {}, {} |", number(binary), number(json), ratio(json, binary))?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn waiting(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Waiting, and UDP\n")?;
    writeln!(out, "p50 in µs (p99).\n")?;
    writeln!(
        out,
        "| caller → server | bytes | IPC yield | IPC backoff | IPC spin | UDP loopback yield |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|")?;
    for pair in &PAIRS[..7] {
        for payload in [0, 1_024] {
            write!(out, "| {} | {payload} |", pair_name(*pair))?;
            for transport in [IPC, "ipc-backoff", "ipc-spin", "udp-yield"] {
                let key = key(transport, *pair, Some((payload, 1)));
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

fn connecting(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Connecting\n")?;
    writeln!(out, "Connecting, `ping` and closing, p50 in ms.\n")?;
    writeln!(out, "| caller → server | Aeron IPC | gRPC Unix | gRPC TCP |")?;
    writeln!(out, "|---|--:|--:|--:|")?;
    for pair in PAIRS {
        let p50 = |transport| number(results.p50(&key(transport, pair, None)).map(|us| us / 1e3));
        writeln!(out, "| {} | {} | {} | {} |", pair_name(pair), p50(IPC), p50(UNIX), p50(TCP))?;
    }
    writeln!(out)
}

fn in_process(results: &Results, out: &mut String) -> std::fmt::Result {
    let keys: Vec<&Key> = results.runs.keys().filter(|key| key.transport == IN_PROCESS).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let mut callers: Vec<&str> = keys.iter().map(|key| key.caller.as_str()).collect();
    callers.dedup();
    writeln!(out, "## Calls in one process\n")?;
    writeln!(out, "The service in Rust through a C ABI, binary, p50 in µs.\n")?;
    writeln!(
        out,
        "| caller | `ping` | 32 bytes | 1,024 bytes | 102,400 bytes | `ping` over IPC | thousand calls/s of 4 callers |"
    )?;
    writeln!(out, "|---|--:|--:|--:|--:|--:|--:|")?;
    for caller in callers {
        let own = |payload, callers| key(IN_PROCESS, (caller, "rust"), Some((payload, callers)));
        write!(out, "| {caller} |")?;
        for payload in PAYLOADS {
            write!(out, " {} |", number(results.p50(&own(payload, 1))))?;
        }
        let language = language_of(caller);
        writeln!(
            out,
            " {} | {} |",
            number(results.p50(&key(IPC, (language, "rust"), Some((0, 1))))),
            thousands(results.median(&own(0, 4), "calls_per_s"))
        )?;
    }
    writeln!(out)
}

fn servers(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Servers\n")?;
    writeln!(out, "Resident memory and threads after the calls.\n")?;
    writeln!(out, "| server | transport | MiB | threads |")?;
    writeln!(out, "|---|---|--:|--:|")?;
    for ((transport, server), rows) in &results.servers {
        if ![IPC, UNIX, TCP].contains(&transport.as_str()) {
            continue;
        }
        let median = |field: &str| {
            spread(rows.iter().filter_map(|row| row[field].as_f64()).collect())
                .map(|(_, median, _)| median)
        };
        writeln!(
            out,
            "| {} | {transport} | {} | {:.0} |",
            name(server),
            number(median("server_rss_kib").map(|kib| kib / 1024.0)),
            median("server_threads").unwrap_or(0.0)
        )?;
    }
    writeln!(out)
}

/// A table for each language of callers, with all their runs.
fn callers(results: &Results, out: &mut String) -> std::fmt::Result {
    writeln!(out, "## Callers\n")?;
    for language in ["rust", "java", "python", "c", "go"] {
        writeln!(out, "### {}\n", name(language))?;
        writeln!(
            out,
            "| server | transport | encoding | call | callers | p50, µs (rounds) | mean | p95 | p99 | max | outliers | calls/s | allocations | bytes allocated |"
        )?;
        writeln!(out, "|---|---|---|---|--:|---|{}", "--:|".repeat(8))?;
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
            let (call, callers) = match key.call {
                None => ("connect".to_owned(), 1),
                Some((0, callers)) => ("ping".to_owned(), callers),
                Some((payload, callers)) => (format!("{payload} B"), callers),
            };
            writeln!(
                out,
                "| {} | {} | {} | {call} | {callers} | {} | {} | {} | {} | {} | {outliers:.1} % | {:.0} | {} | {} |",
                key.server,
                [&key.transport, key.caller.trim_start_matches(language)].concat(),
                key.encoding,
                p50.unwrap_or_default(),
                thousands(field("mean_ns")),
                thousands(field("p95_ns")),
                thousands(field("p99_ns")),
                thousands(field("max_ns")),
                field("calls_per_s").unwrap_or(0.0),
                number(field("allocations_per_call")),
                field("allocated_bytes_per_call")
                    .map_or("–".to_owned(), |bytes| format!("{bytes:.0}")),
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The transports of a chart, with their names in its legend.
const CHART_TRANSPORTS: [(&str, &str); 3] =
    [(IPC, "Aeron IPC"), (UNIX, "gRPC, Unix socket"), (TCP, "gRPC, TCP")];

fn charts(results: &Results, dir: &Path) -> Result<(), Box<dyn Error>> {
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
    let pairs = &PAIRS[..7];
    let pair_groups = |call, field: &str, scale: f64| {
        let group = |pair: &(&str, &str)| {
            let bars = CHART_TRANSPORTS.iter().map(|(transport, _)| {
                results.bar(&key(transport, *pair, Some(call)), field, scale)
            });
            (pair_name(*pair), bars.collect())
        };
        // C has nothing to compare over gRPC.
        pairs.iter().filter(|(caller, _)| *caller != "c").map(group).collect()
    };
    BarChart {
        heading: heading("A call without payload: time until its result (lower is better)"),
        unit: "µs, p50".to_owned(),
        series: series(),
        groups: pair_groups((0, 1), "p50_ns", 1e3),
        has_common_scale: true,
    }
    .write(&dir.join("ping.svg"))?;
    BarChart {
        heading: heading("Four callers at once: calls per second (higher is better)"),
        unit: "calls/s".to_owned(),
        series: series(),
        groups: pair_groups((0, 4), "calls_per_s", 1.0),
        has_common_scale: true,
    }
    .write(&dir.join("throughput.svg"))?;
    let payload_groups = PAYLOADS.iter().map(|payload| {
        let bars = CHART_TRANSPORTS.iter().map(|(transport, _)| {
            results.bar(&key(transport, ("java", "rust"), Some((*payload, 1))), "p50_ns", 1e3)
        });
        (format!("{payload} B"), bars.collect())
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
        let binary = key(IPC, *pair, Some((1_024, 1)));
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
        let in_process = key(IN_PROCESS, (caller, "rust"), Some((0, 1)));
        let ipc = key(IPC, (language_of(caller), "rust"), Some((0, 1)));
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
