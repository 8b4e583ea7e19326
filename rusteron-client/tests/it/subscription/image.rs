//! Images by themselves: looked up, polled, peeked at, skipped in, rejected, ended.

use std::sync::mpsc;
use std::time::Duration;

use rusteron_client::{Action, ErrorKind, Header, Image, Messages, Position, Subscription};
use rusteron_test_support::{
    DEADLINE, SHORT_TERMS, await_some, await_that, connect, connect_watchfully, connected_pair,
    launch, launch_with, offer, receive, udp_channel,
};

#[test]
fn lookup_and_source() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    assert_eq!(subscription.images().count(), 0);
    assert!(subscription.image_at_index(0).is_none());
    let publications: Vec<_> = (0..2)
        .map(|_| aeron.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication"))
        .collect();
    await_that("both images", || subscription.image_count() == 2);

    assert_eq!(subscription.images().len(), 2);
    for publication in &publications {
        let image = subscription.image_by_session_id(publication.session_id()).expect("an image");
        assert_eq!(image.session_id(), publication.session_id());
        assert_eq!(image.source_identity(), "aeron:ipc");
        assert_eq!(image.initial_term_id(), publication.constants().initial_term_id);
        assert_eq!(image.term_buffer_length(), 64 * 1024);
        assert_eq!(image.mtu_length(), publication.constants().max_payload_length + 32);
        assert_eq!((image.join_position(), image.position()), (0, 0));
        assert!(image.subscriber_position_id() >= 0);
        assert!(!image.is_closed() && !image.is_end_of_stream());
        assert!(!image.is_publication_revoked());
        assert_eq!(image.end_of_stream_position(), None);
        let constants = image.constants();
        assert_eq!(constants.session_id, image.session_id());
        assert_eq!(constants.correlation_id, image.correlation_id());
        assert_eq!(constants.source_identity, image.source_identity());
        assert_eq!(constants.position_bits_to_shift, 16);
        assert!(format!("{image:?}").contains("aeron:ipc"));
    }
    assert!(subscription.image_by_session_id(publications[0].session_id() ^ 0x4000_0000).is_none());
    assert!(subscription.image_at_index(1).is_some());
    assert!(subscription.image_at_index(2).is_none());
}

#[test]
fn peek_does_not_move() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let payload = publication.constants().max_payload_length;
    let first = offer(&mut publication, b"first");
    let second = offer(&mut publication, &vec![2; payload + 1]);
    let third = offer(&mut publication, b"third");

    let mut image = subscription.image_at_index(0).expect("an image");
    let mut seen = Vec::new();
    let mut peek = |image: &mut rusteron_client::Image<'_>, from, actions: &[Action], limit| {
        seen.clear();
        let handler = |fragment: &[u8], _: &rusteron_client::Header<'_>| {
            let action = actions.get(seen.len()).copied().unwrap_or(Action::Continue);
            seen.push(fragment.len());
            action
        };
        let position = image.controlled_peek(from, handler, limit).expect("a valid position");
        assert_eq!(image.position(), 0, "it does not move");
        (position, seen.clone())
    };
    use Action::{Abort, Break, Commit, Continue};
    assert_eq!(
        peek(&mut image, 0, &[], Position::MAX),
        (third, vec![5, payload, 1, 5]),
        "from the position on"
    );
    assert_eq!(peek(&mut image, 0, &[Abort], Position::MAX), (0, vec![5]));
    assert_eq!(peek(&mut image, 0, &[Break], Position::MAX), (first, vec![5]));
    assert_eq!(
        peek(&mut image, 0, &[Commit, Break], Position::MAX),
        (first, vec![5, payload]),
        "after the last whole message"
    );
    assert_eq!(
        peek(&mut image, first, &[Continue, Continue, Abort], Position::MAX),
        (second, vec![payload, 1, 5]),
        "from a later message on"
    );
    assert_eq!(peek(&mut image, 0, &[], first), (first, vec![5]), "up to a limit");
    assert_eq!(peek(&mut image, third, &[], Position::MAX), (third, vec![]));

    // Whole messages, with an assembler.
    let mut assembler = rusteron_client::ImageFragmentAssembler::new();
    let mut lengths = Vec::new();
    let handler = assembler.controlled_handler(|message, _| {
        lengths.push(message.len());
        Continue
    });
    assert_eq!(image.controlled_peek(0, handler, Position::MAX).expect("valid"), third);
    assert_eq!(lengths, [5, payload + 1, 5]);

    image.set_position(second).expect("the end of a message");
    assert_eq!(receive(&mut subscription, 1), [b"third"]);
}

