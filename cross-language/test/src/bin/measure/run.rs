//! Runs the measurements.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use clap::ValueEnum;
use cross_language_test::programs::{LONG, driver, path};
use rusteron_benchmarks::reports::host;
use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{ChildProcess, free_port, launch_with, run as run_program};
use serde_json::{Value, json};

use crate::RunOptions;
use crate::plan::{
    Cell, SERVERS, Transport, Work, aeron_caller, aeron_server, cells, counts, grpc_language,
    in_process,
};
use crate::statistics::Statistics;

/// File of the results: JSON, a line for each run of a caller's program.
pub(crate) const RESULTS: &str = "results.jsonl";
/// File of machine and versions.
pub(crate) const MACHINE: &str = "machine.json";

/// A server that runs, with what its callers need.
enum Endpoint {
    Aeron { server: ChildProcess, channels: Vec<String>, driver: MediaDriver },
    Grpc { server: ChildProcess, address: String, _dir: tempfile::TempDir },
    InProcess,
}

impl Endpoint {
    fn start(transport: Transport, server: &str) -> Option<Self> {
        if transport == Transport::InProcess {
            return Some(Self::InProcess);
        }
        if transport.is_grpc() {
            let dir = tempfile::tempdir().expect("a directory");
            let address = match transport {
                Transport::GrpcUnix => format!("unix:{}", path(&dir.path().join("socket"))),
                _ => format!("127.0.0.1:{}", free_port()),
            };
            let server = grpc_language(server)?.start_server(&address);
            return Some(Self::Grpc { server, address, _dir: dir });
        }
        let (driver, channels) = match transport {
            Transport::UdpYield => {
                let driver = launch_with(|context| {
                    context.set_shared_idle_strategy(IdleStrategyKind::Yielding)
                });
                (driver, udp_channels())
            }
            _ => (driver(), Vec::new()),
        };
        let mut options: Vec<&str> = channels.iter().map(String::as_str).collect();
        options.extend(["--idle", transport.idle()]);
        let server = aeron_server(server)?.start(&driver, &options);
        Some(Self::Aeron { server, channels, driver })
    }

    fn caller(&self, transport: Transport, cell: &Cell, options: &[&str]) -> Option<Command> {
        match self {
            Self::Aeron { channels, driver, .. } => {
                let channels: Vec<&str> = channels.iter().map(String::as_str).collect();
                let settings = ["--idle", transport.idle(), "--encoding", cell.encoding];
                let options = [&settings, &channels[..], options, LONG];
                Some(aeron_caller(cell.caller)?.command(driver, &options))
            }
            Self::Grpc { address, .. } => {
                Some(grpc_language(cell.caller)?.caller(address, &[options, LONG]))
            }
            Self::InProcess => {
                Some(in_process(cell.caller)?.command(&[&["--encoding", cell.encoding], options]))
            }
        }
    }

    fn server(&self) -> Option<&ChildProcess> {
        match self {
            Self::Aeron { server, .. } | Self::Grpc { server, .. } => Some(server),
            Self::InProcess => None,
        }
    }
}

fn udp_channels() -> Vec<String> {
    let (requests, responses) = (free_port(), free_port());
    vec![
        "--request-channel".to_owned(),
        format!("aeron:udp?endpoint=127.0.0.1:{requests}"),
        "--response-channel".to_owned(),
        format!("aeron:udp?control=127.0.0.1:{responses}|control-mode=response"),
    ]
}

/// Measures, and appends to the results.
pub(crate) fn run(results: &Path, options: &RunOptions) -> Result<(), Box<dyn Error>> {
    write_machine(results)?;
    let file = results.join(RESULTS);
    let first_round = read(results)?.iter().filter_map(|row| row["round"].as_u64()).max();
    let first_round = first_round.map_or(1, |last| last + 1);
    let mut file = File::options().create(true).append(true).open(file)?;
    let is_chosen = |names: &[String], name: &str| {
        names.is_empty() || names.iter().any(|chosen| chosen == name)
    };
    let mut failures = 0;
    for round in first_round..first_round + u64::from(options.rounds) {
        for server in SERVERS.iter().filter(|server| is_chosen(&options.server, server)) {
            for transport in Transport::value_variants() {
                if !options.transport.is_empty() && !options.transport.contains(transport) {
                    continue;
                }
                let mut cells = cells(*transport, server);
                cells.retain(|cell| is_chosen(&options.caller, cell.caller));
                if cells.is_empty() {
                    continue;
                }
                let begin = Instant::now();
                let mut endpoint = Endpoint::start(*transport, server).ok_or("no such server")?;
                for cell in &cells {
                    let key = json!({
                        "round": round,
                        "transport": transport.name(),
                        "server": server,
                        "caller": cell.caller,
                        "encoding": cell.encoding,
                    });
                    match measure(&endpoint, *transport, server, cell, options.quick) {
                        Ok(row) => write_row(&mut file, key, row)?,
                        Err(error) => {
                            eprintln!("failed: {key} {:?}: {error}", cell.work);
                            failures += 1;
                            // The server may be the reason.
                            drop(endpoint);
                            endpoint = Endpoint::start(*transport, server).ok_or("no server")?;
                        }
                    }
                }
                if let Some(process) = endpoint.server() {
                    let key =
                        json!({ "round": round, "transport": transport.name(), "server": server });
                    write_row(&mut file, key, resources(process.id()))?;
                }
                eprintln!(
                    "round {round}: {} {server}: {} runs in {:.1} s",
                    transport.name(),
                    cells.len(),
                    begin.elapsed().as_secs_f64()
                );
            }
        }
    }
    match failures {
        0 => Ok(()),
        _ => Err(format!("{failures} runs failed").into()),
    }
}

