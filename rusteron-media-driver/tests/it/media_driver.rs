//! Drivers in this process: their directories, and launches that fail.

use std::fs;
use std::io;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::agent::AgentRunner;
use rusteron_client::{AERON_VERSION, Aeron, IdleStrategyKind, SystemCounter};
use rusteron_media_driver::{
    DriverContext, DriverInvoker, ErrorKind, MediaDriver, NameResolver, ThreadingMode,
};
use rusteron_test_support::{connect, driver_context_in, exchange};

#[test]
fn embedded_dir_is_deleted() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let dir = driver.aeron_dir().to_owned();
    assert!(dir.join("cnc.dat").is_file());
    if Path::new("/dev/shm").is_dir() {
        assert!(dir.starts_with("/dev/shm"), "{dir:?}");
    }
    drop(connect(&driver).add_publication("aeron:ipc", 1).expect("a publication"));
    drop(driver);
    assert!(!dir.exists());
}

/// As a driver that Aeron's own build makes of the same sources.
#[test]
fn labels_name_version_and_commit() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let aeron = connect(&driver);
    let counters = aeron.counters_reader();
    for (counter, name) in
        [(SystemCounter::Errors, "Errors"), (SystemCounter::AeronVersion, "Aeron software")]
    {
        let found = counters.iter().find(|found| found.id == counter.id()).expect("the counter");
        assert_eq!(found.label, format!("{name}: version={AERON_VERSION} commit=+guilty"));
    }
}

#[test]
fn close_reports_error() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let context = || {
        let mut context = driver_context_in(&dir);
        context.set_dir_delete_on_shutdown(true).expect("a setting");
        context
    };
    MediaDriver::launch(context()).expect("a driver").close().expect("a good end");
    assert!(!dir.exists());

    let driver = MediaDriver::launch(context()).expect("a driver");
    fs::rename(&dir, home.path().join("elsewhere")).expect("another name");
    let error = driver.close().expect_err("nothing is left to delete");
    assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::NotFound), "{error:?}");

    let invoker = DriverInvoker::launch(context()).expect("a driver");
    invoker.close().expect("a good end");
    assert!(!dir.exists());
}

#[test]
fn concurrent_launches_serve_clients() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let driver = MediaDriver::launch_embedded().expect("a driver");
                drop(connect(&driver).add_publication("aeron:ipc", 1).expect("a publication"));
            });
        }
    });
}

#[test]
fn unlaunched_context_deletes_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    fs::write(home.path().join("precious"), b"data").expect("a file");
    let mut context = driver_context_in(home.path());
    context.set_dir_delete_on_shutdown(true).expect("a setting");
    drop(context);
    assert!(home.path().join("precious").is_file());
}

#[test]
fn relative_dir_becomes_absolute() {
    // Next to Cargo.toml: a test must not change the working directory, which others share.
    let home = tempfile::tempdir_in(".").expect("a directory");
    let name = home.path().file_name().expect("a name");
    let relative = Path::new(name).join("aeron");
    let mut context = driver_context_in(&relative);
    context.set_dir_delete_on_shutdown(true).expect("a setting");
    let driver = MediaDriver::launch(context).expect("a driver");
    let dir = driver.aeron_dir().to_owned();
    assert!(dir.is_absolute(), "{dir:?}");
    assert_eq!(dir, std::path::absolute(&relative).expect("a path"));
    drop(connect(&driver).add_publication("aeron:ipc", 1).expect("a publication"));
    drop(driver);
    assert!(!dir.exists());
}

#[test]
fn foreign_files_need_delete_on_start() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("documents");
    let precious = dir.join("images").join("precious");
    fs::create_dir_all(dir.join("images")).expect("a directory");
    fs::write(&precious, b"data").expect("a file");
    let error = MediaDriver::launch(driver_context_in(&dir)).expect_err("somebody's files");
    assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::DirectoryNotEmpty));
    assert!(error.message().contains(&dir.display().to_string()), "{error:?}");
    assert!(error.message().contains("dir_delete_on_start"), "{error:?}");
    assert!(precious.is_file());

    let mut context = driver_context_in(&dir);
    context.set_dir_delete_on_start(true).expect("a setting");
    let driver = MediaDriver::launch(context).expect("a driver");
    assert!(!precious.exists());
    drop(driver);
}

#[test]
fn empty_dir_and_leftovers_are_replaced() {
    let home = tempfile::tempdir().expect("a directory");
    drop(
        MediaDriver::launch(driver_context_in(home.path()))
            .expect("a driver in an empty directory"),
    );
    let dir = home.path().join("remains");
    fs::create_dir_all(dir.join("publications")).expect("a directory");
    fs::create_dir_all(dir.join("images")).expect("a directory");
    drop(MediaDriver::launch(driver_context_in(&dir)).expect("a driver"));
    // A driver was killed while it deleted the directory of another one.
    let dir = home.path().join("partly-deleted");
    for file in ["publications/91.logbuffer", "images/88.logbuffer", "loss-report.dat"] {
        let file = dir.join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, b"x").expect("a file");
    }
    drop(MediaDriver::launch(driver_context_in(&dir)).expect("a driver"));
}

#[test]
fn empty_cnc_file_is_replaced() {
    let home = tempfile::tempdir().expect("a directory");
    let cnc_file = home.path().join("cnc.dat");
    fs::write(&cnc_file, b"").expect("a file");
    let mut context = driver_context_in(home.path());
    context.set_driver_timeout(Duration::from_millis(100)).expect("a setting");
    let driver = MediaDriver::launch(context).expect("a driver");
    assert!(fs::metadata(&cnc_file).is_ok_and(|file| file.len() > 0));
    drop(driver);
}

