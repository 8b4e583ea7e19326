//! Channels of several receivers or sources, and with ports to resolve: destinations of
//! publications and of subscriptions, spies, response channels. Of destinations, the client accepts
//! what the media driver accepts, except for those that the driver would not survive.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rusteron_client::{
    Aeron, ChannelStatus, DestinationRegistration, Error, ErrorKind, ExclusivePublication, Header,
    OfferError, Publication, Subscription, UncheckedChannel,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    DEADLINE, await_some, await_that, connect, connect_watchfully, connected_pair, free_port,
    launch, launch_with, launch_with_long_timeouts, offer, receive, udp_channel,
};

const MANUAL: &str = "aeron:udp?control-mode=manual";

/// Offers until the subscription has got something.
fn await_delivery(publication: &Publication, subscription: &mut Subscription) {
    await_that("a delivery", || {
        // Other subscribers, which no thread polls now, can hold the publication back for a while.
        let _ = publication.offer(b"to all");
        subscription.poll(|message, _| assert_eq!(message, b"to all"), 100).expect("open") > 0
    });
}

/// A driver that notices sooner than by default that a peer is silent.
fn launch_watchful() -> MediaDriver {
    launch_with(|context| {
        context
            .set_image_liveness_timeout(Duration::from_secs(2))?
            .set_publication_connection_timeout(Duration::from_secs(2))
    })
}

#[test]
fn messages_reach_current_destinations() {
    let driver = launch_watchful();
    let aeron = connect(&driver);
    let (first, second) = (udp_channel(), udp_channel());
    let mut one = aeron.add_subscription(&first, 7).expect("a subscription");
    let mut two = aeron.add_subscription(&second, 7).expect("a subscription");
    let publication = aeron.add_publication(MANUAL, 7).expect("a publication");
    assert!(!publication.is_connected());

    let number = publication.add_destination(&first).expect("a destination");
    assert_eq!(publication.add_destination(&second).map(|other| other > number).ok(), Some(true));
    await_that("both subscribers", || one.is_connected() && two.is_connected());
    await_delivery(&publication, &mut one);
    await_delivery(&publication, &mut two);

    publication.remove_destination(&second).expect("removed");
    await_that("it is forgotten", || {
        // Held back now and then by the subscriber that is going.
        let _ = publication.offer(b"to all");
        one.poll(|_, _| {}, 100).expect("open");
        // An image ends when nothing more comes and all that came is read.
        two.poll(|_, _| {}, 100).expect("open");
        !two.is_connected()
    });
    publication.remove_destination_by_id(number).expect("removed");
    await_that("the disconnect", || !publication.is_connected());
    await_that("it notices", || publication.offer(b"x") == Err(OfferError::NotConnected));
}

#[test]
fn destination_outcome_is_given_once() {
    let driver = launch();
    let aeron = connect(&driver);
    let publication = aeron.add_publication(MANUAL, 7).expect("a publication");
    let channel = udp_channel();
    let mut adding = publication.async_add_destination(&channel).expect("begun");
    await_some("the outcome", || adding.poll().expect("no error"));
    assert_eq!(adding.poll().expect_err("done").kind(), ErrorKind::IllegalState);
    let mut removing =
        publication.async_remove_destination_by_id(adding.registration_id()).expect("begun");
    drop(adding);
    await_some("the outcome", || removing.poll().expect("no error"));
    let mut removing = publication.async_remove_destination(&channel).expect("begun");
    await_some("the outcome", || removing.poll().expect("not there is no error"));
}

