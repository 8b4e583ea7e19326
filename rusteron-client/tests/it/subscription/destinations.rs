//! Destinations of subscriptions: the client accepts what the media driver accepts, except for destinations
//! that the driver would not survive.

use std::net::UdpSocket;
use std::time::Duration;

use rusteron_client::{Error, ErrorKind, UncheckedChannel};
use rusteron_test_support::{await_that, connect, launch};

const MANUAL: &str = "aeron:udp?control-mode=manual";

/// Replaces each `{port}` by a port that was free a moment ago.
fn with_ports(channel: &str) -> String {
    let mut channel = channel.to_owned();
    while channel.contains("{port}") {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let port = socket.local_addr().expect("an address").port();
        channel = channel.replacen("{port}", &port.to_string(), 1);
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
fn refuses_what_the_driver_refuses() {
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
    let then = std::time::Instant::now();
    await_that("the status message", || then.elapsed() > Duration::from_millis(1500));
    drop(subscription);
    drop(aeron.add_publication("aeron:ipc", 1).expect("the driver is well"));
}

#[test]
fn removing_an_absent_one_is_an_error() {
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
