//! Values of options that cannot be used, the help, and the rendering of pages.

use std::fs;

use rusteron_test_support::run;

use crate::benchmark;

/// A benchmark with a value, the option that is to be named, and a part of what is allowed: each of
/// our own parsers once.
const REFUSED: &[(&[&str], &str, &str)] = &[
    (&["ipc-throughput", "--measure", "99ms"], "--measure", "at least 100ms"),
    (&["ipc-throughput", "--java-option", "x"], "--java-option", "-D or -X"),
    (&["ipc-throughput", "--contenders", "rust,sockets"], "--contenders", "c-functions"),
    (
        &["ipc-throughput", "--message-lengths", "8193", "--term-lengths", "64k"],
        "--message-lengths",
        "1 to 8192",
    ),
    (&["ipc-throughput", "--idle", "lazy"], "--idle", "yield"),
    (&["udp-throughput", "--message-lengths", "32,7"], "--message-lengths", "8 to 1376, or mix"),
    (&["archives", "--archive-dir", "/no/such/directory"], "--archive-dir", "a directory"),
];

#[test]
fn bad_values_are_refused_first() {
    let dir = tempfile::tempdir().expect("a directory");
    let results = dir.path().join("results");
    for (arguments, option, allowed) in REFUSED {
        let mut command = benchmark(arguments);
        command.arg("--results").arg(&results);
        let finished = run(command);
        finished.assert_exit_code(2);
        assert_eq!(finished.stdout, "", "{arguments:?}");
        for text in ["error: ", option, allowed] {
            assert!(finished.stderr.contains(text), "{arguments:?}: {text:?} not in {finished:#?}");
        }
        assert!(!results.exists(), "{arguments:?}");
    }
    run(benchmark(&["calls", "--results", "/dev/null/x"])).assert_exit_code(2);
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
