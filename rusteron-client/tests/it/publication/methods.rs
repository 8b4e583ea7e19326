//! Publications of either kind beyond `offer`: limits, states, claims, closing, and threads that
//! publish.

use std::io::{IoSlice, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use rusteron_client::{
    Aeron, AnyPublication, ChannelStatus, ErrorKind, Header, OfferError, Publication, Publisher,
    Subscription,
};
use rusteron_test_support::{
    DEADLINE, Random, SHORT_TERMS, await_some, await_that, connect, connect_watchfully,
    connected_pair, launch, log_file, offer, receive, receive_fragments, retry, shared_pair,
    unblock,
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

#[test]
fn commit_publishes() {
    let driver = launch();
    for (mut publication, mut subscription) in each_kind(&connect(&driver), SHORT_TERMS) {
        assert!(publication.try_claim(0).expect("an available window").is_empty());
        let mut claim = publication.try_claim(9).expect("an available window");
        assert_eq!(claim.len(), 9);
        assert_eq!((claim.flags(), claim.reserved_value()), (0xC0, 0));
        claim.copy_from_slice(b"zero copy");
        claim.set_flags(0xC1);
        claim.set_reserved_value(-7);
        assert_eq!((claim.flags(), claim.reserved_value()), (0xC1, -7));
        let position = claim.position();
        assert_eq!(claim.commit(), Ok(position));
        assert_eq!(publication.position(), Ok(position));
        let expected = [(b"zero copy".to_vec(), 0xC1, -7)];
        assert_eq!(receive_fragments(&mut subscription, 1), expected);
    }
}

#[test]
fn unblocked_claim_stays_unpublished() {
    let driver = launch();
    let aeron = connect(&driver);
    let (shared, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let mut log = log_file(&driver, shared.original_registration_id());

    let mut late = shared.try_claim(10).expect("an available window");
    unblock(&log, 0, 42);
    late.copy_from_slice(b"still mine");
    assert_eq!(late.commit(), Err(OfferError::Unblocked));
    assert!(OfferError::Unblocked.is_retryable());
    // A consumed range is cleaned. A dropped claim may not write there either.
    let dropped = shared.try_claim(10).expect("an available window");
    unblock(&log, 64, 0);
    drop(dropped);
    let mut length = [1; 4];
    log.seek(SeekFrom::Start(64)).and_then(|_| log.read_exact(&mut length)).expect("a length");
    assert_eq!(i32::from_ne_bytes(length), 0);
    unblock(&log, 64, 42);

    retry(|| shared.offer(b"next")).expect("open");
    assert_eq!(receive(&mut subscription, 1), [b"next"]);
    // Fragments are told apart from padding one by one.
    let supplier = |_: &[u8]| {
        unblock(&log, 192, 42);
        0
    };
    let outcome = shared.offer_with_reserved_value(&[7; 3_000], supplier);
    assert_eq!(outcome, Err(OfferError::Unblocked));
}

#[test]
fn outlives_driver_and_closed_client() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let (mut exclusive, _subscription) = connected_pair(&aeron, "aeron:ipc");
    let mut other = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    await_that("an available window", || {
        other.available_window().is_ok_and(|window| window > 0)
            && shared.available_window().is_ok_and(|window| window > 0)
    });
    let mut committed = exclusive.try_claim(1_000).expect("an available window");
    let aborted = shared.try_claim(1_000).expect("an available window");
    let dropped = other.try_claim(1_000).expect("an available window");

    drop(driver);
    await_that("the client is closed", || aeron.is_closed());
    drop(aeron);
    committed.fill(0xAB);
    committed.set_reserved_value(9);
    assert!(committed.iter().all(|&byte| byte == 0xAB));
    let _ = committed.commit();
    aborted.abort();
    drop(dropped);
    // The client says that it is closed before each of its resources does.
    await_that("the publications are closed", || shared.is_closed() && exclusive.is_closed());
    assert!(matches!(exclusive.try_claim(1).expect_err("closed"), OfferError::Closed(_)));
    assert!(matches!(shared.try_claim(1).expect_err("closed"), OfferError::Closed(_)));
}

const PUBLISHERS: usize = 4;
const MESSAGES: usize = 10_000;

/// Thread, number, and a length and filling that follow from them.
fn message(publisher: usize, number: usize) -> Vec<u8> {
    let mut message = [publisher as u32, number as u32].map(u32::to_le_bytes).concat();
    let length = match number % 97 {
        0 => 3_000,
        other => 8 + (publisher * 31 + number * 7) % (other + 60),
    };
    message.resize(length, number as u8);
    message
}

fn retried(error: OfferError) -> bool {
    assert!(error.is_retryable(), "{error}");
    thread::yield_now();
    false
}

fn publish(publication: &Publication, publisher: usize, is_over: &AtomicBool) {
    let mut random = Random::new(publisher as u64);
    let mut number = 0;
    while number < MESSAGES && !is_over.load(Ordering::Relaxed) {
        let count = if random.below(4) == 0 { random.below(40) + 1 } else { 1 };
        let messages: Vec<_> =
            (number..(number + count).min(MESSAGES)).map(|n| message(publisher, n)).collect();
        if count > 1 {
            let batch = publication.offer_batch(&messages);
            batch.stopped_by.map(retried);
            number += batch.accepted;
            continue;
        }
        let message = &messages[0];
        let outcome = match random.below(4) {
            0 => {
                let (head, tail) = message.split_at(message.len() / 2);
                publication.offer_parts(&[IoSlice::new(head), IoSlice::new(tail)])
            }
            1 if message.len() <= publication.max_payload_length() => {
                publication.try_claim(message.len()).and_then(|mut claim| {
                    claim.copy_from_slice(message);
                    claim.commit()
                })
            }
            2 => {
                if let Ok(claim) = publication.try_claim(random.below(200)) {
                    claim.abort();
                }
                publication.offer_with_reserved_value(message, |payload| payload.len() as i64)
            }
            _ => publication.offer(message),
        };
        number += usize::from(outcome.map_or_else(retried, |_| true));
    }
}

#[test]
fn each_message_arrives_once_in_order() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, mut subscription) = shared_pair(&aeron, SHORT_TERMS);

    let is_over = AtomicBool::new(false);
    let mut next = [0; PUBLISHERS];
    thread::scope(|scope| {
        // Publishers end with this thread, also if it panics.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&is_over);
        for publisher in 0..PUBLISHERS {
            let (publication, is_over) = (&publication, &is_over);
            scope.spawn(move || publish(publication, publisher, is_over));
        }
        await_that("all messages", || {
            let handler = |received: &[u8], _: &Header<'_>| {
                let publisher = u32::from_le_bytes(received[..4].try_into().expect("4")) as usize;
                assert!(
                    received == message(publisher, next[publisher]),
                    "message {} of publisher {publisher}",
                    next[publisher]
                );
                next[publisher] += 1;
            };
            subscription.poll(handler, 10).expect("open");
            next == [MESSAGES; PUBLISHERS]
        });
    });
    let terms = publication.position().expect("open") / 65_536;
    assert!(terms > 20, "only {terms} terms came to an end");
}

/// Four times round the log: the publisher later overwrites the bytes that the subscriber reads.
/// ThreadSanitizer sees whether the read has ended before the write begins.
#[test]
fn exclusive_publisher_overwrites_what_was_read() {
    const COUNT: usize = 4 * 3 * 65536 / 256;
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    thread::scope(|scope| {
        scope.spawn(|| (0..COUNT).for_each(|n| _ = offer(&mut publication, &[n as u8; 200])));
        for message in receive(&mut subscription, COUNT) {
            assert!(message.len() == 200 && message.iter().all(|&byte| byte == message[0]));
        }
    });
}
