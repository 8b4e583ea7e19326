//! The programs that use an archive, with Java's.

use std::process::Command;

use rusteron_archive::{ReplayLength, ReplayParams};
use rusteron_test_support::archive::{
    ArchiveProcess, ArchiveRequest, has_requests, record, replay_all,
};
use rusteron_test_support::{command, run, succeed};

use crate::assert_in_order;

/// A program with an archive. Its timeouts are long, so that a slow driver or archive is not taken
/// for dead.
fn with_archive(server: &ArchiveProcess, path: &str, arguments: &[&str]) -> Command {
    let mut command = command(path, arguments);
    command.env("AERON_DIR", server.aeron_dir());
    command.env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "60s").env("AERON_DRIVER_TIMEOUT", "60000");
    command
}

#[test]
fn recordings_are_replayed_merged_and_continued() {
    let server = ArchiveProcess::launch();
    let programs: [(_, &[_]); 3] = [
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
    for (path, expected) in programs {
        assert_in_order(&succeed(with_archive(&server, path, &[])), expected);
    }
}

#[test]
fn recording_is_replicated() {
    if !has_requests(&[ArchiveRequest::Replicate]) {
        return;
    }
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
    assert_eq!(replay_all(&copy.connect(), 0, recorded), (0..500).collect::<Vec<_>>());

    let finished = run(with_archive(&copy, path, &[&channel, "4711"]));
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("4711"), "{finished:#?}");
}
