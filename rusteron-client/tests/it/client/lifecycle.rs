//! Adding, cancelling and dropping, in every order and on every thread.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use rusteron_client::{
    Aeron, CloseCause, Context, Error, ErrorKind, ExclusivePublication, IdleStrategyKind,
    OfferError, PollError, Publication, Subscription, UncheckedChannel,
};
use rusteron_sys as sys;
use rusteron_test_support::{
    DEADLINE, SHORT_TERMS, await_some, await_that, block_on, connect, connected_pair, context,
    launch, launch_with, offer, receive, watchful_context,
};

/// Of the counters with the times at which clients have last said that they are alive.
const HEARTBEAT_TYPE: i32 = sys::AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID as i32;

fn assert_send<T: Send>() {}
fn assert_sync<T: Sync>() {}

#[test]
fn send_sync_bounds() {
    assert_send::<Aeron>();
    assert_sync::<Aeron>();
    assert_send::<Publication>();
    assert_sync::<Publication>();
    assert_send::<ExclusivePublication>();
    assert_send::<Subscription>();
    assert_send::<Error>();
    assert_sync::<Error>();
}

#[test]
fn handles_keep_the_client_open() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    drop(aeron);
    offer(&mut publication, b"the client is still there");
    assert_eq!(receive(&mut subscription, 1).len(), 1);
    drop(publication);
    await_that("the publisher is gone", || !subscription.is_connected());
    assert_eq!(subscription.poll(|_, _| {}, 10), Ok(0));
    drop(subscription);
    drop(driver);
}

#[test]
fn commands_wake_a_sleeping_conductor() {
    let driver = launch();
    let mut context = context(driver.aeron_dir());
    context.set_idle_strategy_init_args("3600s").expect("a duration");
    context.set_idle_strategy(IdleStrategyKind::Sleeping).expect("a strategy");
    let aeron = Aeron::connect(context).expect("connected");
    // More than one turn after it, as the driver's answers come later.
    let (publication, subscription) = connected_pair(&aeron, "aeron:ipc");
    drop(publication);
    await_that("the publisher is gone", || !subscription.is_connected());
    drop(subscription);
    // Waits for the conductor.
    drop(aeron);
}

#[test]
fn registration_outcome_is_given_once() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut registration = aeron.async_add_exclusive_publication("aeron:ipc", 7).expect("begun");
    let publication = await_some("the publication", || registration.poll().expect("no error"));
    assert_eq!(publication.stream_id(), 7);
    assert_eq!(publication.constants().registration_id, registration.registration_id());
    let error = registration.poll().expect_err("it is done");
    assert_eq!(error.kind(), ErrorKind::IllegalState);
    drop(registration);
    assert!(!publication.is_closed());
}

#[test]
fn registration_failure_is_given_once() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut registration =
        aeron.async_add_subscription(UncheckedChannel("aeron:ipc?alias="), 7).expect("begun");
    let error = await_some("the refusal", || match registration.poll() {
        Ok(None) => None,
        Ok(Some(subscription)) => panic!("{subscription:?}"),
        Err(error) => Some(error),
    });
    assert_eq!(error.kind(), ErrorKind::InvalidChannel);
    assert_eq!(registration.poll().expect_err("done").kind(), ErrorKind::IllegalState);
}

#[test]
fn dropped_registration_leaves_none() {
    let driver = launch();
    let aeron = connect(&driver);
    let subscription = aeron.add_subscription("aeron:ipc", 7).expect("a subscription");
    for _ in 0..20 {
        drop(aeron.async_add_exclusive_publication("aeron:ipc", 7).expect("begun"));
    }
    // Commands are handled in order: after this one the cancelled ones have been.
    drop(aeron.add_publication("aeron:ipc", 8).expect("a publication"));
    await_that("no publisher is left", || subscription.image_count() == 0);
}

#[test]
fn dropped_registrations_overfill_the_queue() {
    let driver = launch();
    let aeron = connect(&driver);
    let registrations: Vec<_> = (0..400)
        .filter_map(|_| aeron.async_add_subscription("aeron:ipc?alias=given-up", 7).ok())
        .collect();
    assert!(registrations.len() > 100);
    drop(registrations);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    // Many times more than a subscriber that no thread polls would let through.
    for _ in 0..5_000 {
        offer(&mut publication, &[0; 32]);
        receive(&mut subscription, 1);
    }
    let other = aeron.add_exclusive_publication("aeron:ipc", 7).expect("a publication");
    await_that("the disconnect", || !other.is_connected());
}

#[test]
fn registration_outlives_every_handle() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut registration = aeron.async_add_subscription("aeron:ipc", 7).expect("begun");
    drop(aeron);
    let subscription = await_some("the subscription", || registration.poll().expect("no error"));
    drop(registration);
    assert_eq!(subscription.stream_id(), 7);
}

