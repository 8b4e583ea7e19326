//! The positions of a stream, found together among the counters.

use std::collections::HashSet;

use rusteron_client::PositionKind;
use rusteron_test_support::{
    await_some, await_that, connect, connected_pair, launch, offer, receive, udp_channel,
};

#[test]
fn found_together() {
    let driver = launch();
    let aeron = connect(&driver);
    // Longer than what fits into a key.
    let channel = format!("aeron:ipc?alias={}", "long-name-".repeat(12));
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    let end = offer(&mut publication, b"to be read later");
    let stream = |wanted: &str| {
        let mut streams = aeron.counters_reader().stream_positions();
        streams.retain(|stream| stream.channel == wanted);
        assert!(streams.len() <= 1, "{streams:?}");
        streams.pop()
    };
    let positions = await_some("the position", || {
        stream(&channel).filter(|stream| stream.publisher_position() == Some(end))
    });
    assert_eq!(positions.stream_id, 1001);
    assert_eq!(positions.session_id, publication.session_id());
    assert!(positions.publisher_limit() > Some(end));
    assert_eq!(positions.subscriber_backlog(), Some(end));
    assert_eq!((positions.sender_position(), positions.receiver_position()), (None, None));
    let publisher = positions.of(PositionKind::PublisherPosition).next().expect("one");
    assert_eq!(publisher.registration_id, publication.constants().registration_id);
    let subscriber = positions.of(PositionKind::SubscriberPosition).next().expect("one");
    assert_eq!(subscriber.registration_id, subscription.constants().registration_id);
    for position in [publisher, subscriber] {
        assert_eq!(position.owner_id, aeron.client_id());
    }
    assert!(
        positions.to_string().contains(&format!("pub-pos:{}:{end}", publisher.registration_id))
    );

    receive(&mut subscription, 1);
    await_that("no backlog", || {
        stream(&channel).is_some_and(|stream| stream.subscriber_backlog() == Some(0))
    });
}

#[test]
fn udp_has_sender_and_receiver() {
    let driver = launch();
    let aeron = connect(&driver);
    let channel = udp_channel();
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    let end = offer(&mut publication, b"over the network");
    receive(&mut subscription, 1);
    let arrived = await_some("the positions", || {
        aeron.counters_reader().stream_positions().into_iter().find(|stream| {
            stream.channel == channel
                && stream.receiver_position() == Some(end)
                && stream.sender_position() == Some(end)
                && stream.publisher_position() == Some(end)
        })
    });
    assert_eq!(arrived.subscriber_positions().collect::<Vec<_>>(), [end]);
    assert_eq!(arrived.receiver_high_water_mark(), Some(end));
    assert_eq!((arrived.sender_backlog(), arrived.subscriber_backlog()), (Some(0), Some(0)));
    assert!(arrived.sender_limit() >= Some(end));
    let kinds: HashSet<_> = arrived.positions.iter().map(|position| position.kind).collect();
    assert_eq!(kinds.len(), PositionKind::ALL.len(), "{arrived}");
}

#[test]
fn lookalike_counters_do_no_harm() {
    let driver = launch();
    let aeron = connect(&driver);
    for kind in PositionKind::ALL {
        for key in [&[][..], &[0xFF; 112], &[7; 20]] {
            let counter = aeron.add_counter(kind.type_id(), key, "@ @").expect("a counter");
            let streams = aeron.counters_reader().stream_positions();
            assert!(!format!("{streams:?}").is_empty());
            drop(counter);
        }
    }
}
