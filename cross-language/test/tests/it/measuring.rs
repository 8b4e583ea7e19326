//! The measuring mode, equal in all callers.

use std::process::Command;

use cross_language_test::programs::{CALLERS, LONG, Server, driver, file, path};
use rusteron_test_support::run;

#[test]
fn every_caller_writes_its_samples() {
    let driver = driver();
    let _server = Server::Rust.start(&driver, &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        measures(|options| caller.command(&driver, &[&options.concat(), LONG]));
    }
}

/// Asserts that a caller measures calls and connections.
pub(crate) fn measures(command: impl Fn(&[&[&str]]) -> Command) {
    let samples = file("samples", "");
    let samples_option = ["--samples", path(&samples)];
    let check = |mode: &[&str], count: usize| {
        let finished = run(command(&[mode, &samples_option]));
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        let report = finished.stdout.trim_end();
        assert!(report.contains(&format!(r#""calls":{count},"#)), "{report}");
        let times = std::fs::read_to_string(&samples).unwrap();
        let times: Vec<u64> = times.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(times.len(), count);
        // A common beginning and end of at most two callers: no sample is longer.
        let elapsed = report.split(['"', ':', ',']).find_map(|word| word.parse::<u64>().ok());
        let elapsed = elapsed.expect("elapsed_ns comes first");
        assert!(times.iter().all(|&time| time <= elapsed), "{report}");
        assert!(times.iter().sum::<u64>() <= 2 * elapsed, "{report}");
        assert!(times.iter().sum::<u64>() > 0, "{report}");
    };
    let calls = ["--calls", "20", "--warmup", "3"];
    for mode in [["--measure", "0", "--callers", "1"], ["--measure", "1000", "--callers", "2"]] {
        let callers = if mode[3] == "1" { 1 } else { 2 };
        check(&[&mode[..], &calls].concat(), 20 * callers);
    }
    check(&["--connect-cycles", "5"], 5);
}
