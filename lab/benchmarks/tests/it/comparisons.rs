//! Each benchmark once, shortly.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusteron_benchmarks::reports::results::Row;
use rusteron_test_support::networks::Network;
use rusteron_test_support::{
    Running, archiving_media_driver_beside, await_that, has_java, media_driver_beside, skip,
};

use crate::{benchmark, highest, measure, names, short};

/// A benchmark with its arguments, whether it needs Java, its rows and its measures.
struct Expected {
    arguments: &'static [&'static str],
    needs_java: bool,
    rows: &'static [&'static str],
    measures: &'static [&'static str],
}

const PERCENTILES: &[&str] = &["p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "max µs"];

/// The time measured, at first and then: within a short one, a thread may not run at all on a busy machine.
const TIMES: [&str; 3] = ["--measure=200ms", "--measure=1s", "--measure=5s"];

/// One benchmark at a time: each keeps several processors busy.
static ALONE: Mutex<()> = Mutex::new(());

impl Expected {
    #[track_caller]
    fn assert(self) {
        let Self { arguments, needs_java, rows, measures } = self;
        if needs_java && !has_java() {
            eprintln!("not tested: {arguments:?} needs Java");
            return;
        }
        media_driver_beside(env!("CARGO_BIN_EXE_benchmark"));
        if ["archives", "cluster-nodes"].contains(&arguments[0]) {
            archiving_media_driver_beside(env!("CARGO_BIN_EXE_benchmark"));
        }
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut times = TIMES.iter();
        let finished = loop {
            let measured = times.next().expect("a measure is 0 however long it is measured");
            let (finished, results) = measure(benchmark(&short("1", measured, arguments)));
            assert_eq!(names(&results), rows, "{finished:#?}");
            let is_measured =
                |row: &Row| measures.iter().all(|measure| highest(row, measure) > 0.0);
            match results.rows.iter().find(|row| !is_measured(row)) {
                Some(row) => eprintln!("again, since nothing was measured: {row:#?}"),
                None => break finished,
            }
        };
        assert!(finished.stdout.contains("\nResults: "), "{finished:#?}");
    }
}

/// A test for each benchmark.
macro_rules! benchmarks {
    ($($name:ident { $($fields:tt)* })*) => {$(
        #[cfg(target_os = "linux")]
        #[test]
        fn $name() {
            Expected { $($fields)* }.assert();
        }
    )*};
}

benchmarks! {
    ipc_throughput {
        arguments: &[
            "ipc-throughput",
            "--contenders=rust,rust-batches,c-functions,c-program",
            "--message-lengths=32,4096",
            "--publishers=2",
            "--term-lengths=1m",
            "--idle=backoff",
        ],
        needs_java: false,
        rows: &[
            "exclusive, 32 B, terms of 1m: Rust",
            "exclusive, 32 B, terms of 1m: Rust batches",
            "exclusive, 32 B, terms of 1m: C functions",
            "exclusive, 32 B, terms of 1m: C program",
            "exclusive, 4096 B, terms of 1m: Rust",
            "exclusive, 4096 B, terms of 1m: Rust batches",
            "exclusive, 4096 B, terms of 1m: C functions",
            "exclusive, 4096 B, terms of 1m: C program",
            "2 concurrent, 32 B, terms of 1m: Rust",
            "2 concurrent, 32 B, terms of 1m: Rust batches",
            "2 concurrent, 32 B, terms of 1m: C functions",
            "2 concurrent, 32 B, terms of 1m: C program",
        ],
        measures: &["msgs/s"],
    }
    ipc_throughput_of_java {
        arguments: &[
            "ipc-throughput",
            "--contenders=java",
            "--message-lengths=32",
            "--publishers=2",
        ],
        needs_java: true,
        rows: &["exclusive, 32 B: Java", "2 concurrent, 32 B: Java"],
        measures: &["msgs/s"],
    }
    ipc_latency {
        arguments: &[
            "ipc-latency",
            "--contenders=rust,c-functions",
            "--modes=closed,paced",
            "--transports=ipc,udp",
            "--rate=1000",
            "--idle=backoff",
        ],
        needs_java: false,
        rows: &[
            "IPC, backoff: Rust",
            "IPC, backoff: C functions",
            "IPC, paced, backoff: Rust",
            "IPC, paced, backoff: C functions",
            "UDP, backoff: Rust",
            "UDP, backoff: C functions",
            "UDP, paced, backoff: Rust",
            "UDP, paced, backoff: C functions",
        ],
        measures: PERCENTILES,
    }
    idling {
        arguments: &["idling", "--strategies=backoff,awake-share,short-slack", "--rates=1000"],
        needs_java: false,
        rows: &[
            "1000 msgs/s: backoff",
            "1000 msgs/s: sleeps of 50 µs, awake 500 µs, 20 %",
            "1000 msgs/s: sleeps of 50 µs, slack 1 ns",
        ],
        measures: &["CPU %", "p50 µs", "p99 µs"],
    }
    idling_without_messages {
        arguments: &["idling", "--strategies=short", "--rates=0"],
        needs_java: false,
        rows: &["0 msgs/s: sleeps of 50 µs"],
        measures: &["CPU %"],
    }
    ipc_latency_of_java {
        arguments: &["ipc-latency", "--contenders=java", "--idle=backoff"],
        needs_java: true,
        rows: &["IPC, backoff: Java"],
        measures: PERCENTILES,
    }
    udp_round_trips {
        arguments: &["udp-round-trips", "--contenders=rust,c,sockets", "--networks=loopback"],
        needs_java: false,
        rows: &["loopback: Rust", "loopback: C", "loopback: Sockets"],
        measures: PERCENTILES,
    }
    udp_round_trips_of_java {
        arguments: &["udp-round-trips", "--contenders=java", "--networks=loopback"],
        needs_java: true,
        rows: &["loopback: Java"],
        measures: PERCENTILES,
    }
    udp_throughput {
        arguments: &[
            "udp-throughput",
            "--contenders=rust,c",
            "--networks=loopback",
            "--message-lengths=32,mix",
            "--term-length=64k",
            "--idle=backoff",
        ],
        needs_java: false,
        rows: &[
            "loopback, shared, default, 32 B: Rust",
            "loopback, shared, default, 32 B: C",
            "loopback, shared, default, mix: Rust",
            "loopback, shared, default, mix: C",
            "loopback, shared, throughput, 32 B: Rust",
            "loopback, shared, throughput, 32 B: C",
            "loopback, shared, throughput, mix: Rust",
            "loopback, shared, throughput, mix: C",
        ],
        measures: &["msgs/s", "MB/s"],
    }
    drivers {
        arguments: &[
            "drivers",
            "--contenders=rust,c",
            "--applications=c-stream,c-ping",
            "--transports=udp",
            "--term-length=64k",
            "--round-trips=100",
            "--nice=0",
        ],
        needs_java: false,
        rows: &["c-stream, UDP: Rust", "c-stream, UDP: C", "c-ping, UDP: Rust", "c-ping, UDP: C"],
        measures: &["resident MiB", "private MiB"],
    }
    drivers_with_java {
        arguments: &[
            "drivers",
            "--contenders=java",
            "--applications=java-ping",
            "--transports=udp",
            "--term-length=64k",
            "--round-trips=100",
            "--nice=0",
        ],
        needs_java: true,
        rows: &["java-ping, UDP: Java"],
        measures: &["p50 µs", "p99 µs", "private MiB"],
    }
    driver_resources {
        arguments: &[
            "driver-resources",
            "--contenders=rust",
            "--settings=shared/backoff,dedicated/sleep-ns",
            "--rate=100",
            "--term-length=64k",
            "--idle=backoff",
        ],
        needs_java: false,
        rows: &["shared/backoff: Rust", "dedicated/sleep-ns: Rust"],
        measures: &[
            "idle private MiB",
            "threads",
            "paced p50 µs",
            "full msgs/s",
            "start-up ms",
            "shutdown ms",
        ],
    }
    archives {
        arguments: &[
            "archives",
            "--contenders=rust",
            "--parts=rates",
            "--message-lengths=64",
            "--recordings=1,3",
            "--recording-length=480000",
        ],
        needs_java: false,
        rows: &["unsynced, 64 B, recordings: 1: Rust", "unsynced, 64 B, recordings: 3: Rust"],
        measures: &["recorded msgs/s", "replayed msgs/s"],
    }
    archives_latency {
        arguments: &[
            "archives",
            "--contenders=rust",
            "--parts=latency",
            "--message-lengths=64",
            "--cores=apart",
        ],
        needs_java: false,
        rows: &["latency, 64 B: Rust"],
        measures: &["p50 µs", "p99 µs"],
    }
    archives_synced {
        arguments: &[
            "archives",
            "--contenders=rust",
            "--parts=synced",
            "--message-lengths=64",
            "--synced-length=48000",
        ],
        needs_java: false,
        rows: &["synced, 64 B, recordings: 5: Rust"],
        measures: &["recorded msgs/s", "one by one msgs/s"],
    }
    archives_replicated {
        arguments: &[
            "archives",
            "--contenders=rust",
            "--parts=replicated",
            "--message-lengths=64",
            "--recording-length=480000",
        ],
        needs_java: false,
        rows: &["replicated, 64 B: Rust"],
        measures: &["copied msgs/s"],
    }
    archives_start {
        arguments: &["archives", "--contenders=rust", "--parts=start"],
        needs_java: false,
        rows: &["start: Rust"],
        measures: &[
            "first recording ms",
            "private MiB",
            "first messages p50 µs",
            "after 1 M p50 µs",
        ],
    }
    recording {
        arguments: &[
            "recording",
            "--recording-length=480000",
            "--message-lengths=64",
            "--recordings=3",
        ],
        needs_java: true,
        rows: &["64 B: Rust", "64 B: Java"],
        measures: &["recorded msgs/s", "replayed msgs/s"],
    }
    cluster_nodes {
        arguments: &["cluster-nodes", "--contenders=rust", "--members=1"],
        needs_java: true,
        rows: &["members: 1: Rust"],
        measures: &["first answer ms", "private MiB a member", "members a GiB", "JVM MiB"],
    }
    cluster {
        arguments: &[
            "cluster",
            "--windows=16",
            "--transports=udp",
            "--idle=backoff",
            "--node-idle=backoff",
        ],
        needs_java: true,
        rows: &[
            "UDP, window 16: Rust client",
            "UDP, window 16: Java client",
            "UDP, window 16: Rust service",
            "UDP, window 16: Java service",
        ],
        measures: &["answers/s", "p50 µs", "p99 µs"],
    }
    calls {
        arguments: &["calls"],
        needs_java: false,
        rows: &[
            "offer: Rust",
            "offer: C",
            "claim: Rust",
            "claim: C",
            "offer_batch: Rust",
            "shared_offer: Rust",
            "shared_offer: C",
            "shared_claim: Rust",
            "shared_claim: C",
            "shared_offer_batch: Rust",
            "poll_fragments: Rust",
            "poll_fragments: C",
            "poll: Rust",
            "poll: C",
            "controlled_poll: Rust",
            "controlled_poll: C",
            "poll_batch: Rust",
        ],
        measures: &["ns"],
    }
}

#[test]
fn contenders_take_turns() {
    let arguments = short(
        "2",
        TIMES[0],
        &[
            "ipc-throughput",
            "--contenders=rust,c-program",
            "--publications=exclusive",
            "--message-lengths=32",
            "--idle=backoff",
        ],
    );
    let (finished, _) = measure(benchmark(&arguments));
    let runs = finished.stdout.lines().filter_map(|line| line.strip_prefix("Run "));
    let runs: Vec<_> = runs.filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    let of = |round, contender| format!("{round}, exclusive, 32 B, {contender}");
    assert_eq!(runs, [of(1, "Rust"), of(1, "C program"), of(2, "C program"), of(2, "Rust")]);
}

#[test]
fn missing_java_is_skipped_with_reason() {
    let narrow = short(
        "1",
        TIMES[0],
        &[
            "ipc-throughput",
            "--contenders=rust,java",
            "--publications=exclusive",
            "--message-lengths=32",
            "--idle=backoff",
        ],
    );
    let mut command = benchmark(&narrow);
    command.env("JAVA_HOME", "/no/such/directory");
    let (finished, results) = measure(command);
    assert!(
        finished.stderr.starts_with("warning: the contenders in Java are skipped: "),
        "{finished:#?}"
    );
    assert_eq!(names(&results), ["exclusive, 32 B: Rust"]);

    let dir = tempfile::tempdir().expect("a directory");
    let mut command = benchmark(&["recording", "--results"]);
    command.arg(dir.path()).env("JAVA_HOME", "/no/such/directory");
    let finished = rusteron_test_support::run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("this benchmark needs Java"), "{finished:#?}");
}

