//! Values of options that cannot be used.

use crate::child::{
    BOUNDS, DRIVER_RESOURCES, DRIVERS, IDLE_STRATEGIES, LATENCY, RECORDING, REGISTRATIONS,
    THROUGHPUT, UDP_THROUGHPUT, command, run,
};

/// Asserts that a program refuses its arguments and names the option and what is allowed.
#[track_caller]
fn assert_refused(path: &str, arguments: &[&str], option: &str, allowed: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let results = dir.path().join("results");
    let mut command = command(path, arguments);
    if !arguments.contains(&"--results") {
        command.arg("--results").arg(&results);
    }
    let finished = run(command);
    finished.assert_exit_code(2);
    assert_eq!(finished.stdout, "", "{arguments:?}");
    for text in ["error: ", option, allowed] {
        assert!(finished.stderr.contains(text), "{arguments:?}: {text:?} not in {finished:#?}");
    }
    assert!(!results.exists(), "{arguments:?}: results of nothing");
}

/// Arguments, the option that is to be named, and what of its range.
type Case = (&'static [&'static str], &'static str, &'static str);

const COMMON: &[Case] = &[
    (&["--runs", "0"], "--runs", "1..=1000"),
    (&["--runs", "-1"], "--runs", ""),
    (&["--measure", "99ms"], "--measure", "at least 100ms"),
    (&["--measure", "2"], "--measure", "m, s, ms, us or ns"),
    (&["--warmup", "-1s"], "--warmup", ""),
    (&["--results", "/dev/null/x"], "--results", "can be written"),
    (&["--results", ""], "--results", ""),
    (&["--no-such-option"], "--no-such-option", ""),
    (&["argument"], "argument", ""),
];

#[test]
fn the_throughput_benchmark_refuses_them() {
    let own: &[Case] = &[
        (&["--contenders", "rust,cobol"], "--contenders", "c-functions"),
        (&["--contenders", ""], "--contenders", ""),
        (&["--publications", "none"], "--publications", "exclusive, concurrent"),
        (&["--message-lengths", "32,0"], "--message-lengths", "1 to 16m"),
        (
            &["--message-lengths", "32,8193", "--term-length", "64k"],
            "--message-lengths",
            "1 to 8192",
        ),
        (&["--publishers", "0"], "--publishers", "1..=64"),
        (&["--publishers", "65"], "--publishers", "1..=64"),
        (&["--fragment-limit", "0"], "--fragment-limit", "1..=2147483647"),
        (&["--term-length", "65537"], "--term-length", "power of two"),
        (&["--threading-mode", "invoker"], "--threading-mode", "shared-network"),
        (&["--idle", "lazy"], "--idle", "yield"),
        (&["--java-warmup", "1"], "--java-warmup", "m, s, ms, us or ns"),
        (&["--java-option", "x"], "--java-option", "-D or -X"),
    ];
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        assert_refused(THROUGHPUT, arguments, option, allowed);
    }
}

#[test]
fn the_latency_benchmark_refuses_them() {
    let own: &[Case] = &[
        (&["--contenders", "c-program"], "--contenders", "rust-java"),
        (&["--transports", "tcp"], "--transports", "ipc, udp"),
        (&["--modes", "open"], "--modes", "closed, paced"),
        (&["--rate", "0"], "--rate", "1..=10000000"),
        (&["--message-length", "7"], "--message-length", "at least 8"),
        (&["--message-length", "64k"], "--message-length", "at the most 1376"),
        (&["--idle", "lazy"], "--idle", "yield"),
        (&["--driver-idle", "lazy"], "--driver-idle", "yield"),
    ];
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        assert_refused(LATENCY, arguments, option, allowed);
    }
}

#[test]
fn idle_strategies_refuses_bad_values() {
    let own: &[Case] = &[
        (&["--term-lengths", "64k,3m"], "--term-lengths", "64k to 1g"),
        (&["--idles", "yield,lazy"], "--idles", "backoff"),
        (&["--threading-modes", "none"], "--threading-modes", "shared-network"),
        (&["--message-length", "8193"], "--message-length", "1 to 8192"),
        (&["--fragment-limit", "-1"], "--fragment-limit", ""),
    ];
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        assert_refused(IDLE_STRATEGIES, arguments, option, allowed);
    }
}

#[test]
fn driver_resources_refuses_bad_values() {
    let own: &[Case] = &[
        (&["--contenders", "rust,cobol"], "--contenders", "rust, c, java"),
        (&["--settings", "dedicated"], "--settings", "such as shared/backoff"),
        (&["--settings", "invoker/yield"], "--settings", "dedicated, shared-network or shared"),
        (&["--transport", "tcp"], "--transport", "udp"),
        (&["--rate", "0"], "--rate", "1..=10000000"),
        (&["--message-length", "7"], "--message-length", "8..=1376"),
        (&["--idle", "lazy"], "--idle", "yield"),
        (&["--term-length", "3m"], "--term-length", "64k to 1g"),
        (&["--java-option", "x"], "--java-option", "-D or -X"),
    ];
    // It looks for the driver's program before it opens the results.
    #[cfg(target_os = "linux")]
    drop(crate::child::driver_resources(["--help"]));
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        assert_refused(DRIVER_RESOURCES, arguments, option, allowed);
    }
}

