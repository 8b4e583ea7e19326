//! Counters of one's own, and the reader of all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;

use rusteron_client::{Counter, CounterSnapshot, CounterState, ErrorKind, Registration};
use rusteron_test_support::{await_some, await_that, connect, connect_watchfully, launch};

const TYPE: i32 = 1001;

#[test]
fn other_clients_see_the_value() {
    let driver = launch();
    let (writer, reader) = (connect(&driver), connect(&driver));
    let counter = writer.add_counter(TYPE, b"a key", "a label").expect("a counter");
    counter.set(-42);

    let seen = await_some("the counter", || reader.counters_reader().counter(counter.counter_id()));
    assert_eq!(seen.id, counter.counter_id());
    assert_eq!(seen.type_id, TYPE);
    assert_eq!(seen.value, -42);
    assert_eq!(seen.label, "a label");
    assert_eq!(&seen.key[..6], b"a key\0");
    assert_eq!(seen.registration_id, counter.registration_id());
    assert_eq!(seen.owner_id, writer.client_id());
    assert_eq!(seen.reference_id, 0);
    assert_eq!(seen.to_string(), format!("{:3}: {:20} - a label", counter.counter_id(), -42));

    let counters = reader.counters_reader();
    let found = counters.find_by_type_id_and_registration_id(TYPE, counter.registration_id());
    assert_eq!(found, Some(counter.counter_id()));
    assert_eq!(counters.find_by_type_id_and_registration_id(TYPE, -1), None);
    assert_eq!(counters.state(counter.counter_id()), Some(CounterState::Allocated));
    assert_eq!(counters.free_for_reuse_deadline(counter.counter_id()), None);
    assert_eq!(counter.constants().correlation_id, counter.registration_id());
}

#[test]
fn reference_id_is_seen_by_readers() {
    let driver = launch();
    let aeron = connect(&driver);
    let counter = aeron.add_counter(TYPE, &[], "of a publication").expect("a counter");
    counter.set_reference_id(-17);
    assert_eq!(aeron.counters_reader().reference_id(counter.counter_id()), Some(-17));
    assert_eq!(counter.get(), 0);
}

#[test]
fn each_operation_has_its_effect() {
    let driver = launch();
    let aeron = connect(&driver);
    let counter = aeron.add_counter(TYPE, &[], "").expect("a counter");
    assert_eq!(counter.get(), 0);
    counter.set(1);
    assert_eq!((counter.get_acquire(), counter.get_relaxed()), (1, 1));
    counter.set_release(2);
    counter.set_relaxed(counter.get() + 1);
    assert_eq!(counter.increment(), 3);
    assert_eq!(counter.decrement(), 4);
    assert_eq!(counter.get_and_add(10), 3);
    assert_eq!(counter.get_and_add_release(10), 13);
    assert_eq!(counter.increment_release(), 23);
    assert_eq!(counter.get_and_set(7), 24);
    assert_eq!(counter.compare_exchange(7, 8), Ok(7));
    assert_eq!(counter.compare_exchange(7, 9), Err(8));
    assert!(!counter.propose_max(8) && !counter.propose_max_release(7));
    assert!(counter.propose_max(9) && counter.propose_max_release(10));
    assert_eq!(counter.as_atomic().fetch_xor(1, Ordering::Relaxed), 10);
    counter.set(i64::MAX);
    assert_eq!(counter.increment(), i64::MAX);
    assert_eq!(counter.get_and_add_release(-1), i64::MIN);
    assert_eq!(counter.get(), i64::MAX);
}

#[test]
fn key_and_label_limits() {
    let driver = launch();
    let aeron = connect(&driver);
    let key: Vec<u8> = (1..=Counter::MAX_KEY_LENGTH as u8).collect();
    // Two bytes each.
    let label = "é".repeat(Counter::MAX_LABEL_LENGTH / 2);
    let check = |counter: Counter| {
        let counters = aeron.counters_reader();
        assert_eq!(counters.key(counter.counter_id()).expect("a key").as_slice(), key);
        assert_eq!(counters.label(counter.counter_id()).expect("a label"), label);
    };
    check(aeron.add_counter(TYPE, &key, &label).expect("a counter"));
    check(aeron.add_static_counter(TYPE, &key, &label, 5).expect("a counter"));

    let (long_key, long_label) = ([&key[..], &[0]].concat(), format!("{label}x"));
    for error in [
        aeron.add_counter(TYPE, &long_key, "").expect_err("a long key"),
        aeron.add_static_counter(TYPE, &long_key, "", 6).expect_err("a long key"),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("key: 113 bytes; the maximum is 112"), "{error:?}");
    }
    for error in [
        aeron.add_counter(TYPE, &[], &long_label).expect_err("a long label"),
        aeron.add_static_counter(TYPE, &[], &long_label, 6).expect_err("a long label"),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("label: 381 bytes; the maximum is 380"), "{error:?}");
    }

    for label in ["", "a\0b", "zwölf Boxkämpfer 🥊"] {
        let counter = aeron.add_counter(TYPE, &[], label).expect("a counter");
        assert_eq!(aeron.counters_reader().label(counter.counter_id()).as_deref(), Some(label));
    }
}

#[test]
fn drop_frees() {
    let driver = launch();
    let (owner, reader) = (connect(&driver), connect(&driver));
    let counter = owner.add_counter(TYPE, b"key", "short-lived").expect("a counter");
    let (id, registration_id) = (counter.counter_id(), counter.registration_id());
    let before = SystemTime::now();
    drop(counter);
    let counters = reader.counters_reader();
    await_that("it is freed", || counters.state(id) == Some(CounterState::Reclaimed));
    assert_eq!((counters.value(id), counters.label(id), counters.key(id)), (None, None, None));
    assert_eq!(counters.counter(id), None);
    assert_eq!(counters.find_by_type_id_and_registration_id(TYPE, registration_id), None);
    assert!(counters.iter().all(|counter| counter.id != id));
    // Set a moment after the state.
    let deadline = await_some("a deadline", || counters.free_for_reuse_deadline(id));
    assert!(deadline > before);
}

