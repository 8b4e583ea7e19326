//! Measures calls of the cross-language service over Aeron, over gRPC and in one process, in turn.
//!
//! The results are a file, of which `just benchmark render` makes the tables of the documentation.

mod plan;
mod processes;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clap::Parser;
use cross_language_test::programs::project;
use rusteron_benchmarks::reports::host;
use rusteron_benchmarks::reports::results::{Results, Row, Values};
use rusteron_client::IdleStrategyKind;

use plan::{Cell, TRANSPORTS, Transport, Work, cells};
use processes::{Endpoint, run_caller};

const NAME: &str = "cross-language";

/// Measures the cross-language service
#[derive(Debug, Parser)]
#[command(name = "measure")]
struct Options {
    /// Rounds in which the transports take turns
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: u32,

    /// A hundredth of the calls, for a look
    #[arg(long)]
    quick: bool,

    /// Measure the cases whose name has this text, such as "ping" or "Java → Rust"
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Add the runs to those of the results file, so that rounds need not follow each other
    #[arg(long)]
    add: bool,

    /// File of the results
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,

    /// Run a media driver that waits so, until standard input ends
    #[arg(long, value_name = "IDLE", hide = true)]
    driver: Option<IdleStrategyKind>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if let Some(idle) = options.driver {
        return processes::drive(idle);
    }
    let default = project().join("../../docs/benchmarks/results").join(NAME).with_extension("json");
    let path = options.results.clone().unwrap_or(default);
    let mut rows = match options.add {
        true => Results::read(&path).map_err(|error| error.to_string())?.rows,
        false => Vec::new(),
    };
    let mut values = rows.iter().flat_map(|row| row.measures.values());
    if values.any(|values| matches!(values, Values::Summary { .. })) {
        return Err(format!("{}: has medians, to which no run can be added", path.display()).into());
    }
    let failures = measure(&options, &mut rows)?;
    let results = Results {
        benchmark: NAME.to_owned(),
        command: "just benchmark-cross-language".to_owned(),
        date: host::today(),
        machine: host::machine(),
        versions: versions(),
        rows,
    };
    fs::write(&path, results.to_json())?;
    println!("{}", path.display());
    if failures > 0 {
        return Err(format!("{failures} runs failed").into());
    }
    Ok(())
}

/// Runs all rounds, and adds them to rows. Returns the number of runs that failed.
fn measure(options: &Options, rows: &mut Vec<Row>) -> Result<u32, Box<dyn Error>> {
    let mut failures = 0;
    for round in 1..=options.rounds {
        for transport in TRANSPORTS {
            for &server in transport.servers() {
                let mut cells = cells(transport, server);
                cells.retain(|cell| cell.case().contains(&options.only));
                let mut endpoint = None;
                for cell in cells {
                    let case = cell.case();
                    eprintln!("round {round}: {case}: {}", transport.name());
                    let running = match endpoint.take() {
                        Some(running) => running,
                        None => Endpoint::start(transport, server)?,
                    };
                    match run(&running, transport, &cell, options.quick) {
                        Ok(values) => {
                            add(rows, case, transport.name(), values);
                            endpoint = Some(running);
                        }
                        // The server may be the reason, and starts anew.
                        Err(error) => {
                            eprintln!("failed: {error}");
                            failures += 1;
                        }
                    }
                }
            }
        }
    }
    // One table's cases stand together.
    rows.sort_by_key(|row| plan::order(&row.case));
    Ok(failures)
}

fn add(rows: &mut Vec<Row>, case: String, contender: &str, values: Vec<(String, f64)>) {
    let found = rows.iter().position(|row| row.case == case && row.contender == contender);
    let index = found.unwrap_or_else(|| {
        let contender = contender.to_owned();
        rows.push(Row { case, contender, measures: BTreeMap::new() });
        rows.len() - 1
    });
    for (name, value) in values {
        let runs = rows[index].measures.entry(name).or_insert(Values::Runs(Vec::new()));
        if let Values::Runs(runs) = runs {
            runs.push(value);
        }
    }
}

/// Runs a caller's program. Returns its measures.
fn run(
    endpoint: &Endpoint,
    transport: Transport,
    cell: &Cell,
    is_quick: bool,
) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let scale = if is_quick { 100 } else { 1 };
    let count = (cell.count(transport) / scale).max(5);
    let mode = match cell.work {
        Work::Calls { payload, callers } => format!(
            "--measure {payload} --calls {count} --callers {callers} --warmup-ms {}",
            cell.warmup_ms(transport) / scale
        ),
        Work::Connect => format!("--connect-cycles {count}"),
    };
    let words: Vec<&str> = mode.split(' ').collect();
    let output =
        run_caller(endpoint.caller(transport, cell.caller, &words), &endpoint.processes())?;
    let (elapsed, times) = output.times.split_first().ok_or("no time")?;
    let mut times = times.to_vec();
    let expected = count as usize * cell.work.callers() as usize;
    if times.len() != expected {
        return Err(format!("{} samples, not {expected}", times.len()).into());
    }
    times.sort_unstable_by(f64::total_cmp);
    let quantile = |share: f64| times[(share * (times.len() - 1) as f64).round() as usize] / 1e3;
    let mut values = vec![
        ("p50 µs".to_owned(), quantile(0.5)),
        ("p99 µs".to_owned(), quantile(0.99)),
        ("calls/s".to_owned(), (expected as f64 / elapsed * 1e9).round()),
    ];
    for (process, busy, mebibytes) in output.resources {
        values.push((format!("{process} CPU µs"), busy.as_secs_f64() * 1e6 / expected as f64));
        values.push((format!("{process} MiB"), mebibytes));
    }
    Ok(values.into_iter().map(|(name, value)| (name, rounded(value))).collect())
}

/// Four significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// Versions of Aeron, compilers and runtimes, and of the libraries of gRPC as their lock files say.
fn versions() -> String {
    let output = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8([output.stdout, output.stderr].concat()).ok()?;
        text.lines().find(|line| !line.starts_with("Picked up")).map(str::to_owned)
    };
    let java = std::env::var("JAVA_HOME").map_or(String::new(), |home| home + "/bin/") + "java";
    let programs = [
        output(&java, &["-version"]),
        output("python3", &["--version"]),
        output("go", &["version"]),
        output("cc", &["--version"]),
    ];
    let locked = |file: &str, before: &str, behind: &str| {
        let text = fs::read_to_string(project().join(file)).ok()?;
        let (_, rest) = text.split_once(before)?;
        Some(rest.split_once(behind)?.0.to_owned())
    };
    let libraries = [
        ("tonic", locked("Cargo.lock", "name = \"tonic\"\nversion = \"", "\"")),
        ("grpc-java", locked("grpc/java/pom.xml", "<grpc.version>", "<")),
        ("grpcio", locked("grpc/python/requirements.txt", "grpcio==", "\n")),
        ("grpc-go", locked("grpc/go/go.mod", "google.golang.org/grpc v", "\n")),
        ("Aeron for Java", locked("java/pom.xml", "<aeron.version>", "<")),
    ];
    let libraries = libraries.map(|(name, version)| version.map(|it| format!("{name} {it}")));
    let all = std::iter::once(Some(host::versions_in_words())).chain(programs).chain(libraries);
    all.flatten().collect::<Vec<_>>().join(", ")
}
