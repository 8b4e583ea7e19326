//! Claims: committed, too late, and outliving what they were made of.

use std::io::{Read, Seek, SeekFrom};

use super::methods::each_kind;
use rusteron_client::{OfferError, Publisher};
use rusteron_test_support::{
    SHORT_TERMS, await_that, connect, connect_watchfully, connected_pair, launch, log_file,
    receive, receive_fragments, retry, shared_pair, unblock,
};

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