#[test]
fn failed_launch_keeps_existing_dir() {
    let home = tempfile::tempdir().expect("a directory");
    let context = || {
        let mut context = driver_context_in(home.path());
        context.set_dir_delete_on_shutdown(true).expect("a setting");
        context
    };
    let mut invoked = context();
    invoked.set_threading_mode(ThreadingMode::Invoker).expect("a mode");
    MediaDriver::launch(invoked).expect_err("no threads");
    assert!(home.path().is_dir());

    let driver = MediaDriver::launch(context()).expect("a driver");
    let error = MediaDriver::launch(context()).expect_err("a running driver");
    assert_eq!(error.kind(), ErrorKind::ActiveDriver, "{error:?}");
    drop(connect(&driver).add_publication("aeron:ipc", 1).expect("a publication"));
}

/// The names of the embedded drivers' directories of this process.
fn embedded_dirs() -> Vec<PathBuf> {
    let shared_memory = Path::new("/dev/shm");
    let temporary = std::env::temp_dir();
    let base = if shared_memory.is_dir() { shared_memory } else { &temporary };
    let prefix = format!("rusteron-{}-", std::process::id());
    let entries = fs::read_dir(base).expect("a directory").flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .map(|entry| entry.path())
        .collect()
}

#[test]
fn late_failure_deletes_embedded_dir() {
    let mut context = driver_context_in(Path::new("unused"));
    // Aeron binds the address after it has made its files.
    let occupied = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let interface = occupied.local_addr().expect("an address").to_string();
    context
        .set_name_resolver(NameResolver::Driver)
        .and_then(|context| context.set_resolver_name("first"))
        .and_then(|context| context.set_resolver_interface(&interface))
        .expect("settings");
    let error = MediaDriver::launch_embedded_with(context).expect_err("an address in use");
    assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::AddrInUse), "{error:?}");
    // Those of other tests are among them, and go when their drivers are dropped.
    let deadline = Instant::now() + Duration::from_secs(60);
    for dir in embedded_dirs() {
        while dir.exists() {
            assert!(Instant::now() < deadline, "{dir:?} is left behind");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn dir_is_deleted_once() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let launch = || {
        let mut context = driver_context_in(&dir);
        context.set_dir_delete_on_shutdown(true).expect("a setting");
        MediaDriver::launch(context)
    };
    let successor = std::thread::scope(|scope| {
        let first = launch().expect("a driver");
        let launching = scope.spawn(|| {
            while dir.exists() {
                std::thread::yield_now();
            }
            launch().expect("a driver")
        });
        drop(first);
        launching.join().expect("no panic")
    });
    drop(connect(&successor).add_publication("aeron:ipc", 1).expect("its files are there"));
}

#[test]
fn unset_idle_strategy_is_rejected() {
    let broken = || {
        let mut context = DriverContext::new().expect("a context");
        context
            .set_threading_mode(ThreadingMode::Shared)
            .and_then(|context| context.set_shared_idle_strategy_init_args("rubbish"))
            .expect("settings");
        context.set_shared_idle_strategy(IdleStrategyKind::Backoff).expect_err("not arguments");
        assert_eq!(context.shared_idle_strategy(), None);
        context
    };
    let error = MediaDriver::launch_embedded_with(broken()).expect_err("no idle strategy");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    assert!(error.message().contains("shared_idle_strategy"), "{error:?}");

    let mut repaired = broken();
    repaired.set_shared_idle_strategy(IdleStrategyKind::Yielding).expect("a strategy");
    drop(MediaDriver::launch_embedded_with(repaired).expect("a driver"));
}

#[test]
fn driver_runs_as_agent() {
    let mut context = DriverContext::new().expect("a context");
    context.set_threading_mode(ThreadingMode::Invoker).expect("a mode");
    let driver = DriverInvoker::launch_embedded(context).expect("a driver");
    let dir = driver.aeron_dir().to_owned();
    let runner = AgentRunner::builder(driver).start().expect("a thread");
    assert_eq!(runner.role_name(), "media-driver");
    let aeron = Aeron::connect(rusteron_test_support::context(&dir)).expect("a client");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1).expect("a subscription");
    let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    exchange(&mut publication, &mut subscription, 100);
    runner.close().expect("a good end");
    assert!(!dir.exists());
}

/// An embedded driver in a process of its own, which lives until it is killed. Returns its
/// directory, too.
#[cfg(target_os = "linux")]
fn embedding_process() -> (rusteron_test_support::ChildProcess, PathBuf) {
    let mut command = rusteron_test_support::ignored_test("media_driver::embed_until_killed");
    let mut process = rusteron_test_support::ChildProcess::spawn(
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()),
    );
    let line = process.await_line("directory ");
    let dir = PathBuf::from(line.strip_prefix("directory ").expect("a path"));
    (process, dir)
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by another test, in a process of its own"]
fn embed_until_killed() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    println!("\ndirectory {}", driver.aeron_dir().display());
    let _ = io::read_to_string(io::stdin());
}

#[cfg(target_os = "linux")]
#[test]
fn next_launch_removes_what_killed_processes_left() {
    let (mut killed, left) = embedding_process();
    let (stopped, alive) = embedding_process();
    killed.kill();
    stopped.signal("STOP");
    let driver = MediaDriver::launch_embedded().expect("a driver");
    assert!(!left.exists());
    assert!(alive.join("cnc.dat").is_file() && driver.aeron_dir().join("cnc.dat").is_file());
    stopped.signal("CONT");
}
