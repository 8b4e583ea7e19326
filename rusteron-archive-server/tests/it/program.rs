//! The programs `archive` and `archiving_media_driver`: settings, exit status, and their end.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use rusteron_test_support::{Finished, command, run, succeed};

const ARCHIVE: &str = env!("CARGO_BIN_EXE_archive");
const WITH_DRIVER: &str = env!("CARGO_BIN_EXE_archiving_media_driver");
const CONTROL: &str = "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:8010";

/// The arguments of the helper that launches Java's archive in Aeron's tests of the C client.
const OF_AERONS_TESTS: [&str; 26] = [
    "-Daeron.dir.delete.on.start=true",
    "-Daeron.dir.delete.on.shutdown=true",
    "-Daeron.archive.dir.delete.on.start=true",
    "-Daeron.archive.max.catalog.entries=128",
    "-Daeron.term.buffer.sparse.file=true",
    "-Daeron.perform.storage.checks=false",
    "-Daeron.term.buffer.length=64k",
    "-Daeron.ipc.term.buffer.length=64k",
    "-Daeron.archive.segment.file.length=524288",
    "-Daeron.threading.mode=SHARED",
    "-Daeron.shared.idle.strategy=yield",
    "-Daeron.archive.threading.mode=SHARED",
    "-Daeron.archive.idle.strategy=yield",
    "-Daeron.archive.recording.events.enabled=false",
    "-Daeron.driver.termination.validator=io.aeron.driver.DefaultAllowTerminationValidator",
    "-Daeron.archive.authenticator.supplier=io.aeron.samples.archive.SampleAuthenticatorSupplier",
    "-Daeron.enable.experimental.features=true",
    "-Daeron.spies.simulate.connection=true",
    "-Daeron.archive.control.response.channel=aeron:udp?endpoint=localhost:0",
    "-Daeron.archive.max.concurrent.replays=100",
    "-Daeron.archive.id=7",
    CONTROL,
    "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0",
    "-Daeron.archive.dir=recordings",
    "-Daeron.archive.mark.file.dir=marks",
    "-Daeron.dir=driver",
];

/// Returns the printed settings.
fn print_config(mut program: Command) -> (BTreeMap<String, String>, String) {
    program.arg("--print-config");
    let text = succeed(program).stdout;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let values = lines.filter_map(|line| line.split_once('='));
    (values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(), text)
}

fn refused(mut program: Command, option: &str) -> Finished {
    program.arg(option);
    let finished = run(program);
    finished.assert_exit_code(78);
    finished
}

#[test]
fn arguments_of_java_are_settings() {
    let (values, _) = print_config(command(WITH_DRIVER, OF_AERONS_TESTS));
    for (name, value) in [
        ("AERON_DIR", "driver"),
        ("AERON_THREADING_MODE", "SHARED"),
        ("AERON_TERM_BUFFER_LENGTH", "65536"),
        ("AERON_DRIVER_TERMINATION_VALIDATOR", "allow"),
        ("AERON_ARCHIVE_DIR", "recordings"),
        ("AERON_ARCHIVE_ID", "7"),
        ("AERON_ARCHIVE_SEGMENT_FILE_LENGTH", "524288"),
        ("AERON_ARCHIVE_IDLE_STRATEGY", "yield"),
        ("AERON_ARCHIVE_THREADING_MODE", "SHARED"),
        ("AERON_ARCHIVE_CONTROL_CHANNEL", "aeron:udp?endpoint=localhost:8010"),
    ] {
        assert_eq!(values.get(name).map(String::as_str), Some(value), "{name}");
    }
    let strict = ["--strict", "--check-config"];
    for program in [WITH_DRIVER, ARCHIVE] {
        let finished = succeed(command(program, OF_AERONS_TESTS.into_iter().chain(strict)));
        assert_eq!(finished.stdout, "the configuration is valid\n");
    }
}

