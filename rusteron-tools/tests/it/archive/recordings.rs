//! `rusteron archive list`, `count` and `describe`.

use rusteron_test_support::archive::{JavaArchive, STREAM, await_recording, record};
use serde_json::Value;

use super::{archive, archive_json, archive_text, assert_fails};
use crate::support::await_that;

#[test]
fn lists_counts_and_describes() {
    let Some(java) = JavaArchive::launch() else { return };
    let session = java.connect();
    assert_eq!(archive_json(&java, &["count"])["count"], 0);
    let (_publication, first, position) = record(&session, 10);
    let publication =
        session.add_recorded_exclusive_publication("aeron:ipc?alias=other", 77).expect("recorded");
    let second = await_recording(&session, publication.session_id());
    drop(publication);
    await_that("the end", || session.stop_position(second).expect("an answer").is_some());

    let listed = archive_json(&java, &["list"]);
    let recordings = listed["recordings"].as_array().expect("a list");
    assert_eq!(recordings.len(), 2, "{listed:#}");
    assert_eq!(recordings[0]["recording_id"], first);
    assert_eq!(
        (&recordings[0]["stream_id"], &recordings[0]["stop_position"]),
        (&STREAM.into(), &Value::Null)
    );
    assert_eq!(
        (&recordings[1]["stream_id"], &recordings[1]["stop_position"]),
        (&77.into(), &0.into())
    );
    let others = archive_json(&java, &["list", "--channel", "alias=other"]);
    assert_eq!(others["recordings"].as_array().expect("a list")[..], recordings[1..]);
    assert_eq!(archive_json(&java, &["count", "--stream-id", "77"])["count"], 1);
    assert_eq!(archive_json(&java, &["count", "--stream-id", "78"])["count"], 0);
    let text = archive_text(&java, &["list"]);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" active ")).count(), 1, "{text}");
    assert_eq!(archive_text(&java, &["count"]), "2\n");

    let described = archive_json(&java, &["describe", &first.to_string()]);
    assert_eq!(described["recorded_position"], position);
    assert_eq!(described["term_buffer_length"], 65536);
    let text = archive_text(&java, &["describe", &first.to_string()]);
    assert!(text.lines().any(|line| line == format!("Length          {position} bytes")), "{text}");
    for command in ["describe", "verify", "tail"] {
        assert_fails(archive(&java, &[command, "4711"]), "4711");
    }
}
