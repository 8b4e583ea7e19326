//! Claims: committed, aborted, forgotten, and too late.

use std::io::{Read, Seek, SeekFrom};
use std::sync::mpsc;
use std::thread;

use rusteron_client::{BufferClaim, OfferError};
use rusteron_test_support::{
    SHORT_TERMS, await_that, connect, connect_watchfully, connected_pair, launch, log_file, offer,
    receive, receive_fragments, retry, shared_pair, unblock,
};

#[test]
fn commit_publishes() {
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

    let position = fill(exclusive.try_claim(9).expect("an available window"));
    assert_eq!(exclusive.position(), Ok(position));
    let position = fill(shared.try_claim(9).expect("an available window"));
    assert_eq!(shared.position(), Ok(position));

    let expected = [(b"zero copy".to_vec(), 0xC1, -7)];
    assert_eq!(receive_fragments(&mut subscription, 1), expected);
    assert_eq!(receive_fragments(&mut shared_subscription, 1), expected);
}

#[test]
fn abort_and_drop_are_skipped() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    exclusive.try_claim(100).expect("an available window").abort();
    drop(exclusive.try_claim(0).expect("an available window"));
    assert_eq!(exclusive.position(), Ok(160 + 32));
    offer(&mut exclusive, b"after");
    assert_eq!(receive(&mut subscription, 1), [b"after"]);

    shared.try_claim(100).expect("an available window").abort();
    drop(shared.try_claim(0).expect("an available window"));
    assert_eq!(shared.position(), Ok(160 + 32));
    retry(|| shared.offer(b"after")).expect("open");
    assert_eq!(receive(&mut shared_subscription, 1), [b"after"]);
}

#[test]
fn empty_claim_is_an_empty_message() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mut claim = exclusive.try_claim(0).expect("an available window");
    assert!(claim.is_empty());
    claim.set_reserved_value(5);
    claim.commit().expect("in time");
    assert_eq!(receive_fragments(&mut subscription, 1), [(vec![], 0xC0, 5)]);
}

#[test]
fn refusal_has_the_reason() {
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
fn claims_cross_term_ends() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mut terms = 0;
    for number in 0..400_u32 {
        await_that("an available window", || match exclusive.try_claim(1_000) {
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
fn threads_commit_in_any_order() {
    let driver = launch();
    let aeron = connect(&driver);
    let (shared, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let mut first = shared.try_claim(5).expect("an available window");
    let mut second = shared.try_claim(6).expect("an available window");
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

#[test]
fn forgotten_claim_blocks_only_its_stream() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    std::mem::forget(exclusive.try_claim(10).expect("an available window"));
    offer(&mut exclusive, b"behind");
    assert_eq!(subscription.poll(|_, _| panic!("there is a gap before"), 10), Ok(0));
    // The driver fills the gap of a closed publication, so that the frames behind it are delivered.
    drop(exclusive);
    assert_eq!(receive(&mut subscription, 1), [b"behind"]);
}
