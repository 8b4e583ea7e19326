//! Publications beyond `offer`: claims, parts, reserved values, padding, blocks, limits, closing.

mod support;

use std::fs::File;
use std::io::{IoSlice, Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rusteron_client::{
    Aeron, BlockFault, BufferClaim, ChannelStatus, ErrorKind, ExclusivePublication, Header,
    OfferError, Publication, Subscription,
};
use rusteron_media_driver::MediaDriver;
use support::{
    PATIENCE, Random, SHORT_TERMS, await_some, await_that, connect, connected_pair, context,
    launch, offer, receive,
};

/// Tries until there is something other than a state that passes.
fn retry<T>(mut attempt: impl FnMut() -> Result<T, OfferError>) -> Result<T, OfferError> {
    await_some("an answer", || match attempt() {
        Err(error) if error.is_retryable() => None,
        outcome => Some(outcome),
    })
}

fn shared_pair(aeron: &Aeron, channel: &str) -> (Publication, Subscription) {
    let subscription = aeron.add_subscription(channel, 1002).expect("a subscription");
    let publication = aeron.add_publication(channel, 1002).expect("a publication");
    await_that("the connection", || publication.is_connected() && subscription.is_connected());
    (publication, subscription)
}

/// The next fragments: payload, flags, reserved value.
fn receive_fragments(subscription: &mut Subscription, count: usize) -> Vec<(Vec<u8>, u8, i64)> {
    let mut received = Vec::new();
    await_that("the messages", || {
        let handler = |message: &[u8], header: &Header<'_>| {
            received.push((message.to_vec(), header.flags(), header.reserved_value()));
        };
        subscription.poll_fragments(handler, 10).expect("open");
        received.len() >= count
    });
    received
}

/// A client that notices soon that its driver is gone.
fn watchful_client(driver: &MediaDriver) -> Aeron {
    let mut context = context(driver.aeron_dir());
    context
        .set_driver_timeout(Duration::from_millis(500))
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .expect("valid settings");
    Aeron::connect(context).expect("a client")
}

fn log_file(driver: &MediaDriver, original_registration_id: i64) -> File {
    let name = format!("publications/{original_registration_id}.logbuffer");
    let path = driver.aeron_dir().join(name);
    File::options().read(true).write(true).open(path).expect("the log buffer")
}

#[test]
fn a_claim_is_a_message_once_it_is_committed() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    let fill = |mut claim: BufferClaim<'_>| {
        assert_eq!(claim.len(), 9);
        assert_eq!((claim.flags(), claim.reserved_value()), (0xC0, 0));
        claim.copy_from_slice(b"zero copy");
        claim.set_flags(0xC1);
        claim.set_reserved_value(-7);
        assert_eq!((claim.flags(), claim.reserved_value()), (0xC1, -7));
        let expected = claim.position();
        let position = claim.commit().expect("in time");
        assert_eq!(position, expected);
        position
    };

    let position = fill(exclusive.try_claim(9).expect("a place"));
    assert_eq!(exclusive.position(), Ok(position));
    let position = fill(shared.try_claim(9).expect("a place"));
    assert_eq!(shared.position(), Ok(position));

    let expected = [(b"zero copy".to_vec(), 0xC1, -7)];
    assert_eq!(receive_fragments(&mut subscription, 1), expected);
    assert_eq!(receive_fragments(&mut shared_subscription, 1), expected);
}

#[test]
fn aborted_and_dropped_claims_are_skipped() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    exclusive.try_claim(100).expect("a place").abort();
    drop(exclusive.try_claim(0).expect("a place"));
    assert_eq!(exclusive.position(), Ok(160 + 32));
    offer(&mut exclusive, b"after");
    assert_eq!(receive(&mut subscription, 1), [b"after"]);

    shared.try_claim(100).expect("a place").abort();
    drop(shared.try_claim(0).expect("a place"));
    assert_eq!(shared.position(), Ok(160 + 32));
    retry(|| shared.offer(b"after")).expect("open");
    assert_eq!(receive(&mut shared_subscription, 1), [b"after"]);
}

