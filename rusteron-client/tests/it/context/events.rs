//! The handlers of a context: called when they should be, on the right thread, and freed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use rusteron_client::Aeron;
use rusteron_test_support::{DEADLINE, context, launch};

#[test]
fn additions_are_reported_by_kind() {
    let driver = launch();
    let (events, reported) = mpsc::channel();
    let (shared, exclusive, subscribed) = (events.clone(), events.clone(), events);
    let mut context = context(driver.aeron_dir());
    context
        .set_on_new_publication(move |added| {
            let _ = shared.send(("shared", added.clone()));
        })
        .and_then(|context| {
            context.set_on_new_exclusive_publication(move |added| {
                let _ = exclusive.send(("exclusive", added.clone()));
            })
        })
        .and_then(|context| {
            context.set_on_new_subscription(move |added| {
                let _ = subscribed.send(("subscription", added.clone()));
            })
        })
        .expect("handlers");
    let aeron = Aeron::connect(context).expect("a client");

    let publication = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    let (kind, added) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!((kind, added.stream_id), ("shared", 1));
    assert_eq!(added.session_id, Some(publication.session_id()));
    assert_eq!(added.registration_id, publication.constants().registration_id);
    assert_eq!(added.channel, "aeron:ipc");

    let publication = aeron.add_exclusive_publication("aeron:ipc", 2).expect("a publication");
    let (kind, added) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!((kind, added.session_id), ("exclusive", Some(publication.session_id())));

    let subscription = aeron.add_subscription("aeron:ipc", 3).expect("a subscription");
    let (kind, added) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!((kind, added.stream_id, added.session_id), ("subscription", 3, None));
    assert_eq!(added.registration_id, subscription.constants().registration_id);
}

#[test]
fn conductor_thread_starts_with_its_handler() {
    let driver = launch();
    let (started, reported) = mpsc::channel();
    let mut context = context(driver.aeron_dir());
    context
        .set_agent_on_start(move |role| {
            let _ = started.send((role.to_owned(), thread::current().id()));
        })
        .expect("a handler");
    let _aeron = Aeron::connect(context).expect("a client");
    let (role, thread) = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!(role, "aeron-client");
    assert_ne!(thread, thread::current().id());
}

#[test]
fn close_is_reported_once_then_freed() {
    struct Freed(Arc<AtomicUsize>);
    impl Drop for Freed {
        fn drop(&mut self) {
            self.0.fetch_add(100, Ordering::AcqRel);
        }
    }
    let driver = launch();
    let count = Arc::new(AtomicUsize::new(0));
    let freed = Freed(Arc::clone(&count));
    let mut context = context(driver.aeron_dir());
    context
        .set_on_close(move || {
            let calls = freed.0.fetch_add(1, Ordering::AcqRel);
            assert!(calls < 100, "called after it was freed");
        })
        .expect("a handler");
    let aeron = Aeron::connect(context).expect("a client");
    let publication = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    drop(aeron);
    assert_eq!(count.load(Ordering::Acquire), 0, "the publication keeps the client open");
    drop(publication);
    assert_eq!(count.load(Ordering::Acquire), 101);
}

#[test]
fn close_handlers_do_not_keep_it_open() {
    let driver = launch();
    let aeron = Aeron::connect(context(driver.aeron_dir())).expect("a client");
    let calls = Arc::new(AtomicUsize::new(0));
    let counting = |weight: usize| {
        let calls = Arc::clone(&calls);
        move || {
            calls.fetch_add(weight, Ordering::AcqRel);
        }
    };
    let removed = aeron.add_close_handler(counting(1));
    let kept = aeron.add_close_handler(counting(10));
    let another = aeron.add_close_handler(counting(100));
    drop(removed);
    drop(aeron);
    assert_eq!(calls.load(Ordering::Acquire), 110);
    assert_eq!(Arc::strong_count(&calls), 1, "freed with the client");
    drop((kept, another));
}

#[test]
fn removal_releases_the_owned_client() {
    let driver = launch();
    let aeron = Aeron::connect(context(driver.aeron_dir())).expect("a client");
    let closed = Arc::new(AtomicUsize::new(0));
    let flag = Arc::clone(&closed);
    let of_close = aeron.add_close_handler(move || {
        flag.fetch_add(1, Ordering::AcqRel);
    });
    let own = aeron.clone();
    let cycle = aeron.add_available_counter_handler(move |_, _, _| {
        let _ = own.client_id();
    });
    drop(aeron);
    assert_eq!(closed.load(Ordering::Acquire), 0, "the handler keeps it open");
    drop(cycle);
    assert_eq!(closed.load(Ordering::Acquire), 1);
    drop(of_close);
}

#[test]
fn panic_does_not_stop_the_client() {
    let driver = launch();
    let mut context = context(driver.aeron_dir());
    context.set_on_new_publication(|added| panic!("on purpose: {added:?}")).expect("a handler");
    let aeron = Aeron::connect(context).expect("a client");
    for stream_id in 0..3 {
        let publication = aeron.add_publication("aeron:ipc", stream_id).expect("a publication");
        assert_eq!(publication.stream_id(), stream_id);
    }
}