#[test]
fn later_sources_override_earlier_ones() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("archive.properties");
    fs::write(&file, "# Java's names\naeron.archive.id = 3\naeron.archive.connect.timeout: 10ms\n")
        .expect("a file");
    let mut program = command(ARCHIVE, ["-Daeron.archive.id=2", "-D", "aeron.archive.dir=a"]);
    program
        .arg(&file)
        .args(["--archive-dir", "b", "--threading-mode", "invoker", "--idle", "noop"])
        .env("AERON_ARCHIVE_ID", "1")
        .env("AERON_ARCHIVE_FILE_SYNC_LEVEL", "1");
    let (values, _) = print_config(program);
    for (name, value) in [
        ("AERON_ARCHIVE_ID", "3"),
        ("AERON_ARCHIVE_CONNECT_TIMEOUT", "10ms"),
        ("AERON_ARCHIVE_DIR", "b"),
        ("AERON_ARCHIVE_FILE_SYNC_LEVEL", "1"),
        ("AERON_ARCHIVE_THREADING_MODE", "INVOKER"),
        ("AERON_ARCHIVE_IDLE_STRATEGY", "noop"),
    ] {
        assert_eq!(values.get(name).map(String::as_str), Some(value), "{name}");
    }
    // The setting of the driver that the archive shares.
    let is_known = |name: &String| {
        name.starts_with("AERON_ARCHIVE_") || name.as_str() == "RUSTERON_DIR_ACCESS"
    };
    assert!(values.keys().all(is_known), "{values:?}");
}

#[test]
fn printed_configuration_gives_the_same_again() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("archive.properties");
    for program in [ARCHIVE, WITH_DRIVER] {
        let (_, text) = print_config(command(program, ["--ipc-only", "-Daeron.dir=x"]));
        fs::write(&file, &text).expect("a file");
        let mut again = command(program, [] as [&str; 0]);
        again.arg(&file);
        assert_eq!(print_config(again).1, text);
    }
}

#[test]
fn faulty_values_are_refused() {
    for (argument, reason) in [
        ("-Daeron.archive.segment.file.length=100k", "must be a power of two from 64k to 1g"),
        ("-Daeron.archive.connect.timeout=5m", "must be a duration with ns, us, ms or s"),
        ("-Daeron.archive.threading.mode=NONE", "must be DEDICATED, SHARED or INVOKER"),
        ("-Daeron.archive.record.checksum=com.Mine", "must be CRC-32, CRC-32C, io.aeron."),
        ("-Daeron.archive.idle.strategy=com.Mine", "org.agrona.concurrent.BackoffIdleStrategy"),
        ("-Daeron.archive.authenticator.supplier=com.Mine", "SampleAuthenticatorSupplier"),
    ] {
        let setting = argument.trim_start_matches("-D");
        // Also when it is to start: nothing is made.
        for program in [ARCHIVE, WITH_DRIVER] {
            for option in ["--print-config", "--check-config", "--strict", "--ipc-only"] {
                let finished = refused(command(program, [CONTROL, argument]), option);
                let line = format!(": -D {setting}: ");
                assert!(finished.stderr.contains(&line), "{}", finished.stderr);
                assert!(finished.stderr.contains(reason), "{}", finished.stderr);
                assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
                assert_eq!(finished.stdout, "");
            }
        }
    }
    let class = "-Daeron.driver.termination.validator=com.Mine";
    let finished = refused(command(WITH_DRIVER, [CONTROL, class]), "--print-config");
    let known = "io.aeron.driver.DefaultAllowTerminationValidator or ";
    assert!(finished.stderr.contains(known), "{}", finished.stderr);
    // The driver is another process, which checks it.
    succeed(command(ARCHIVE, [CONTROL, class, "--check-config"]));
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    for (arguments, text) in [
        (&["-Daeron.archive.id=1"][..], "control_channel (AERON_ARCHIVE_CONTROL_CHANNEL): is not"),
        (&[CONTROL, "-Daeron.archive.file.sync.level=1"], "catalog_file_sync_level=0"),
        (
            &[
                "--control-channel",
                "aeron:udp?endpoint=a:1",
                "-Daeron.archive.recording.events.enabled=true",
            ],
            "recording_events_channel",
        ),
    ] {
        let finished = refused(command(ARCHIVE, arguments), "--check-config");
        assert!(finished.stderr.starts_with("archive: invalid argument: "), "{}", finished.stderr);
        assert!(finished.stderr.contains(text), "{}", finished.stderr);
        let finished = run(command(ARCHIVE, arguments));
        finished.assert_exit_code(78);
        assert!(finished.stderr.contains(text), "{}", finished.stderr);
    }
}