#[test]
fn close_does_not_wait_for_registrations() {
    let driver = launch();
    let aeron = connect(&driver);
    let registrations: Vec<_> = (0..50)
        .map(|stream_id| aeron.async_add_subscription("aeron:ipc", stream_id).expect("begun"))
        .collect();
    drop(aeron);
    drop(registrations);
}

#[test]
fn drop_unmaps_log_buffers() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mapped = || {
        let maps = fs::read_to_string("/proc/self/maps").expect("the mappings");
        let dir = driver.aeron_dir().join("publications");
        maps.matches(dir.to_str().expect("a name")).count()
    };
    if !cfg!(target_os = "linux") {
        return;
    }
    let before = mapped();
    assert!(before > 0);
    drop((publication, subscription));
    // The driver maps them as well, in this process, and lets go later.
    await_that("fewer mappings", || mapped() < before);
}

/// C frees an image that is gone when it has heard from the poller that this has seen a newer list.
#[cfg(target_os = "linux")]
#[test]
fn polled_subscription_unmaps_gone_logs() {
    let short = Duration::from_millis(50);
    let driver = launch_with(|context| {
        context.set_timer_interval(short)?.set_publication_linger_timeout(short)
    });
    let mut settings = context(driver.aeron_dir());
    settings.set_keepalive_interval(short).expect("a setting");
    let aeron = Aeron::connect(settings).expect("a client");
    let publications = driver.aeron_dir().join("publications");
    let publications = publications.to_str().expect("a name");
    // The driver's are in this process as well, and go by themselves.
    let is_one_mapped =
        || fs::read_to_string("/proc/self/maps").expect("the mappings").contains(publications);
    let mut subscription = aeron.add_subscription(SHORT_TERMS, 1001).expect("a subscription");
    for _ in 0..5 {
        let mut publication =
            aeron.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication");
        offer(&mut publication, b"message");
        assert_eq!(receive(&mut subscription, 1), [b"message"]);
        assert!(is_one_mapped());
    }
    // Nothing but polls: C's functions of a subscription tell the conductor what they have seen.
    await_that("the last log buffer is unmapped", || {
        subscription.poll(|_, _| panic!("no more"), 10).expect("open");
        !is_one_mapped()
    });
}

#[test]
fn heartbeat_has_the_client_name() {
    let driver = launch();
    let mut context = context(driver.aeron_dir());
    context
        .set_client_name("market data")
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .expect("valid settings");
    let aeron = Aeron::connect(context).expect("a client");
    let counters = aeron.counters_reader();
    let find = || counters.find_by_type_id_and_registration_id(HEARTBEAT_TYPE, aeron.client_id());
    // The driver makes it when the client first asks for something.
    drop(aeron.add_publication("aeron:ipc", 7).expect("a publication"));
    let heartbeat = await_some("the heartbeat", find);
    let first = counters.value(heartbeat).expect("a time");
    await_that("the name", || {
        counters.label(heartbeat).is_some_and(|label| label.contains("market data"))
    });
    await_that("the next one", || counters.value(heartbeat).is_some_and(|time| time > first));

    let witness = connect(&driver);
    let client_id = aeron.client_id();
    drop(aeron);
    await_that("it is gone with its client", || {
        let counters = witness.counters_reader();
        counters.find_by_type_id_and_registration_id(HEARTBEAT_TYPE, client_id).is_none()
    });
}

#[test]
fn stopped_driver_closes_its_clients() {
    let driver = launch();
    let (errors, reported) = mpsc::channel();
    let mut context = watchful_context(driver.aeron_dir());
    context
        .set_error_handler(move |error| {
            let _ = errors.send(error.clone());
        })
        .expect("a handler");
    let aeron = Aeron::connect(context).expect("a client");
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");

    drop(driver);
    let error = reported.recv_timeout(DEADLINE).expect("a report");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.message().contains("MediaDriver"), "{error:?}");

    await_that("the client is closed", || aeron.is_closed());
    await_that("the publications are closed", || publication.is_closed() && shared.is_closed());
    await_that("the subscription is closed", || subscription.is_closed());
    let cause = CloseCause::DriverShutdown;
    assert_eq!(aeron.close_cause(), Some(cause));
    let closed = OfferError::Closed(cause);
    assert!(!closed.is_retryable());
    assert_eq!(publication.offer(b"x"), Err(closed));
    assert_eq!(shared.offer(b"x"), Err(closed));
    assert_eq!(publication.position(), Err(closed));
    assert_eq!(subscription.poll(|_, _| {}, 10), Err(PollError::Closed(cause)));
    let error = aeron.add_publication("aeron:ipc", 1001).expect_err("no driver");
    assert_eq!((error.kind(), error.close_cause()), (ErrorKind::ClientClosed, Some(cause)));
    assert!(error.message().contains(&cause.to_string()), "{error:?}");
}

