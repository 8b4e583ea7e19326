//! Values of options that the program `ipc_throughput` refuses.

use std::process::Command;

use crate::child::{ipc_throughput, run};

/// Asserts that a program refuses its arguments and names the option and what is allowed.
#[track_caller]
fn assert_refused(command: Command, option: &str, allowed: &str) {
    let description = format!("{:?}", command.get_args().collect::<Vec<_>>());
    let finished = run(command);
    finished.assert_exit_code(2);
    assert_eq!(finished.stdout, "", "{description}");
    for text in ["error: ", option, allowed] {
        assert!(finished.stderr.contains(text), "{description}: {text:?} not in {finished:#?}");
    }
}

/// Arguments, the option that is to be named, and what of its range.
type Case = (&'static [&'static str], &'static str, &'static str);

const COMMON: &[Case] = &[
    (&["--message-length", "0"], "--message-length", "1 to 16m"),
    (&["--message-length", "-1"], "--message-length", "1 to 16m"),
    (&["--message-length", "17m"], "--message-length", "1 to 16m"),
    (&["--message-length", "many"], "--message-length", "1 to 16m"),
    (&["--message-length", "8193", "--term-length", "64k"], "--message-length", "1 to 8192"),
    // The driver's default term length, 64 MiB.
    (&["--message-length", "16m"], "--message-length", "1 to 8388608"),
    (&["--fragment-limit", "0"], "--fragment-limit", "1..=2147483647"),
    (&["--fragment-limit", "2147483648"], "--fragment-limit", "1..=2147483647"),
    (&["--fragment-limit", "-1"], "--fragment-limit", ""),
    (&["--term-length", "0"], "--term-length", "64k to 1g"),
    (&["--term-length", "32k"], "--term-length", "64k to 1g"),
    (&["--term-length", "65537"], "--term-length", "power of two"),
    (&["--term-length", "2g"], "--term-length", "64k to 1g"),
    (&["--threading-mode", "none"], "--threading-mode", "dedicated, shared-network, shared"),
    (&["--threading-mode", "invoker"], "--threading-mode", "dedicated, shared-network, shared"),
    (&["--idle", "lazy"], "--idle", "yield"),
    (&["--idle", ""], "--idle", ""),
    (&["--warmup", "2"], "--warmup", "m, s, ms, us or ns"),
    (&["--warmup", "-1s"], "--warmup", ""),
    (&["--json", "/no/such/directory/x.json"], "--json", "can be written"),
    (&["--json", "."], "--json", "can be written"),
    (&["--json", ""], "--json", ""),
    (&["--no-such-option"], "--no-such-option", ""),
    (&["argument"], "argument", ""),
];

#[test]
fn the_throughput_program_refuses_them() {
    let own: &[Case] = &[
        (&["--duration", "10"], "--duration", "m, s, ms, us or ns"),
        (&["--duration", "1.5s"], "--duration", "whole number"),
        (&["--duration", "525601m"], "--duration", "365 days"),
        (&["--duration", "0s", "--warmup", "0s"], "--warmup", "less than --duration 0s"),
        (&["--duration", "1s"], "--warmup", "less than --duration 1s"),
        (&["--duration", "1s", "--warmup", "1000ms"], "--duration", "less than --duration 1s"),
        (&["--stream-id", "2147483648"], "--stream-id", ""),
        (&["--stream-id", "x"], "--stream-id", ""),
        (&["--channel", "ipc"], "--channel", "aeron:ipc or aeron:udp"),
        (&["--channel", ""], "--channel", "aeron:ipc or aeron:udp"),
        (&["--channel", "aeron:ipc?term-length=1"], "--channel", "64k to 1g"),
        (
            &["--channel", "aeron:ipc?term-length=64k", "--term-length", "128k"],
            "--term-length",
            "--channel has another term-length, 64k",
        ),
        (
            &["--channel", "aeron:ipc?term-length=64k", "--message-length", "16k"],
            "--message-length",
            "1 to 8192",
        ),
        (&["--aeron-dir", "/x", "--threading-mode", "shared"], "--threading-mode", "--aeron-dir"),
        (&["--aeron-dir", ""], "--aeron-dir", ""),
    ];
    for (arguments, option, allowed) in COMMON.iter().chain(own) {
        assert_refused(ipc_throughput(*arguments), option, allowed);
    }
}

#[test]
fn environment_names_running_driver() {
    let mut command = ipc_throughput(["--threading-mode", "shared"]);
    command.env("AERON_DIR", "/x");
    assert_refused(command, "--threading-mode", "AERON_DIR");
}

#[test]
fn the_term_length_of_the_environment_counts() {
    let mut command = ipc_throughput(["--message-length", "16k"]);
    command.env("AERON_IPC_TERM_BUFFER_LENGTH", "65536");
    assert_refused(command, "--message-length", "1 to 8192");
}

#[test]
fn a_refused_program_makes_no_json_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("x.json");
    let mut command = ipc_throughput(["--duration", "1s", "--json"]);
    command.arg(&file);
    assert_refused(command, "--warmup", "--duration");
    assert!(!file.exists());
}

#[test]
fn help_and_version_are_no_errors() {
    for option in ["--help", "--version"] {
        let finished = run(ipc_throughput([option]));
        finished.assert_exit_code(0);
        assert!(!finished.stdout.is_empty());
    }
}
