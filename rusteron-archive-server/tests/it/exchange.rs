//! A directory goes to Java's archive and back.

use std::path::Path;

use rusteron_archive::SourceLocation;
use rusteron_archive_server::Checksum;
use rusteron_test_support::archive::{ArchiveProcess, Options, record};
use rusteron_test_support::{ChildProcess, Finished, await_that, command, has_java, java_run, run};

use crate::support::{Fixture, await_stop, extend};

fn tool(dir: &Path, arguments: &[&str]) -> Finished {
    let (script, dir) = (java_run(), dir.to_str().expect("a path"));
    let all = [&["io.aeron.archive.ArchiveTool", dir], arguments].concat();
    let finished = run(command(script.to_str().expect("a path"), all));
    finished.assert_exit_code(0);
    finished
}

/// Lets Java's tool verify everything in a directory.
fn verify(dir: &Path, arguments: &[&str]) {
    tool(dir, &[&["verify", "-a"], arguments].concat()).assert_lines(["(recordingId=0) OK"]);
}

/// Checks that Java's archive does not start in the directory of a live server.
fn assert_java_refused(fixture: &Fixture) {
    let properties = [
        format!("-Daeron.dir={}", fixture.driver.aeron_dir().display()),
        format!("-Daeron.archive.dir={}", fixture.archive_dir().display()),
        "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:0".to_owned(),
        "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0".to_owned(),
    ];
    let mut java = command(java_run().to_str().expect("a path"), ["io.aeron.archive.Archive"]);
    java.args(properties);
    let mut java = ChildProcess::spawn(&mut java);
    await_that("Java's end", || java.try_wait().is_some());
    let (status, _, errors) = java.finish();
    assert!(!status.success() && errors.contains("active mark file detected"), "{errors}");
}

#[test]
fn java_extends_what_server_recorded() {
    if !has_java() {
        return;
    }
    let mut fixture = Fixture::launch();
    let archive = fixture.connect();
    let dir = fixture.archive_dir();
    let pid = tool(&dir, &["pid"]).stdout;
    assert_eq!(pid.trim(), std::process::id().to_string());
    // It is at none of this host's interfaces, so the driver refuses it.
    let foreign = "aeron:udp?endpoint=192.0.2.1:9";
    archive.start_recording(foreign, 9, SourceLocation::Remote, false).expect_err("not ours");
    let errors = tool(&dir, &["errors"]).stdout;
    // The tool also reads the log of the driver, which has the error, too.
    let (ours, _) = errors.split_once("Aeron driver error log").expect("two logs");
    assert!(ours.contains("1 observations from ") && ours.contains("192.0.2.1"), "{errors}");
    assert_java_refused(&fixture);
    let (publication, recording_id, _) = record(&archive, 3000);
    drop(publication);
    await_stop(&archive, recording_id);
    drop(archive);
    fixture.take().close().expect("a good end");
    verify(&fixture.archive_dir(), &[]);

    let archive_dir = Some(fixture.archive_dir());
    let options = Options { archive_dir, ..Options::default() };
    let mut java = ArchiveProcess::launch_java(options).expect("an archive");
    let archive = java.connect();
    extend(&archive, recording_id, 3000..5000);
    drop(archive);
    assert_eq!(java.stop().code(), Some(143));

    fixture.restart();
    let archive = fixture.connect();
    extend(&archive, recording_id, 5000..6000);
    drop(archive);
    fixture.take().close().expect("a good end");
    verify(&fixture.archive_dir(), &[]);
}

#[test]
fn java_verifies_checksums_of_open_recording() {
    if !has_java() {
        return;
    }
    let mut fixture = Fixture::launch_with(|context| {
        context.set_record_checksum(Some(Checksum::Crc32)).expect("a checksum");
    });
    let archive = fixture.connect();
    let (_publication, _, _) = record(&archive, 3000);
    // Stopped by the end of the server.
    fixture.take().close().expect("a good end");
    verify(&fixture.archive_dir(), &["-checksum", "io.aeron.archive.checksum.Crc32"]);
}
