//! Publications of either kind beyond `offer`: limits, states, closing.

use std::io::IoSlice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use rusteron_client::{
    Aeron, AnyPublication, ChannelStatus, ErrorKind, OfferError, Publisher, Subscription,
};
use rusteron_test_support::{
    DEADLINE, Random, SHORT_TERMS, await_some, await_that, connect, connect_watchfully,
    connected_pair, launch, offer, receive, receive_fragments, shared_pair,
};

/// A publication of each kind, connected to a subscription of its own.
pub(crate) fn each_kind(aeron: &Aeron, channel: &str) -> [(AnyPublication, Subscription); 2] {
    let (exclusive, first) = connected_pair(aeron, channel);
    let (shared, second) = shared_pair(aeron, channel);
    [(exclusive.into(), first), (shared.into(), second)]
}

#[test]
fn messages_too_long_are_refused() {
    let driver = launch();
    for (mut publication, _subscription) in each_kind(&connect(&driver), SHORT_TERMS) {
        let max_message_length = publication.max_message_length();
        let too_long = |length| Err(OfferError::MessageTooLong { length, max_message_length });
        // More than fits into the 32 bits in which C counts, as seen through one slice many times.
        let bytes = vec![0; 1 << 26];
        assert_eq!(publication.offer_parts(&vec![IoSlice::new(&bytes); 65]), too_long(65 << 26));
        assert_eq!(publication.offer(&bytes), too_long(1 << 26));
        assert_eq!(publication.offer_with_reserved_value(&bytes, |_| 0), too_long(1 << 26));
        let max = publication.max_payload_length();
        let too_long = OfferError::MessageTooLong { length: max + 1, max_message_length: max };
        assert_eq!(publication.try_claim(max + 1).expect_err("too long"), too_long);
        assert!(publication.try_claim(usize::MAX).is_err());
        assert_eq!(publication.position(), Ok(0), "nothing was sent");
    }
}

#[test]
fn supplier_panic_reaches_the_caller() {
    let driver = launch();
    for (mut publication, mut subscription) in each_kind(&connect(&driver), SHORT_TERMS) {
        let max_payload = publication.max_payload_length();
        let long = Random::new(8).bytes(4 * max_payload);
        for (message, calls_before) in [(&b"short"[..], 2), (&long, 0)] {
            let mut calls = calls_before;
            let supplier = |_: &[u8]| {
                calls += 1;
                assert_ne!(calls, 3, "on purpose");
                0
            };
            let offering =
                AssertUnwindSafe(|| publication.offer_with_reserved_value(message, supplier));
            let payload = catch_unwind(offering).expect_err("a panic");
            assert!(payload.downcast_ref::<String>().is_some_and(|it| it.contains("on purpose")));
            assert_eq!(calls, 3, "none after the panic");
        }
        offer(&mut publication, b"next");
        let received = receive_fragments(&mut subscription, 3);
        let flags: Vec<u8> = received.iter().map(|(_, flags, _)| *flags).collect();
        assert_eq!(flags, [0x80, 0, 0xC0], "two fragments without an end, then the next message");
        assert!(received[1].0 == long[max_payload..2 * max_payload]);
        assert_eq!(received[2].0, b"next");
    }
}

#[test]
fn constants_follow_the_channel() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) =
        connected_pair(&aeron, "aeron:ipc?term-length=128k|mtu=2k");
    assert_eq!(exclusive.term_buffer_length(), 128 * 1024);
    assert_eq!(exclusive.max_message_length(), 16 * 1024);
    assert_eq!(exclusive.max_payload_length(), 2_048 - 32);
    assert!(exclusive.is_original());
    assert_eq!(exclusive.registration_id(), exclusive.constants().registration_id);

    await_that("a window", || exclusive.available_window().expect("open") > 0);
    let limit = exclusive.position_limit().expect("open");
    assert_eq!(exclusive.available_window(), Ok(limit as usize));
    let position = offer(&mut exclusive, b"x");
    assert_eq!(exclusive.available_window(), Ok((limit - position) as usize));
    await_that("back-pressure", || {
        exclusive.append_padding(10_000) == Err(OfferError::BackPressured)
    });
    assert_eq!(exclusive.available_window(), Ok(0));
    let limit = exclusive.position_limit().expect("open");
    assert!(exclusive.position().expect("open") >= limit);
    receive(&mut subscription, 1);

    let first = aeron.add_publication("aeron:ipc", 3).expect("a publication");
    let again = connect(&driver).add_publication("aeron:ipc", 3).expect("a publication");
    assert_eq!(first.session_id(), again.session_id());
    assert!(first.is_original() && !again.is_original());
    assert_eq!(again.original_registration_id(), first.registration_id());
    assert_eq!(first.position_limit(), Ok(0));
    assert_eq!(first.available_window(), Ok(0));
}

