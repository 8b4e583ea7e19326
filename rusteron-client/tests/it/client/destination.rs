//! Destinations of publications that send to many.

use std::sync::mpsc;
use std::time::Duration;

use rusteron_client::{
    Aeron, DestinationRegistration, ErrorKind, OfferError, Publication, Subscription,
    UncheckedChannel,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    DEADLINE, await_some, await_that, connect, connect_watchfully, launch, launch_with,
    launch_with_long_timeouts, udp_channel,
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
fn outcome_is_given_once() {
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
fn command_outlives_all_handles() {
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
fn closed_client_refuses() {
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