#[test]
fn blocking_in_a_callback_is_an_error() {
    let driver = launch();
    let handle: Arc<Mutex<Option<Aeron>>> = Arc::default();
    let (outcomes, reported) = mpsc::channel();
    let mut context = watchful_context(driver.aeron_dir());
    let in_handler = Arc::clone(&handle);
    context
        .set_error_handler(move |_| {
            let Some(aeron) = in_handler.lock().expect("no panic").take() else { return };
            let outcome = aeron.add_publication("aeron:ipc", 1).map(drop);
            // The last handle of the client on the client's own thread.
            drop(aeron);
            let _ = outcomes.send(outcome);
        })
        .expect("a handler");
    *handle.lock().expect("no panic") = Some(Aeron::connect(context).expect("a client"));
    drop(driver);
    let error = reported.recv_timeout(DEADLINE).expect("a report").expect_err("it would block");
    assert_eq!(error.kind(), ErrorKind::CalledFromConductor);
}

#[test]
fn panic_ends_in_the_error_handler() {
    let driver = launch();
    let called = Arc::new(AtomicBool::new(false));
    let mut context = watchful_context(driver.aeron_dir());
    let flag = Arc::clone(&called);
    context
        .set_error_handler(move |_| {
            flag.store(true, Ordering::Release);
            panic!("on purpose");
        })
        .expect("a handler");
    let aeron = Aeron::connect(context).expect("a client");
    drop(driver);
    await_that("the handler", || called.load(Ordering::Acquire));
    await_that("the client is closed", || aeron.is_closed());
}

#[test]
fn error_handler_is_freed_with_the_client() {
    struct Alive(Arc<AtomicBool>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Release);
        }
    }
    let driver = launch();
    let alive = Arc::new(AtomicBool::new(true));
    let guard = Alive(Arc::clone(&alive));
    let mut context = context(driver.aeron_dir());
    context
        .set_error_handler(move |_| {
            let _ = &guard;
        })
        .expect("a handler");
    let aeron = Aeron::connect(context).expect("a client");
    let publication = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    drop(aeron);
    assert!(alive.load(Ordering::Acquire), "the publication keeps the client open");
    drop(publication);
    assert!(!alive.load(Ordering::Acquire));
}

#[test]
fn clients_of_one_process_are_independent() {
    let driver = launch();
    thread::scope(|scope| {
        for stream_id in 0..4 {
            let driver = &driver;
            scope.spawn(move || {
                let aeron = connect(driver);
                let mut subscription = aeron.add_subscription("aeron:ipc", stream_id).expect("one");
                let mut publication =
                    aeron.add_exclusive_publication("aeron:ipc", stream_id).expect("one");
                await_that("the connection", || publication.is_connected());
                offer(&mut publication, &stream_id.to_le_bytes());
                assert_eq!(receive(&mut subscription, 1), [stream_id.to_le_bytes()]);
            });
        }
    });
}

#[test]
fn concurrent_contexts_share_the_default_dir() {
    // Without USER in the environment, C looks the user's name up in a buffer of the whole process.
    let expected = Context::new().expect("a context").dir().to_owned();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert_eq!(Context::new().expect("a context").dir(), expected);
                }
            });
        }
    });
}

#[test]
fn settings_and_client_id() {
    let driver = launch();
    let mut context = context(driver.aeron_dir());
    context.set_client_name("lifecycle").expect("a name");
    let (first, second) = (Aeron::connect(context).expect("a client"), connect(&driver));
    assert_eq!(first.context().client_name(), "lifecycle");
    assert_eq!(first.context().dir(), driver.aeron_dir());
    assert_ne!(first.client_id(), second.client_id());
    assert_eq!(first.clone().client_id(), first.client_id());
}

#[test]
fn registrations_await_without_a_runtime() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = block_on(async {
        let subscription = aeron.async_add_subscription("aeron:ipc", 3)?.await?;
        let publication = aeron.async_add_exclusive_publication("aeron:ipc", 3)?.await?;
        Ok::<_, Error>((publication, subscription))
    })
    .expect("both");
    await_that("the connection", || publication.is_connected());
    offer(&mut publication, b"awaited");
    assert_eq!(receive(&mut subscription, 1), [b"awaited"]);

    let refused = block_on(async { aeron.async_add_publication("aeron:nonsense", 3)?.await });
    assert_eq!(refused.expect_err("nonsense").kind(), ErrorKind::InvalidChannel);
}

#[test]
fn many_tasks_wait_at_once() {
    let driver = launch();
    let aeron = connect(&driver);
    thread::scope(|scope| {
        for stream_id in 0..8 {
            let aeron = &aeron;
            scope.spawn(move || {
                let registration = aeron.async_add_subscription("aeron:ipc", stream_id);
                let subscription = block_on(registration.expect("begun")).expect("a subscription");
                assert_eq!(subscription.stream_id(), stream_id);
            });
        }
    });
}

#[test]
fn correlation_ids_are_unique() {
    let driver = launch();
    let clients = [connect(&driver), connect(&driver)];
    let mut ids: Vec<i64> = (0..100).map(|n| clients[n % 2].next_correlation_id()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 100);
}
