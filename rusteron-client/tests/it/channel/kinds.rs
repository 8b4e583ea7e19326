//! Kinds of channels as a subscriber meets them: UDP, several destinations, spies, untethered
//! subscribers, response channels.

use rusteron_client::{Aeron, ChannelStatus, ErrorKind, ExclusivePublication, Subscription};
use rusteron_test_support::{
    await_some, await_that, connect, connected_pair, free_port, launch, offer, receive,
};

fn free_endpoints<const N: usize>() -> [String; N] {
    std::array::from_fn(|_| format!("127.0.0.1:{}", free_port()))
}

fn add_publication(aeron: &Aeron, channel: &str) -> ExclusivePublication {
    aeron.add_exclusive_publication(channel, 1001).expect(channel)
}

fn add_subscription(aeron: &Aeron, channel: &str) -> Subscription {
    aeron.add_subscription(channel, 1001).expect(channel)
}

#[test]
fn udp_messages_arrive_whole() {
    let driver = launch();
    let aeron = connect(&driver);
    let [endpoint] = free_endpoints();
    let channel = format!("aeron:udp?endpoint={endpoint}|term-length=64k");
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    let message =
        rusteron_test_support::Random::new(1).bytes(publication.constants().max_message_length);
    offer(&mut publication, &message);
    assert!(receive(&mut subscription, 1) == [message]);
    let image = subscription.image_at_index(0).expect("an image");
    assert!(image.source_identity().starts_with("127.0.0.1:"), "{image:?}");
    await_that("the media driver's count", || image.active_transport_count() == 1);
}

#[test]
fn wildcard_port_is_resolved() {
    let driver = launch();
    let aeron = connect(&driver);
    let subscription = add_subscription(&aeron, "aeron:udp?endpoint=127.0.0.1:0|alias=wild");
    await_that("the endpoint works", || subscription.channel_status() == ChannelStatus::Active);
    let endpoint =
        await_some("the endpoint", || subscription.resolved_endpoint().expect("no error"));
    let port = endpoint.strip_prefix("127.0.0.1:").expect("the address").parse::<u16>();
    assert_ne!(port.expect("a port"), 0);
    assert_eq!(subscription.local_addresses().expect("no error"), [endpoint.parse().expect("one")]);
    let channel = subscription.try_resolve_channel_endpoint_port().expect("no error");
    let channel = channel.expect("resolved");
    assert!(channel.contains(&format!("endpoint={endpoint}")), "{channel}");
    assert!(channel.contains("alias=wild"), "{channel}");

    let publication = add_publication(&aeron, &channel);
    await_that("the connection", || publication.is_connected());
}

#[test]
fn fixed_port_stays() {
    let driver = launch();
    let aeron = connect(&driver);
    let [endpoint] = free_endpoints();
    let long = format!("aeron:udp?endpoint={endpoint}|alias={}", "x".repeat(300));
    for channel in ["aeron:ipc", "aeron:udp?control-mode=manual", &long] {
        let subscription = add_subscription(&aeron, channel);
        let resolved = subscription.try_resolve_channel_endpoint_port().expect("no error");
        assert_eq!(resolved.as_deref(), Some(channel));
    }
    let ipc = add_subscription(&aeron, "aeron:ipc");
    assert_eq!(ipc.resolved_endpoint().expect("no error"), None);
    assert!(ipc.local_addresses().expect("no error").is_empty());
}

#[test]
fn destinations_feed_one_subscription() {
    let driver = launch();
    let aeron = connect(&driver);
    let endpoints: [_; 6] = free_endpoints();
    let mut subscription = add_subscription(&aeron, "aeron:udp?control-mode=manual");
    let channel = |endpoint: &str| format!("aeron:udp?endpoint={endpoint}");
    // Add all of them before the first image is there. If a third destination is added to an image,
    // the media driver is left with addresses in an array that has moved
    // (`resolved_control_address_for_implicit_unicast_channels` of aeron_publication_image.c).
    for endpoint in &endpoints {
        subscription.add_destination(channel(endpoint)).expect("a destination");
    }
    let mut publications: Vec<_> =
        endpoints.iter().map(|endpoint| add_publication(&aeron, &channel(endpoint))).collect();
    await_that("all images", || subscription.image_count() == endpoints.len());
    let addresses = subscription.local_addresses().expect("no error");
    let mut addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    addresses.sort_unstable();
    let mut expected = endpoints.to_vec();
    expected.sort_unstable();
    assert_eq!(addresses, expected);
    for publication in &mut publications {
        await_that("the connection", || publication.is_connected());
        offer(publication, b"x");
    }
    receive(&mut subscription, endpoints.len());

    subscription.remove_destination(channel(&endpoints[0])).expect("removed");
    await_that("one address less", || {
        subscription.local_addresses().expect("no error").len() == endpoints.len() - 1
    });
}

