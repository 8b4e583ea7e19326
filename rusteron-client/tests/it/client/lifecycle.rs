//! Clients and their resources: connecting, adding, asking for session ids, cancelling and
//! dropping, in every order and on every thread.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rusteron_client::raw_client::RawClient;
use rusteron_client::{
    Aeron, ChannelUri, CloseCause, Context, ErrorKind, IdleStrategyKind, OfferError, PollError,
};
use rusteron_media_driver::{DriverInvoker, MediaDriver};
use rusteron_sys as sys;
use rusteron_test_support::{
    DEADLINE, SHORT_DRIVER_TIMEOUT, SHORT_TERMS, await_some, await_that, block_on, connect,
    connected_pair, context, driver_context, driver_context_in, launch, launch_with,
    launch_with_long_timeouts, offer, receive, watchful_context,
};

#[test]
fn connecting_is_awaited() {
    let driver = launch();
    let connecting = Aeron::async_connect(context(driver.aeron_dir())).expect("begun");
    let aeron = block_on(connecting).expect("a client");
    let publication = block_on(aeron.async_add_publication("aeron:ipc", 1).expect("begun"));
    assert_eq!(publication.expect("a publication").stream_id(), 1);
}

#[test]
fn connecting_is_polled() {
    let driver = launch();
    let mut connecting = Aeron::async_connect(context(driver.aeron_dir())).expect("begun");
    let aeron = await_some("the client", || connecting.poll().expect("no error"));
    assert!(!aeron.is_closed());
    let error = connecting.poll().expect_err("an outcome is returned once");
    assert_eq!(error.kind(), ErrorKind::IllegalState);
}

#[test]
fn task_is_woken_when_driver_starts() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let connecting = Aeron::async_connect(context(&dir)).expect("begun");
    let task = thread::spawn(|| block_on(connecting).map(drop));
    let _driver = MediaDriver::launch(driver_context_in(&dir)).expect("a driver");
    task.join().expect("no panic").expect("a client");
}

#[test]
fn missing_driver_is_awaited_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut context = context(dir.path());
    context.set_driver_timeout(Duration::from_millis(50)).expect("a timeout");
    let connecting = Aeron::async_connect(context).expect("begun");
    let error = block_on(connecting).expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.to_string().contains("no media driver runs"), "{error}");
}

/// Settings that own a reference, so that the test sees when they are freed.
fn witnessed(mut context: Context, witness: &Arc<AtomicUsize>) -> Context {
    let witness = Arc::clone(witness);
    let own_thread = thread::current().id();
    context
        .set_on_close(move || {
            let is_elsewhere = thread::current().id() != own_thread;
            witness.fetch_add(usize::from(is_elsewhere), Ordering::Relaxed);
        })
        .expect("a handler");
    context
}

#[test]
fn dropped_attempt_ends_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let witness = Arc::default();
    let mut context = witnessed(context(dir.path()), &witness);
    context.set_driver_timeout(Duration::from_secs(3600)).expect("a timeout");
    drop(Aeron::async_connect(context).expect("begun"));
    await_that("the end of the attempt", || Arc::strong_count(&witness) == 1);
}

#[test]
fn unpolled_client_is_closed_elsewhere() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let witness = Arc::default();
    let mut context = witnessed(context(&dir), &witness);
    let (sender, started) = mpsc::channel();
    context.set_agent_on_start(move |_| sender.send(()).expect("a receiver")).expect("a handler");
    let mut connecting = Aeron::async_connect(context).expect("begun");
    assert!(connecting.poll().expect("no error").is_none());
    let driver = MediaDriver::launch(driver_context_in(&dir)).expect("a driver");
    started.recv().expect("a client");
    // Meanwhile the attempt ends, so that its outcome waits to be taken.
    drop(connect(&driver));
    drop(connecting);
    await_that("the end of the client", || Arc::strong_count(&witness) == 1);
    assert_eq!(witness.load(Ordering::Relaxed), 1);
}

