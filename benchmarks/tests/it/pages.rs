//! The pages of this repository, and their results.

use std::fs;

use rusteron_test_support::run;

use crate::program::benchmark;

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
