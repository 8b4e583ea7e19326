//! `rusteron clients`.

use std::path::Path;

use rusteron_client::{Aeron, ExclusivePublication, Subscription};
use serde_json::Value;

use crate::support::{
    STREAM_ID, array, await_some, await_that, connect_as, free_port, json, launch, offer, text,
    udp_channel,
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

/// The reports about clients, if all of them are listed.
fn clients<const N: usize>(dir: &Path, of: [&Aeron; N]) -> Option<[Value; N]> {
    let report = json(dir, &["clients"]);
    let clients = array(&report, "clients").iter();
    let find = |aeron: &Aeron| clients.clone().find(|one| one["client_id"] == aeron.client_id());
    let found: Vec<_> = of.into_iter().filter_map(find).cloned().collect();
    found.try_into().ok()
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
    let title = format!("client {} name=\\u{{1b}}[2J version=1: heartbeat ", aeron.client_id());
    assert!(lines.contains(&title) && lines.contains(": 5 - mine\n"), "{lines}");
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
fn subscription_without_image_has_reason() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let (writer, reader) = (connect_as(dir, "writer"), connect_as(dir, "reader"));
    let [port, other_port] = [free_port(), free_port()];
    // No other driver of this machine has these streams.
    let (sent, expected) = (i32::from(port) + 1_000_000, i32::from(other_port) + 1_000_000);
    let ipc = writer.add_publication("aeron:ipc", sent).expect("a publication");
    let udp = writer
        .add_publication(format!("aeron:udp?endpoint=localhost:{port}"), sent)
        .expect("a publication");
    let on_port = format!("aeron:udp?endpoint=localhost:{other_port}");
    let _connected = reader.add_subscription("aeron:ipc", sent).expect("a subscription");
    let subscriptions = [("aeron:ipc", expected), (on_port.as_str(), sent)]
        .map(|(channel, id)| reader.add_subscription(channel, id).expect("a subscription"));
    let reasons = [
        format!("stream {expected}: publication {} has stream {sent}", ipc.registration_id()),
        format!(
            "port {other_port}: publication {} sends to localhost:{port}",
            udp.registration_id()
        ),
    ];
    let client = await_client(dir, &reader, |client| array(client, "subscriptions").len() == 1);
    let listed = array(&client, "unconnected_subscriptions");
    assert_eq!(listed.len(), 2, "{client}");
    let streams = json(dir, &["streams"]);
    let lines = [text(dir, &["clients"]), text(dir, &["streams"])];
    let metrics = text(dir, &["stat", "--openmetrics"]);
    for (subscription, reason) in subscriptions.iter().zip(&reasons) {
        let id = subscription.registration_id();
        for all in [listed, array(&streams, "unconnected")] {
            let found = all.iter().find(|one| one["registration_id"] == id).expect("it is listed");
            assert_eq!(found["reason"], reason.as_str());
            assert_eq!(found["client_id"], reader.client_id());
        }
        assert!(lines.iter().all(|lines| lines.contains(reason)), "{lines:?}");
        let label = format!("registration_id=\"{id}\"");
        let images = metrics
            .lines()
            .find(|line| line.starts_with("aeron_subscription_images{") && line.contains(&label));
        assert!(images.is_some_and(|line| line.ends_with(" 0")), "{metrics}");
    }
    drop(subscriptions);
    await_client(dir, &reader, |client| array(client, "unconnected_subscriptions").is_empty());
    drop((_connected, reader));
    await_that("the counters' end", || {
        array(&json(dir, &["stat", "--type", "subscription"]), "counters").is_empty()
    });
}

#[test]
fn shared_publication_has_all_its_clients() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let [first, second] = ["first", "second"].map(|name| connect_as(dir, name));
    let [one, other] = [&first, &second]
        .map(|aeron| aeron.add_publication("aeron:ipc", STREAM_ID).expect("a publication"));
    let shared_with = |client: &Value| -> Vec<Value> {
        let publications = array(client, "publications").iter();
        publications.map(|one| one["shared_with"].clone()).collect()
    };
    let [of_first, of_second] = clients(dir, [&first, &second]).expect("both");
    assert_eq!(shared_with(&of_first), [serde_json::json!([second.client_id()])]);
    assert_eq!(shared_with(&of_second), [serde_json::json!([first.client_id()])]);
    let id = array(&of_second, "publications")[0]["registration_id"].clone();
    assert_eq!(id, one.registration_id());

    // The client that the publication's counters name goes first.
    drop((one, first));
    await_client(dir, &second, |client| shared_with(client) == [serde_json::json!([])]);
    drop(other);
    await_client(dir, &second, |client| array(client, "publications").is_empty());
}

