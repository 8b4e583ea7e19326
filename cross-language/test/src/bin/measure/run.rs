//! Runs the measurements.

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use clap::ValueEnum;
use cross_language_test::programs::{LONG as LONG_TIMEOUT, path};
use cross_language_test::provenance;
use cross_language_test::statistics::Statistics;
use rusteron_client::IdleStrategyKind;
use rusteron_test_support::ChildProcess;
use serde_json::{Value, json};

use crate::RunOptions;
use crate::machine;
use crate::plan::{
    COUNTED_MS, Cell, SERVERS, Transport, WARMUP_MS, Work, aeron_caller, aeron_server, cells,
    count, grpc_language, in_process,
};
use crate::processes::{Driver, Watched, run_caller};

/// File of the results: JSON, a line for each run of a caller's program.
const RESULTS: &str = "results.jsonl";
/// File of machine and versions.
pub(crate) const MACHINE: &str = "machine.json";

/// A server that runs, with what its callers need.
enum Endpoint {
    Aeron { server: ChildProcess, channels: Vec<String>, driver: Driver },
    Grpc { server: ChildProcess, address: String, _dir: tempfile::TempDir },
    InProcess,
}

impl Endpoint {
    fn start(transport: Transport, server: &str) -> Result<Self, Box<dyn Error>> {
        if transport == Transport::InProcess {
            return Ok(Self::InProcess);
        }
        if transport.is_grpc() {
            let dir = tempfile::tempdir()?;
            let address = match transport {
                Transport::GrpcUnix => format!("unix:{}", path(&dir.path().join("socket"))),
                // The kernel chooses the port.
                _ => TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string(),
            };
            let (language, options) = grpc_language(server).ok_or("no such server")?;
            let server = language.start_server(&address, options);
            return Ok(Self::Grpc { server, address, _dir: dir });
        }
        let (idle, channels) = match transport {
            Transport::UdpYield => (IdleStrategyKind::Yielding, udp_channels()?),
            _ => (IdleStrategyKind::Backoff, Vec::new()),
        };
        let driver = Driver::start(idle)?;
        let mut options: Vec<&str> = channels.iter().map(String::as_str).collect();
        options.extend(["--idle", transport.idle()]);
        let server = aeron_server(server).ok_or("no such server")?;
        let server = server.start_in(&driver.aeron_dir, &options);
        Ok(Self::Aeron { server, channels, driver })
    }

    fn caller(&self, transport: Transport, cell: &Cell, options: &[&str]) -> Option<Command> {
        match self {
            Self::Aeron { channels, driver, .. } => {
                let channels: Vec<&str> = channels.iter().map(String::as_str).collect();
                let settings = ["--idle", transport.idle(), "--encoding", cell.encoding];
                let options = [options, &settings, &channels[..], LONG_TIMEOUT];
                Some(aeron_caller(cell.caller)?.command_in(&driver.aeron_dir, &options))
            }
            Self::Grpc { address, .. } => {
                let (language, _) = grpc_language(cell.caller)?;
                Some(language.caller(address, &[options, LONG_TIMEOUT]))
            }
            Self::InProcess => {
                Some(in_process(cell.caller)?.command(&[options, &["--encoding", cell.encoding]]))
            }
        }
    }

    /// The processes beside the caller's.
    fn processes(&self) -> Vec<Watched> {
        match self {
            Self::Aeron { server, driver, .. } => vec![
                Watched { name: "server", id: server.id() },
                Watched { name: "driver", id: driver.id() },
            ],
            Self::Grpc { server, .. } => vec![Watched { name: "server", id: server.id() }],
            Self::InProcess => Vec::new(),
        }
    }
}

/// Channels with ports that the kernel chooses.
fn udp_channels() -> Result<Vec<String>, Box<dyn Error>> {
    let sockets = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
    let [requests, responses] = [sockets[0].local_addr()?, sockets[1].local_addr()?];
    Ok(vec![
        "--request-channel".to_owned(),
        format!("aeron:udp?endpoint={requests}"),
        "--response-channel".to_owned(),
        format!("aeron:udp?control={responses}|control-mode=response"),
    ])
}

