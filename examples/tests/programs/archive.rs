//! The programs that use an archive, with Java's.

use crate::child::{command, run};

#[path = "../../../rusteron-archive/tests/support/mod.rs"]
mod support;

#[test]
fn what_was_recorded_is_replayed() {
    let Some(java) = support::JavaArchive::launch() else { return };
    let arguments = ["--messages", "100", "--control-channel", &java.control_channel()];
    let mut command = command(env!("CARGO_BIN_EXE_record_and_replay"), arguments);
    command.arg("--aeron-dir").arg(java.aeron_dir());
    let finished = run(command);
    finished.assert_exit_code(0);
    let lines: Vec<_> = finished.stdout.lines().collect();
    assert_eq!(lines.len(), 103, "{finished:#?}");
    assert!(lines.contains(&"Recorded 100 messages, 6400 bytes"), "{finished:#?}");
    assert_eq!(lines[2], "Replayed \"Hello 1\", position 64");
    assert_eq!(lines[101], "Replayed \"Hello 100\", position 6400");
    assert_eq!(lines[102], "Done: 100 messages replayed");
}