/// The processes whose command lines name a text.
#[cfg(target_os = "linux")]
fn processes_with(text: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(text)).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn signal_ends_benchmark_and_driver() {
    media_driver_beside(env!("CARGO_BIN_EXE_benchmark"));
    let dir = tempfile::tempdir().expect("a directory");
    let mut command = benchmark(&[
        "driver-resources",
        "--contenders=rust",
        "--settings=shared/backoff",
        "--runs=1000",
        "--measure=200ms",
        "--rate=100",
        "--term-length=64k",
        "--idle=backoff",
        "--results",
    ]);
    command.arg(dir.path());
    let mut running = Running::start(command);
    running.await_line("Run 1, shared/backoff, Rust");
    let prefix = format!("/rusteron-{}-driver-", running.id());
    running.signal("INT");
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
    assert!(processes_with(&prefix).is_empty(), "{:?}", processes_with(&prefix));
    assert!(dir.path().join("driver-resources.json").is_file());
}

/// The parent and the network of each process that is in another network than this one.
#[cfg(target_os = "linux")]
fn networks_of_processes() -> impl Iterator<Item = (u32, PathBuf)> {
    let network = |process: &Path| std::fs::read_link(process.join("ns/net")).ok();
    let own = network(Path::new("/proc/self"));
    let processes = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    processes.filter_map(move |process| {
        let network = network(&process.path()).filter(|it| Some(it) != own.as_ref())?;
        let status = std::fs::read_to_string(process.path().join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        Some((parent.trim().parse().ok()?, network))
    })
}

#[cfg(target_os = "linux")]
#[test]
fn namespaces_are_removed_and_need_ip() {
    let mut command = benchmark(&["udp-round-trips", "--networks=namespaces"]);
    command.env("PATH", "/no/such/directory");
    let finished = rusteron_test_support::run(command);
    finished.assert_exit_code(2);
    assert!(finished.stderr.contains("needs root and the program ip"), "{finished:#?}");

    if let Err(reason) = Network::pair() {
        skip("RUSTERON_REQUIRE_MOUNT", &format!("there cannot be other networks: {reason}"));
        return;
    }
    let arguments = ["udp-round-trips", "--contenders=rust,sockets", "--networks=namespaces"];
    let (_, results) = measure(benchmark(&short("1", TIMES[0], &arguments)));
    assert_eq!(names(&results), ["namespaces: Rust", "namespaces: Sockets"]);
    let mut command = benchmark(&[
        "udp-round-trips",
        "--contenders=rust",
        "--networks=namespaces",
        "--runs=1000",
        "--measure=100ms",
        "--warmup=0s",
        "--results",
    ]);
    let dir = tempfile::tempdir().expect("a directory");
    command.arg(dir.path());
    let mut running = Running::start(command);
    running.await_line("Run 1, namespaces, Rust");
    let parent = running.id();
    let networks: HashSet<_> =
        networks_of_processes().filter(|(it, _)| *it == parent).map(|it| it.1).collect();
    assert_eq!(networks.len(), 2, "{networks:?}");
    running.signal("INT");
    running.finish().assert_exit_code(0);
    await_that("the end of the networks", || {
        !networks_of_processes().any(|(_, network)| networks.contains(&network))
    });
}