#[test]
fn lingering_publication_is_without_client() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let aeron = connect_as(dir, "short");
    let channel = format!("{}|linger=20s", udp_channel());
    let publication = aeron.add_publication(channel, STREAM_ID).expect("a publication");
    let id = publication.registration_id();
    await_client(dir, &aeron, |client| array(client, "publications").len() == 1);
    assert!(!text(dir, &["clients"]).contains("has lingered"));
    drop((publication, aeron));
    // The driver keeps it for the linger time.
    let is_listed = |report: &Value| {
        let listed = array(report, "publications_without_client");
        listed.iter().any(|one| one["registration_id"] == id)
    };
    await_that("its client's end", || is_listed(&json(dir, &["clients"])));
    await_that("its own end", || !is_listed(&json(dir, &["clients"])));
}

/// The channel of a publication, and the channel of its subscriptions.
fn channels_of_same_stream() -> Vec<(String, String)> {
    let [port, control, endpoint] = [(); 3].map(|()| free_port());
    vec![
        ("aeron:ipc?term-length=64k".into(), "aeron:ipc".into()),
        (
            format!("aeron:udp?endpoint=localhost:{port}|term-length=64k"),
            format!("aeron:udp?endpoint=127.0.0.1:{port}"),
        ),
        (
            format!("aeron:udp?control=localhost:{control}|control-mode=dynamic|term-length=64k"),
            format!("aeron:udp?endpoint=localhost:{endpoint}|control=localhost:{control}"),
        ),
    ]
}

/// A publisher, and named readers of its stream, connected.
fn connected_readers<const N: usize>(
    dir: &Path,
    channel: &str,
    readers: [(&str, &str); N],
) -> (Aeron, ExclusivePublication, [Aeron; N], [Subscription; N]) {
    let feed = connect_as(dir, "feed");
    let publication = feed.add_exclusive_publication(channel, STREAM_ID).expect("a publication");
    let clients = readers.map(|(name, _)| connect_as(dir, name));
    let mut channels = readers.iter().map(|(_, channel)| *channel);
    let subscriptions = clients.each_ref().map(|aeron| {
        let channel = channels.next().expect("one for each");
        aeron.add_subscription(channel, STREAM_ID).expect("a subscription")
    });
    await_that("all images", || subscriptions.iter().all(Subscription::is_connected));
    (feed, publication, clients, subscriptions)
}

#[test]
fn slow_subscriber_limits_publisher() {
    let driver = launch();
    let dir = driver.aeron_dir();
    for (channel, read_channel) in channels_of_same_stream() {
        let both = ["quick", "slow"].map(|name| (name, read_channel.as_str()));
        let (feed, mut publication, readers, [mut quick, mut slow]) =
            connected_readers(dir, &channel, both);
        // The publisher may stop before, while the sender is behind.
        let mut fill = || {
            while publication.offer(&[7; 1000]).is_ok() {}
            await_that("the quick reader", || quick.poll(|_, _| {}, 100) == Ok(0));
        };
        await_that(&channel, || {
            fill();
            let of = [&feed, &readers[0], &readers[1]];
            let Some([feed, quick, slow]) = clients(dir, of) else { return false };
            let (one, other) =
                (&array(&quick, "subscriptions")[0], &array(&slow, "subscriptions")[0]);
            slow["client_name"] == "slow"
                && slow["is_slow"] == true
                && other["limits_publisher"] == true
                && other["backlog"].as_i64() > Some(1000)
                && quick["is_slow"] == false
                && one["limits_publisher"] == false
                && array(&feed, "publications")[0]["is_back_pressured"] == true
        });
        let summary = format!("; client {} slow is furthest behind: ", readers[1].client_id());
        await_that(&summary, || {
            fill();
            let lines = text(dir, &["clients"]);
            let second = lines.lines().nth(1).expect("a summary");
            second.contains(&summary) && second.ends_with(", and limits its publisher")
        });

        await_that("the slow reader", || {
            quick.poll(|_, _| {}, 100).expect("a poll");
            slow.poll(|_, _| {}, 100) == Ok(0) && publication.offer(&[7; 1000]).is_ok()
        });
        await_client(dir, &readers[1], |client| client["is_slow"] == false);
    }
}

