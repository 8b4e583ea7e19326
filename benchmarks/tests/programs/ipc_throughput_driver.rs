//! The program `ipc_throughput` with a driver that runs already.

use rusteron_media_driver::{Context, MediaDriver, ThreadingMode};

use crate::child::{Running, ipc_throughput, number, report, run};

fn driver(ipc_term_length: usize) -> MediaDriver {
    let mut context = Context::new().expect("settings");
    context
        .set_threading_mode(ThreadingMode::Shared)
        .and_then(|context| context.set_ipc_term_buffer_length(ipc_term_length))
        .expect("valid settings");
    MediaDriver::launch_embedded_with(context).expect("a driver")
}

#[test]
fn a_running_driver_is_used() {
    let driver = driver(1 << 20);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report.json");
    let arguments = ["--duration", "1s", "--warmup", "0s", "--json"];

    let mut by_option = ipc_throughput(arguments);
    by_option.arg(&file).args(["--term-length", "64k", "--aeron-dir"]).arg(driver.aeron_dir());
    run(by_option).assert_exit_code(0);
    let by_option = report(&file);
    assert_eq!(by_option["settings"]["driver"], "running");
    assert_eq!(by_option["settings"]["term_length"], 1 << 16);

    let mut by_environment = ipc_throughput(arguments);
    by_environment.arg(&file).env("AERON_DIR", driver.aeron_dir());
    run(by_environment).assert_exit_code(0);
    let by_environment = report(&file);
    assert_eq!(by_environment["settings"]["term_length"], 1 << 20);

    for report in [by_option, by_environment] {
        assert_eq!(report["settings"]["aeron_dir"], driver.aeron_dir().to_string_lossy().as_ref());
        assert!(number(&report, "/publisher/messages") > 0.0);
    }
    assert!(driver.aeron_dir().join("cnc.dat").is_file());
}

#[test]
fn programs_on_one_stream_count_own_messages() {
    let driver = driver(1 << 18);
    let directory = tempfile::tempdir().expect("a directory");
    let files = [directory.path().join("a.json"), directory.path().join("b.json")];
    let running = files.each_ref().map(|file| {
        let mut command = ipc_throughput(["--duration", "1s", "--warmup", "0s", "--json"]);
        command.arg(file).arg("--aeron-dir").arg(driver.aeron_dir());
        Running::start(command)
    });
    for running in running {
        running.finish().assert_exit_code(0);
    }
    for file in files {
        let report = report(&file);
        let published = number(&report, "/publisher/messages");
        assert_eq!(number(&report, "/subscriber/messages"), published);
    }
}

#[test]
fn too_long_message_is_refused() {
    let driver = driver(1 << 16);
    let mut command = ipc_throughput(["--message-length", "16k", "--aeron-dir"]);
    command.arg(driver.aeron_dir());
    let finished = run(command);
    finished.assert_exit_code(2);
    assert!(finished.stderr.contains("--message-length"), "{finished:#?}");
    assert!(finished.stderr.contains("1 to 8192"), "{finished:#?}");
}

#[test]
fn no_driver_is_an_error_in_aerons_words() {
    let empty = tempfile::tempdir().expect("a directory");
    let file = empty.path().join("report.json");
    for dir in [empty.path(), &empty.path().join("none")] {
        let mut command = ipc_throughput(["--json"]);
        command.arg(&file).arg("--aeron-dir").arg(dir).env("AERON_DRIVER_TIMEOUT", "200");
        let finished = run(command);
        finished.assert_exit_code(1);
        let expected = format!("error: cannot connect to a media driver in {}", dir.display());
        assert!(finished.stderr.starts_with(&expected), "{finished:#?}");
        assert!(finished.stderr.contains("CnC file"), "{finished:#?}");
        assert!(!file.exists());
    }
}

#[test]
fn a_driver_that_dies_is_an_error() {
    let quietly = ["--warmup", "0s", "--term-length", "64k", "--idle", "backoff"];
    let mut host = Running::start(ipc_throughput(quietly));
    host.await_line("Throughput: ");

    let mut command = ipc_throughput(quietly);
    command.arg("--aeron-dir").arg(host.driver_dir()).env("AERON_DRIVER_TIMEOUT", "3000");
    let mut guest = Running::start(command);
    guest.await_line("Throughput: ");
    host.kill();

    let finished = guest.finish();
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("error: "), "{finished:#?}");
    assert!(finished.stderr.contains("driver timeout"), "{finished:#?}");
}