#[test]
fn a_claim_of_no_bytes_is_an_empty_message() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mut claim = exclusive.try_claim(0).expect("a place");
    assert!(claim.is_empty());
    claim.set_reserved_value(5);
    claim.commit().expect("in time");
    assert_eq!(receive_fragments(&mut subscription, 1), [(vec![], 0xC0, 5)]);
}

#[test]
fn what_cannot_be_claimed_says_why() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut exclusive = aeron.add_exclusive_publication(SHORT_TERMS, 1).expect("a publication");
    let shared = aeron.add_publication(SHORT_TERMS, 1).expect("a publication");
    let max = exclusive.max_payload_length();
    let too_long = OfferError::MessageTooLong { length: max + 1, max_message_length: max };
    assert_eq!(exclusive.try_claim(max + 1).expect_err("too long"), too_long);
    assert_eq!(shared.try_claim(max + 1).expect_err("too long"), too_long);
    let longest = OfferError::MessageTooLong { length: usize::MAX, max_message_length: max };
    assert_eq!(exclusive.try_claim(usize::MAX).expect_err("too long"), longest);
    assert_eq!(shared.try_claim(usize::MAX).expect_err("too long"), longest);

    assert_eq!(exclusive.try_claim(max).expect_err("alone"), OfferError::NotConnected);
    assert_eq!(shared.try_claim(max).expect_err("alone"), OfferError::NotConnected);
    let _subscription = aeron.add_subscription(SHORT_TERMS, 1).expect("a subscription");
    await_that("the connection", || exclusive.is_connected() && shared.is_connected());
    assert_eq!(retry(|| exclusive.try_claim(max).map(|claim| claim.len())), Ok(max));
    assert_eq!(retry(|| shared.try_claim(max).map(|claim| claim.len())), Ok(max));
}

#[test]
fn claims_cross_the_ends_of_terms() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mut terms = 0;
    for number in 0..400_u32 {
        await_that("a place", || match exclusive.try_claim(1_000) {
            Ok(mut claim) => {
                claim[..4].copy_from_slice(&number.to_le_bytes());
                claim.commit().expect("in time");
                true
            }
            Err(OfferError::AdminAction) => {
                terms += 1;
                false
            }
            Err(OfferError::BackPressured) => false,
            Err(error) => panic!("{error}"),
        });
        assert_eq!(receive(&mut subscription, 1)[0][..4], number.to_le_bytes());
    }
    assert!(terms >= 6, "only {terms} terms");
}

#[test]
fn threads_claim_next_to_each_other_and_finish_in_any_order() {
    let driver = launch();
    let aeron = connect(&driver);
    let (shared, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let mut first = shared.try_claim(5).expect("a place");
    let mut second = shared.try_claim(6).expect("a place");
    let (finished, others) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            second.copy_from_slice(b"second");
            second.commit().expect("in time");
            finished.send(()).expect("a receiver");
        });
        others.recv().expect("the thread");
        assert_eq!(subscription.poll(|_, _| panic!("out of order"), 10), Ok(0));
        first.copy_from_slice(b"first");
        first.commit().expect("in time");
    });
    assert_eq!(receive(&mut subscription, 2), [b"first".to_vec(), b"second".to_vec()]);
}

/// Does to a frame what the driver does when it gives up waiting: see
/// `aeron_term_unblocker_unblock`.
fn unblock(log: &mut File, offset: u64, length: i32) {
    log.seek(SeekFrom::Start(offset + 6)).expect("a place");
    log.write_all(&0_u16.to_ne_bytes()).expect("the type");
    log.seek(SeekFrom::Start(offset)).expect("a place");
    log.write_all(&length.to_ne_bytes()).expect("the length");
}