/// Measures, and appends to the results.
pub(crate) fn run(results: &Path, options: &RunOptions) -> Result<(), Box<dyn Error>> {
    let machine = machine::describe();
    let origin = json!({
        "commit": machine["commit"],
        "versions": machine["versions"],
        "quick": options.quick,
    });
    let mut earlier = read(results)?;
    let last_round = earlier.iter().filter_map(|row| row["round"].as_u64()).max();
    earlier.push(origin.clone());
    provenance::check(&earlier)?;
    fs::write(results.join(MACHINE), format!("{machine:#}\n"))?;

    let first_round = last_round.map_or(1, |last| last + 1);
    let mut file = File::options().create(true).append(true).open(results.join(RESULTS))?;
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
                let mut cells = cells(*transport, server, options.core);
                cells.retain(|cell| {
                    is_chosen(&options.caller, cell.caller)
                        && match cell.work {
                            Work::Calls { payload, .. } => {
                                options.payload.is_empty() || options.payload.contains(&payload)
                            }
                            Work::Connect => options.payload.is_empty(),
                        }
                });
                if cells.is_empty() {
                    continue;
                }
                let begin = Instant::now();
                let mut endpoint = Endpoint::start(*transport, server)?;
                for cell in &cells {
                    let mut row = origin.clone();
                    let key = json!({
                        "round": round,
                        "transport": transport.name(),
                        "server": server,
                        "caller": cell.caller,
                        "encoding": cell.encoding,
                    });
                    match measure(&endpoint, *transport, server, cell, options.quick) {
                        Ok(measured) => {
                            extend(&mut row, key);
                            extend(&mut row, measured);
                            writeln!(file, "{row}")?;
                        }
                        Err(error) => {
                            eprintln!("failed: {key} {:?}: {error}", cell.work);
                            failures += 1;
                            // The server may be the reason.
                            drop(endpoint);
                            endpoint = Endpoint::start(*transport, server)?;
                        }
                    }
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

/// Adds the fields of another object.
fn extend(row: &mut Value, fields: Value) {
    if let (Value::Object(row), Value::Object(fields)) = (row, fields) {
        row.extend(fields);
    }
}

/// Runs a caller's program, and returns its statistics.
fn measure(
    endpoint: &Endpoint,
    transport: Transport,
    server: &str,
    cell: &Cell,
    is_quick: bool,
) -> Result<Value, Box<dyn Error>> {
    let (mut count, mut warmup) = (count(transport, server, cell), WARMUP_MS);
    if is_quick {
        (count, warmup) = ((count / 100).max(5), warmup / 100);
    }
    let mode = match cell.work {
        Work::Calls { payload, callers } => vec![
            ("--measure", payload),
            ("--warmup-ms", warmup),
            ("--calls", count),
            ("--callers", callers),
            ("--counted-ms", COUNTED_MS),
        ],
        Work::Connect => vec![("--connect-cycles", count)],
    };
    let mode: Vec<String> =
        mode.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_string()]).collect();
    let mut options: Vec<&str> = mode.iter().map(String::as_str).collect();
    let samples = tempfile::NamedTempFile::new()?.into_temp_path();
    options.extend(["--samples", path(&samples)]);

    let program = endpoint.caller(transport, cell, &options).ok_or("no such caller")?;
    let arguments: Vec<String> =
        program.get_args().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let output = run_caller(program, endpoint.processes())?;
    let printed: Value = serde_json::from_str(&output.report)?;
    let number = |name: &str| printed[name].as_f64().ok_or_else(|| format!("no {name}"));
    let times: Vec<f64> =
        fs::read_to_string(&samples)?.lines().map(str::parse).collect::<Result<_, _>>()?;
    let (payload, callers) = match cell.work {
        Work::Calls { payload, callers } => (Some(payload), Some(callers)),
        Work::Connect => (None, None),
    };
    let expected = count as usize * callers.unwrap_or(1) as usize;
    if times.len() != expected || number("calls")? != expected as f64 {
        let text = format!("{} samples, {}: not {expected}", times.len(), output.report);
        return Err(text.into());
    }
    let statistics = Statistics::of(times).ok_or("no samples")?;
    let rounded = |time: Option<f64>| time.map(f64::round);
    let mut row = json!({
        "payload": payload,
        "callers": callers,
        "calls": expected,
        "outliers": statistics.outliers,
        "mean_ns": statistics.mean.round(),
        "p50_ns": statistics.median.round(),
        "p95_ns": rounded(statistics.p95),
        "p99_ns": rounded(statistics.p99),
        "max_ns": statistics.max,
        "calls_per_s": (expected as f64 / number("elapsed_ns")? * 1e9).round(),
        "warmup_calls": printed["warmup_calls"],
        "is_steady": printed["is_steady"],
        "allocations_per_call": printed["allocations_per_call"],
        "allocated_bytes_per_call": printed["allocated_bytes_per_call"],
        "options": arguments,
    });
    if matches!(cell.work, Work::Calls { .. }) {
        let resources = output.resources.ok_or("no counted calls")?;
        extend(&mut row, resources.fields(number("counted_ns")? / number("counted_calls")?));
    }
    Ok(row)
}

/// Reads the results.
pub(crate) fn read(results: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let path = results.join(RESULTS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    Ok(fs::read_to_string(path)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}
