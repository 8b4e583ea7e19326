//! Each benchmark once, shortly.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusteron_benchmarks::reports::results::Row;
use rusteron_test_support::networks::Network;
use rusteron_test_support::{
    Running, archiving_media_driver_beside, await_that, has_java, media_driver_beside, skip,
};

use crate::{benchmark, measure, names, short};

const PERCENTILES: &str = "p50 µs, p90 µs, p99 µs, p99.9 µs, max µs";

/// One benchmark at a time: each keeps several processors busy.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a benchmark. `rows` has cases, separated by semicolons, with their contenders, separated by
/// bars; in all of them, each of the measures is greater than 0. Without Java, rows that name it
/// are not expected.
#[track_caller]
fn assert_rows(arguments: &str, rows: &[(&str, &str)], measures: &str) {
    let mut expected = Vec::new();
    for (cases, contenders) in rows {
        for case in cases.split("; ") {
            expected
                .extend(contenders.split(" | ").map(|contender| format!("{case}: {contender}")));
        }
    }
    let needs_java = ["recording ", "cluster"].iter().any(|it| arguments.starts_with(it));
    let is_java = |row: &String| row.to_lowercase().contains("java");
    if (needs_java || expected.iter().any(is_java)) && !has_java() {
        if needs_java {
            return;
        }
        expected.retain(|row| !is_java(row));
    }
    media_driver_beside(env!("CARGO_BIN_EXE_benchmark"));
    if ["archives", "cluster-nodes"].iter().any(|name| arguments.starts_with(name)) {
        archiving_media_driver_beside(env!("CARGO_BIN_EXE_benchmark"));
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_measured = |row: &Row| {
        measures.split(", ").all(|measure| {
            let values = row.measures.get(measure).and_then(|values| values.summary());
            values.unwrap_or_else(|| panic!("no {measure} in {row:#?}"))[2] > 0.0
        })
    };
    // Within a short time, a thread may not run at all on a busy machine.
    for time in ["200ms", "1s", "5s"] {
        let mut command = short(arguments, time);
        command.args(["--runs", "1"]);
        let (finished, results) = measure(command);
        assert_eq!(names(&results), expected, "{finished:#?}");
        assert!(finished.stdout.contains("\nResults: "), "{finished:#?}");
        if results.rows.iter().all(is_measured) {
            return;
        }
    }
    panic!("a measure of {arguments} is 0 however long it is measured");
}

/// A test for each benchmark: its arguments, rows and measures.
macro_rules! benchmarks {
    ($($name:ident: $arguments:literal, [$($rows:expr),+], $measures:expr;)+) => {$(
        #[cfg(target_os = "linux")]
        #[test]
        fn $name() {
            assert_rows($arguments, &[$($rows),+], $measures);
        }
    )+};
}

benchmarks! {
    ipc_throughput:
        "ipc-throughput --contenders rust,rust-batches,c-functions,c-program,java \
         --message-lengths 32,4096 --term-lengths 1m --idle backoff",
        [
            (
                "exclusive, 32 B, terms of 1m; exclusive, 4096 B, terms of 1m",
                "Rust | Rust batches | C functions | C program | Java"
            ),
            (
                "2 concurrent, 32 B, terms of 1m; 4 concurrent, 32 B, terms of 1m",
                "Rust | Rust batches | C functions | Java"
            )
        ],
        "msgs/s";
    ipc_latency:
        "ipc-latency --idle backoff",
        [("IPC, backoff", "Rust | C functions | Java")],
        PERCENTILES;
    idling:
        "idling --strategies backoff,awake-share,short-slack --rates 1000",
        [(
            "1000 msgs/s",
            "backoff | sleeps of 50 µs, awake 500 µs, 20 % | sleeps of 50 µs, slack 1 ns"
        )],
        "CPU %, p50 µs, p99 µs";
    idling_without_messages:
        "idling --strategies short --rates 0",
        [("0 msgs/s", "sleeps of 50 µs")],
        "CPU %";
    udp_round_trips:
        "udp-round-trips --networks loopback",
        [("loopback", "Rust | C | Java | Sockets")],
        PERCENTILES;
    udp_throughput:
        "udp-throughput --networks loopback --message-lengths 32,mix",
        [(
            "loopback, shared, default, 32 B; loopback, shared, default, mix; \
             loopback, shared, throughput, 32 B; loopback, shared, throughput, mix",
            "Rust | C | Java"
        )],
        "msgs/s";
    drivers_streams:
        "drivers --applications c-stream --transports udp --niceness 0",
        [("c-stream, UDP", "Rust | C | Java")],
        "msgs/s, resident MiB, private MiB";
    drivers_pings:
        "drivers --applications java-ping,c-ping --transports udp --round-trips 100 --niceness 0",
        [("java-ping, UDP; c-ping, UDP", "Rust | C | Java")],
        "p50 µs, p99 µs, resident MiB, private MiB";
    driver_resources:
        "driver-resources --settings shared/backoff",
        [("shared/backoff", "Rust | Java")],
        "idle private MiB, full resident MiB, threads, paced p50 µs, full msgs/s, \
         start-up ms, shutdown ms";
    archives_rates:
        "archives --contenders rust --parts rates --message-lengths 64 --recordings 1,3 \
         --recording-length 480000",
        [("unsynced, 64 B, recordings: 1; unsynced, 64 B, recordings: 3", "Rust")],
        "recorded msgs/s, replayed msgs/s";
    archives_latency:
        "archives --contenders rust --parts latency --message-lengths 64 --cores apart",
        [("latency, 64 B", "Rust")],
        "p50 µs, p99 µs";
    archives_synced:
        "archives --contenders rust --parts synced --message-lengths 64 --recording-length 768000",
        [("synced, 64 B, recordings: 5", "Rust")],
        "recorded msgs/s, one by one msgs/s";
    archives_replicated:
        "archives --parts replicated --message-lengths 64 --recording-length 480000 \
         --contenders rust,java",
        [("replicated, 64 B", "Rust | Java")],
        "copied msgs/s";
    archives_start:
        "archives --contenders rust --parts start",
        [("start", "Rust")],
        "first recording ms, private MiB, first messages p50 µs, after 1 M p50 µs";
    recording:
        "recording --recording-length 480000 --message-lengths 64",
        [("64 B", "Rust | Java")],
        "recorded msgs/s, replayed msgs/s";
    cluster_nodes:
        "cluster-nodes --contenders rust --members 1",
        [("members: 1", "Rust")],
        "first answer ms, private MiB a member, members a GiB, JVM MiB";
    cluster:
        "cluster --windows 16 --transports udp",
        [("UDP, window 16", "Rust client | Java client | Rust service | Java service")],
        "answers/s, p50 µs, p99 µs";
    calls:
        "calls",
        [
            ("offer; claim", "Rust | C"),
            ("offer_batch", "Rust"),
            ("shared_offer; shared_claim", "Rust | C"),
            ("shared_offer_batch", "Rust"),
            ("poll_fragments; poll; controlled_poll", "Rust | C"),
            ("poll_batch", "Rust")
        ],
        "ns";
}

#[test]
fn contenders_take_turns() {
    // Values that are named twice count once.
    let arguments = "ipc-throughput --contenders rust,c-program,rust --publications exclusive \
                     --message-lengths 32,32 --term-lengths 64m,64m --idle backoff,backoff \
                     --runs 2";
    let (finished, _) = measure(short(arguments, "200ms"));
    let runs = finished.stdout.lines().filter_map(|line| line.strip_prefix("Run "));
    let runs: Vec<_> = runs.filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    let of = |round, contender| format!("{round}, exclusive, 32 B, {contender}");
    assert_eq!(runs, [of(1, "Rust"), of(1, "C program"), of(2, "C program"), of(2, "Rust")]);
}

#[test]
fn missing_java_is_skipped_with_reason() {
    let without_java = |arguments: &str| {
        let mut command = short(arguments, "200ms");
        command.env("JAVA_HOME", "/no/such/directory");
        command
    };
    let arguments = "ipc-throughput --contenders rust,java --publications exclusive \
                     --message-lengths 32 --idle backoff --runs 1";
    let (finished, results) = measure(without_java(arguments));
    let warning = "warning: the contenders in Java are skipped: ";
    assert!(finished.stderr.starts_with(warning), "{finished:#?}");
    assert_eq!(names(&results), ["exclusive, 32 B: Rust"]);
    assert_eq!(finished.stderr.matches("warning: ").count(), 1, "{finished:#?}");

    let dir = tempfile::tempdir().expect("a directory");
    let mut command = without_java("recording --contenders rust,java");
    command.arg("--results").arg(dir.path());
    let finished = rusteron_test_support::run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("this benchmark needs Java: "), "{finished:#?}");
    assert!(!finished.stderr.contains("warning: "), "{finished:#?}");
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
        "--results",
    ]);
    command.arg(dir.path());
    let mut running = Running::start(command);
    running.await_line("Run 1, shared/backoff, Rust");
    let prefix = format!("/rusteron-benchmark-{}-", running.id());
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
fn namespaces_need_ip_and_are_removed() {
    let mut command = benchmark(&["udp-round-trips", "--networks=namespaces"]);
    command.env("PATH", "/no/such/directory");
    let finished = rusteron_test_support::run(command);
    finished.assert_exit_code(2);
    assert!(finished.stderr.contains("needs root and the program ip"), "{finished:#?}");

    if let Err(reason) = Network::pair() {
        skip("RUSTERON_REQUIRE_MOUNT", &format!("there cannot be other networks: {reason}"));
        return;
    }
    assert_rows(
        "udp-round-trips --contenders rust,sockets --networks namespaces",
        &[("namespaces", "Rust | Sockets")],
        PERCENTILES,
    );
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