#[test]
fn invalid_destination_is_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    let publication = aeron.add_publication(MANUAL, 7).expect("a publication");
    let with = |parameter: &str| format!("aeron:udp?endpoint=127.0.0.1:24325|{parameter}");
    let cases = [
        ("aeron:ipc".to_owned(), "endpoint"),
        ("aeron:udp?control=127.0.0.1:24325".to_owned(), "endpoint"),
        ("aeron:udp?endpoint=127.0.0.1:0".to_owned(), "endpoint"),
        ("aeron-spy:aeron:udp?endpoint=127.0.0.1:24325".to_owned(), "spy"),
        (with("mtu=1408"), "mtu"),
        (with("rcv-wnd=64k"), "rcv-wnd"),
        (with("so-rcvbuf=64k"), "so-rcvbuf"),
        (with("so-sndbuf=64k"), "so-sndbuf"),
        (with("so-tos=1"), "so-tos"),
        (with("response-correlation-id=1"), "response-correlation-id"),
        (with("control-mode=response"), "control-mode"),
    ];
    for (destination, at_fault) in &cases {
        let refused = [
            publication.add_destination(destination).map(drop),
            publication.remove_destination(destination),
        ];
        for error in refused.map(|outcome| outcome.expect_err(destination)) {
            assert_eq!(error.kind(), ErrorKind::InvalidChannel, "{error:?}");
            assert!(error.message().contains(at_fault), "{error:?}");
        }
        let unchecked = UncheckedChannel(destination);
        let refused = [
            publication.add_destination(unchecked).map(drop),
            publication.remove_destination(unchecked),
        ];
        // A spy does not get there even then: the driver would read beyond its end.
        for error in refused.map(|outcome| outcome.expect_err(destination)) {
            assert_eq!(error.code() != 0, *at_fault != "spy", "by the driver: {error:?}");
        }
    }
    // The driver would send nothing there, and crash over the last.
    for endpoint in [
        "127.0.0.1",
        "localhost:24325:24326",
        "[zz::1]:24325",
        "[::1]x:24325",
        "127.0.0.1:00024325",
        "%[::1]:80",
    ] {
        let channel = format!("aeron:udp?endpoint={endpoint}");
        let error = publication.add_destination(&channel).expect_err(&channel);
        assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidChannel, 0), "{error:?}");
    }
    let unsafe_one = UncheckedChannel("aeron:udp?endpoint=%[::1]:80");
    let error = publication.remove_destination(unsafe_one).expect_err("never");
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidChannel, 0), "{error:?}");

    for endpoint in ["localhost:24325", "127.1:24325", "[::1]:24325", "::1:24325"] {
        let channel = rusteron_client::ChannelUri::udp().endpoint(endpoint).build();
        let channel = channel.expect("a channel");
        publication.add_destination(&channel).expect("a destination");
        publication.remove_destination(&channel).expect("removed");
    }
}

#[test]
fn destination_command_outlives_all_handles() {
    let driver = launch();
    let aeron = connect(&driver);
    for _ in 0..50 {
        let publication = aeron.add_exclusive_publication(MANUAL, 7).expect("a publication");
        let channel = udp_channel();
        let mut polled = publication.async_add_destination(&channel).expect("begun");
        let dropped = publication.async_remove_destination(&channel).expect("begun");
        drop(publication);
        drop(dropped);
        // The driver may have heard of the end of the publication first, or not.
        await_some("an outcome", || match polled.poll() {
            Ok(None) => None,
            outcome => Some(outcome),
        })
        .unwrap_or_else(|error| {
            assert_eq!(error.kind(), ErrorKind::UnknownPublication, "{error:?}");
            None
        });
    }
    let publication = aeron.add_publication(MANUAL, 7).expect("a publication");
    drop(aeron);
    let last = publication.async_add_destination(udp_channel()).expect("begun");
    drop(publication);
    drop(last);
}

/// Keeps the conductor busy until the sender goes.
fn hold_up(aeron: &Aeron) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let wait = move || {
        begin.send(()).expect("a receiver");
        let _ = released.recv_timeout(DEADLINE);
    };
    aeron.add_publication("aeron:ipc", 99).expect("one").close_with(wait);
    begun.recv_timeout(DEADLINE).expect("the conductor");
    release
}