/// The type of the counters that hold when each client last said that it is alive.
const HEARTBEAT_TYPE: i32 = sys::AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID as i32;

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
fn registrations_free_their_handlers_after_close() {
    let driver = launch();
    let aeron = connect(&driver);
    let witness = Arc::new(());
    let registrations: Vec<_> = (0..50)
        .map(|stream_id| {
            let owned = Arc::clone(&witness);
            aeron
                .subscription_builder("aeron:ipc", stream_id)
                .on_available_image(move |_| drop(Arc::clone(&owned)))
                .async_add()
                .expect("begun")
        })
        .collect();
    drop(aeron);
    drop(registrations);
    assert_eq!(Arc::strong_count(&witness), 1, "every handler is freed");
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
fn next_session_id_is_free() {
    let driver = launch();
    let aeron = connect(&driver);
    let first = aeron.next_session_id(7).expect("a session id");
    let channel = ChannelUri::ipc().session_id(first).build().expect("a channel");
    let publication = aeron.add_exclusive_publication(&channel, 7).expect("a free id");
    assert_eq!(publication.session_id(), first);
    assert_ne!(aeron.next_session_id(7).expect("another"), first);
}

#[test]
fn next_session_id_skips_used() {
    let driver = launch();
    let aeron = connect(&driver);
    // The driver counts, so that this is what would come next.
    let taken = aeron.next_session_id(7).expect("a session id").wrapping_add(1);
    let channel = ChannelUri::ipc().session_id(taken).build().expect("a channel");
    let _publication = aeron.add_exclusive_publication(&channel, 7).expect("a publication");
    assert_eq!(aeron.next_session_id(7).expect("the one behind"), taken.wrapping_add(1));
}

#[test]
fn dropped_session_id_request_leaves_none() {
    let driver = launch();
    let aeron = connect(&driver);
    for _ in 0..20 {
        drop(aeron.async_next_session_id(7).expect("begun"));
    }
    // A request that the driver has answered by the time it is abandoned.
    let answered = aeron.async_next_session_id(7).expect("begun");
    aeron.next_session_id(7).expect("a later one");
    drop(answered);
    // One that outlives its client's other handles.
    let mut registration = aeron.async_next_session_id(7).expect("begun");
    drop(aeron);
    await_some("the session id", || registration.poll().expect("no error"));
}

#[test]
fn session_id_of_silent_driver_times_out() {
    // Alive, and without work: nothing invokes it.
    let mut settings = driver_context();
    settings
        .set_publication_unblock_timeout(3 * DEADLINE)
        .and_then(|context| context.set_client_liveness_timeout(2 * DEADLINE))
        .expect("valid settings");
    let driver = DriverInvoker::launch_embedded(settings).expect("a driver");
    let mut context = context(driver.aeron_dir());
    context
        .set_driver_timeout(SHORT_DRIVER_TIMEOUT)
        // So that the client does not find out before the request does.
        .and_then(|context| context.set_keepalive_interval(DEADLINE))
        .expect("valid settings");
    let aeron = Aeron::connect(context).expect("a client");
    let mut registration = aeron.async_next_session_id(7).expect("begun");
    let error = await_some("the timeout", || registration.poll().err());
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.message().contains("no response from media driver"), "{error:?}");
    assert_eq!(registration.poll().expect_err("done").kind(), ErrorKind::IllegalState);
    assert!(!aeron.is_closed());
    // The conductor frees a request that no caller has polled.
    drop(aeron.async_next_session_id(7).expect("begun"));
}

#[test]
fn only_the_client_of_this_driver_is_closed() {
    let driver = launch_with_long_timeouts();
    // Without a thread, it is as silent as a client whose process has ended.
    let mut silent = context(driver.aeron_dir());
    silent.set_use_conductor_agent_invoker(true).expect("a setting");
    let silent = Aeron::connect(silent).expect("a client");
    let _counter = silent.add_counter(1001, b"", "a counter").expect("a counter");
    let identity = RawClient::new(&silent).identity();
    assert_eq!(identity.client_id, silent.client_id());

    let aeron = connect(&driver);
    let client = RawClient::new(&aeron);
    assert!(identity.has_driver_of(&client.identity()));
    let mut other_start = identity;
    other_start.driver_start_timestamp += 1;
    let mut other_process = identity;
    other_process.driver_pid += 1;
    assert!(!client.close_ended(&other_start) && !client.close_ended(&other_process));
    // The driver answers in the order of the commands, and marks a closed client by a heartbeat of
    // zero.
    let _after = aeron.add_counter(1001, b"", "another").expect("a counter");
    let counters = aeron.counters_reader();
    let heartbeat =
        counters.find_by_type_id_and_registration_id(HEARTBEAT_TYPE, identity.client_id);
    assert_ne!(counters.value(heartbeat.expect("a heartbeat")), Some(0));

    assert!(client.close_ended(&identity));
    await_that("the end of the client", || {
        counters.iter().all(|counter| counter.owner_id != identity.client_id)
    });
    assert!(!aeron.is_closed());
}