#[test]
fn set_position_within_arrived() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    // The bytes of this message would make long frames.
    offer(&mut publication, &[0x7f; 500]);
    let end = offer(&mut publication, b"second");

    let mut image = subscription.image_at_index(0).expect("an image");
    for (position, why) in [
        (-32, "out of the range 0-65536"),
        (64 * 1024 + 32, "out of the range 0-65536"),
        (33, "33 is not a multiple of 32"),
        (64, "64 is in the middle of a frame"),
        (end + 32, "where nothing is yet"),
        (64 * 1024, "where nothing is yet"),
    ] {
        for error in [
            image.set_position(position).expect_err(why),
            image.controlled_peek(position, |_, _| Action::Abort, Position::MAX).expect_err(why),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.message().contains(why), "{error:?}");
        }
        assert_eq!(image.position(), 0);
    }
    image.set_position(0).expect("where it is");
    image.set_position(544).expect("the end of the first message");
    assert_eq!(image.position(), 544);
    assert!(image.set_position(0).is_err(), "not back");
    image.set_position(end).expect("the end of the second message");
    assert_eq!(image.poll(|_, _| panic!("all was skipped"), 10), 0);
    offer(&mut publication, b"third");
    assert_eq!(receive(&mut subscription, 1), [b"third"]);
}

#[test]
fn end_of_stream_is_noticed() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let end = offer(&mut publication, b"last");
    drop(publication);
    await_some("the end", || {
        let image = subscription.image_at_index(0)?;
        (image.end_of_stream_position() == Some(end)).then(|| assert!(!image.is_end_of_stream()))
    });
    let mut image = subscription.image_at_index(0).expect("it is not read yet");
    assert_eq!(image.poll(|_, _| {}, 10), 1);
    assert!(image.is_end_of_stream());
    await_that("it closes under the eyes of its user", || image.is_closed());
    assert!(image.is_end_of_stream());
    assert_eq!((image.position(), image.end_of_stream_position()), (end, Some(end)));
    assert_eq!(image.poll(|_, _| panic!("closed"), 10), 0);
    assert_eq!(image.controlled_poll(|_, _| panic!("closed"), 10), 0);
    assert_eq!(image.bounded_poll(|_, _| panic!("closed"), Position::MAX, 10), 0);
    assert_eq!(image.block_poll(|_, _, _| panic!("closed"), 1000), 0);
    let peeked = image.controlled_peek(7, |_, _| panic!("closed"), Position::MAX);
    assert_eq!(peeked.expect("nothing to object to"), 7);
    image.set_position(7).expect("nothing to object to");
    assert_eq!(image.position(), end);
    assert_eq!(image.active_transport_count(), 0);
    assert_eq!(image.source_identity(), "aeron:ipc");
    await_that("it goes", || subscription.images().len() == 0);
}

#[test]
fn outlives_its_publisher_while_borrowed() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mut image = subscription.image_at_index(0).expect("an image");
    let term_length = image.term_buffer_length();
    drop(publication);
    await_that("it closes", || image.is_closed());
    // The conductor looks for images to free about sixty times a second.
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert_eq!(image.poll(|_, _| panic!("closed"), 10), 0);
    assert_eq!(image.term_buffer_length(), term_length);
    assert_eq!(image.mtu_length(), image.constants().mtu_length);
}

