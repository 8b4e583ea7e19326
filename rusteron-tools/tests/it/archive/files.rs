//! `rusteron archive` on the files of a directory.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use rusteron_test_support::archive::{ArchiveProcess, record};
use serde_json::{Value, json};

use super::{archive_json, assert_fails};
use crate::support::{array, await_that, run, rusteron, text_of};

/// The program with a directory, and without a media driver.
fn files(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = rusteron(Path::new("/nonexistent"), ["archive"]);
    command.args(arguments).arg("--archive-dir").arg(dir);
    command
}

#[track_caller]
fn files_text(dir: &Path, arguments: &[&str]) -> String {
    text_of(run(files(dir, arguments)))
}

#[track_caller]
fn files_json(dir: &Path, arguments: &[&str]) -> Value {
    let text = files_text(dir, &[arguments, &["--json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn running_archive_keeps_its_files() {
    let server = ArchiveProcess::launch();
    let session = server.connect();
    let (_publication, id, position) = record(&session, 10);
    let (dir, pid) = (server.archive_dir(), server.pid());
    let mut listed = files_json(dir, &["list"])["recordings"][0].clone();
    let entry = listed.as_object_mut().expect("an object");
    assert_eq!(entry.remove("state"), Some("valid".into()));
    assert_eq!(entry.remove("fault"), Some(Value::Null));
    assert_eq!(listed, archive_json(&server, &["list"])["recordings"][0]);
    assert_eq!(files_text(dir, &["count", "--stream-id", "1"]), "0\n");
    let described = files_json(dir, &["describe", &id.to_string()]);
    assert_eq!(described["recorded_position"], position);
    let dry_run: [&[&str]; 2] =
        [&["compact", "--dry-run"], &["delete-orphaned-segments", "--dry-run"]];
    for arguments in dry_run {
        assert_eq!(files_json(dir, arguments)["segments"], json!([]));
    }
    let refused: [&[&str]; 5] = [
        &["verify"],
        &["mark-valid", "0"],
        &["mark-invalid", "0"],
        &["compact"],
        &["delete-orphaned-segments"],
    ];
    for arguments in refused {
        assert_fails(
            files(dir, arguments),
            &format!("belongs to an archive, process {pid}, which"),
        );
    }
    assert_eq!(archive_json(&server, &["count"])["count"], 1);
}

#[test]
fn invalid_recordings_are_found_and_removed() {
    let mut server = ArchiveProcess::launch();
    let session = server.connect();
    for expected in 0..2 {
        let (publication, id, _) = record(&session, 2000);
        assert_eq!(id, expected);
        drop(publication);
        await_that("the end", || session.stop_position(id).expect("an answer").is_some());
    }
    drop(session);
    server.stop();
    let dir = server.archive_dir().to_owned();
    let verified = files_text(&dir, &["verify", "--all-segments"]);
    assert_eq!(verified, "recording 0: valid, files ok\nrecording 1: valid, files ok\n");
    let segment = OpenOptions::new().write(true).open(dir.join("1-131072.rec")).expect("a segment");
    segment.write_all_at(&[7; 4], 96 + 16).expect("a write");
    let finished = run(files(&dir, &["verify", "1", "--repair"]));
    finished.assert_exit_code(1);
    assert_eq!(
        finished.stdout,
        "recording 1: 1-131072.rec: position 131168: wrong stream id 117901063\nrecording 1: invalid now\n"
    );
    assert_eq!(finished.stderr, "rusteron: 1 recording is not as it should be\n");
    let finished = run(files(&dir, &["verify", "--json"]));
    let verified: Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let wrong = &verified["recordings"][1];
    assert_eq!((&wrong["state"], &wrong["repair"]), (&"invalid".into(), &Value::Null));
    let finding = json!({
        "file": "1-131072.rec", "position": 131_168, "text": "wrong stream id 117901063", "invalidates": true
    });
    assert_eq!(wrong["findings"], json!([finding]));
    assert_eq!(files_text(&dir, &["count"]), "1\n");
    assert!(files_text(&dir, &["list"]).ends_with("  (invalid)\n"));
    let text = files_text(&dir, &["describe", "1"]);
    assert!(text.ends_with("\nState           invalid\n"), "{text}");
    assert_eq!(files_text(&dir, &["mark-valid", "1"]), "recording 1 is valid\n");
    assert_eq!(files_text(&dir, &["mark-valid", "1"]), "recording 1 is valid already\n");
    assert_eq!(files_json(&dir, &["mark-invalid", "1"])["is_changed"], true);
    assert_fails(files(&dir, &["mark-invalid", "7"]), "there is no recording 7");

    let planned = files_json(&dir, &["compact", "--dry-run"]);
    assert_eq!(planned["segments"], json!(["1-0.rec", "1-131072.rec"]));
    fs::write(dir.join("0-1048576.rec"), "").expect("an orphan");
    let orphans = files_text(&dir, &["delete-orphaned-segments", "0"]);
    assert_eq!(orphans, "removed segments: 1\n0-1048576.rec\n");
    let mut compacted = files_json(&dir, &["compact"]);
    assert_eq!(compacted["is_dry_run"].take(), false);
    compacted["is_dry_run"] = true.into();
    assert_eq!(compacted, planned);
    assert!(!dir.join("1-0.rec").exists());
    fs::write(dir.join("7-0.rec"), "").expect("a segment of a lost catalog");
    assert_fails(files(&dir, &["verify"]), "segments of no recording in the catalog: 1");
    let text = run(files(&dir, &["verify"])).stdout;
    assert!(text.ends_with("\n7-0.rec: the catalog has no such recording\n"), "{text}");

    server.restart();
    assert_eq!(array(&archive_json(&server, &["list"]), "recordings").len(), 1);
    let verified = archive_json(&server, &["verify", "0"]);
    assert_eq!(verified["messages"], 2000);
}

#[test]
fn killed_recording_ends_where_its_frames_do() {
    let mut server = ArchiveProcess::launch();
    let (_publication, _, position) = record(&server.connect(), 2000);
    server.kill();
    let dir = server.archive_dir();
    // Without a lock, Java's archive counts as alive for ten seconds.
    await_that("its end", || run(files(dir, &["verify"])).status.success());
    let expected = format!("recording 0: valid, no stop position, frames end at {position}");
    let text = files_text(dir, &["verify"]);
    assert!(text.contains(&expected), "{text}");
    let text = files_text(dir, &["verify", "--repair"]);
    assert!(text.ends_with(&format!("\nrecording 0: stop position {position} now\n")), "{text}");
    assert_eq!(files_text(dir, &["verify"]), "recording 0: valid, files ok\n");
}

#[test]
fn directory_without_catalog_is_named() {
    let empty = tempfile::tempdir().expect("a directory");
    assert_fails(files(empty.path(), &["list"]), "it has no archive.catalog");
}
