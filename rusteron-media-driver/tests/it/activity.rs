//! Directories of drivers that are active, dead or none.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rusteron_media_driver::{ErrorKind, MediaDriver, is_driver_active};
use rusteron_test_support::{DriverProcess, connect, driver_context_in};

use crate::MEDIA_DRIVER;

#[test]
fn killed_driver_is_stale() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(MEDIA_DRIVER, &dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));
    let pid = driver.id();
    assert!(is_driver_active(&dir, Duration::from_secs(60)).expect("an answer"));
    driver.signal("KILL");
    driver.end();
    // Without it, the kernel cannot tell that the driver has died, as on other operating systems.
    fs::remove_file(dir.join("loss-report.dat")).expect("a file");
    assert!(is_driver_active(&dir, Duration::from_secs(60)).expect("an answer"));

    let mut context = driver_context_in(&dir);
    context.set_driver_timeout(Duration::from_secs(60)).expect("a timeout");
    let error = MediaDriver::launch(context).expect_err("it counts as running");
    assert_eq!(error.kind(), ErrorKind::StaleDirectory, "{error:?}");
    assert!(error.message().contains(&format!("process {pid} is gone")), "{error:?}");
    assert!(error.message().contains("dir_delete_on_start"), "{error:?}");
    let (code, errors) =
        DriverProcess::start(MEDIA_DRIVER, &dir, &["-D", "aeron.driver.timeout=60000"]).end();
    assert_eq!(code, 75, "{errors}");

    // With a timeout of 1 ms any heartbeat is old.
    let mut context = driver_context_in(&dir);
    context.set_driver_timeout(Duration::from_millis(1)).expect("a timeout");
    drop(
        connect(&MediaDriver::launch(context).expect("a successor"))
            .add_publication("aeron:ipc", 1)
            .expect("a publication"),
    );
}

#[test]
fn active_until_end() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let timeout = Duration::from_secs(60);
    assert!(!is_driver_active(&dir, timeout).expect("an answer"));
    let driver = MediaDriver::launch(driver_context_in(&dir)).expect("a driver");
    assert!(is_driver_active(&dir, timeout).expect("an answer"));
    drop(driver);
    assert!(dir.join("cnc.dat").is_file());
    assert!(!is_driver_active(&dir, timeout).expect("an answer"));
    let error = is_driver_active("", timeout).expect_err("no path");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn foreign_files_are_not_active() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("cnc.dat");
    // A version that is none; the right one, followed by lengths that are lies.
    let driver = MediaDriver::launch(driver_context_in(&home.path().join("aeron"))).expect("one");
    let header = fs::read(driver.aeron_dir().join("cnc.dat")).expect("its file");
    drop(driver);
    let mut lengths = header[..4096].to_vec();
    lengths[4..24].fill(0x7F);
    for content in [vec![0xFF; 8192], vec![0xFF; 10], header[..4096].to_vec(), lengths] {
        fs::write(&file, content).expect("a file");
        assert!(!is_driver_active(home.path(), Duration::ZERO).expect("an answer"));
        let error = MediaDriver::launch(driver_context_in(home.path())).expect_err("no driver's");
        assert_eq!(error.kind(), ErrorKind::IncompatibleDriver, "{error:?}");
        assert!(error.message().contains("dir_delete_on_start"), "{error:?}");
        assert!(file.is_file());
    }
}

#[test]
fn named_pipe_is_rejected() {
    let home = tempfile::tempdir().expect("a directory");
    let pipe = home.path().join("cnc.dat");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("the command mkfifo");
    assert!(made.success());
    let (sender, receiver) = std::sync::mpsc::channel();
    let dir = home.path().to_owned();
    std::thread::spawn(move || {
        // The receiver is gone once the test has failed.
        let _ = sender.send(MediaDriver::launch(driver_context_in(&dir)));
    });
    let error = receiver
        .recv_timeout(rusteron_test_support::DEADLINE)
        .expect("an answer")
        .expect_err("a pipe");
    assert_eq!(error.kind(), ErrorKind::IncompatibleDriver, "{error:?}");
    assert!(fs::symlink_metadata(&pipe).is_ok());
}