/// The publisher waits for its fastest subscriber, and two of them share an image.
#[test]
fn furthest_behind_is_overrun() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let control = format!("aeron:udp?control=localhost:{}", free_port());
    let channel = format!("{control}|control-mode=dynamic|fc=max|term-length=64k");
    let own = format!("{control}|endpoint=localhost:0|control-mode=dynamic");
    let shared = format!("{control}|endpoint=localhost:{}|control-mode=dynamic", free_port());
    let three = [("quick", own.as_str()), ("slow", &shared), ("beside", &shared)];
    let (_feed, mut publication, readers, [mut quick, mut slow, mut beside]) =
        connected_readers(dir, &channel, three);
    let mut fill = || {
        while publication.offer(&[7; 1000]).is_ok() {}
        await_that("the quick readers", || {
            (quick.poll(|_, _| {}, 100), beside.poll(|_, _| {}, 100)) == (Ok(0), Ok(0))
        });
    };
    let state = |client: &Value| {
        let subscription = &array(client, "subscriptions")[0];
        (client["is_slow"] == true, subscription["is_overrun"] == true)
    };
    await_that("an overrun", || {
        fill();
        let Some([quick, slow, beside]) = clients(dir, readers.each_ref()) else { return false };
        let backlog = &array(&slow, "subscriptions")[0]["backlog"];
        backlog.as_i64() > Some(2 * 64 * 1024)
            && [&quick, &slow, &beside].map(state) == [(false, false), (true, true), (false, false)]
    });
    let summary = format!("; client {} slow is furthest behind: ", readers[1].client_id());
    let lines = text(dir, &["clients"]);
    let second = lines.lines().nth(1).expect("a summary");
    assert!(second.contains(&summary) && second.ends_with(", and is overrun"), "{lines}");

    await_that("the loss", || {
        fill();
        slow.poll(|_, _| {}, 100).expect("a poll");
        let lines = text(dir, &["clients"]);
        lines.lines().any(|line| line.contains("  lost ") && line.ends_with(" by overruns"))
    });
}

#[test]
fn slow_spy_limits_connected_publisher_only() {
    let driver = launch();
    let dir = driver.aeron_dir();
    for is_connected in [false, true] {
        let (feed, reader) = (connect_as(dir, "feed"), connect_as(dir, "spy"));
        let channel = udp_channel();
        let publication = feed
            .add_publication(format!("{channel}|term-length=64k|ssc={is_connected}"), STREAM_ID)
            .expect("a publication");
        let spy =
            reader.add_subscription(format!("aeron-spy:{channel}"), STREAM_ID).expect("a spy");
        await_that("the image", || spy.is_connected());
        await_that(if is_connected { "a slow spy" } else { "no slow spy" }, || {
            while publication.offer(&[7; 1000]).is_ok() {}
            let Some([feed, reader]) = clients(dir, [&feed, &reader]) else { return false };
            let publication = &array(&feed, "publications")[0];
            !array(&reader, "subscriptions").is_empty()
                && publication["position"].as_i64() >= publication["limit"].as_i64()
                && publication["is_back_pressured"] == is_connected
                && reader["is_slow"] == is_connected
        });
    }
}

#[test]
fn reader_of_closed_publication_is_not_slow() {
    let driver = launch();
    let dir = driver.aeron_dir();
    for channel in ["aeron:ipc", &udp_channel()] {
        let (feed, reader) = (connect_as(dir, "feed"), connect_as(dir, "reader"));
        let subscription = reader.add_subscription(channel, STREAM_ID).expect("a subscription");
        // The closed publication has to be there until a report has seen it.
        let separator = if channel.contains('?') { '|' } else { '?' };
        let lingering = format!("{channel}{separator}linger=600s");
        let mut publication =
            feed.add_exclusive_publication(lingering, STREAM_ID).expect("a publication");
        await_that("the image", || subscription.is_connected());
        offer(&mut publication, &[7; 1000]);
        await_client(dir, &reader, |client| {
            array(client, "subscriptions").iter().any(|one| one["backlog"].as_i64() > Some(1000))
        });
        drop(publication);
        // The driver lowers the limit of a closed publication to its last position.
        let client = await_client(dir, &feed, |client| {
            array(client, "publications").iter().any(|one| one["limit"] == one["position"])
        });
        assert_eq!(array(&client, "publications")[0]["is_back_pressured"], false, "{client}");
        let client = await_client(dir, &reader, |_| true);
        let subscription = &array(&client, "subscriptions")[0];
        assert!(subscription["backlog"].as_i64() > Some(1000), "{subscription}");
        assert_eq!(client["is_slow"], false);
    }
}
