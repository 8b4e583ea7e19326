//! Numbers, durations and texts at their extremes.

use std::sync::mpsc;
use std::time::Duration;

use rusteron_client::{
    Action, Aeron, Context, CountersReader, Error, ErrorKind, Header, OfferError, UncheckedChannel,
};
use rusteron_test_support::{
    DEADLINE, await_that, connect, connected_pair, context, launch, offer, receive,
};

const NUMBERS: [i64; 9] =
    [i64::MIN, i64::MIN + 1, i32::MIN as i64, -1, 0, 1, 33, i64::MAX - 1, i64::MAX];

#[test]
fn extreme_numbers_are_answers_or_errors() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    for stream_id in [i32::MIN, -1, 0, i32::MAX] {
        let added = aeron.add_publication("aeron:ipc", stream_id).expect("any number");
        assert_eq!(added.stream_id(), stream_id);
        assert!(matches!(
            added.try_claim(usize::MAX),
            Err(OfferError::MessageTooLong { .. } | OfferError::NotConnected)
        ));
        let error = added.remove_destination_by_id(i64::from(stream_id)).expect_err("it has none");
        assert_eq!(error.kind(), ErrorKind::InvalidChannel, "{error:?}");
        if stream_id < 0 {
            let error = aeron.add_counter(stream_id, &[], "").expect_err("negative");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            continue;
        }
        let counter = aeron.add_counter(stream_id, &[], "").expect("any number");
        let fixed =
            aeron.add_static_counter(stream_id, &[], "", i64::from(stream_id)).expect("any");
        for value in NUMBERS {
            counter.set(value);
            counter.get_and_add(value);
            counter.increment();
            fixed.get_and_add_release(value);
            fixed.propose_max(value);
        }
        read_everything(&aeron.counters_reader(), stream_id);
    }
    for length in [
        usize::MAX,
        usize::MAX - 31,
        isize::MAX as usize,
        1 << 31,
        publication.max_message_length() + 1,
    ] {
        assert!(matches!(publication.try_claim(length), Err(OfferError::MessageTooLong { .. })));
        assert!(matches!(
            publication.append_padding(length),
            Err(OfferError::MessageTooLong { .. })
        ));
    }
    offer(&mut publication, b"message");
    await_that("the message", || {
        subscription.images().all(|image| image.position() == 0) && {
            subscription.images().any(|mut image| {
                image.controlled_peek(0, |_, _| Action::Continue, 64).is_ok_and(|end| end == 64)
            })
        }
    });
    for number in NUMBERS {
        let mut image = subscription.image_at_index(0).expect("an image");
        let nothing = |_: &[u8], _: &Header<'_>| -> Action { Action::Abort };
        let limit = image.bounded_controlled_poll(nothing, number, usize::MAX);
        assert_eq!(limit, 0, "aborted, or beyond the limit");
        if number != 0 {
            assert!(image.controlled_peek(number, nothing, i64::MAX).is_err(), "{number}");
            assert!(image.set_position(number).is_err(), "{number}");
        }
        image.controlled_peek(0, nothing, number).expect("its position");
        assert_eq!(image.poll(|_, _| panic!("none"), 0), 0);
        assert_eq!(image.block_poll(|_, _, _| panic!("none"), 0), 0);
        if number <= 0 {
            assert_eq!(image.bounded_poll(|_, _| panic!("none"), number, usize::MAX), 0);
        }
    }
    assert!(subscription.image_at_index(usize::MAX).is_none());
    assert_eq!(subscription.block_poll(|_, _, _| {}, usize::MAX), Ok(64));
    assert_eq!(subscription.poll(|_, _| {}, usize::MAX), Ok(0));
}

fn read_everything(counters: &CountersReader<'_>, id: i32) {
    assert_eq!(counters.value(id).is_some(), counters.counter(id).is_some());
    let _ = (counters.label(id), counters.key(id), counters.state(id), counters.owner_id(id));
    let _ = (counters.type_id(id), counters.reference_id(id), counters.free_for_reuse_deadline(id));
    let found = counters.find_by_type_id_and_registration_id(id, i64::from(id));
    assert!(found.is_some_and(|found| counters.type_id(found) == Some(id)));
}

#[test]
fn extreme_durations_are_settings_or_errors() {
    type Set = fn(&mut Context, Duration) -> Result<&mut Context, Error>;
    let setters: [Set; 4] = [
        Context::set_driver_timeout,
        Context::set_keepalive_interval,
        Context::set_resource_linger_duration,
        Context::set_idle_sleep_duration,
    ];
    for set in setters {
        let mut context = Context::new().expect("a context");
        for accepted in
            [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(3_000_000_000)]
        {
            set(&mut context, accepted).unwrap_or_else(|error| panic!("{accepted:?}: {error:?}"));
        }
        for refused in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(1 << 33)]
        {
            let error = set(&mut context, refused).expect_err("too long");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
    }
    let driver = launch();
    let mut settings = context(driver.aeron_dir());
    settings
        .set_keepalive_interval(Duration::ZERO)
        .and_then(|context| context.set_idle_sleep_duration(Duration::ZERO))
        .and_then(|context| {
            context.set_resource_linger_duration(Duration::from_secs(3_000_000_000))
        })
        .and_then(|context| context.set_driver_timeout(Duration::from_secs(3_000_000_000)))
        .expect("settings");
    let aeron = Aeron::connect(settings).expect("a client");
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    offer(&mut publication, b"message");
    assert_eq!(receive(&mut subscription, 1), [b"message"]);
}

/// Nothing that comes from a user is ever a format of C's.
#[test]
fn printf_directives_are_text() {
    const TEXT: &str = "%s%n%d%.*s%99999d%%";
    let driver = launch();
    let (sender, errors) = mpsc::channel();
    let mut settings = context(driver.aeron_dir());
    settings
        .set_client_name(TEXT)
        .and_then(|context| {
            context.set_publication_error_handler(move |error| {
                let _ = sender.send(error.message.clone());
            })
        })
        .expect("settings");
    let aeron = Aeron::connect(settings).expect("a client");
    let channel = format!("aeron:udp?endpoint={TEXT}=");
    let error = aeron.add_publication(UncheckedChannel(&channel), 1).expect_err("no address");
    assert!(error.message().contains(TEXT), "{error:?}");
    let channel = format!("aeron:ipc?alias={TEXT}");
    let (publication, mut subscription) = connected_pair(&aeron, &channel);
    assert_eq!(publication.channel(), channel);
    let counter = aeron.add_counter(1001, TEXT.as_bytes(), TEXT).expect("a counter");
    assert_eq!(aeron.counters_reader().label(counter.counter_id()).as_deref(), Some(TEXT));
    subscription.image_at_index(0).expect("an image").reject(TEXT).expect("rejected");
    assert_eq!(errors.recv_timeout(DEADLINE).as_deref(), Ok(TEXT));
    assert!(!aeron.is_closed());
}