#[test]
fn dropped_registration_leaves_none() {
    let driver = launch();
    let aeron = connect(&driver);
    for _ in 0..20 {
        drop(aeron.async_add_counter(TYPE, &[], "never seen").expect("begun"));
    }
    // Commands are handled in order: after this one the cancelled ones have been.
    drop(aeron.add_counter(TYPE, &[], "seen").expect("a counter"));
    let none_left = || aeron.counters_reader().iter().all(|counter| counter.type_id != TYPE);
    await_that("they are freed", none_left);
}

#[test]
fn registration_is_polled_to_its_counter() {
    let driver = launch();
    let aeron = connect(&driver);
    let poll = |registration: &mut Registration<Counter>| {
        await_some("the counter", || registration.poll().expect("no error"))
    };
    let mut registration = aeron.async_add_counter(TYPE, &[], "").expect("begun");
    let counter = poll(&mut registration);
    assert_eq!(counter.registration_id(), registration.registration_id());
    assert_eq!(registration.poll().expect_err("done").kind(), ErrorKind::IllegalState);

    let mut registration = aeron.async_add_static_counter(TYPE, &[], "", 7).expect("begun");
    let counter = poll(&mut registration);
    assert_eq!(counter.registration_id(), 7);
    assert_eq!(counter.constants().correlation_id, registration.registration_id());
}

#[test]
fn static_counter_outlives_its_clients() {
    let driver = launch();
    let (first, second) = (connect(&driver), connect(&driver));
    let mine = first.add_static_counter(TYPE, b"first", "first", 99).expect("a counter");
    let yours = second.add_static_counter(TYPE, b"second", "second", 99).expect("a counter");
    let id = mine.counter_id();
    assert_eq!(yours.counter_id(), id);
    assert_eq!((mine.registration_id(), yours.registration_id()), (99, 99));
    mine.set(5);
    assert_eq!(yours.increment(), 5);
    assert_eq!(mine.get(), 6);

    drop(mine);
    drop(first);
    // The driver handles the end of the first client before what comes after it.
    drop(second.add_counter(TYPE, &[], "").expect("a counter"));
    let counters = second.counters_reader();
    let counter = counters.counter(id).expect("the static counter");
    assert_eq!((counter.label.as_str(), counter.value), ("first", 6));
    assert_eq!((counter.registration_id, counter.owner_id), (99, -1));
    assert!(!yours.is_closed());
    drop(yours);
    assert_eq!(counters.state(id), Some(CounterState::Allocated));
    let again = second.add_static_counter(TYPE, &[], "again", 99).expect("a counter");
    assert_eq!((again.counter_id(), again.get()), (id, 6));
}

#[test]
fn dropped_static_registration_is_no_error() {
    let driver = launch();
    let aeron = connect(&driver);
    for registration_id in 0..20 {
        let begun = aeron.async_add_static_counter(TYPE, &[], "asked for", registration_id);
        drop(begun.expect("begun"));
    }
    let counter = aeron.add_static_counter(TYPE, &[], "asked for", 19).expect("a counter");
    assert_eq!(counter.increment(), 0);
    let made = aeron.counters_reader().iter().filter(|counter| counter.type_id == TYPE).count();
    assert_eq!(made, 20, "the driver has made them all the same");
}

#[test]
fn usable_after_the_driver_died() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let counter = aeron.add_counter(TYPE, &[], "orphan").expect("a counter");
    let fixed = aeron.add_static_counter(TYPE, &[], "orphan", 1).expect("a counter");
    counter.set(3);
    drop(driver);
    await_that("the client is closed", || aeron.is_closed());
    await_that("the counters are closed", || counter.is_closed() && fixed.is_closed());
    let error = aeron.add_counter(TYPE, &[], "late").expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::ClientClosed);
    let error = aeron.add_static_counter(TYPE, &[], "late", 2).expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::ClientClosed);

    assert_eq!(counter.increment(), 3);
    // The values that the driver leaves in the memory are its own affair.
    let counters = aeron.counters_reader();
    assert!(counters.iter().count() <= counters.max_counter_id() as usize + 1);
    drop(aeron);
    assert_eq!(counter.increment(), 4);
    fixed.set(1);
    drop(counter);
    assert_eq!(fixed.get(), 1);
}

#[test]
fn concurrent_reads_are_whole() {
    let driver = launch();
    let (owner, reader) = (connect(&driver), connect(&driver));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..60_u32 {
                let label = format!("{number}").repeat(20);
                drop(owner.add_counter(TYPE, &number.to_ne_bytes(), &label).expect("a counter"));
            }
            stop.store(true, Ordering::Release);
        });
        let mut seen = 0;
        let check = |counter: &CounterSnapshot| {
            let number = counter.key.first_chunk().map(|key| u32::from_ne_bytes(*key));
            let number = number.expect("long enough").to_string();
            assert_eq!(counter.label, number.repeat(20));
        };
        while !stop.load(Ordering::Acquire) {
            let counters = reader.counters_reader();
            counters.for_each(|counter| {
                if counter.type_id == TYPE {
                    seen += 1;
                    check(counter);
                }
            });
            counters.iter().filter(|counter| counter.type_id == TYPE).for_each(|c| check(&c));
        }
        println!("{seen} counters seen");
    });
}
