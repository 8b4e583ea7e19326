//! The program `benchmark_udp_throughput`.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::child::{
    QUIET, Results, Running, SHORT, announced, has_java, list, number, udp_throughput,
};

/// One condition of each kind, and terms that cost little.
const LITTLE: [&str; 8] = [
    "--networks",
    "loopback",
    "--threading",
    "shared",
    "--buffers",
    "default",
    "--term-length",
    "64k",
];

/// Asserts that a cell has all figures of its runs.
#[track_caller]
fn assert_figures(cell: &Value, runs: usize) {
    assert_eq!(list(cell, "/runs").len(), runs, "{cell:#}");
    for run in list(cell, "/runs") {
        assert!(!list(run, "/messages_per_second").is_empty(), "{run:#}");
        for name in ["naks", "retransmissions", "gap_bytes", "overruns"] {
            assert!(number(run, &format!("/{name}")) >= 0.0, "{run:#}");
        }
    }
    // On a busy machine, a driver may get no processor time for the 200 ms of one run.
    let has_messages = |run| number(run, "/bytes_per_second") > 0.0;
    assert!(list(cell, "/runs").iter().any(has_messages), "{cell:#}");
}

/// Returns whether network namespaces can be made: as root, with iproute2.
pub(crate) fn has_namespaces() -> bool {
    let name = format!("rusteron-test-{}", std::process::id());
    let ip = |action: &str| {
        let mut command = Command::new("ip");
        command.args(["netns", action, &name]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    ip("add") && ip("delete")
}

/// The namespaces of a process of the benchmark.
fn namespaces_of(pid: u32) -> Vec<String> {
    let output = Command::new("ip").args(["netns", "list"]).output().expect("ip");
    let text = String::from_utf8(output.stdout).expect("a text");
    let prefix = format!("rusteron-{pid}-");
    text.lines().filter(|line| line.starts_with(&prefix)).map(str::to_owned).collect()
}

#[test]
fn udp_offload_and_c_take_turns() {
    let arguments = ["--contenders", "rust,c", "--buffers", "default,throughput"];
    let arguments = LITTLE[..4].iter().chain(&arguments).chain(&["--lengths", "32,mix"]);
    let arguments = SHORT.iter().chain(&QUIET).chain(arguments);
    let results = Results::with(udp_throughput(arguments));
    let mut runs = Vec::new();
    for (round, turns) in [("1", ["rust", "c"]), ("2", ["c", "rust"])] {
        for buffers in ["default", "throughput"] {
            for contender in turns {
                runs.extend(["32 B", "mix"].map(|length| {
                    format!("{round}, loopback, shared, {buffers} buffers, {length}, {contender}")
                }));
            }
        }
    }
    assert_eq!(announced(&results.finished, "Run "), runs, "{results:#?}");

    let report = results.report("udp-throughput.json");
    let cells = list(&report, "/cells");
    assert_eq!(cells.len(), 8);
    cells.iter().for_each(|cell| assert_figures(cell, 2));
    if results.finished.stderr.is_empty() {
        // perf can count. Without offload a call sends four datagrams at most.
        let of_c = cells.iter().filter(|cell| cell["contender"] == "c");
        let of_c = of_c.filter(|cell| cell["buffers"] == "default");
        for run in of_c.flat_map(|cell| list(cell, "/runs")) {
            let per_send = run["datagrams_per_send"].as_f64();
            assert!(per_send.is_none_or(|count| (0.9..=4.1).contains(&count)), "{run:#}");
        }
    }
    assert_eq!(cells[3]["message_length"], "mix");
    assert_eq!(list(&report, "/presets_to_defaults").len(), 2);
    let text = "rust with throughput buffers, compared with others with default buffers";
    assert!(results.finished.stdout.contains(text), "{results:#?}");
    let series = ["rust, default", "c, throughput", "32 B", "mix"];
    results.assert_chart("udp-throughput-loopback-shared.svg", &series);
}

#[test]
fn udp_java_driver_is_measured() {
    if !has_java() {
        eprintln!("nothing tested: no Java, or its artifacts have not been fetched yet (java/run)");
        return;
    }
    let arguments = ["--contenders", "c,java", "--lengths", "288", "--java-warmup", "100ms"];
    let arguments = SHORT.iter().chain(&QUIET).chain(&LITTLE).chain(&arguments);
    let report = Results::with(udp_throughput(arguments)).report("udp-throughput.json");
    let cells = list(&report, "/cells");
    assert_eq!(cells[1]["contender"], "java");
    cells.iter().for_each(|cell| assert_figures(cell, 2));
}

#[test]
fn udp_namespaces_are_used_and_removed() {
    if !has_namespaces() {
        eprintln!("nothing tested: no network namespaces, which need root and iproute2");
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let arguments = ["--contenders", "rust", "--networks", "namespaces", "--runs", "1000"];
    let arguments = SHORT[2..].iter().chain(&QUIET).chain(&LITTLE[2..]).chain(&arguments);
    let mut command = udp_throughput(arguments);
    command.args(["--lengths", "1344", "--results"]).arg(dir.path());
    let mut running = Running::start(command);
    running.await_line("Run 1, namespaces, shared, default buffers, 1344 B, rust");
    let pid = running.id();
    assert_eq!(namespaces_of(pid).len(), 2);
    running.signal("INT");
    let finished = running.finish();
    finished.assert_exit_code(0);
    assert_eq!(namespaces_of(pid), [""; 0], "{finished:#?}");
    assert!(dir.path().join("udp-throughput.json").is_file());
}

#[test]
fn namespaces_without_ip_are_refused() {
    let mut command = udp_throughput(["--networks", "namespaces"]);
    command.env("PATH", "/no/such/directory");
    let finished = rusteron_test_support::run(command);
    finished.assert_exit_code(2);
    for text in ["--networks", "namespaces", "needs root and the program ip", "--networks loopback"]
    {
        assert!(finished.stderr.contains(text), "{text:?} not in {finished:#?}");
    }
}
