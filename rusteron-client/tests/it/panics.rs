//! Panics of the caller's code, wherever the library calls it, or drops values that it owns.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use rusteron_client::{Action, Aeron, Header, Position};
use rusteron_test_support::{await_that, connect, connected_pair, context, launch, offer};

struct Bomb(Arc<AtomicUsize>);

struct Payload(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        if !thread::panicking() {
            panic_any(Payload(Arc::clone(&self.0)));
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        if !thread::panicking() {
            // Of no size, as this one is not freed.
            panic_any(());
        }
    }
}

#[test]
fn drop_of_captured_values() {
    let driver = launch();
    let drops = Arc::new(AtomicUsize::new(0));
    let bomb = || Bomb(Arc::clone(&drops));
    let aeron = connect(&driver);
    let await_drops = |count: usize| {
        await_that("the drops", || drops.load(Ordering::Acquire) >= count);
        drops.store(0, Ordering::Release);
    };

    // On the conductor's thread: the panic of the closure, and the panic of a value that the
    // closure owns.
    let owned = bomb();
    aeron.add_publication("aeron:ipc", 1).expect("one").close_with(move || {
        let _owned = &owned;
        panic_any(Payload(Arc::clone(&owned.0)));
    });
    await_drops(2);
    let owned = bomb();
    let builder = aeron.subscription_builder("aeron:ipc", 1).on_available_image(move |_| {
        let _ = &owned;
        panic_any(Payload(Arc::clone(&owned.0)));
    });
    let subscription = builder.add().expect("one");
    let publication = aeron.add_publication("aeron:ipc", 1).expect("one");
    await_drops(1);
    drop(subscription);
    await_drops(2);

    // A handler that removes itself is freed on the conductor's thread, too.
    let own: Arc<Mutex<Option<rusteron_client::Handler>>> = Arc::default();
    let (owned, slot) = (bomb(), Arc::clone(&own));
    let handler = aeron.add_available_counter_handler(move |_, _, _| {
        let _ = &owned;
        drop(slot.lock().expect("no panic").take());
    });
    *own.lock().expect("no panic") = Some(handler);
    let counter = aeron.add_counter(1001, &[], "").expect("a counter");
    await_drops(2);

    // Where the user drops it, the user gets the panic, and nothing else is the worse for it.
    let owned = bomb();
    let handler = aeron.add_close_handler(move || {
        let _ = &owned;
    });
    let panic = catch_unwind(AssertUnwindSafe(|| drop(handler))).expect_err("of the bomb");
    assert!(panic.is::<Payload>());
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    await_drops(2);
    assert!(!aeron.is_closed());
    drop((publication, counter));

    let mut settings = context(driver.aeron_dir());
    let (of_errors, of_counters) = (bomb(), bomb());
    settings
        .set_error_handler(move |_| drop(of_errors.0.clone()))
        .and_then(|context| {
            context.set_on_available_counter(move |_, _, _| drop(of_counters.0.clone()))
        })
        .expect("handlers");
    let other = Aeron::connect(settings).expect("a client");
    let panic = catch_unwind(AssertUnwindSafe(|| drop(other))).expect_err("of a bomb");
    let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    await_drops(3);
    drop(aeron.add_publication("aeron:ipc", 1).expect("the driver and the client are well"));
}

#[test]
fn poll_handlers_lose_and_repeat_nothing() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let long = vec![7; 3_000];
    let messages: Vec<Vec<u8>> = (0..60_u8)
        .map(|number| if number % 3 == 0 { [&long[..], &[number]].concat() } else { vec![number] })
        .collect();
    for message in &messages {
        offer(&mut publication, message);
    }
    let mut received = Vec::new();
    for turn in 0.. {
        if received.len() == messages.len() {
            break;
        }
        let before = received.len();
        let mut note = |message: &[u8], _: &Header<'_>| {
            received.push(message.to_vec());
            panic!("on purpose");
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if turn % 3 == 0 {
                return subscription.poll(note, 10).expect("open");
            }
            let mut control = |message: &[u8], header: &Header<'_>| -> Action {
                note(message, header);
                Action::Abort
            };
            if turn % 3 == 1 {
                return subscription.controlled_poll(control, 10).expect("open");
            }
            let mut image = subscription.image_at_index(0).expect("an image");
            let position = image.position();
            let peek = |_: &[u8], _: &Header<'_>| -> Action { panic!("on purpose") };
            let peeked = catch_unwind(AssertUnwindSafe(|| {
                image.controlled_peek(position, peek, Position::MAX).expect("its position")
            }));
            assert_eq!(image.position(), position, "a peek moves nothing, even if it panics");
            match turn % 4 {
                _ if peeked.is_ok() => 0,
                0 => image.poll(note, 10),
                1 => image.bounded_poll(note, Position::MAX, 10),
                _ => image.bounded_controlled_poll(&mut control, Position::MAX, 10),
            }
        }));
        assert!(received.len() - before <= usize::from(outcome.is_err()));
    }
    assert!(received == messages);
    offer(&mut publication, b"one block");
    await_that("the block", || {
        catch_unwind(AssertUnwindSafe(|| {
            subscription.block_poll(|_, _, _| panic!("on purpose"), 4096)
        }))
        .is_err()
    });
    assert_eq!(subscription.poll(|_, _| {}, 10), Ok(0), "the block was given");
}