#[test]
fn closes_past_a_full_command_queue() {
    // Commands that find the queue full yield the processor several times each.
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let publication = aeron.add_exclusive_publication(MANUAL, 7).expect("a publication");
    let release = hold_up(&aeron);
    let mut commands: Vec<DestinationRegistration> = Vec::new();
    let error = loop {
        match publication.async_remove_destination_by_id(-1) {
            Ok(command) => commands.push(command),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::BufferFull);
    assert!(error.is_retryable());
    assert!(commands.len() > 100, "only {}", commands.len());
    // C marks the publication as to be closed, and frees it before it gets to the commands.
    drop(publication);
    let polled = commands.split_off(commands.len() / 2);
    drop(commands);
    drop(release);
    for mut command in polled {
        let _ = await_some("an outcome", || match command.poll() {
            Ok(None) => None,
            outcome => Some(outcome),
        });
    }
    let publication = aeron.add_publication(MANUAL, 8).expect("the client goes on");
    publication.add_destination(udp_channel()).expect("and so do destinations");
}

#[test]
fn closed_client_refuses_destinations() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let publication = aeron.add_publication(MANUAL, 7).expect("a publication");
    let release = hold_up(&aeron);
    let mut pending = publication.async_add_destination(udp_channel()).expect("begun");
    let dropped = publication.async_add_destination(udp_channel()).expect("begun");
    drop(driver);
    drop(release);
    await_that("the client is closed", || aeron.is_closed());
    drop(dropped);
    let error = await_some("an outcome", || pending.poll().err());
    assert!(
        matches!(error.kind(), ErrorKind::ClientClosed | ErrorKind::DriverTimeout),
        "{error:?}"
    );
    let error = publication.add_destination(udp_channel()).expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::ClientClosed);
    drop(aeron);
    drop(publication);
    drop(pending);
}

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
        let (sender, closed) = mpsc::channel();
        subscription.close_with(move || {
            let _ = sender.send(());
        });
        closed.recv_timeout(DEADLINE).expect("the notification");
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
        let handler = |message: &[u8], header: &Header<'_>| {
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

/// Replaces each `{port}` by a port that was free a moment ago.
fn with_ports(channel: &str) -> String {
    let mut channel = channel.to_owned();
    while channel.contains("{port}") {
        channel = channel.replacen("{port}", &free_port().to_string(), 1);
    }
    channel
}

/// A destination, and the parameter or the part of it that is wrong, if any.
const CASES: &[(&str, Option<&str>)] = &[
    ("aeron:udp?endpoint=127.0.0.1:{port}", None),
    // Any port that is free.
    ("aeron:udp?endpoint=127.0.0.1:0", None),
    ("aeron:udp?endpoint=127.0.0.1:{port}|interface=127.0.0.1", None),
    ("aeron:udp?endpoint=127.0.0.1:{port}|control=127.0.0.1:{port}", None),
    ("aeron:udp?endpoint=127.0.0.1:{port}|control=127.0.0.1:{port}|control-mode=dynamic", None),
    ("aeron:udp?endpoint=127.0.0.1:{port}|alias=a|unknown=b", None),
    ("aeron:udp?endpoint=127.0.0.1:{port}|reliable=false|session-id=7|linger=5s", None),
    ("aeron:ipc", None),
    ("aeron:ipc?session-id=7|tether=false", None),
    ("aeron:ipc?mtu=1408", None),
    ("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}", None),
    ("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}|mtu=1408", None),
    ("aeron:udp?alias=nowhere", Some("endpoint")),
    ("aeron:udp?endpoint=127.0.0.1", Some("endpoint")),
    ("aeron:udp?endpoint=127.0.0.1:port", Some("endpoint")),
    ("aeron:udp?endpoint=127.0.0.1:{port}|control=nowhere", Some("control")),
    ("aeron:udp?endpoint=127.0.0.1:{port}|control-mode=dynamic", Some("control")),
    ("aeron:udp?endpoint=224.20.30.40:{port}", Some("must be odd")),
    ("aeron:udp?endpoint=127.0.0.1:{port}|tags=x", Some("tag")),
    ("aeron:udp?endpoint=127.0.0.1:{port}|mtu=1408", Some("mtu")),
    ("aeron:udp?endpoint=127.0.0.1:{port}|rcv-wnd=64k", Some("rcv-wnd")),
    ("aeron:udp?endpoint=127.0.0.1:{port}|so-rcvbuf=64k", Some("so-rcvbuf")),
    ("aeron:udp?endpoint=127.0.0.1:{port}|so-sndbuf=64k", Some("so-sndbuf")),
    ("aeron:udp?endpoint=127.0.0.1:{port}|so-tos=1", Some("so-tos")),
    (
        "aeron:udp?endpoint=127.0.0.1:{port}|response-correlation-id=1",
        Some("response-correlation-id"),
    ),
    ("aeron:udp?endpoint=127.0.0.1:{port}|control-mode=response", Some("control-mode")),
    ("aeron:ipc?session-id=x", Some("session-id")),
    ("aeron:ipc?reliable=maybe", Some("reliable")),
    ("aeron:ipc?untethered-linger-timeout=5x", Some("untethered-linger-timeout")),
    ("aeron-spy:aeron:udp?endpoint=127.0.0.1", Some("endpoint")),
    ("aeron-spy:aeron:udp?endpoint=127.0.0.1:{port}|session-id=x", Some("session-id")),
    ("aeron-spy:aeron:ipc", Some("spies")),
    ("aeron:udp?endpoint=", Some("endpoint")),
];

