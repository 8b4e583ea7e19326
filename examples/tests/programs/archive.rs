//! The programs that use an archive: their own, or that of a media driver which runs already.

use std::process::Command;

use rusteron_archive::{ReplayLength, ReplayParams};
use rusteron_test_support::archive::{ArchiveProcess, record, replay_all};
use rusteron_test_support::{command, run, succeed};

use crate::assert_in_order;

/// Programs that start an archive of their own, and lines of their output.
const PROGRAMS: [(&str, &[&str]); 3] = [
    (
        env!("CARGO_BIN_EXE_record_and_replay"),
        &[
            "Recording 0 has 10 messages, up to position 640",
            "Replayed \"Hello 1\", position 64",
            "Replayed \"Hello 10\", position 640",
        ],
    ),
    (
        env!("CARGO_BIN_EXE_replay_merge"),
        &["Merged after ", "Received 1000 messages, none lost or repeated"],
    ),
    (
        env!("CARGO_BIN_EXE_persistent_subscription"),
        &[
            "Received \"early\"",
            "LiveJoined",
            "Received \"live\"",
            "LiveLeft",
            "Received \"late\"",
            "LiveJoined",
        ],
    ),
];

/// A program whose timeouts are long, so that a slow driver or archive is not taken for dead.
fn patient(path: &str, arguments: &[&str]) -> Command {
    let mut command = command(path, arguments);
    command.env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "60s").env("AERON_DRIVER_TIMEOUT", "60000");
    command
}

/// A program with the archive of a driver.
fn with_archive(server: &ArchiveProcess, path: &str, arguments: &[&str]) -> Command {
    let mut command = patient(path, arguments);
    command.env("AERON_DIR", server.aeron_dir());
    command
}

#[test]
fn programs_run_archives_of_their_own() {
    for (path, expected) in PROGRAMS {
        assert_in_order(&succeed(patient(path, &[])), expected);
    }
}

#[test]
fn programs_use_archive_of_named_driver() {
    let server = ArchiveProcess::launch();
    for (path, expected) in PROGRAMS {
        assert_in_order(&succeed(with_archive(&server, path, &[])), expected);
    }
    assert_eq!(server.connect().recordings().count(), PROGRAMS.len());
}

#[test]
fn recording_is_replicated() {
    let source = ArchiveProcess::launch();
    let copy = ArchiveProcess::launch();
    let archive = source.connect();
    let (_publication, id, position) = record(&archive, 500);
    let path = env!("CARGO_BIN_EXE_replicate");
    let channel = source.control_channel();
    let finished = succeed(with_archive(&copy, path, &[&channel, &id.to_string()]));
    let done = format!("Recording 0 is a copy of {id}, up to position {position}");
    assert_in_order(&finished, &["Extend: recording 0", "ReplicateEnd: recording 0", &done]);
    let recorded = ReplayParams::new().length(ReplayLength::Recorded);
    // Checks the content of each message.
    assert_eq!(replay_all(&copy.connect(), 0.into(), recorded), (0..500).collect::<Vec<_>>());

    let finished = run(with_archive(&copy, path, &[&channel, "4711"]));
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("4711"), "{finished:#?}");
}
