//! `rusteron streams`.

use std::path::Path;

use serde_json::Value;

use crate::support::{
    STREAM_ID, array, await_some, connect, connect_as, connected_pair, free_port, json, launch,
    offer, text,
};

/// The one stream that some arguments choose, as soon as it is as it should be.
fn await_stream(dir: &Path, arguments: &[&str], is_right: impl Fn(&Value) -> bool) -> Value {
    await_some("the stream", || {
        let streams = json(dir, &[&["streams"], arguments].concat());
        let streams = array(&streams, "streams");
        streams.iter().find(|stream| is_right(stream)).cloned()
    })
}

fn position(stream: &Value, kind: &str) -> Option<i64> {
    let found = array(stream, "positions").iter().find(|position| position["kind"] == kind)?;
    found["value"].as_i64()
}

#[test]
fn positions_and_backlogs() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc?alias=one");
    let first = offer(&mut publication, &[1; 100]);
    let second = offer(&mut publication, &[2; 200]);
    assert_eq!(subscription.poll(|_, _| {}, 1), Ok(1));

    let stream = await_stream(driver.aeron_dir(), &["--channel", "alias=one"], |stream| {
        position(stream, "pub-pos") == Some(second)
    });
    assert_eq!(stream["stream_id"], STREAM_ID);
    assert_eq!(stream["session_id"], publication.session_id());
    assert_eq!(stream["channel"], "aeron:ipc?alias=one");
    assert_eq!(position(&stream, "sub-pos"), Some(first));
    assert_eq!(stream["subscriber_backlog"], second - first);
    assert_eq!(stream["sender_backlog"], Value::Null);

    let lines = text(driver.aeron_dir(), &["streams"]);
    let title =
        format!("aeron:ipc?alias=one stream {STREAM_ID} session {}", publication.session_id());
    assert!(lines.lines().any(|line| line == title), "{lines}");
    let of = |name: &str| -> Vec<&str> {
        let line = lines.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name} in {lines}")).split_whitespace().collect()
    };
    assert_eq!(of("sub-pos")[1], first.to_string());
    assert_eq!(of("not read"), ["not", "read", &(second - first).to_string()]);
}

#[test]
fn positions_have_their_clients() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let (writer, reader) = (connect_as(dir, "the writer"), connect(dir));
    let _publication = writer.add_publication("aeron:ipc", STREAM_ID).expect("a publication");
    let _subscription = reader.add_subscription("aeron:ipc", STREAM_ID).expect("a subscription");
    let client = |stream: &Value, kind: &str| {
        let mut positions = array(stream, "positions").iter();
        let found = positions.find(|position| position["kind"] == kind)?;
        Some((found["client_id"].clone(), found["client_name"].clone()))
    };
    await_stream(dir, &[], |stream| {
        client(stream, "pub-pos") == Some((writer.client_id().into(), "the writer".into()))
            && client(stream, "sub-pos") == Some((reader.client_id().into(), Value::Null))
    });
    let lines = text(dir, &["streams"]);
    let end = format!("  client {} the writer", writer.client_id());
    assert!(lines.lines().any(|line| line.contains("pub-pos") && line.ends_with(&end)), "{lines}");
}

#[test]
fn spelling_does_not_split_stream() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let port = free_port();
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{port}|term-length=64k|session-id=7");
    // Another stream of the same session is another.
    let other = "aeron:udp?endpoint=127.0.0.1:9|session-id=7";
    let _other = aeron.add_publication(other, STREAM_ID + 1).expect("a publication");
    let read = format!("aeron:udp?endpoint=localhost:{port}");
    let subscription = aeron.add_subscription(read.as_str(), STREAM_ID).expect("a subscription");
    let mut publication =
        aeron.add_exclusive_publication(channel.as_str(), STREAM_ID).expect("a publication");
    await_some("the image", || subscription.is_connected().then_some(()));
    let end = offer(&mut publication, &[1; 100]);
    let stream = await_stream(driver.aeron_dir(), &[], |stream| {
        ["pub-pos", "snd-pos", "rcv-hwm"].map(|kind| position(stream, kind)) == [Some(end); 3]
    });
    assert_eq!(stream["sender_backlog"], 0);
    assert_eq!((&stream["channel"], &stream["subscriber_backlog"]), (&channel.into(), &end.into()));
    let spelled = array(&stream, "positions").iter().find(|one| one["kind"] == "sub-pos");
    assert_eq!(spelled.expect("a subscriber")["channel"], read);
    let lines = text(driver.aeron_dir(), &["streams", "--channel", &read]);
    assert!(lines.lines().any(|line| line.contains("sub-pos") && line.ends_with(&read)), "{lines}");
}

#[test]
fn publishers_of_a_channel_stay_apart() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let subscription = aeron.add_subscription(&*channel, STREAM_ID).expect("a subscription");
    let ends = [100, 5000].map(|length| {
        let mut publication =
            aeron.add_exclusive_publication(&*channel, STREAM_ID).expect("a publication");
        await_some("the image", || publication.is_connected().then_some(()));
        let end = offer(&mut publication, &vec![1; length]);
        (publication, end)
    });
    await_some("both streams", || {
        let streams = json(driver.aeron_dir(), &["streams"]);
        let streams = array(&streams, "streams");
        let is_whole = ends.iter().all(|(publication, end)| {
            streams.iter().any(|stream| {
                stream["session_id"] == publication.session_id()
                    && ["pub-pos", "rcv-hwm"].map(|kind| position(stream, kind)) == [Some(*end); 2]
                    && position(stream, "sub-pos") == Some(0)
            })
        });
        (is_whole && streams.len() == 2).then_some(())
    });
    drop(subscription);
}

#[test]
fn channel_and_stream_id_choose() {
    let driver = launch();
    let aeron = connect(driver.aeron_dir());
    let _one = aeron.add_publication("aeron:ipc?alias=one", -5).expect("a publication");
    let _two = aeron.add_publication("aeron:ipc?alias=two", 6).expect("a publication");
    let ids = |arguments: &[&str]| -> Vec<i64> {
        let streams = json(driver.aeron_dir(), &[&["streams"], arguments].concat());
        let streams = array(&streams, "streams");
        streams.iter().filter_map(|stream| stream["stream_id"].as_i64()).collect()
    };
    assert_eq!(ids(&["--channel", "two"]), [6]);
    assert_eq!(ids(&["--stream-id", "-5"]), [-5]);
    assert!(ids(&["--stream-id", "-5", "--channel", "two"]).is_empty());
    assert_eq!(ids(&[]).len(), 2);
}
