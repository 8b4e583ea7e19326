//! Values of options that cannot be used, the help, and the rendering of pages.

use std::fs;

use rusteron_test_support::run;

use crate::benchmark;

/// A benchmark, its arguments, the option that is to be named, and a part of what is allowed.
type Case = (&'static str, &'static [&'static str], &'static str, &'static str);

const REFUSED: &[Case] = &[
    ("ipc-throughput", &["--runs", "0"], "--runs", "1..=1000"),
    ("ipc-throughput", &["--measure", "99ms"], "--measure", "at least 100ms"),
    ("ipc-throughput", &["--measure", "2"], "--measure", "time unit needed"),
    ("ipc-throughput", &["--warmup", "-1s"], "--warmup", ""),
    ("ipc-throughput", &["--results", "/dev/null/x"], "--results", "can be written"),
    ("ipc-throughput", &["--no-such-option"], "--no-such-option", ""),
    ("ipc-throughput", &["argument"], "argument", ""),
    ("ipc-throughput", &["--java-option", "x"], "--java-option", "-D or -X"),
    ("ipc-throughput", &["--contenders", "rust,cobol"], "--contenders", "c-functions"),
    ("ipc-throughput", &["--message-lengths", "32,0"], "--message-lengths", "1 to 16m"),
    (
        "ipc-throughput",
        &["--message-lengths", "8193", "--term-lengths", "64k"],
        "--message-lengths",
        "1 to 8192",
    ),
    ("ipc-throughput", &["--publishers", "65"], "--publishers", "1..=64"),
    ("ipc-throughput", &["--term-lengths", "65537"], "--term-lengths", "power of two"),
    ("ipc-throughput", &["--idle", "lazy"], "--idle", "yield"),
    ("ipc-latency", &["--modes", "open"], "--modes", "closed, paced"),
    ("ipc-latency", &["--rate", "0"], "--rate", "1..=10000000"),
    ("ipc-latency", &["--message-length", "7"], "--message-length", "8..=1376"),
    ("udp-throughput", &["--networks", "wifi"], "--networks", "loopback, namespaces"),
    ("udp-throughput", &["--buffers", "low-latency"], "--buffers", "default, throughput"),
    (
        "udp-throughput",
        &["--message-lengths", "32,7"],
        "--message-lengths",
        "from 8 to 1376, or mix",
    ),
    ("udp-round-trips", &["--contenders", "cobol"], "--contenders", "rust, c, java, sockets"),
    ("drivers", &["--media-driver", "/bin/true"], "--media-driver", "cargo build --release"),
    ("drivers", &["--nice", "20"], "--nice", "0..=19"),
    ("driver-resources", &["--settings", "dedicated"], "--settings", "such as shared/backoff"),
    ("archives", &["--recordings", "21"], "--recordings", "1..=20"),
    ("archives", &["--message-lengths", "7"], "--message-lengths", "8 bytes to 1m"),
    ("archives", &["--synced-dir", "/no/such/directory"], "--synced-dir", "a directory"),
    (
        "archives",
        &["--archiving-media-driver", "/bin/true"],
        "--archiving-media-driver",
        "cargo build --release",
    ),
    ("recording", &["--recording-length", "0"], "--recording-length", "from 1 on"),
    ("recording", &["--message-lengths", "7"], "--message-lengths", "8 bytes or more"),
    ("recording", &["--archive-dir", "/no/such/directory"], "--archive-dir", "a directory"),
    ("cluster", &["--windows", "0"], "--windows", "1..=100000"),
    ("cluster-nodes", &["--members", "4"], "--members", "1..=3"),
    ("", &["no-such-benchmark"], "no-such-benchmark", ""),
];

#[test]
fn bad_values_are_refused_first() {
    for (name, arguments, option, allowed) in REFUSED {
        let dir = tempfile::tempdir().expect("a directory");
        let mut all: Vec<&str> =
            [name].into_iter().copied().filter(|name| !name.is_empty()).collect();
        all.extend(*arguments);
        let mut command = benchmark(&all);
        let results = dir.path().join("results");
        if !name.is_empty() && !arguments.contains(&"--results") {
            command.arg("--results").arg(&results);
        }
        let finished = run(command);
        finished.assert_exit_code(2);
        assert_eq!(finished.stdout, "", "{all:?}");
        for text in ["error: ", option, allowed] {
            assert!(finished.stderr.contains(text), "{all:?}: {text:?} not in {finished:#?}");
        }
        assert!(
            !results.exists() || fs::read_dir(&results).is_ok_and(|mut it| it.next().is_none())
        );
    }
}

#[test]
fn help_lists_benchmarks_without_helpers() {
    let finished = run(benchmark(&["--help"]));
    finished.assert_exit_code(0);
    assert!(finished.stdout.contains("udp-round-trips"), "{finished:#?}");
    for hidden in ["  side ", "  echo-service "] {
        assert!(!finished.stdout.contains(hidden), "{finished:#?}");
    }
}

#[test]
fn pages_show_their_results() {
    run(benchmark(&["render", "--check"])).assert_exit_code(0);
}

#[test]
fn check_names_what_differs() {
    let dir = tempfile::tempdir().expect("a directory");
    let docs = dir.path().join("docs/benchmarks");
    fs::create_dir_all(docs.join("results")).expect("a folder");
    let results = r#"{"benchmark": "x", "command": "c", "date": "d", "machine": "m", "versions": "v", "rows": []}"#;
    fs::write(docs.join("results/x.json"), results).expect("a file");
    fs::write(dir.path().join("BENCHMARKS.md"), "nothing").expect("a file");
    let page = docs.join("x.md");
    fs::write(&page, "<!-- results: x | origin -->\n<!-- end -->\n").expect("a file");
    let render = |check: &[&str]| {
        let mut command = benchmark(&[&["render"], check].concat());
        command.arg("--root").arg(dir.path());
        run(command)
    };
    let checked = render(&["--check"]);
    checked.assert_exit_code(1);
    assert!(
        checked.stderr.contains("x.md") && !checked.stderr.contains("BENCHMARKS"),
        "{checked:#?}"
    );
    render(&[]).assert_exit_code(0);
    assert!(fs::read_to_string(&page).expect("a page").contains("`c`, d. m. v."));
    render(&["--check"]).assert_exit_code(0);
}