#[test]
fn destinations_the_driver_refuses_are_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut subscription = aeron.add_subscription(MANUAL, 1001).expect("a subscription");
    for &(destination, at_fault) in CASES {
        let theirs = subscription.add_destination(UncheckedChannel(&with_ports(destination)));
        let destination = &with_ports(destination);
        let ours = subscription.add_destination(destination);
        match at_fault {
            None => {
                theirs.unwrap_or_else(|error| panic!("{destination}: {error:?}"));
                ours.unwrap_or_else(|error| panic!("{destination}: {error:?}"));
            }
            Some(name) => {
                let error = theirs.expect_err(destination);
                assert!(error.code() != 0, "by the driver: {error:?}");
                let error = ours.expect_err(destination);
                assert!(error.message().contains(name), "{destination}: {error:?}");
            }
        }
        if at_fault.is_none() && !destination.contains("control=") {
            let removed = subscription.remove_destination(destination);
            removed.unwrap_or_else(|error| panic!("{destination}: {error:?}"));
        }
    }
    assert!(!subscription.is_closed());
}

fn assert_refused(outcome: Result<(), Error>, name: &str, what: &str) {
    let error = outcome.expect_err(what);
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidChannel, 0), "{what}: {error:?}");
    assert!(error.message().contains(name), "{what}: {error:?}");
}

/// The driver would keep a pointer to it, and use it a second later.
#[test]
fn control_address_is_never_removed() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut subscription = aeron.add_subscription(MANUAL, 1001).expect("a subscription");
    let destination = &with_ports("aeron:udp?endpoint=127.0.0.1:{port}|control=127.0.0.1:{port}");
    subscription.add_destination(destination).expect("a destination");
    for (name, at_fault) in [
        (destination, "control"),
        (&destination.replace("control", "interface"), "interface"),
        (&format!("{}/32", destination.replace("control", "interface")), "interface"),
        (&destination.replace("control", "interface").replace("127.0.0.1", "[::1]"), "interface"),
    ] {
        assert_refused(subscription.remove_destination(name), at_fault, name);
        let unchecked = UncheckedChannel(name);
        assert_refused(subscription.remove_destination(unchecked), at_fault, name);
    }
    // By this one it would be the same as with an interface that has no port.
    let name = &with_ports("aeron:udp?endpoint=127.0.0.1:{port}|control=127.0.0.1:0");
    assert_refused(subscription.add_destination(name), "control", name);
    assert_refused(subscription.add_destination(UncheckedChannel(name)), "control", name);

    let others = [
        "aeron:udp?endpoint=127.0.0.1:{port}|interface=127.0.0.1",
        "aeron:udp?endpoint=224.20.30.41:{port}|interface=127.0.0.1|control=127.0.0.1:{port}",
    ];
    for other in others.map(with_ports) {
        let other = &other;
        subscription.add_destination(other).unwrap_or_else(|error| panic!("{other}: {error:?}"));
        subscription.remove_destination(other).unwrap_or_else(|error| panic!("{other}: {error:?}"));
    }
    // The driver has a status message to send in between.
    let then = Instant::now();
    await_that("the status message", || then.elapsed() > Duration::from_millis(1500));
    drop(subscription);
    drop(aeron.add_publication("aeron:ipc", 1).expect("the driver is well"));
}

#[test]
fn removing_an_absent_destination_is_an_error() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut subscription = aeron.add_subscription(MANUAL, 1001).expect("a subscription");
    let udp = &with_ports("aeron:udp?endpoint=127.0.0.1:{port}");
    subscription.remove_destination(udp).expect("no list");
    for destination in ["aeron:ipc", "aeron-spy:aeron:udp?endpoint=127.0.0.1:40123"] {
        let error = subscription.remove_destination(destination).expect_err(destination);
        assert_eq!(error.kind(), ErrorKind::UnknownSubscription, "{error:?}");
    }
    assert!(!subscription.is_closed());
}