#[test]
fn drivers_refuse_bad_values() {
    let own: &[Case] = &[
        (&["--drivers", "rust,cobol"], "--drivers", "rust, c, java"),
        (&["--applications", "ping"], "--applications", "java-ping, c-ping"),
        (&["--transports", "tcp"], "--transports", "ipc, udp"),
        (&["--settings", "shared/lazy"], "--settings", "such as shared/backoff"),
        (&["--message-length", "1377"], "--message-length", "8..=1376"),
        (&["--term-length", "3m"], "--term-length", "64k to 1g"),
        (&["--round-trips", "99"], "--round-trips", "100..=10000000"),
        (&["--nice", "20"], "--nice", "0..=19"),
    ];
    // It looks for the driver's program before it opens the results.
    #[cfg(target_os = "linux")]
    drop(crate::child::drivers(["--help"]));
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        assert_refused(DRIVERS, arguments, option, allowed);
    }
}

#[test]
fn udp_throughput_refuses_bad_values() {
    let own: &[Case] = &[
        (&["--contenders", "rust,cobol"], "--contenders", "rust, c, java"),
        (&["--networks", "wifi"], "--networks", "loopback, namespaces"),
        (&["--threading", "invoker"], "--threading", "shared-network"),
        (&["--buffers", "low-latency"], "--buffers", "default, throughput"),
        (&["--lengths", "32,7"], "--lengths", "from 8 to 1376, or mix"),
        (&["--lengths", "1377"], "--lengths", "from 8 to 1376, or mix"),
        (&["--idle", "lazy"], "--idle", "yield"),
        (&["--driver-idle", "lazy"], "--driver-idle", "yield"),
        (&["--term-length", "3m"], "--term-length", "64k to 1g"),
        (&["--java-warmup", "1"], "--java-warmup", "m, s, ms, us or ns"),
    ];
    // It looks for the driver's program before it opens the results.
    #[cfg(target_os = "linux")]
    drop(crate::child::udp_throughput(["--help"]));
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        let arguments = [*arguments, &["--networks", "loopback"]].concat();
        // The option may be there already.
        let end = if *option == "--networks" { arguments.len() - 2 } else { arguments.len() };
        assert_refused(UDP_THROUGHPUT, &arguments[..end], option, allowed);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn other_program_as_driver_is_refused() {
    for path in ["/no/such/program", "/bin/true"] {
        let arguments = ["--media-driver", path];
        for program in [DRIVERS, DRIVER_RESOURCES, UDP_THROUGHPUT] {
            assert_refused(program, &arguments, "--media-driver", "cargo build --release");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn udp_round_trips_refuse_bad_values() {
    let own: &[Case] = &[
        (&["--contenders", "rust,cobol"], "--contenders", "rust, c, java, sockets"),
        (&["--networks", "wifi"], "--networks", "loopback, namespaces"),
        (&["--message-length", "1377"], "--message-length", "8..=1376"),
        (&["--term-length", "3m"], "--term-length", "64k to 1g"),
    ];
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        assert_refused(crate::child::UDP_ROUND_TRIPS, arguments, option, allowed);
    }
}

#[test]
fn the_benchmark_of_bounds_refuses_them() {
    let own: &[Case] = &[
        (&["--term-lengths", "3m"], "--term-lengths", "64k to 1g"),
        (&["--idle", "lazy"], "--idle", "yield"),
    ];
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        assert_refused(BOUNDS, arguments, option, allowed);
    }
}

#[test]
fn help_and_version_are_no_errors() {
    for path in [
        THROUGHPUT,
        LATENCY,
        IDLE_STRATEGIES,
        BOUNDS,
        DRIVERS,
        DRIVER_RESOURCES,
        UDP_THROUGHPUT,
        REGISTRATIONS,
    ] {
        for option in ["--help", "--version"] {
            let finished = run(command(path, [option]));
            finished.assert_exit_code(0);
            assert!(!finished.stdout.is_empty());
        }
    }
}

#[test]
fn the_recording_benchmark_refuses_them() {
    let own: &[Case] = &[
        (&["--contenders", "c"], "--contenders", "rust, java"),
        (&["--message-lengths", "7"], "--message-lengths", "8 bytes or more"),
        (&["--recording-length", "0"], "--recording-length", "from 1 on"),
        (&["--recording-length", "1x"], "--recording-length", "from 1 on"),
        (&["--warmup-messages", "0"], "--warmup-messages", "1..="),
        (&["--warmup", "1"], "--warmup", "m, s, ms, us or ns"),
        (&["--recordings", "0"], "--recordings", "1..=1000"),
        (&["--runs", "0"], "--runs", "1..=1000"),
        (&["--channel", "aeron:x"], "--channel", "aeron:x"),
        (&["--fragment-limit", "0"], "--fragment-limit", "1..=2147483647"),
        (&["--archive-dir", "/no/such/directory"], "--archive-dir", "a directory"),
    ];
    for (arguments, option, allowed) in own {
        assert_refused(RECORDING, arguments, option, allowed);
    }
}

#[test]
fn the_benchmark_of_registrations_refuses_them() {
    let own: &[Case] = &[
        (&["--contenders", "c-program"], "--contenders", "rust, c, java"),
        (&["--contenders", ""], "--contenders", ""),
        (&["--runs", "0"], "--runs", "1..=1000"),
        (&["--repetitions", "0"], "--repetitions", "1..=1000"),
        (&["--repetitions", "-1"], "--repetitions", ""),
        (&["--java-warmup", "1"], "--java-warmup", "m, s, ms, us or ns"),
        (&["--java-option", "x"], "--java-option", "-D or -X"),
        (&["--results", "/dev/null/x"], "--results", "can be written"),
        (&["argument"], "argument", ""),
    ];
    for (arguments, option, allowed) in own {
        assert_refused(REGISTRATIONS, arguments, option, allowed);
    }
}
