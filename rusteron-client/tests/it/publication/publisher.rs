//! Both kinds of publication behind one trait.

use std::io::IoSlice;

use rusteron_client::{AnyPublication, OfferError, Publisher, Subscription};
use rusteron_test_support::{SHORT_TERMS, connect, connected_pair, launch, receive, shared_pair};

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
