//! Sessions that fail.

use rusteron_test_support::archive::{JavaArchive, record};

use super::{archive, assert_fails};
use crate::support::{Running, free_port, launch, rusteron};

#[test]
fn missing_archive_is_named() {
    let driver = launch();
    let channel = format!("aeron:udp?endpoint=localhost:{}", free_port());
    let arguments = ["archive", "--control-channel", &channel, "list"];
    let mut command = rusteron(driver.aeron_dir(), arguments);
    command.env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "200ms");
    assert_fails(command, &format!("cannot connect to the archive at {channel}"));
}

#[test]
fn killed_driver_is_the_reason() {
    let Some(mut java) = JavaArchive::launch() else { return };
    let session = java.connect();
    let (_publication, id, position) = record(&session, 1);
    let mut command = archive(&java, &["tail", &id.to_string()]);
    command.args(["--driver-timeout", "5s"]);
    let mut tail = Running::start(command);
    tail.await_line(&format!("{position:>12}  "));
    java.kill();
    let finished = tail.finish();
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("driver timeout"), "{finished:#?}");
}
