//! The measuring mode, equal in all callers.

use std::process::Command;

use cross_language_test::programs::{CALLERS, GRPC_CALLERS, LONG, Language, SERVERS, driver};
use rusteron_test_support::{free_port, run};

#[test]
fn every_caller_writes_its_samples() {
    let driver = driver();
    let _server = Language::Rust.start(driver.aeron_dir(), &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        measures(|options| caller.caller(driver.aeron_dir(), &[options, LONG]));
        measures(|options| caller.in_process_caller(&[options]));
    }
}

/// Each connection uses the addresses that the last one has just closed.
#[test]
fn every_caller_reconnects_over_udp() {
    let driver = driver();
    let requests = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let responses = format!("aeron:udp?control=127.0.0.1:{}|control-mode=response", free_port());
    let channels = ["--request-channel", &requests, "--response-channel", &responses];
    let mut server = Language::Rust.start(driver.aeron_dir(), &channels);
    for caller in CALLERS {
        println!("{caller:?}");
        let options: [&[&str]; 3] = [&["--connect-cycles", "10"], &channels, LONG];
        let finished = run(caller.caller(driver.aeron_dir(), &options));
        if !finished.status.success() {
            server.kill();
            let (_, reasons, _) = server.finish();
            panic!("{caller:?}, {}: {}server: {reasons}", finished.status, finished.stderr);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn socket_caller_blocks_or_polls() {
    for idle in ["backoff", "spin"] {
        let options = format!("--idle {idle} --measure 0 --callers 2 --calls 20 --warmup-ms 20");
        let options: Vec<&str> = options.split(' ').collect();
        measured(Language::socket_caller(&[&options]), "measuring\n", 40);
    }
}

/// The calls over gRPC that the measurements compare: each caller checks its results.
#[test]
#[ignore = "needs `build grpc`"]
fn every_caller_over_grpc() {
    let dir = tempfile::tempdir().unwrap();
    for server in SERVERS {
        for caller in GRPC_CALLERS {
            println!("{caller:?} to {server:?}");
            let unix = format!("unix:{}/{server:?}-{caller:?}", dir.path().display());
            for address in [unix, format!("127.0.0.1:{}", free_port())] {
                let _server = server.start_grpc(&address);
                measures(|options| caller.grpc_caller(&address, &[options, LONG]));
            }
        }
    }
}

/// Asserts that a caller measures calls and connections.
fn measures(command: impl Fn(&[&str]) -> Command) {
    let measure = |mode: &str, begin: &str, count: usize| {
        let options: Vec<&str> = mode.split(' ').collect();
        measured(command(&options), begin, count);
    };
    measure("--measure 0 --callers 1 --calls 20 --warmup-ms 20", "measuring\n", 20);
    measure("--measure 1000 --callers 2 --calls 20 --warmup-ms 20", "measuring\n", 40);
    measure("--connect-cycles 5", "", 5);
}

/// Asserts that a caller of at most two concurrent calls prints so many times after a beginning.
fn measured(command: Command, begin: &str, count: usize) {
    let finished = run(command);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let numbers = finished.stdout.strip_prefix(begin).expect("the line that begins the timing");
    let numbers: Vec<u64> = numbers.lines().map(|line| line.parse().unwrap()).collect();
    let (elapsed, times) = numbers.split_first().expect("the time of all calls");
    assert_eq!(times.len(), count);
    // A common beginning and end: no call takes longer.
    assert!(times.iter().all(|time| time <= elapsed), "{numbers:?}");
    assert!(times.iter().sum::<u64>() <= 2 * elapsed, "{numbers:?}");
    assert!(times.iter().sum::<u64>() > 0, "{numbers:?}");
}
