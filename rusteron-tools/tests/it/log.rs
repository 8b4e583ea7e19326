//! `rusteron log`.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    STREAM_ID, array, await_that, connect, connected_pair, free_port, json, launch, offer,
    rusteron, text,
};

const CHANNEL: &str =
    "aeron:ipc?term-length=64k|mtu=1408|init-term-id=5|term-id=7|term-offset=64|ssc=true|eos=false";

#[test]
fn metadata_and_frames_of_publication() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let aeron = connect(dir);
    let (mut publication, _subscription) = connected_pair(&aeron, CHANNEL);
    let start = publication.position().expect("an open publication");
    offer(&mut publication, b"hello\x1b");
    publication
        .offer_with_reserved_value(&[b'x'; 2000], |_| 77)
        .expect("room for a message in two fragments");
    publication.append_padding(100).expect("room for padding");
    let end = publication.position().expect("an open publication");
    let id = publication.original_registration_id().to_string();
    let mut claim = publication.try_claim(10).expect("room for a claim");
    claim.copy_from_slice(b"unfinished");
    let log = json(dir, &["log", &id, "--payload", "ascii"]);
    let lines = text(dir, &["log", &id, "--payload", "hex", "--payload-limit", "33"]);
    claim.abort();

    let about = &log["log"];
    assert_eq!(
        (&about["kind"], &about["stream_id"]),
        (&"exclusive-publication".into(), &STREAM_ID.into())
    );
    assert_eq!(about["session_id"], publication.session_id());
    assert_eq!(about["registration_id"].to_string(), id);
    assert_eq!((&about["term_length"], &about["mtu_length"]), (&65536.into(), &1408.into()));
    assert_eq!((&about["initial_term_id"], &about["active_term_count"]), (&5.into(), &2.into()));
    assert_eq!(about["page_size"], 4096);
    let flags = (&about["spies_simulate_connection"], &about["signal_eos"]);
    assert_eq!(flags, (&true.into(), &false.into()));
    assert_eq!(
        (&about["is_connected"], &about["is_publication_revoked"]),
        (&true.into(), &false.into())
    );
    assert_eq!(about["end_of_stream_position"], Value::Null);
    assert_eq!(about["position"], end + 64);
    assert_eq!(about["tails"][2]["term_id"], 7);
    assert_eq!(about["default_header"]["flags"], "begin+end");
    assert_eq!(start, 2 * 65536 + 64);

    let entries = array(&log, "entries");
    // The stream begins in the middle of a term.
    let gap = serde_json::json!({ "entry": "gap", "partition": 2, "offset": 0, "length": 64 });
    let (first, entries) = entries.split_first().expect("entries");
    assert_eq!(*first, gap);
    let of =
        |name: &str| -> Vec<Value> { entries.iter().map(|entry| entry[name].clone()).collect() };
    let expected = [
        ("data", 32 + 6, "begin+end", 0, "hello."),
        ("data", 1408, "begin", 77, &"x".repeat(256)),
        ("data", 32 + 2000 - 1376, "end", 77, &"x".repeat(256)),
        ("padding", 132, "begin+end", 0, ""),
        ("data", 32 + 10, "begin+end", 0, "unfinished"),
    ];
    assert_eq!(of("type"), expected.map(|frame| frame.0), "{entries:#?}");
    assert_eq!(of("length"), expected.map(|frame| frame.1));
    assert_eq!(of("flags"), expected.map(|frame| frame.2));
    assert_eq!(of("reserved_value"), expected.map(|frame| frame.3));
    assert_eq!(of("payload"), expected.map(|frame| frame.4));
    assert_eq!(of("committed"), [true, true, true, true, false]);
    assert_eq!(entries[0]["position"], start);
    assert_eq!(entries[4]["position"], end);
    for entry in entries {
        assert_eq!(entry["offset"], entry["term_offset"]);
        assert_eq!((&entry["partition"], &entry["term_id"]), (&2.into(), &7.into()));
        assert_eq!(entry["session_id"], publication.session_id());
    }

    assert!(lines.contains("\n    68656c6c6f1b\n"), "{lines}");
    assert!(lines.contains(&format!("\n    {}\n    78\n", "78".repeat(32))), "{lines}");
    assert!(lines.contains("data begin+end") && lines.contains("not committed"), "{lines}");
    assert!(lines.contains("term length             65536"), "{lines}");
}

#[test]
fn image_has_same_frames() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    offer(&mut publication, b"over the network");
    await_that("the message", || {
        subscription.poll(|_, _| {}, 1).expect("an open subscription") == 1
    });
    let logs = json(driver.aeron_dir(), &["log"]);
    let logs = array(&logs, "logs");
    assert_eq!(logs.len(), 2, "{logs:#?}");
    let image = logs.iter().find(|log| log["kind"] == "image").expect("the image");
    assert_eq!((&image["position"], &image["stream_id"]), (&Value::Null, &STREAM_ID.into()));
    let file = image["file"].as_str().expect("a file");
    let frames = json(driver.aeron_dir(), &["log", file, "--payload", "ascii"]);
    assert_eq!(array(&frames, "entries")[0]["payload"], "over the network");
    assert!(text(driver.aeron_dir(), &["log"]).starts_with("2 log buffers\n"));
}

#[test]
fn limit_bounds_frames() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let (mut publication, _subscription) = connected_pair(&aeron, "aeron:ipc?term-length=64k");
    for _ in 0..10 {
        offer(&mut publication, b"x");
    }
    let id = publication.original_registration_id().to_string();
    for (limit, expected) in [("0", 0), ("3", 3), ("100", 10)] {
        let log = json(driver.aeron_dir(), &["log", &id, "--frames", "--limit", limit]);
        assert_eq!(array(&log, "entries").len(), expected);
    }
    let log = json(driver.aeron_dir(), &["log", &id]);
    assert_eq!(log.get("entries"), None);
}

#[test]
fn pipe_is_refused_at_once() {
    let home = tempfile::tempdir().expect("a directory");
    for folder in ["publications", "images"] {
        fs::create_dir(home.path().join(folder)).expect("a directory");
    }
    let pipe = home.path().join("images/7.logbuffer");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("the command mkfifo");
    assert!(made.success());
    for (arguments, code) in [(vec!["log"], 0), (vec!["log", "images/7.logbuffer"], 1)] {
        let mut child =
            rusteron(home.path(), &arguments).current_dir(home.path()).spawn().expect("it runs");
        let deadline = Instant::now() + Duration::from_secs(60);
        while child.try_wait().expect("a child").is_none() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        // If it still runs.
        let _ = child.kill();
        let output = child.wait_with_output().expect("its output");
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        let text = String::from_utf8_lossy(if code == 0 { &output.stdout } else { &output.stderr });
        assert!(text.contains("7.logbuffer: a pipe is not a regular file"), "{text}");
    }
}