/// A poll that calls for a message, whatever else it gives to its handler.
type Poll = fn(&mut Subscription, &mut dyn FnMut()) -> usize;

/// The driver has the counter of an image's position back when the image is gone, and may give it
/// away at once.
#[test]
fn lost_image_leaves_its_counter_alone() {
    let driver = launch_with(|context| {
        context
            .set_counters_free_to_reuse_timeout(Duration::ZERO)?
            .set_timer_interval(Duration::from_millis(50))
    });
    let aeron = connect(&driver);
    let (gone, is_gone) = mpsc::channel();
    let mut subscription = aeron
        .subscription_builder(SHORT_TERMS, 1001)
        .on_unavailable_image(move |_| gone.send(()).expect("a receiver"))
        .add()
        .expect("a subscription");
    let polls: [Poll; 4] = [
        |subscription, handle| subscription.poll(|_, _| handle(), 10).expect("open"),
        |subscription, handle| {
            let handler = |messages: &mut Messages<'_>| messages.for_each(|_| handle());
            subscription.poll_batch(handler, 10).expect("open")
        },
        |subscription, handle| {
            let handler = |_: &[u8], _: &Header<'_>| {
                handle();
                Action::Commit
            };
            subscription.controlled_poll(handler, 10).expect("open")
        },
        |subscription, handle| subscription.block_poll(|_, _, _| handle(), 1 << 16).expect("open"),
    ];
    for poll in polls {
        let mut publication =
            aeron.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication");
        offer(&mut publication, b"message");
        let counter_id = await_some("the image", || {
            subscription.images().next().map(|image| image.subscriber_position_id())
        });
        let mut publication = Some(publication);
        let mut counters = Vec::new();
        let mut handle = || {
            publication.take().expect("one message").revoke();
            is_gone.recv_timeout(DEADLINE).expect("the end of the image");
            await_that("the next owner of the counter", || {
                let counter = aeron.add_counter(1001, &[], "the next owner's").expect("a counter");
                counters.push(counter);
                counters.last().is_some_and(|counter| counter.counter_id() == counter_id)
            });
            counters.last().expect("a counter").set(-7);
        };
        // A block does not count if its image was lost meanwhile.
        let mut is_handled = false;
        await_that("the message", || {
            poll(&mut subscription, &mut || {
                handle();
                is_handled = true;
            });
            is_handled
        });
        assert_eq!(counters.last().expect("a counter").get(), -7);
    }
}

#[test]
fn rejected_image_goes() {
    let driver = launch();
    let aeron = connect(&driver);
    for channel in ["aeron:ipc", &udp_channel()] {
        let (publication, mut subscription) = connected_pair(&aeron, channel);
        let mut image = subscription.image_at_index(0).expect("an image");
        let too_long = [1001, 1003, 1004, 1016, 1023, 1024, 100_000].map(|n| "x".repeat(n));
        // Bytes are counted, not characters.
        for reason in too_long.into_iter().chain(["ä".repeat(501), "a\0b".into()]) {
            let error = image.reject(&reason).expect_err("an invalid reason");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            assert!(error.message().starts_with("reason: "), "{error:?}");
        }
        image.reject(&"x".repeat(Image::MAX_REASON_LENGTH)).expect("it fits");
        await_that("the image goes", || subscription.image_count() == 0);
        await_that("the publisher knows", || !publication.is_connected());
    }
}

#[test]
fn closed_with_the_client() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    offer(&mut publication, b"x");
    drop((driver, aeron));
    let mut image = subscription.image_at_index(0).expect("an image");
    await_that("it closes", || image.is_closed());
    assert_eq!(image.poll(|_, _| panic!("closed"), 10), 0);
    assert_eq!(image.position(), 0);
    assert_eq!(image.reject("no").expect_err("closed").kind(), ErrorKind::ClientClosed);
}
