//! Tables and charts of the results.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::ValueEnum;
use cross_language_test::in_process::IN_PROCESS;
use cross_language_test::provenance;
use cross_language_test::statistics::{LEAST_FOR_P95, LEAST_FOR_P99, spread};
use rusteron_benchmarks::reports::chart::{Bar, BarChart, Heading};
use serde_json::Value;

use crate::plan::{CALLERS, LONG, MIDDLE, MOST, PAYLOADS, Transport, WARMUP_MS, Work};
use crate::run::{MACHINE, read};

/// The kind of a run, which all its rounds share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    transport: Transport,
    caller: String,
    server: String,
    encoding: String,
    work: Work,
}

/// All rounds of all runs.
struct Results {
    runs: BTreeMap<Key, Vec<Value>>,
    /// Of the run with the most rounds.
    rounds: usize,
}

const IPC: Transport = Transport::IpcYield;
const UNIX: Transport = Transport::GrpcUnix;
const TCP: Transport = Transport::GrpcTcp;
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
/// The pairs over Aeron among these.
const AERON_PAIRS: usize = 7;

impl Results {
    fn read(dir: &Path) -> Result<Self, Box<dyn Error>> {
        let rows = read(dir)?;
        provenance::check(&rows)?;
        let mut results = Self { runs: BTreeMap::new(), rounds: 0 };
        for row in rows {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let number = |name: &str| row[name].as_u64().and_then(|number| number.try_into().ok());
            let work = match number("payload").zip(number("callers")) {
                Some((payload, callers)) => Work::Calls { payload, callers },
                None => Work::Connect,
            };
            let key = Key {
                transport: Transport::from_str(&text("transport"), false)?,
                caller: text("caller"),
                server: text("server"),
                encoding: text("encoding"),
                work,
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
fn key(transport: Transport, (caller, server): (&str, &str), work: Work) -> Key {
    Key {
        transport,
        caller: caller.to_owned(),
        server: server.to_owned(),
        encoding: transport.encoding().to_owned(),
        work,
    }
}

fn calls(payload: u32, callers: u32) -> Work {
    Work::Calls { payload, callers }
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

fn payload_name(payload: u32) -> String {
    match payload {
        0 => "`ping`".to_owned(),
        bytes => format!("{bytes} B"),
    }
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
    goals(results, out)?;
    every_pair(results, out)?;
    payloads(results, out)?;
    throughput(results, out)?;
    encodings(results, out)?;
    waiting(results, out)?;
    connecting(results, out)?;
    in_process(results, out)?;
    ways_of_serving(results, out)?;
    resources(results, out)?;
    callers(results, out)?;
    Ok(text)
}

/// A goal: how many times better than gRPC every pair is.
struct Goal {
    text: String,
    least: f64,
    grpc: Transport,
    work: Work,
}

/// The goals, with the pairs of least and greatest ratio.
fn goals(results: &Results, out: &mut String) -> std::fmt::Result {
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
fn ways_of_serving(results: &Results, out: &mut String) -> std::fmt::Result {
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

fn encodings(results: &Results, out: &mut String) -> std::fmt::Result {
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

fn waiting(results: &Results, out: &mut String) -> std::fmt::Result {
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

fn connecting(results: &Results, out: &mut String) -> std::fmt::Result {
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

fn in_process(results: &Results, out: &mut String) -> std::fmt::Result {
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

/// Processor time and memory of the processes of a pair.
fn resources(results: &Results, out: &mut String) -> std::fmt::Result {
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
fn callers(results: &Results, out: &mut String) -> std::fmt::Result {
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

/// The transports of a chart, with their names in its legend.
const CHART_TRANSPORTS: [(Transport, &str); 3] =
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
