//! Mark files that Java's archive and its tool read and write.

use std::process::{Command, Output};

use rusteron_test_support::archive::{ArchiveProcess, Options};
use rusteron_test_support::java_run;

use super::*;

fn java(class: &str, arguments: &[&str]) -> Output {
    let output = Command::new(java_run()).arg(class).args(arguments).output();
    output.expect("Java starts")
}

/// Returns what Aeron's tool says. For errors, it also wants to read those of the media driver, which has gone.
fn tool(dir: &Path, command: &str) -> String {
    let output = java("io.aeron.archive.ArchiveTool", &[dir.to_str().expect("UTF-8"), command]);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Checks that Java's archive, with a media driver of its own, does not start in the directory of a live server.
fn assert_java_refused(dir: &Path, mark_file: &MarkFile) {
    let aeron_dir = format!("-Daeron.dir={}", dir.join("driver").display());
    let archive_dir = format!("-Daeron.archive.dir={}", dir.display());
    let properties = [
        &*aeron_dir,
        &*archive_dir,
        "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:0",
        "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0",
    ];
    // On a busy machine, Java starts more slowly than signs of life get old.
    let output = std::thread::scope(|scope| {
        let java = scope.spawn(|| java("io.aeron.archive.ArchivingMediaDriver", &properties));
        await_that("Java's end", || {
            mark_file.tick();
            java.is_finished()
        });
        java.join().expect("no panic")
    });
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("active mark file detected"), "{text}");
}

#[test]
fn mark_files_of_java_and_rust() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file_dir = format!("aeron.archive.mark.file.dir={}", dir.path().display());
    let options = Options { properties: vec![mark_file_dir], ..Options::default() };
    let Some(mut java) = ArchiveProcess::launch_java(options) else { return };
    let error = activate(&dir).expect_err("refused");
    assert_eq!(error.kind(), ServerErrorKind::ActiveArchive);
    let owner = format!("process {}, which ", java.pid());
    assert!(error.message().contains(&owner), "{error}");
    let header = read(&dir);
    assert_eq!((header.version, header.control_stream_id), (VERSION, 10));
    assert_eq!(header.control_channel, java.control_channel());
    assert_eq!(header.aeron_dir, java.aeron_dir().to_string_lossy());

    // Java's file, which is sparse, is taken over, and Java leaves ours alone.
    java.stop();
    let mark_file = activate(&dir).expect("a mark file");
    mark_file.ready();
    mark_file.record_error("the disk is wet");
    mark_file.record_error("the disk is wet");
    assert_java_refused(dir.path(), &mark_file);
    assert_eq!(tool(dir.path(), "pid").trim(), std::process::id().to_string());
    let errors = tool(dir.path(), "errors");
    assert!(errors.contains("the disk is wet"), "{errors}");
    assert!(errors.contains("2 observations from "), "{errors}");

    drop(mark_file);
    java.restart();
    assert_eq!((read(&dir).version, read(&dir).pid), (VERSION, java.pid().into()));
}
