//! Drivers in this process: their directories, and launches that fail.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, Context as ClientContext};
use rusteron_media_driver::{Context, ErrorKind, MediaDriver, ThreadingMode};

fn context_in(dir: &Path) -> Context {
    let mut context = Context::new().expect("a context");
    context
        .set_dir(dir)
        .and_then(|context| context.set_dir_warn_if_exists(false))
        .and_then(|context| context.set_threading_mode(ThreadingMode::Shared))
        .expect("valid settings");
    context
}

fn client_of(driver: &MediaDriver) -> Aeron {
    let mut context = ClientContext::new().expect("a context");
    context
        .set_dir(driver.aeron_dir())
        .and_then(|context| context.set_driver_timeout(Duration::from_secs(60)))
        .expect("valid settings");
    Aeron::connect(context).expect("a client")
}

#[test]
fn an_embedded_driver_has_a_directory_of_its_own_and_takes_it_along() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let dir = driver.aeron_dir().to_owned();
    assert!(dir.join("cnc.dat").is_file());
    if Path::new("/dev/shm").is_dir() {
        assert!(dir.starts_with("/dev/shm"), "{dir:?}");
    }
    client_of(&driver).add_publication("aeron:ipc", 1).expect("a publication");
    drop(driver);
    assert!(!dir.exists());
}

#[test]
fn every_threading_mode_with_threads_serves_clients() {
    for mode in [ThreadingMode::Dedicated, ThreadingMode::SharedNetwork, ThreadingMode::Shared] {
        let mut context = Context::new().expect("a context");
        context.set_threading_mode(mode).expect("a mode");
        let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
        client_of(&driver).add_publication("aeron:ipc", 1).expect("a publication");
    }
}

#[test]
fn several_drivers_live_in_one_process() {
    let drivers: Vec<_> =
        (0..3).map(|_| MediaDriver::launch_embedded().expect("a driver")).collect();
    let clients: Vec<_> = drivers.iter().map(client_of).collect();
    for (number, client) in clients.iter().enumerate() {
        client.add_publication("aeron:ipc", number as i32).expect("a publication");
    }
    // Drivers before clients: the clients find out by themselves.
    drop(drivers);
    drop(clients);
}

#[test]
fn drivers_can_be_launched_at_once() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let driver = MediaDriver::launch_embedded().expect("a driver");
                client_of(&driver).add_publication("aeron:ipc", 1).expect("a publication");
            });
        }
    });
}

#[test]
fn a_directory_in_use_is_refused_and_left_alone() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let first = MediaDriver::launch(context_in(&dir)).expect("a driver");
    let mut context = context_in(&dir);
    context.set_dir_delete_on_shutdown(true).expect("a setting");
    let error = MediaDriver::launch(context).expect_err("the directory is taken");
    assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::ResourceBusy));
    assert!(error.message().contains("Active media driver detected"), "{error:?}");
    client_of(&first).add_publication("aeron:ipc", 1).expect("the first driver is unharmed");
}

#[test]
fn a_launched_driver_keeps_its_directory_unless_told_otherwise() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("kept");
    drop(MediaDriver::launch(context_in(&dir)).expect("a driver"));
    assert!(dir.join("cnc.dat").is_file());
    // Its successor replaces what is left.
    let mut context = context_in(&dir);
    context.set_dir_delete_on_shutdown(true).expect("a setting");
    drop(MediaDriver::launch(context).expect("a driver"));
    assert!(!dir.exists());
}

#[test]
fn a_context_that_was_never_launched_deletes_nothing() {
    let home = tempfile::tempdir().expect("a directory");
    fs::write(home.path().join("precious"), b"data").expect("a file");
    let mut context = context_in(home.path());
    context.set_dir_delete_on_shutdown(true).expect("a setting");
    drop(context);
    assert!(home.path().join("precious").is_file());
}

#[test]
fn settings_out_of_range_are_refused_and_leave_no_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    type Set = fn(&mut Context) -> rusteron_media_driver::Result<&mut Context>;
    let cases: [(&str, Set); 3] = [
        ("term", |context| context.set_ipc_term_buffer_length(1)),
        ("mtu", |context| context.set_mtu_length(3)),
        ("invoker", |context| context.set_threading_mode(ThreadingMode::Invoker)),
    ];
    for (name, set) in cases {
        let mut context = context_in(&dir);
        let error = match set(&mut context).map(drop) {
            Ok(()) => MediaDriver::launch(context).expect_err(name),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        assert!(error.message().to_lowercase().contains(name), "{name}: {error:?}");
        assert!(!dir.exists(), "{name}");
    }
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("file");
    fs::write(&file, b"in the way").expect("a file");
    let error = MediaDriver::launch(context_in(&file.join("aeron"))).expect_err("not a directory");
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error:?}");
    assert!(file.is_file());
}

/// A small file system of its own; only the superuser can make one.
struct SmallFileSystem(tempfile::TempDir);

impl SmallFileSystem {
    fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path())
            .output()
            .is_ok_and(|output| output.status.success());
        assert!(
            mounted || std::env::var_os("CI").is_none(),
            "CI must be able to mount a file system"
        );
        mounted.then_some(Self(dir))
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_file_system_is_an_error_and_leaves_no_directory() {
    let Some(small) = SmallFileSystem::mount("1m") else {
        println!("skipped: mounting a file system needs the superuser");
        return;
    };
    let dir = small.0.path().join("aeron");
    let error = MediaDriver::launch(context_in(&dir)).expect_err("no space");
    assert_eq!(error.kind(), ErrorKind::StorageSpace, "{error:?}");
    assert!(error.message().contains("No space left on device"), "{error:?}");
    assert!(!dir.exists());
}

#[test]
fn a_log_buffer_that_does_not_fit_is_an_error_at_the_add_and_the_driver_lives_on() {
    let Some(small) = SmallFileSystem::mount("80m") else {
        println!("skipped: mounting a file system needs the superuser");
        return;
    };
    let driver = MediaDriver::launch(context_in(&small.0.path().join("aeron"))).expect("a driver");
    let aeron = client_of(&driver);
    let error = aeron.add_publication("aeron:ipc?term-length=64m", 1).expect_err("no space");
    assert_eq!(error.kind(), ErrorKind::StorageSpace, "{error:?}");
    aeron.add_publication("aeron:ipc?term-length=64k", 1).expect("there is space for this");
    drop(aeron);
}
