//! `rusteron clients`.

use std::path::Path;

use rusteron_client::Aeron;
use serde_json::Value;

use crate::support::{
    STREAM_ID, array, await_some, await_that, connect_as, json, launch, offer, text, udp_channel,
};

/// The report about one client, as soon as the report is as it should be.
fn await_client(dir: &Path, aeron: &Aeron, mut is_right: impl FnMut(&Value) -> bool) -> Value {
    await_some("the client", || {
        let clients = json(dir, &["clients"]);
        let clients = array(&clients, "clients");
        let client = clients.iter().find(|client| client["client_id"] == aeron.client_id());
        client.filter(|client| is_right(client)).cloned()
    })
}

#[test]
fn name_heartbeat_and_resources() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let aeron = connect_as(dir, "name=\x1b[2J version=1");
    let channel = "aeron:ipc?alias=one";
    let publication = aeron.add_publication(channel, STREAM_ID).expect("a publication");
    let subscription = aeron.add_subscription("aeron:ipc", STREAM_ID).expect("a subscription");
    let counter = aeron.add_counter(2000, b"", "mine").expect("a counter");
    counter.set(5);
    let client = await_client(dir, &aeron, |client| {
        !array(client, "subscriptions").is_empty() && client["client_name"] != Value::Null
    });
    assert_eq!(client["client_name"], "name=\x1b[2J version=1");
    assert_eq!(client["aeron_version"], rusteron_client::AERON_VERSION);
    assert!(client["heartbeat_age_ms"].as_u64().is_some_and(|age| age < 60_000), "{client}");
    assert_eq!(client["is_slow"], false);
    let expected = serde_json::json!({
        "id": counter.counter_id(), "type_id": 2000, "value": 5, "label": "mine",
    });
    assert_eq!(array(&client, "counters"), [expected]);
    let (one, other) = (&array(&client, "publications")[0], &array(&client, "subscriptions")[0]);
    assert_eq!(one["channel"], channel);
    // The channels differ as text.
    assert_eq!((&other["channel"], &other["backlog"]), (&"aeron:ipc".into(), &0.into()));
    assert_eq!(one["registration_id"], publication.registration_id());
    assert_eq!(other["registration_id"], subscription.registration_id());
    for resource in [one, other] {
        assert_eq!(resource["stream_id"], STREAM_ID);
        assert_eq!(resource["session_id"], publication.session_id());
    }
    // `text` asserts that there is no escape in it.
    let lines = text(dir, &["clients"]);
    let title = format!("client {} name=\u{FFFD}[2J version=1: heartbeat ", aeron.client_id());
    assert!(lines.contains(&title) && lines.contains(": 5 - mine\n"), "{lines}");
}

#[test]
fn closed_client_is_gone() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let aeron = connect_as(dir, "short");
    let publication = aeron.add_publication("aeron:ipc", STREAM_ID).expect("a publication");
    await_client(dir, &aeron, |_| true);
    drop((publication, aeron));
    await_that("its end", || array(&json(dir, &["clients"]), "clients").is_empty());
    assert!(text(dir, &["clients"]).contains("\n0 clients\n"));
}

#[test]
fn unconnected_publisher_is_not_at_its_limit() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let aeron = connect_as(dir, "alone");
    let channels = ["aeron:ipc", &udp_channel()];
    let _publications =
        channels.map(|channel| aeron.add_publication(channel, STREAM_ID).expect("a publication"));
    let client = await_client(dir, &aeron, |client| array(client, "publications").len() == 2);
    for publication in array(&client, "publications") {
        // The driver lets an unconnected publisher write nothing.
        assert_eq!(publication["limit"], publication["position"]);
        assert_eq!(publication["is_back_pressured"], false, "{publication}");
    }
}

#[test]
fn slow_subscriber_limits_publisher() {
    let driver = launch();
    let dir = driver.aeron_dir();
    for channel in ["aeron:ipc?term-length=64k", &format!("{}|term-length=64k", udp_channel())] {
        let feed = connect_as(dir, "feed");
        let readers = ["quick", "slow"].map(|name| connect_as(dir, name));
        let bare = channel.split("|term").next().expect("a channel");
        let subscribe =
            |aeron: &Aeron| aeron.add_subscription(bare, STREAM_ID).expect("a subscription");
        let mut quick = subscribe(&readers[0]);
        let mut slow = subscribe(&readers[1]);
        let mut publication =
            feed.add_exclusive_publication(channel, STREAM_ID).expect("a publication");
        await_that("both images", || {
            [&quick, &slow].iter().all(|subscription| subscription.is_connected())
        });
        offer(&mut publication, &[7; 1000]);
        // The publisher may stop before, while the sender is behind.
        let client = await_client(dir, &readers[1], |client| {
            let is_slow = client["is_slow"] == true && client["client_name"] == "slow";
            is_slow || {
                while publication.offer(&[7; 1000]).is_ok() {}
                await_that("the quick reader", || quick.poll(|_, _| {}, 100) == Ok(0));
                false
            }
        });
        let subscription = &array(&client, "subscriptions")[0];
        assert_eq!(subscription["limits_publisher"], true);
        assert!(subscription["backlog"].as_i64() > Some(1000), "{subscription}");
        let client = await_client(dir, &readers[0], |client| client["is_slow"] == false);
        assert_eq!(array(&client, "subscriptions")[0]["limits_publisher"], false);
        let client = await_client(dir, &feed, |_| true);
        assert_eq!(array(&client, "publications")[0]["is_back_pressured"], true);
        let lines = text(dir, &["clients"]);
        let id = readers[1].client_id();
        let summary = format!("; client {id} slow is furthest behind: ");
        let second = lines.lines().nth(1).expect("a summary");
        assert!(
            second.contains(&summary) && second.ends_with(", and limits its publisher"),
            "{lines}"
        );

        await_that("the slow reader", || {
            quick.poll(|_, _| {}, 100).expect("a poll");
            slow.poll(|_, _| {}, 100) == Ok(0) && publication.offer(&[7; 1000]).is_ok()
        });
        await_client(dir, &readers[1], |client| client["is_slow"] == false);
    }
}