#[test]
fn unknown_settings_are_warnings_or_errors() {
    let unknown = "-Daeron.archive.segment.file.lenght=64k";
    let warning = "-D aeron.archive.segment.file.lenght=64k: no such setting; \
                   aeron.archive.segment.file.length is one";
    for program in [ARCHIVE, WITH_DRIVER] {
        let (_, text) = print_config(command(program, [CONTROL, unknown]));
        assert!(text.ends_with(&format!("# warning: {warning}\n")), "{text}");
        for option in ["--strict", "--check-config"] {
            let finished = refused(command(program, [CONTROL, unknown]), option);
            assert!(finished.stderr.ends_with(&format!(": {warning}\n")), "{}", finished.stderr);
        }
    }
    // Of other programs.
    let mut program =
        command(ARCHIVE, [CONTROL, "-Djava.net.preferIPv4Stack=true", "--check-config"]);
    program.env("AERON_CLUSTER_ID", "1").env("AERON_TERM_BUFFER_LENGTH", "x");
    succeed(program);
}

#[test]
fn missing_driver_is_temporary() {
    let home = tempfile::tempdir().expect("a directory");
    let mut program = command(ARCHIVE, [CONTROL, "-Daeron.driver.timeout=100", "--dir"]);
    program.arg(home.path().join("none")).arg("--archive-dir").arg(home.path().join("archive"));
    let finished = run(program);
    finished.assert_exit_code(75);
    assert!(finished.stderr.starts_with("archive: driver timeout: "), "{}", finished.stderr);
}

#[cfg(unix)]
#[test]
fn sigterm_ends_in_order() {
    use rusteron_test_support::{Running, await_that, memory_dir, send_signal};

    for mode in ["DEDICATED", "SHARED", "INVOKER"] {
        let home = memory_dir("rusteron-archive-program-").expect("a directory");
        let dir = |name: &str| home.path().join(name);
        let mut program = command(
            WITH_DRIVER,
            [
                "-Daeron.threading.mode=SHARED",
                "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:0",
                "-Daeron.dir.delete.on.shutdown=true",
            ],
        );
        program
            .arg(format!("-Daeron.archive.threading.mode={mode}"))
            .arg(format!("-Daeron.dir={}", dir("driver").display()))
            .arg(format!("-Daeron.archive.dir={}", dir("archive").display()));
        let program = Running::start(program);
        // A mark file is complete when its version is set.
        await_that("the mark file", || {
            let mark = fs::read(dir("archive").join("archive-mark.dat")).unwrap_or_default();
            mark.get(8..12).is_some_and(|version| version != [0; 4])
        });
        await_that("the catalog", || dir("archive").join("archive.catalog").is_file());
        send_signal(program.id(), "TERM");
        let finished = program.finish();
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "", "{mode}");
        let path = dir("archive").display().to_string();
        finished.assert_lines([
            &*format!("archive ready: {path}"),
            &*format!("archive closed: {path}"),
        ]);
        assert!(!dir("driver").exists(), "{mode}");
    }
}

#[test]
#[cfg(unix)]
fn file_beyond_the_limit_is_reported() {
    let home = tempfile::tempdir().expect("a directory");
    let mut program =
        command("sh", ["-c", "ulimit -f 100; exec \"$0\" \"$@\"", WITH_DRIVER, CONTROL]);
    program.arg(format!("-Daeron.archive.dir={}", home.path().join("archive").display()));
    program.arg(format!("-Daeron.dir={}", home.path().join("driver").display()));
    let finished = run(program);
    assert!(finished.status.code().is_some_and(|code| code > 0), "{finished:#?}");
    assert!(finished.stderr.contains("longer than a file"), "{finished:#?}");
}
