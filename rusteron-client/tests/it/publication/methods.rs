//! Publications beyond `offer`: parts, reserved values, padding, limits, states, closing.

use std::io::IoSlice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use rusteron_client::{
    AnyPublication, ChannelStatus, ErrorKind, OfferError, Publisher, Subscription,
};
use rusteron_test_support::{
    DEADLINE, Random, SHORT_TERMS, await_some, await_that, connect, connect_watchfully,
    connected_pair, launch, offer, receive, receive_fragments, retry, shared_pair,
};

#[test]
fn parts_arrive_as_one_message() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    let max_payload = exclusive.max_payload_length();
    let mut random = Random::new(5);
    let lists: [&[usize]; 7] = [
        &[],
        &[0],
        &[3, 0, 4],
        &[1, max_payload - 1],
        &[max_payload, 0, 1],
        &[10, 2 * max_payload, 7, 0, 0],
        &[8_192],
    ];
    for lengths in lists {
        let parts: Vec<Vec<u8>> = lengths.iter().map(|&length| random.bytes(length)).collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let message = parts.concat();
        let position = retry(|| exclusive.offer_parts(&slices)).expect("open");
        assert_eq!(exclusive.position(), Ok(position));
        assert_eq!(receive(&mut subscription, 1), [&message[..]], "{lengths:?}");
        let position = retry(|| shared.offer_parts(&slices)).expect("open");
        assert_eq!(shared.position(), Ok(position));
        assert_eq!(receive(&mut shared_subscription, 1), [&message[..]], "{lengths:?}");
    }
}

#[test]
fn parts_too_long_together_are_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut exclusive = aeron.add_exclusive_publication(SHORT_TERMS, 1).expect("a publication");
    let shared = aeron.add_publication(SHORT_TERMS, 1).expect("a publication");
    let max = exclusive.max_message_length();
    // More than fits into the 32 bits in which C counts, as seen through one slice many times.
    let bytes = vec![0; 1 << 26];
    let parts = vec![IoSlice::new(&bytes); 65];
    let too_long = OfferError::MessageTooLong { length: 65 << 26, max_message_length: max };
    assert_eq!(exclusive.offer_parts(&parts), Err(too_long));
    assert_eq!(shared.offer_parts(&parts), Err(too_long));
    let too_long = OfferError::MessageTooLong { length: 1 << 26, max_message_length: max };
    assert_eq!(exclusive.offer(&bytes), Err(too_long));
    assert_eq!(shared.offer(&bytes), Err(too_long));
    assert_eq!(exclusive.offer_with_reserved_value(&bytes, |_| 0), Err(too_long));
    assert_eq!(shared.offer_with_reserved_value(&bytes, |_| 0), Err(too_long));
}

fn checksum(payload: &[u8]) -> i64 {
    payload.iter().fold(payload.len() as i64, |sum, &byte| sum.wrapping_mul(31) + i64::from(byte))
}

#[test]
fn reserved_value_is_per_fragment() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    let max_payload = exclusive.max_payload_length();
    let mut random = Random::new(6);
    for length in [0, 1, max_payload, max_payload + 1, 3 * max_payload + 5] {
        let message = random.bytes(length);
        let fragments = length.div_ceil(max_payload).max(1);
        retry(|| exclusive.offer_with_reserved_value(&message, checksum)).expect("open");
        retry(|| shared.offer_with_reserved_value(&message, checksum)).expect("open");
        for subscription in [&mut subscription, &mut shared_subscription] {
            let received = receive_fragments(subscription, fragments);
            assert_eq!(received.len(), fragments);
            let mut whole = Vec::new();
            for (payload, _, reserved_value) in received {
                assert_eq!(reserved_value, checksum(&payload), "{length} bytes");
                whole.extend(payload);
            }
            assert!(whole == message, "{length} bytes");
        }
    }
}

