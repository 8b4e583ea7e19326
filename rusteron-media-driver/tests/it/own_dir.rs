//! A driver whose directory was removed or replaced while it ran. It must harm neither its clients
//! nor its successor.

use std::fs;
use std::path::{Path, PathBuf};

use rusteron_client::{Aeron, ErrorKind, Publication};
use rusteron_media_driver::{DirAccess, MediaDriver};
use rusteron_test_support::{ForgedCnc, await_that, connect, driver_context_in};

const CHANNEL: &str = "aeron:ipc?term-length=64k";

fn launch(dir: &Path) -> MediaDriver {
    let mut context = driver_context_in(dir);
    context.set_dir_delete_on_shutdown(true).expect("a setting");
    MediaDriver::launch(context).expect("a driver")
}

/// A driver, and another that has replaced its directory, with a client and a publication of each.
/// As each driver counts from the same number, the log buffers have the same names.
fn replaced(dir: &Path) -> [(MediaDriver, Aeron, Publication); 2] {
    let [first, second] = [(), ()].map(|()| {
        let _ = fs::remove_dir_all(dir);
        let driver = launch(dir);
        let aeron = connect(&driver);
        let publication = aeron.add_publication(CHANNEL, 1).expect("a publication");
        let names = log_buffers(dir);
        ((driver, aeron, publication), names)
    });
    assert_eq!(first.1, second.1);
    [first.0, second.0]
}

fn log_buffers(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("publications")).expect("a directory").flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn replaced_driver_leaves_the_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let [first, (successor, aeron, publication)] = replaced(&dir);
    let error = first.0.close().expect_err("nothing of its own is left");
    assert!(error.to_string().contains("not deleted: another driver has replaced it"), "{error}");
    assert!(dir.join("cnc.dat").is_file() && dir.join("loss-report.dat").is_file());
    assert_eq!(log_buffers(&dir).len(), 1);
    drop(connect(&successor).add_publication(CHANNEL, 2).expect("a publication"));
    assert_eq!(aeron.close_cause(), None);
    drop((publication, aeron));
    successor.close().expect("its own directory");
    assert!(!dir.exists());
}

#[test]
fn replaced_driver_leaves_log_buffers_of_the_same_names() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let [(first, aeron, publication), (_successor, successors, _publication)] = replaced(&dir);
    let names = log_buffers(&dir);
    // The driver frees the log buffer, and its bytes are no longer mapped.
    let mapped = || first_mapped(&aeron);
    let before = mapped();
    drop(publication);
    await_that("the log buffer's end", || mapped() < before);
    assert_eq!(log_buffers(&dir), names);
    drop(successors.add_subscription(CHANNEL, 1).expect("a subscription"));
    drop(first);
    assert_eq!(log_buffers(&dir), names);
}

/// The driver's counter of mapped bytes.
fn first_mapped(aeron: &Aeron) -> i64 {
    let counters = aeron.counters_reader();
    let counter = counters.iter().find(|counter| counter.label.starts_with("Bytes currently"));
    counter.expect("the counter").value
}

#[test]
fn add_on_replaced_driver_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let [(_first, aeron, _publication), _successor] = replaced(&dir);
    let names = log_buffers(&dir);
    let error = aeron.add_publication(CHANNEL, 2).expect_err("another driver's directory");
    let expected = "another driver has replaced the directory of this driver";
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(log_buffers(&dir), names);
}

#[test]
fn removed_directory_refuses_adds_and_spares_streams() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let driver = launch(&dir);
    let aeron = connect(&driver);
    let publication = aeron.add_publication(CHANNEL, 1).expect("a publication");
    let mut subscription = aeron.add_subscription(CHANNEL, 1).expect("a subscription");
    await_that("the image", || subscription.is_connected());
    fs::remove_dir_all(&dir).expect("a directory");
    let error = aeron.add_publication(CHANNEL, 2).expect_err("no directory");
    assert!(error.to_string().contains("removed while the driver ran"), "{error}");
    await_that("a message", || {
        let _ = publication.offer(b"x");
        subscription.poll(|_, _| {}, 1).expect("an open subscription") > 0
    });
    drop((publication, subscription, aeron));
    let error = driver.close().expect_err("nothing is left");
    assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::NotFound), "{error:?}");
    assert!(!dir.exists());
}

#[test]
#[cfg(feature = "binary")]
fn lost_directory_is_reported_once() {
    use rusteron_test_support::{ChildProcess, media_driver};
    use std::process::Stdio;

    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let errors = home.path().join("errors");
    let mut command = media_driver(crate::MEDIA_DRIVER);
    command.args(["-D", "aeron.timer.interval=10ms", "--dir"]).arg(&dir);
    command.stdout(Stdio::piped()).stderr(fs::File::create(&errors).expect("a file"));
    let mut driver = ChildProcess::spawn(&mut command);
    driver.await_line("media driver ready");
    for file in ["cnc.dat", "loss-report.dat"] {
        fs::remove_file(dir.join(file)).expect("a file");
    }
    let errors = || fs::read_to_string(&errors).expect("a file");
    await_that("a report", || errors().contains("cnc.dat was removed while the driver runs"));
    driver.signal("TERM");
    assert!(driver.wait().success());
    assert_eq!(errors().lines().count(), 1, "{}", errors());
}

/// The file is beside the directory, where other users may have placed a file or a link under its
/// name.
#[cfg(unix)]
#[test]
fn former_errors_are_saved_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut context = driver_context_in(&dir);
    context.set_dir_access(DirAccess::Umask).expect("a setting");
    let driver = MediaDriver::launch(context).expect("a driver");
    ForgedCnc::open(&dir).command_record(32, 1, &[0xff; 24]);
    await_that("the error", || !driver.cnc_file().expect("the CnC file").errors().is_empty());
    driver.close().expect("no error");

    let mut context = driver_context_in(&dir);
    context.set_dir_access(DirAccess::Umask).expect("a setting");
    let driver = MediaDriver::launch(context).expect("a driver");
    let mut names = fs::read_dir(home.path()).expect("a directory").flatten();
    let saved = names.find(|it| it.file_name().to_string_lossy().ends_with("-error.log"));
    let saved = saved.expect("the saved errors").path();
    let text = fs::read_to_string(&saved).expect("a text");
    assert!(text.contains("too short") && text.contains("1 distinct errors"), "{text}");
    let mode = fs::metadata(&saved).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    driver.close().expect("no error");
}
