//! Counters of one's own and of others, and what is called when they come and go.

mod support;

use std::collections::HashSet;
use std::ffi::{c_char, c_void};
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use rusteron_client::{
    Aeron, Counter, CounterSnapshot, CounterState, CountersReader, ErrorKind, Handler,
    PositionKind, Registration, SystemCounter,
};
use rusteron_media_driver::MediaDriver;
use rusteron_sys as sys;
use support::{
    PATIENCE, await_some, await_that, connect, connected_pair, context, launch, offer, receive,
};

const TYPE: i32 = 1001;

fn assert_send_and_sync<T: Send + Sync>() {}

/// A channel to a port that is free, or was a moment ago.
fn udp_channel() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    format!("aeron:udp?endpoint={}", socket.local_addr().expect("an address"))
}

/// A client that soon finds out when its driver stops.
fn connect_attentively(driver: &MediaDriver) -> Aeron {
    let mut context = context(driver.aeron_dir());
    context
        .set_driver_timeout(Duration::from_millis(500))
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .expect("valid settings");
    Aeron::connect(context).expect("a client")
}

#[test]
fn what_threads_may_share_is_in_the_types() {
    assert_send_and_sync::<Counter>();
    assert_send_and_sync::<CountersReader<'static>>();
    assert_send_and_sync::<Handler>();
}

#[test]
fn a_value_is_seen_by_other_clients() {
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
fn every_operation_does_what_its_name_says() {
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
fn threads_share_a_counter() {
    const THREADS: usize = 4;
    const TIMES: usize = 10_000;
    let driver = launch();
    let (writer, reader) = (connect(&driver), connect(&driver));
    let counter = writer.add_counter(TYPE, &[], "shared").expect("a counter");
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    counter.increment();
                }
            });
        }
    });
    let seen = reader.counters_reader().value(counter.counter_id());
    assert_eq!(seen, Some((THREADS * TIMES) as i64));
}