#[test]
fn a_claim_that_the_driver_gave_up_is_not_published_again() {
    let driver = launch();
    let aeron = connect(&driver);
    let (shared, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let mut log = log_file(&driver, shared.original_registration_id());

    let mut late = shared.try_claim(10).expect("a place");
    unblock(&mut log, 0, 42);
    late.copy_from_slice(b"still mine");
    assert_eq!(late.commit(), Err(OfferError::Unblocked));
    assert!(OfferError::Unblocked.is_retryable());
    // What is consumed is cleaned: neither may a dropped claim write there.
    let dropped = shared.try_claim(10).expect("a place");
    unblock(&mut log, 64, 0);
    drop(dropped);
    let mut length = [1; 4];
    log.seek(SeekFrom::Start(64)).and_then(|_| log.read_exact(&mut length)).expect("a length");
    assert_eq!(i32::from_ne_bytes(length), 0);
    unblock(&mut log, 64, 42);

    retry(|| shared.offer(b"next")).expect("open");
    assert_eq!(receive(&mut subscription, 1), [b"next"]);
}

#[test]
fn claims_outlive_the_driver_and_the_client_that_it_closes() {
    let driver = launch();
    let aeron = watchful_client(&driver);
    let (mut exclusive, _subscription) = connected_pair(&aeron, "aeron:ipc");
    let mut other = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    await_that("the connection", || other.is_connected() && shared.is_connected());
    let mut committed = exclusive.try_claim(1_000).expect("a place");
    let aborted = shared.try_claim(1_000).expect("a place");
    let dropped = other.try_claim(1_000).expect("a place");

    drop(driver);
    await_that("the client is closed", || aeron.is_closed());
    drop(aeron);
    committed.fill(0xAB);
    committed.set_reserved_value(9);
    assert!(committed.iter().all(|&byte| byte == 0xAB));
    let _ = committed.commit();
    aborted.abort();
    drop(dropped);
    assert_eq!(exclusive.try_claim(1).expect_err("closed"), OfferError::Closed);
    assert_eq!(shared.try_claim(1).expect_err("closed"), OfferError::Closed);
}

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
fn parts_that_are_too_long_together_are_refused() {
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
fn every_fragment_has_the_reserved_value_of_its_own_payload() {
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
fn a_panic_in_a_supplier_reaches_the_caller_and_the_stream_goes_on() {
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

/// Streams with which session ids, term ids and offsets are known.
const REPLAYED: &str = "aeron:ipc?term-length=64k|session-id=5|\
     init-term-id=7|term-id=8|term-offset=64";
const TERM_LENGTH: usize = 64 * 1024;
const ORIGIN: i64 = TERM_LENGTH as i64 + 64;

/// What a publication of `REPLAYED` wrote from a position on. Nobody has read it yet, so that the
/// driver has not cleaned any.
fn recorded(driver: &MediaDriver, publication: &ExclusivePublication, from: i64) -> Vec<u8> {
    let mut log = log_file(driver, publication.registration_id());
    let length = publication.position().expect("open") - from;
    let mut bytes = vec![0; length as usize];
    let start = from % (3 * TERM_LENGTH as i64);
    log.seek(SeekFrom::Start(start as u64)).expect("a place");
    log.read_exact(&mut bytes).expect("the frames");
    bytes
}

/// A frame as it lies in the log.
fn frame(payload: &[u8], header: &Header<'_>) -> Vec<u8> {
    let mut frame = (payload.len() as i32 + 32).to_ne_bytes().to_vec();
    frame.extend([0, header.flags()]);
    frame.extend(1_u16.to_ne_bytes());
    for number in [header.term_offset(), header.session_id(), header.stream_id(), header.term_id()]
    {
        frame.extend(number.to_ne_bytes());
    }
    frame.extend(header.reserved_value().to_ne_bytes());
    frame.extend(payload);
    frame.resize(frame.len().next_multiple_of(32), 0);
    frame
}

#[test]
fn a_block_is_taken_over_as_it_is() {
    let (original, copy) = (launch(), launch());
    let (first, second) = (connect(&original), connect(&copy));
    let (mut recorder, mut heard) = connected_pair(&first, REPLAYED);
    let (mut player, mut repeated) = connected_pair(&second, REPLAYED);
    let mut random = Random::new(11);
    let max_payload = recorder.max_payload_length();

    let mut from = ORIGIN;
    for round in 0..4 {
        // To the very end of the term.
        let (mut block, mut messages) = (Vec::new(), Vec::new());
        while from as usize % TERM_LENGTH + block.len() != TERM_LENGTH || block.is_empty() {
            let left = TERM_LENGTH - (from as usize + block.len()) % TERM_LENGTH;
            let length = if left < 4_000 { left.min(max_payload + 32) - 32 } else { 700 };
            let message = random.bytes(length);
            let supplier = |payload: &[u8]| payload.len() as i64;
            retry(|| recorder.offer_with_reserved_value(&message, supplier)).expect("open");
            await_that("the message", || {
                let handler = |payload: &[u8], header: &Header<'_>| {
                    block.extend(frame(payload, header));
                };
                heard.poll(handler, 1).expect("open") == 1
            });
            messages.push(message);
        }

        let expected = recorder.position();
        // From the second round on, this goes from one term to the next, which is full at once.
        assert_eq!(retry(|| player.offer_block(&block)), expected, "round {round}");
        assert_eq!(player.position(), expected);
        assert!(recorded(&copy, &player, from) == block, "round {round}");
        assert!(receive(&mut repeated, messages.len()) == messages, "round {round}");
        from = expected.expect("open");
    }
}

#[test]
fn a_block_that_does_not_fit_exactly_is_refused_with_the_reason() {
    let (original, copy) = (launch(), launch());
    let (first, second) = (connect(&original), connect(&copy));
    let (mut recorder, _heard) = connected_pair(&first, REPLAYED);
    let (mut player, mut repeated) = connected_pair(&second, REPLAYED);
    offer(&mut recorder, &[1; 10]);
    offer(&mut recorder, &[2; 100]);
    drop(recorder.try_claim(10).expect("a place"));
    offer(&mut recorder, &[3; 5]);
    let block = recorded(&original, &recorder, ORIGIN);
    let second = 64;
    let padding = second + 160;

    let mut check = |offset: usize, fault: BlockFault, block: &[u8]| {
        let refused = Err(OfferError::InvalidBlock { offset, fault });
        assert_eq!(player.offer_block(block), refused);
        assert_eq!(player.position(), Ok(ORIGIN), "nothing was sent");
    };
    let with = |at: usize, bytes: &[u8]| {
        let mut block = block.clone();
        block[at..at + bytes.len()].copy_from_slice(bytes);
        block
    };
    check(0, BlockFault::Truncated, &[]);
    check(0, BlockFault::Truncated, &block[..31]);
    check(0, BlockFault::Truncated, &block[..42]);
    check(second, BlockFault::Truncated, &block[..second + 4]);
    check(second, BlockFault::Truncated, &block[..padding - 32]);
    check(0, BlockFault::BeyondTerm, &vec![0; TERM_LENGTH - 63]);
    for frame in [0, second] {
        let number = |at: usize, value: i32| with(frame + at, &value.to_ne_bytes());
        let too_long = player_max_payload() + 33;
        for length in [0, -42, 31, i32::MIN, i32::MAX, too_long] {
            check(frame, BlockFault::FrameLength, &number(0, length));
        }
        check(frame, BlockFault::Version, &with(frame + 4, &[1]));
        check(frame, BlockFault::Type, &with(frame + 6, &5_u16.to_ne_bytes()));
        check(frame, BlockFault::TermOffset, &number(8, 32));
        check(frame, BlockFault::SessionId, &number(12, 6));
        check(frame, BlockFault::StreamId, &number(16, 6));
        check(frame, BlockFault::TermId, &number(20, 7));
    }
    // Padding in between is what an aborted claim leaves; a block does not begin with it.
    check(0, BlockFault::Type, &with(6, &0_u16.to_ne_bytes()));
    check(0, BlockFault::Type, &block[padding..]);

    assert_eq!(retry(|| player.offer_block(&block)), recorder.position());
    assert_eq!(receive(&mut repeated, 3), [vec![1; 10], vec![2; 100], vec![3; 5]]);
}

/// Of IPC: the driver's default.
fn player_max_payload() -> i32 {
    1_376
}

#[test]
fn the_end_of_all_positions_is_an_error_for_everything() {
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
    // Exactly to the end; from there C's function for blocks would go on to a term that is none.
    assert_eq!(publication.append_padding(0), Ok(1 << 47));
    let frame = [0; 64];
    assert_eq!(publication.offer_block(&frame), end);
    assert_eq!(publication.offer(b""), end);
    assert!(!OfferError::MaxPositionExceeded.is_retryable());
}

#[test]
fn numbers_and_limits_are_those_of_the_channel() {
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
fn channels_have_a_state_and_addresses() {
    let driver = launch();
    let aeron = watchful_client(&driver);
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
    assert_eq!(shared.position_limit(), Err(OfferError::Closed));
    assert_eq!(shared.available_window(), Err(OfferError::Closed));
}

#[test]
fn closing_tells_when_it_is_done() {
    let driver = launch();
    let aeron = connect(&driver);
    let (exclusive, subscription) = connected_pair(&aeron, "aeron:ipc");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    let (done, reported) = mpsc::channel();
    for outcome in [
        exclusive.close_with({
            let (aeron, done) = (aeron.clone(), done.clone());
            move || {
                let error = aeron.add_publication("aeron:ipc", 1).expect_err("it would block");
                done.send(error.kind()).expect("a receiver");
            }
        }),
        shared.close_with(|| panic!("on purpose")),
        aeron.add_publication("aeron:ipc", 2).expect("a publication").close_with(move || {
            done.send(ErrorKind::Other).expect("a receiver");
        }),
    ] {
        outcome.expect("an open client");
    }
    assert_eq!(reported.recv_timeout(PATIENCE), Ok(ErrorKind::CalledFromConductor));
    assert_eq!(reported.recv_timeout(PATIENCE), Ok(ErrorKind::Other));
    await_that("no publisher is left", || subscription.image_count() == 0);
    aeron.add_publication("aeron:ipc", 1).expect("one").close();
}

#[test]
fn a_notification_is_called_when_the_client_goes_first() {
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
        exclusive.close_with(call()).expect("an open client");
        shared.close_with(call()).expect("an open client");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 40);
    assert_eq!(Arc::strong_count(&calls), 1);
}

#[test]
fn a_notification_of_a_client_that_was_closed_is_dropped_and_says_so() {
    let driver = launch();
    let aeron = watchful_client(&driver);
    let shared = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    let exclusive = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    drop(driver);
    await_that("the client is closed", || aeron.is_closed());
    let witness = Arc::new(());
    let never = || {
        let witness = Arc::clone(&witness);
        move || panic!("called with {witness:?}")
    };
    assert_eq!(shared.close_with(never()).expect_err("late").kind(), ErrorKind::ClientClosed);
    assert_eq!(exclusive.close_with(never()).expect_err("late").kind(), ErrorKind::ClientClosed);
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[test]
fn revoking_ends_the_stream_at_once() {
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
    publication.close_with(move || done.send(()).expect("a receiver")).expect("an open client");
    reported.recv_timeout(PATIENCE).expect("a call");
    await_that("the image is gone", || subscription.image_count() == 0);
}

#[test]
fn a_forgotten_claim_blocks_its_stream_and_nothing_else() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    std::mem::forget(exclusive.try_claim(10).expect("a place"));
    offer(&mut exclusive, b"behind");
    assert_eq!(subscription.poll(|_, _| panic!("there is a gap before"), 10), Ok(0));
    // The driver fills the gap of a closed publication, so that what is behind is delivered.
    drop(exclusive);
    assert_eq!(receive(&mut subscription, 1), [b"behind"]);
}