#[test]
fn destinations_change_without_waiting() {
    let driver = launch();
    let aeron = connect(&driver);
    let [endpoint] = free_endpoints();
    let mut subscription = add_subscription(&aeron, "aeron:udp?control-mode=manual");
    let channel = format!("aeron:udp?endpoint={endpoint}");
    let mut adding = subscription.async_add_destination(&channel).expect("begun");
    assert!(adding.registration_id() > 0);
    await_some("the destination", || adding.poll().expect("no error"));
    assert_eq!(adding.poll().expect_err("done").kind(), ErrorKind::IllegalState);
    let mut removing = subscription.async_remove_destination(&channel).expect("begun");
    drop((subscription, aeron));
    // The pending removal keeps the client open.
    await_some("it is removed", || removing.poll().expect("no error"));
}

#[test]
fn bad_destination_is_an_error() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut subscription = add_subscription(&aeron, "aeron:udp?control-mode=manual");
    let error = subscription.add_destination("aeron:carrier-pigeon").expect_err("no such media");
    assert_eq!(error.kind(), ErrorKind::InvalidChannel, "{error:?}");
    let error = subscription.add_destination("aeron:\0").expect_err("a NUL byte");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    let mut plain = add_subscription(&aeron, "aeron:ipc");
    let [endpoint] = free_endpoints();
    let channel = format!("aeron:udp?endpoint={endpoint}");
    plain.add_destination(&channel).expect_err("not a multi-destination subscription");
    assert!(!aeron.is_closed());
}

#[test]
fn drop_with_pending_destinations_closes() {
    let driver = launch();
    let aeron = connect(&driver);
    let [endpoint] = free_endpoints();
    let channel = format!("aeron:udp?endpoint={endpoint}");
    for _ in 0..20 {
        let mut subscription = add_subscription(&aeron, "aeron:udp?control-mode=manual");
        // More than the queue takes, perhaps.
        for _ in 0..50 {
            let (add, remove) = (
                subscription.async_add_destination(&channel),
                subscription.async_remove_destination(&channel),
            );
            drop((add, remove));
        }
        let (sender, closed) = std::sync::mpsc::channel();
        subscription.close_with(move || {
            let _ = sender.send(());
        });
        closed.recv_timeout(rusteron_test_support::DEADLINE).expect("the notification");
    }
    assert!(!aeron.is_closed());
}

#[test]
fn spy_sees_messages_to_others() {
    let driver = launch();
    let aeron = connect(&driver);
    let [endpoint] = free_endpoints();
    let channel = format!("aeron:udp?endpoint={endpoint}");
    let mut spy = add_subscription(&aeron, &format!("aeron-spy:{channel}"));
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    await_that("the spy's image", || spy.is_connected());
    let message = vec![7; 5_000];
    offer(&mut publication, &message);
    assert!(receive(&mut spy, 1) == [message.clone()]);
    assert!(receive(&mut subscription, 1) == [message]);
    // C may reject the spy's channel with an error, but must not crash.
    let resolved = spy.try_resolve_channel_endpoint_port();
    assert!(resolved.is_err() || resolved.is_ok_and(|channel| channel.is_some()));
}

#[test]
fn untethered_subscriber_is_left_behind() {
    let driver = launch();
    let aeron = connect(&driver);
    let untethered = add_subscription(&aeron, "aeron:ipc?tether=false");
    let channel = "aeron:ipc?term-length=64k|untethered-window-limit-timeout=100ms";
    let (mut publication, mut tethered) = connected_pair(&aeron, channel);
    await_that("the untethered image", || untethered.is_connected());
    // It is not polled; after its window limit timeout the publisher goes on without it.
    for number in 0..200_u32 {
        let mut message = vec![0; 1000];
        message[..4].copy_from_slice(&number.to_le_bytes());
        offer(&mut publication, &message);
        assert!(receive(&mut tethered, 1) == [message]);
    }
}

#[test]
fn response_channel_answers() {
    let driver = launch();
    let server = connect(&driver);
    let client = connect(&driver);
    let [request_endpoint, response_endpoint] = free_endpoints();
    let request = format!("aeron:udp?endpoint={request_endpoint}");
    let control = format!("aeron:udp?control={response_endpoint}|control-mode=response");

    let mut requests = server.add_subscription(&request, 1).expect("the server's subscription");
    let mut responses = client.add_subscription(&control, 2).expect("the client's subscription");
    let id = responses.constants().registration_id;
    let mut to_server = client
        .add_exclusive_publication(format!("{request}|response-correlation-id={id}"), 1)
        .expect("the client's publication");

    await_that("the request channel", || to_server.is_connected() && requests.is_connected());
    let image_id = requests.image_at_index(0).expect("an image").correlation_id();
    let answer = format!("{control}|response-correlation-id={image_id}");
    let mut to_client =
        server.add_exclusive_publication(&answer, 2).expect("the server's publication");
    await_that("the response channel", || to_client.is_connected() && responses.is_connected());

    offer(&mut to_server, b"question");
    let mut asked_by = None;
    await_that("the question", || {
        let handler = |message: &[u8], header: &rusteron_client::Header<'_>| {
            assert_eq!(message, b"question");
            asked_by = Some(header.image_correlation_id());
        };
        requests.poll(handler, 10).expect("open");
        asked_by.is_some()
    });
    assert_eq!(asked_by, Some(image_id));
    offer(&mut to_client, b"answer");
    assert_eq!(receive(&mut responses, 1), [b"answer"]);
}
