//! `rusteron loss`.

use std::fs;

use rusteron_media_driver::Loss;

use crate::support::{
    array, await_some, connect, connected_pair, json, launch_in, launch_with, offer, receive, text,
    udp_channel,
};

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

#[test]
fn real_losses_are_shown() {
    let losses = Loss { data_rate: 0.2, control_rate: 0.0, seed: 1 };
    let driver = launch_with(|context| context.set_receive_loss(Some(losses)));
    let (dir, aeron) = (driver.aeron_dir(), connect(driver.aeron_dir()));
    let channel = udp_channel();
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    let loss = await_some("a loss", || {
        // A loss at the end of a stream is noticed only when something follows.
        for _ in 0..100 {
            offer(&mut publication, &[7; 1000]);
            receive(&mut subscription, 1);
        }
        array(&json(dir, &["loss"]), "losses").first().cloned()
    });
    assert_eq!((&loss["channel"], &loss["stream_id"]), (&channel.as_str().into(), &1001.into()));
    assert_eq!(loss["session_id"], publication.session_id());
    // Each frame has a header of 32 bytes.
    assert!(loss["total_bytes_lost"].as_u64().is_some_and(|bytes| bytes >= 1032), "{loss}");
    assert!(loss["observation_count"].as_u64().is_some_and(|count| count > 0), "{loss}");
    let source = loss["source"].as_str().expect("an address");
    assert!(source.starts_with("127.0.0.1:"), "{loss}");
    let lines = text(dir, &["loss"]);
    assert!(lines.contains(&format!("session {} from 127.0.0.1:", publication.session_id())));
}