#[test]
fn keys_and_labels_arrive_whole_up_to_the_limit_and_are_refused_beyond() {
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
fn a_dropped_counter_is_freed() {
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
fn a_counter_keeps_its_client_open() {
    let driver = launch();
    let (owner, reader) = (connect(&driver), connect(&driver));
    let counter = owner.add_counter(TYPE, &[], "kept").expect("a counter");
    drop(owner);
    counter.set(1);
    assert!(!counter.is_closed());
    assert_eq!(reader.counters_reader().value(counter.counter_id()), Some(1));
}

#[test]
fn a_dropped_registration_leaves_no_counter_behind() {
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
fn a_registration_is_polled_to_its_counter() {
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
fn clients_share_a_static_counter_which_outlives_them() {
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
fn dropped_registrations_of_static_counters_are_no_errors() {
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
fn a_static_counter_with_the_id_of_another_counter_is_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    let counter = aeron.add_counter(TYPE, &[], "not static").expect("a counter");
    let error = aeron
        .add_static_counter(TYPE, &[], "static", counter.registration_id())
        .expect_err("the id is taken");
    assert!(error.message().contains("non-static counter exists"), "{error:?}");
}

#[test]
fn a_counter_can_be_used_after_its_driver_died() {
    let driver = launch();
    let aeron = connect_attentively(&driver);
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
    // What the driver leaves in the memory is its own affair.
    let counters = aeron.counters_reader();
    assert!(counters.iter().count() <= counters.max_counter_id() as usize + 1);
    drop(aeron);
    assert_eq!(counter.increment(), 4);
    fixed.set(1);
    drop(counter);
    assert_eq!(fixed.get(), 1);
}

#[test]
fn ids_out_of_range_are_none() {
    let driver = launch();
    let aeron = connect(&driver);
    let counters = aeron.counters_reader();
    let max = counters.max_counter_id();
    assert!(max > 46);
    assert_eq!(counters.state(max), Some(CounterState::Unused));
    assert_eq!(counters.value(max), None);
    for id in [max + 1, -1, i32::MAX, i32::MIN] {
        assert_eq!(counters.state(id), None);
        assert_eq!(counters.value(id), None);
        assert_eq!(counters.label(id), None);
        assert_eq!(counters.key(id), None);
        assert_eq!(counters.type_id(id), None);
        assert_eq!(counters.registration_id(id), None);
        assert_eq!(counters.owner_id(id), None);
        assert_eq!(counters.reference_id(id), None);
        assert_eq!(counters.free_for_reuse_deadline(id), None);
        assert_eq!(counters.counter(id), None);
    }
}

#[test]
fn reading_while_others_add_and_remove_gives_whole_counters() {
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

/// What C's reader says of the counters: id, type, label, key, registration, owner, reference, state.
type InC = Vec<(i32, i32, Vec<u8>, Vec<u8>, i64, i64, i64, i32)>;

unsafe extern "C" fn collect(
    _value: i64,
    id: i32,
    type_id: i32,
    key: *const u8,
    key_length: usize,
    label: *const c_char,
    label_length: usize,
    clientd: *mut c_void,
) {
    // SAFETY: C passes memory of these lengths, and what `counters_in_c` gave it.
    unsafe {
        let label = std::slice::from_raw_parts(label.cast::<u8>(), label_length).to_vec();
        let key = std::slice::from_raw_parts(key, key_length).to_vec();
        (*clientd.cast::<InC>()).push((id, type_id, label, key, 0, 0, 0, 0));
    }
}

fn counters_in_c(dir: &Path) -> InC {
    let dir = std::ffi::CString::new(dir.to_str().expect("Unicode")).expect("no NUL");
    let mut counters = InC::new();
    // SAFETY: the file is mapped until it is closed below; ids are C's own.
    unsafe {
        let mut cnc = std::ptr::null_mut();
        assert_eq!(sys::aeron_cnc_init(&mut cnc, dir.as_ptr(), 1000), 0);
        let reader = sys::aeron_cnc_counters_reader(cnc);
        let clientd = (&raw mut counters).cast();
        sys::aeron_counters_reader_foreach_counter(reader, Some(collect), clientd);
        for (id, type_id, label, key, registration, owner, reference, state) in &mut counters {
            sys::aeron_counters_reader_counter_registration_id(reader, *id, registration);
            sys::aeron_counters_reader_counter_owner_id(reader, *id, owner);
            sys::aeron_counters_reader_counter_reference_id(reader, *id, reference);
            sys::aeron_counters_reader_counter_state(reader, *id, state);
            let found = sys::aeron_counters_reader_find_by_type_id_and_registration_id(
                reader,
                *type_id,
                *registration,
            );
            let mut again = [0; Counter::MAX_LABEL_LENGTH];
            let length = sys::aeron_counters_reader_counter_label(
                reader,
                *id,
                again.as_mut_ptr().cast(),
                again.len(),
            );
            assert_eq!(&again[..length as usize], label);
            let mut other_key = std::ptr::null_mut();
            sys::aeron_counters_reader_metadata_key(reader, *id, &mut other_key);
            assert_eq!(std::slice::from_raw_parts(other_key, key.len()), key);
            assert!(found <= *id);
        }
        sys::aeron_cnc_close(cnc);
    }
    counters
}

#[test]
fn the_reader_and_c_read_the_same() {
    let driver = launch();
    let aeron = connect(&driver);
    let _streams = connected_pair(&aeron, &udp_channel());
    let _counter = aeron.add_counter(TYPE, b"key", "label é").expect("a counter");
    let _fixed = aeron.add_static_counter(TYPE, b"key", "static", 9).expect("a counter");
    // The conductor completes its heartbeat counter's label; streams add counters as they go on.
    let same = await_some("the same", || {
        let in_c = counters_in_c(driver.aeron_dir());
        let in_rust: InC = aeron
            .counters_reader()
            .iter()
            .map(|c| {
                let key = c.key.to_vec();
                let label = c.label.into_bytes();
                (c.id, c.type_id, label, key, c.registration_id, c.owner_id, c.reference_id, 1)
            })
            .collect();
        (in_c == in_rust).then_some(in_c)
    });
    assert!(same.len() > 50, "{}", same.len());
}

#[test]
fn all_system_counters_are_there_under_their_names() {
    let driver = launch();
    let aeron = connect(&driver);
    let counters = aeron.counters_reader();
    assert_eq!(SystemCounter::ALL.len(), 46);
    for counter in SystemCounter::ALL {
        let label = counters.label(counter.id()).expect("a label");
        assert!(label.starts_with(counter.label()), "{label:?} and {counter:?}");
        assert!(counter.read(&counters).is_some(), "{counter:?}");
    }
    let system = counters.iter().filter(|counter| counter.type_id == 0).count();
    assert_eq!(system, SystemCounter::ALL.len(), "a counter has no name");
    let version = SystemCounter::AeronVersion.read(&counters).expect("a version");
    let expected: Vec<_> = rusteron_client::AERON_VERSION
        .split('.')
        .map(|part| part.parse::<i64>().expect("a number"))
        .collect();
    assert_eq!([version >> 16, version >> 8 & 0xFF, version & 0xFF], expected[..]);
    assert!(SystemCounter::BytesCurrentlyMapped.read(&counters).expect("bytes") > 0);
    assert_eq!(SystemCounter::BytesSent.to_string(), "Bytes sent");
}

/// The registration id and the counter id that a handler is called with.
type Ids = (i64, i32);

fn ids() -> (mpsc::Sender<Ids>, mpsc::Receiver<Ids>) {
    mpsc::channel()
}

fn await_event(events: &mpsc::Receiver<Ids>, counter: Ids) {
    // Those of heartbeat counters of clients come as well.
    while events.recv_timeout(PATIENCE).expect("an event") != counter {}
}

#[test]
fn handlers_hear_of_counters_of_all_clients() {
    let driver = launch();
    let (available, made) = ids();
    let (unavailable, gone) = ids();
    let mut context = context(driver.aeron_dir());
    context
        .set_on_available_counter(move |counters, registration_id, id| {
            assert_eq!(counters.registration_id(id), Some(registration_id));
            let _ = available.send((registration_id, id));
        })
        .and_then(|context| {
            context.set_on_unavailable_counter(move |_, registration_id, id| {
                let _ = unavailable.send((registration_id, id));
            })
        })
        .expect("handlers");
    let (listener, other) = (Aeron::connect(context).expect("a client"), connect(&driver));
    for client in [&listener, &other] {
        let counter = client.add_counter(TYPE, &[], "heard of").expect("a counter");
        let expected = (counter.registration_id(), counter.counter_id());
        await_event(&made, expected);
        drop(counter);
        await_event(&gone, expected);
    }
    let counter = other.add_counter(TYPE, &[], "goes with its client").expect("a counter");
    let expected = (counter.registration_id(), counter.counter_id());
    drop((counter, other));
    await_event(&gone, expected);
}

#[test]
fn a_context_has_one_handler_of_each_kind() {
    let driver = launch();
    let replaced = Arc::new(());
    let (available, made) = ids();
    let mut context = context(driver.aeron_dir());
    let owned = Arc::clone(&replaced);
    let never = move |_: &CountersReader<'_>, _, _| {
        let _ = &owned;
        panic!("never called");
    };
    context
        .set_on_available_counter(never)
        .and_then(|context| {
            context.set_on_available_counter(move |_, registration_id, id| {
                let _ = available.send((registration_id, id));
            })
        })
        .expect("handlers");
    assert_eq!(Arc::strong_count(&replaced), 1);
    let aeron = Aeron::connect(context).expect("a client");
    let counter = aeron.add_counter(TYPE, &[], "").expect("a counter");
    await_event(&made, (counter.registration_id(), counter.counter_id()));
}

#[test]
fn handlers_are_added_and_removed_while_the_client_runs() {
    let driver = launch();
    let (listener, owner) = (connect(&driver), connect(&driver));
    let alive = Arc::new(());
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = {
        let (alive, calls) = (Arc::clone(&alive), Arc::clone(&calls));
        listener.add_available_counter_handler(move |counters, _, id| {
            let _ = &alive;
            if counters.type_id(id) == Some(TYPE) {
                calls.fetch_add(1, Ordering::SeqCst);
            }
        })
    };
    let (available, made) = ids();
    let _witness = listener.add_available_counter_handler(move |_, registration_id, id| {
        let _ = available.send((registration_id, id));
    });
    let (unavailable, gone) = ids();
    let _end = listener.add_unavailable_counter_handler(move |_, registration_id, id| {
        let _ = unavailable.send((registration_id, id));
    });

    let first = owner.add_counter(TYPE, &[], "first").expect("a counter");
    await_event(&made, (first.registration_id(), first.counter_id()));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    drop(handler);
    assert_eq!(Arc::strong_count(&alive), 1, "the handler is freed");
    let second = owner.add_counter(TYPE, &[], "second").expect("a counter");
    await_event(&made, (second.registration_id(), second.counter_id()));
    assert_eq!(calls.load(Ordering::SeqCst), 1, "and not called again");

    let expected = (first.registration_id(), first.counter_id());
    drop(first);
    await_event(&gone, expected);
}

#[test]
fn a_panic_in_a_handler_ends_there() {
    let driver = launch();
    let aeron = connect(&driver);
    let _panicking = aeron.add_available_counter_handler(|_, _, _| panic!("on purpose"));
    let (available, made) = ids();
    let _next = aeron.add_available_counter_handler(move |_, registration_id, id| {
        let _ = available.send((registration_id, id));
    });
    for _ in 0..2 {
        let counter = aeron.add_counter(TYPE, &[], "").expect("a counter");
        await_event(&made, (counter.registration_id(), counter.counter_id()));
    }
    assert!(!aeron.is_closed());
}

#[test]
fn a_handler_adds_counters_and_removes_itself() {
    let driver = launch();
    let aeron = connect(&driver);
    let own: Arc<Mutex<Option<Handler>>> = Arc::default();
    let (outcomes, reported) = mpsc::channel();
    let handler = {
        let (aeron, own) = (aeron.clone(), Arc::clone(&own));
        aeron.clone().add_available_counter_handler(move |counters, _, id| {
            if counters.type_id(id) != Some(TYPE) {
                return;
            }
            drop(own.lock().expect("no panic").take());
            let blocking = aeron.add_counter(TYPE + 1, &[], "blocking").map(drop);
            let begun = aeron.async_add_counter(TYPE + 1, &[], "from a handler");
            let _ = outcomes.send((blocking, begun));
        })
    };
    *own.lock().expect("no panic") = Some(handler);
    let _first = aeron.add_counter(TYPE, &[], "first").expect("a counter");
    let (blocking, begun) = reported.recv_timeout(PATIENCE).expect("a report");
    assert_eq!(blocking.expect_err("it would block").kind(), ErrorKind::CalledFromConductor);
    let mut begun = begun.expect("begun");
    let counter = await_some("the counter", || begun.poll().expect("no error"));
    assert!(!counter.is_closed());
    // The handler, with its sender, is gone.
    assert!(reported.recv_timeout(PATIENCE).is_err());
    let _second = aeron.add_counter(TYPE, &[], "second").expect("a counter");
}

#[test]
fn a_handler_that_owns_the_last_handle_can_be_removed_anywhere() {
    let driver = launch();
    let closes = |remove_inside: bool| {
        let aeron = connect(&driver);
        let witness = connect(&driver);
        let client_id = aeron.client_id();
        let own: Arc<Mutex<Option<Handler>>> = Arc::default();
        let handler = {
            let (aeron, own) = (aeron.clone(), Arc::clone(&own));
            aeron.clone().add_available_counter_handler(move |_, _, _| {
                let _ = &aeron;
                if remove_inside {
                    drop(own.lock().expect("no panic").take());
                }
            })
        };
        *own.lock().expect("no panic") = Some(handler);
        drop(aeron);
        let counter = witness.add_counter(TYPE, &[], "an event").expect("a counter");
        if !remove_inside {
            drop(own.lock().expect("no panic").take());
        }
        // The heartbeat counter of a client has its id as key.
        await_that("the client is gone", || {
            witness.counters_reader().iter().all(|counter| {
                counter.type_id != sys::AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID as i32
                    || !counter.key.starts_with(&client_id.to_ne_bytes())
            })
        });
        drop(counter);
    };
    closes(false);
    closes(true);
}

#[test]
fn handlers_are_freed_with_their_client() {
    let driver = launch();
    let alive = Arc::new(());
    let mut context = context(driver.aeron_dir());
    let (first, second) = (Arc::clone(&alive), Arc::clone(&alive));
    context
        .set_on_available_counter(move |_, _, _| {
            let _ = &first;
        })
        .expect("a handler");
    let aeron = Aeron::connect(context).expect("a client");
    let handler = aeron.add_unavailable_counter_handler(move |_, _, _| {
        let _ = &second;
    });
    assert_eq!(Arc::strong_count(&alive), 3);
    drop(aeron);
    assert_eq!(Arc::strong_count(&alive), 1);
    drop(handler);
}

#[test]
fn a_client_without_a_conductor_thread_counts_and_hears_as_well() {
    let driver = launch();
    let mut context = context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a mode");
    let aeron = Aeron::connect(context).expect("a client");
    let inside: Arc<Mutex<Option<Counter>>> = Arc::default();
    let (available, made) = ids();
    let handler = {
        let inside = Arc::clone(&inside);
        aeron.add_available_counter_handler(move |_, registration_id, id| {
            // Given back after this callback: C allows nothing else.
            drop(inside.lock().expect("no panic").take());
            let _ = available.send((registration_id, id));
        })
    };
    let counter = aeron.add_counter(TYPE, &[], "without a thread").expect("a counter");
    let fixed = aeron.add_static_counter(TYPE, &[], "static", 1).expect("a counter");
    assert_eq!((counter.increment(), fixed.increment()), (0, 0));
    await_event(&made, (counter.registration_id(), counter.counter_id()));
    let id = counter.counter_id();
    *inside.lock().expect("no panic") = Some(counter);
    let _another = aeron.add_counter(TYPE, &[], "the event").expect("a counter");
    await_that("the first counter is freed", || {
        aeron.do_work().expect("work");
        aeron.counters_reader().state(id) == Some(CounterState::Reclaimed)
    });
    drop(aeron.async_add_static_counter(TYPE, &[], "cancelled", 2).expect("begun"));
    drop((handler, fixed));
    aeron.do_work().expect("work");
}

#[test]
fn handlers_come_and_go_under_fire() {
    let driver = launch();
    let (listener, owner) = (connect(&driver), connect(&driver));
    let stop = AtomicBool::new(false);
    let calls = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Acquire) {
                    let removed = Arc::new(AtomicBool::new(false));
                    let (calls, flag) = (Arc::clone(&calls), Arc::clone(&removed));
                    let handler = listener.add_available_counter_handler(move |_, _, _| {
                        assert!(!flag.load(Ordering::SeqCst));
                        calls.fetch_add(1, Ordering::SeqCst);
                    });
                    thread::sleep(Duration::from_micros(200));
                    drop(handler);
                    removed.store(true, Ordering::SeqCst);
                    assert_eq!(Arc::strong_count(&removed), 1, "it is freed");
                }
            });
        }
        let mut added = 0;
        while added < 30 || calls.load(Ordering::SeqCst) == 0 {
            drop(owner.add_counter(TYPE, &[], "fire").expect("a counter"));
            added += 1;
        }
        stop.store(true, Ordering::Release);
    });
}

#[test]
fn positions_of_a_stream_are_found_together() {
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
    assert!(
        positions.to_string().contains(&format!("pub-pos:{}:{end}", publisher.registration_id))
    );

    receive(&mut subscription, 1);
    await_that("no backlog", || {
        stream(&channel).is_some_and(|stream| stream.subscriber_backlog() == Some(0))
    });
}

#[test]
fn positions_of_a_udp_stream_name_sender_and_receiver() {
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
fn counters_that_only_look_like_positions_do_no_harm() {
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