#[test]
fn supplier_panic_reaches_the_caller() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    let max_payload = exclusive.max_payload_length();
    let long = Random::new(8).bytes(4 * max_payload);
    let third_time = |calls: &mut usize| {
        *calls += 1;
        assert_ne!(*calls, 3, "on purpose");
        0
    };
    let text = |outcome: thread::Result<Result<i64, OfferError>>| {
        let payload = outcome.expect_err("a panic");
        let text = payload.downcast_ref::<String>().expect("a text");
        assert!(text.contains("on purpose"), "{text}");
    };

    let mut calls = 2;
    text(catch_unwind(AssertUnwindSafe(|| {
        exclusive.offer_with_reserved_value(b"short", |_| third_time(&mut calls))
    })));
    calls = 2;
    text(catch_unwind(AssertUnwindSafe(|| {
        shared.offer_with_reserved_value(b"short", |_| third_time(&mut calls))
    })));
    calls = 0;
    text(catch_unwind(AssertUnwindSafe(|| {
        exclusive.offer_with_reserved_value(&long, |_| third_time(&mut calls))
    })));
    assert_eq!(calls, 3, "none after the panic");
    calls = 0;
    text(catch_unwind(AssertUnwindSafe(|| {
        shared.offer_with_reserved_value(&long, |_| third_time(&mut calls))
    })));
    offer(&mut exclusive, b"next");
    retry(|| shared.offer(b"next")).expect("open");

    for subscription in [&mut subscription, &mut shared_subscription] {
        let received = receive_fragments(subscription, 3);
        let flags: Vec<u8> = received.iter().map(|(_, flags, _)| *flags).collect();
        assert_eq!(flags, [0x80, 0, 0xC0], "two fragments without an end, then the next message");
        assert!(received[1].0 == long[max_payload..2 * max_payload]);
        assert_eq!(received[2].0, b"next");
    }
}

#[test]
fn padding_is_skipped() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let max = exclusive.max_message_length();
    assert_eq!(exclusive.append_padding(0), Ok(32));
    assert_eq!(exclusive.append_padding(max), Ok(64 + max as i64));
    let too_long = OfferError::MessageTooLong { length: max + 1, max_message_length: max };
    assert_eq!(exclusive.append_padding(max + 1), Err(too_long));
    assert!(matches!(exclusive.append_padding(usize::MAX), Err(OfferError::MessageTooLong { .. })));
    offer(&mut exclusive, b"next");
    assert_eq!(receive(&mut subscription, 1), [b"next"]);
}

#[test]
fn max_position_is_an_error_everywhere() {
    let driver = launch();
    let aeron = connect(&driver);
    // The last term there is, shortly before its end.
    let channel = "aeron:ipc?term-length=64k|init-term-id=0|term-id=2147483647|term-offset=65408";
    let (mut publication, _subscription) = connected_pair(&aeron, channel);
    offer(&mut publication, &[0; 64]);
    let end = Err(OfferError::MaxPositionExceeded);
    assert_eq!(publication.try_claim(100).map(|claim| claim.position()), end);
    assert_eq!(publication.append_padding(100), end);
    assert_eq!(publication.offer_parts(&[IoSlice::new(&[0; 100])]), end);
    assert_eq!(publication.offer_with_reserved_value(&[0; 100], |_| 0), end);
    // The rest of the term has become padding: a message that would have fitted is not written over
    // it.
    assert_eq!(publication.position(), Ok(1 << 47));
    assert_eq!(publication.offer(b""), end);
    // Exactly to the end; from there C's function for blocks would go on to a term that is none.
    let (mut publication, _subscription) = connected_pair(&aeron, &format!("{channel}|alias=2"));
    offer(&mut publication, &[0; 64]);
    assert_eq!(publication.append_padding(0), Ok(1 << 47));
    let frame = [0; 64];
    assert_eq!(publication.offer_block(&frame), end);
    assert_eq!(publication.offer(b""), end);
    assert!(!OfferError::MaxPositionExceeded.is_retryable());
}

#[test]
fn max_position_stays_after_4_gib_of_offers() {
    let driver = launch();
    let aeron = connect(&driver);
    let channel = "aeron:ipc?term-length=64k|init-term-id=0|term-id=2147483647|term-offset=65408";
    let (publication, _subscription) = shared_pair(&aeron, channel);
    let end = Err(OfferError::MaxPositionExceeded);
    let message = vec![0; publication.max_message_length()];
    for message in [&message[..publication.max_payload_length()], &message] {
        for _ in 0..=(1_u64 << 32) / message.len() as u64 {
            assert_eq!(publication.offer(message), end);
        }
        assert_eq!(publication.position(), Ok(1 << 47));
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
    for _ in 0..20 {
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
    }
    assert_eq!(calls.load(Ordering::Relaxed), 40);
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
    offer(&mut publication, b"never read");
    publication.revoke_on_close();
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
    exchange(&mut AnyPublication::from(shared), &mut subscription);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    exchange(&mut exclusive, &mut subscription);
    exchange(&mut AnyPublication::from(exclusive), &mut subscription);
}
