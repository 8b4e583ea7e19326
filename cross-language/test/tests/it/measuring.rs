//! The measuring mode, equal in all callers.

use std::process::Command;

use cross_language_test::programs::{CALLERS, LONG, Server, driver, file, path};
use rusteron_test_support::{free_port, run};

#[test]
fn every_caller_writes_its_samples() {
    let driver = driver();
    let _server = Server::Rust.start(&driver, &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        measures(|options| caller.command(&driver, &[&options.concat(), LONG]));
    }
}

/// Each connection uses the addresses that the last one has just closed.
#[test]
fn every_caller_reconnects_over_udp() {
    let driver = driver();
    let requests = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let responses = format!("aeron:udp?control=127.0.0.1:{}|control-mode=response", free_port());
    let channels = ["--request-channel", &requests, "--response-channel", &responses];
    let mut server = Server::Rust.start(&driver, &channels);
    for caller in CALLERS {
        println!("{caller:?}");
        let finished = caller.run(&driver, &[&["--connect-cycles", "10"], &channels, LONG]);
        if !finished.status.success() {
            server.kill();
            let (_, reasons, _) = server.finish();
            panic!("{caller:?}, {}: {}server: {reasons}", finished.status, finished.stderr);
        }
    }
}

/// Asserts that a caller measures calls and connections.
pub(crate) fn measures(command: impl Fn(&[&[&str]]) -> Command) {
    let samples = file("samples", "");
    let samples_option = ["--samples", path(&samples)];
    let check = |mode: &[&str], count: usize| {
        let finished = run(command(&[mode, &samples_option]));
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        let report = finished.stdout.lines().last().unwrap_or_default();
        let field = |name: &str| -> Option<u64> {
            let (_, rest) = report.split_once(&format!(r#""{name}":"#))?;
            rest.split([',', '}']).next()?.parse().ok()
        };
        assert_eq!(field("calls"), Some(count as u64), "{report}");
        if mode.contains(&"--counted-ms") {
            assert_eq!(finished.stdout.lines().next(), Some("counting"));
            assert!(field("warmup_calls").is_some_and(|calls| calls > 0), "{report}");
            assert!(field("counted_calls").is_some_and(|calls| calls > 0), "{report}");
            assert!(field("counted_ns").is_some_and(|time| time >= 20_000_000), "{report}");
        }
        let times = std::fs::read_to_string(&samples).unwrap();
        let times: Vec<u64> = times.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(times.len(), count);
        // A common beginning and end of at most two callers: no sample is longer.
        let elapsed = field("elapsed_ns").expect("a number");
        assert!(times.iter().all(|&time| time <= elapsed), "{report}");
        assert!(times.iter().sum::<u64>() <= 2 * elapsed, "{report}");
        assert!(times.iter().sum::<u64>() > 0, "{report}");
    };
    let calls = ["--calls", "20", "--warmup-ms", "20", "--counted-ms", "20"];
    for mode in [["--measure", "0", "--callers", "1"], ["--measure", "1000", "--callers", "2"]] {
        let callers = if mode[3] == "1" { 1 } else { 2 };
        check(&[&mode[..], &calls].concat(), 20 * callers);
    }
    check(&["--connect-cycles", "5"], 5);
}