#[test]
fn channel_status_and_addresses() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let ipc = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    assert_eq!(ipc.channel_status(), ChannelStatus::Active);
    assert_eq!(ipc.channel_status_id(), -1);
    assert_eq!(ipc.local_addresses().expect("none"), []);

    let channel = "aeron:udp?control=127.0.0.1:0|control-mode=dynamic";
    let shared = aeron.add_publication(channel, 1).expect("a publication");
    let exclusive = aeron.add_exclusive_publication(channel, 1).expect("a publication");
    await_that("the sockets", || shared.channel_status() == ChannelStatus::Active);
    await_that("the sockets", || exclusive.channel_status() == ChannelStatus::Active);
    assert!(shared.channel_status_id() >= 0);
    let addresses = await_some("an address", || {
        let addresses = shared.local_addresses().expect("addresses");
        (!addresses.is_empty()).then_some(addresses)
    });
    assert_eq!(addresses.len(), 1);
    assert!(addresses[0].ip().is_loopback() && addresses[0].port() != 0, "{addresses:?}");
    assert_eq!(exclusive.local_addresses().expect("addresses").len(), 1);

    drop(driver);
    await_that("the client is closed", || ipc.is_closed() && shared.is_closed());
    assert_eq!(shared.channel_status(), ChannelStatus::Closed);
    assert_eq!(ipc.channel_status(), ChannelStatus::Closed);
    assert!(matches!(shared.position_limit(), Err(OfferError::Closed(_))));
    assert!(matches!(shared.available_window(), Err(OfferError::Closed(_))));
}

#[test]
fn close_notifies_when_done() {
    let driver = launch();
    let aeron = connect(&driver);
    let (exclusive, subscription) = connected_pair(&aeron, "aeron:ipc");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    let (done, reported) = mpsc::channel();
    exclusive.close_with({
        let (aeron, done) = (aeron.clone(), done.clone());
        move || {
            let error = aeron.add_publication("aeron:ipc", 1).expect_err("it would block");
            done.send(error.kind()).expect("a receiver");
        }
    });
    shared.close_with(|| panic!("on purpose"));
    aeron.add_publication("aeron:ipc", 2).expect("a publication").close_with(move || {
        done.send(ErrorKind::Other).expect("a receiver");
    });
    assert_eq!(reported.recv_timeout(DEADLINE), Ok(ErrorKind::CalledFromConductor));
    assert_eq!(reported.recv_timeout(DEADLINE), Ok(ErrorKind::Other));
    await_that("no publisher is left", || subscription.image_count() == 0);
    aeron.add_publication("aeron:ipc", 1).expect("one").close();
}

#[test]
fn close_notifies_after_the_client() {
    let driver = launch();
    let calls = Arc::new(AtomicUsize::new(0));
    let aeron = connect(&driver);
    let shared = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    let exclusive = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    drop(aeron);
    let call = || {
        let calls = Arc::clone(&calls);
        move || {
            calls.fetch_add(1, Ordering::Relaxed);
        }
    };
    exclusive.close_with(call());
    shared.close_with(call());
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(Arc::strong_count(&calls), 1);
}

#[test]
fn revoke_ends_the_stream() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, subscription) = connected_pair(&aeron, "aeron:ipc");
    offer(&mut publication, b"never read");
    publication.revoke();
    await_that("the image is gone", || subscription.image_count() == 0);

    let (mut publication, subscription) = connected_pair(&aeron, "aeron:ipc");
    publication.revoke_on_close();
    // Until it is closed, messages are accepted.
    offer(&mut publication, b"never read");
    let (done, reported) = mpsc::channel();
    publication.close_with(move || done.send(()).expect("a receiver"));
    reported.recv_timeout(DEADLINE).expect("a call");
    await_that("the image is gone", || subscription.image_count() == 0);
}

/// Sends in every way, and checks what arrives.
fn exchange(publisher: &mut impl Publisher, subscription: &mut Subscription) {
    let mut positions = vec![publisher.position()];
    positions.push(publisher.offer(b"offer"));
    positions.push(publisher.offer_parts(&[IoSlice::new(b"par"), IoSlice::new(b"ts")]));
    positions.push(publisher.offer_with_reserved_value(b"value", |_| 7));
    positions.push(publisher.try_claim(5).and_then(|mut claim| {
        claim.copy_from_slice(b"claim");
        claim.commit()
    }));
    assert_eq!(publisher.offer_batch(&[b"batch"]).accepted, 1);
    positions.push(publisher.position());
    let positions: Result<Vec<_>, _> = positions.into_iter().collect();
    assert!(positions.as_ref().is_ok_and(|positions| positions.is_sorted()), "{positions:?}");
    let received = receive(subscription, 5);
    assert_eq!(received, [b"offer", b"parts", b"value", b"claim", b"batch"]);

    let limit = publisher.position_limit().expect("open");
    let window = publisher.available_window().expect("open");
    assert_eq!(limit - window as i64, publisher.position().expect("open"));
    assert!(publisher.is_connected() && !publisher.is_closed());
    assert_eq!(publisher.channel(), SHORT_TERMS);
    let (handle, constants) = (publisher.handle(), publisher.constants());
    assert_eq!(handle.session_id(), publisher.session_id());
    assert_eq!(constants.stream_id, publisher.stream_id());
    assert!(publisher.max_payload_length() < publisher.max_message_length());
    let length = publisher.max_payload_length() + 1;
    let too_long = publisher.try_claim(length).map(drop).expect_err("too long");
    assert!(matches!(too_long, OfferError::MessageTooLong { .. }), "{too_long}");
}

#[test]
fn every_publisher_sends() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut shared, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    exchange(&mut shared, &mut subscription);
    exchange(&mut &shared, &mut subscription);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    exchange(&mut exclusive, &mut subscription);
    for (mut publication, mut subscription) in each_kind(&aeron, SHORT_TERMS) {
        exchange(&mut publication, &mut subscription);
    }
}
