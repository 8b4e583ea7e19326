//! `rusteron loss`.

use std::fs;

use crate::support::{array, json, launch_in, text};

#[test]
fn report_entries_are_shown() {
    let home = tempfile::tempdir().expect("a directory");
    let driver = launch_in(home.path());
    let dir = driver.aeron_dir();
    assert!(array(&json(dir, &["loss"]), "losses").is_empty());

    // As the driver would write it, had anything been lost.
    let mut entry = Vec::new();
    for word in [2, 1500, 1_700_000_000_000, 1_700_000_001_000_i64] {
        entry.extend(word.to_le_bytes());
    }
    for word in [-7, 1001_i32] {
        entry.extend(word.to_le_bytes());
    }
    for text in ["aeron:udp?endpoint=127.0.0.1:40123", "127.0.0.1:40124"] {
        entry.resize(entry.len().next_multiple_of(4), 0);
        entry.extend((text.len() as i32).to_le_bytes());
        entry.extend(text.as_bytes());
    }
    let file = dir.join("loss-report.dat");
    let mut report = fs::read(&file).expect("the report");
    report[..entry.len()].copy_from_slice(&entry);
    fs::write(&file, report).expect("the report");

    let expected = serde_json::json!([{
        "observation_count": 2,
        "total_bytes_lost": 1500,
        "first_observation": "2023-11-14T22:13:20.000Z",
        "last_observation": "2023-11-14T22:13:21.000Z",
        "session_id": -7,
        "stream_id": 1001,
        "channel": "aeron:udp?endpoint=127.0.0.1:40123",
        "source": "127.0.0.1:40124",
    }]);
    assert_eq!(json(dir, &["loss"])["losses"], expected);
    let lines = text(dir, &["loss"]);
    assert!(lines.contains("1,500 bytes in 2 gaps"), "{lines}");
    assert!(lines.contains("session -7 from 127.0.0.1:40124"), "{lines}");
}