fn write_row(file: &mut File, mut key: Value, row: Value) -> Result<(), Box<dyn Error>> {
    let (Value::Object(key_fields), Value::Object(fields)) = (&mut key, row) else {
        return Err("no object".into());
    };
    key_fields.extend(fields);
    Ok(writeln!(file, "{key}")?)
}

/// Runs a caller's program, and returns its statistics.
fn measure(
    endpoint: &Endpoint,
    transport: Transport,
    server: &str,
    cell: &Cell,
    is_quick: bool,
) -> Result<Value, Box<dyn Error>> {
    let (mut warmup, mut calls) = counts(transport, server, cell);
    if is_quick {
        (warmup, calls) = (warmup / 100, (calls / 100).max(5));
    }
    let samples = tempfile::NamedTempFile::new()?.into_temp_path();
    let (mode, callers) = match cell.work {
        Work::Calls { payload, callers } => {
            (["--measure".to_owned(), payload.to_string()], callers)
        }
        Work::Connect => (["--connect-cycles".to_owned(), calls.to_string()], 1),
    };
    let (warmup, calls, callers) = (warmup.to_string(), calls.to_string(), callers.to_string());
    let options = [
        mode[0].as_str(),
        &mode[1],
        "--warmup",
        &warmup,
        "--calls",
        &calls,
        "--callers",
        &callers,
        "--samples",
        path(&samples),
    ];
    let program = endpoint.caller(transport, cell, &options).ok_or("no such caller")?;
    let finished = run_program(program);
    if !finished.status.success() {
        return Err(finished.stderr.into());
    }
    let printed: Value = serde_json::from_str(finished.stdout.trim())?;
    let times: Vec<f64> =
        fs::read_to_string(&samples)?.lines().map(str::parse).collect::<Result<_, _>>()?;
    let count = times.len();
    let statistics = Statistics::of(times).ok_or("no samples")?;
    let elapsed = printed["elapsed_ns"].as_f64().ok_or("no elapsed time")?;
    let (payload, callers) = match cell.work {
        Work::Calls { payload, callers } => (Some(payload), Some(callers)),
        Work::Connect => (None, None),
    };
    Ok(json!({
        "payload": payload,
        "callers": callers,
        "calls": count,
        "outliers": statistics.outliers,
        "mean_ns": statistics.mean.round(),
        "p50_ns": statistics.median.round(),
        "p95_ns": statistics.p95.round(),
        "p99_ns": statistics.p99.round(),
        "max_ns": statistics.max,
        "calls_per_s": (count as f64 / elapsed * 1e9).round(),
        "allocations_per_call": printed["allocations_per_call"],
        "allocated_bytes_per_call": printed["allocated_bytes_per_call"],
    }))
}

/// Memory and threads of a process, where the operating system has a file that says it.
fn resources(pid: u32) -> Value {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    json!({ "server_rss_kib": field("VmRSS:"), "server_threads": field("Threads:") })
}

/// Reads the results.
pub(crate) fn read(results: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let path = results.join(RESULTS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    Ok(fs::read_to_string(path)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn write_machine(results: &Path) -> Result<(), Box<dyn Error>> {
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        text.lines().find(|line| !line.starts_with("Picked up")).map(str::to_owned)
    };
    let machine = json!({
        "host": host::describe(),
        "kernel": output("uname", &["-r"]),
        "versions": host::versions(),
        "java": output("java", &["-version"]),
        "python": output("python3", &["--version"]),
        "go": output("go", &["version"]),
        "cc": output("cc", &["--version"]),
        "commit": output("git", &["rev-parse", "--short", "HEAD"]),
        "date": output("date", &["-u", "+%Y-%m-%d"]),
    });
    fs::write(results.join(MACHINE), format!("{machine:#}\n"))?;
    Ok(())
}
