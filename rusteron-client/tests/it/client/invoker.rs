//! Clients without a conductor thread: the application does the conductor's work.

use std::fs;
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::{Duration, Instant};

use rusteron_client::agent::{Agent, AgentInvoker, AgentRunner};
use rusteron_client::{
    Aeron, ConductorAgent, Counter, CounterState, Error, ErrorKind, OfferError, Subscription,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    DEADLINE, await_some, await_that, connect, context, exchange, launch, launch_with,
    launch_with_long_timeouts, watchful_context,
};

fn invoked(driver: &MediaDriver) -> Aeron {
    let mut context = context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    Aeron::connect(context).expect("a client")
}

#[test]
fn works_only_when_asked() {
    let driver = launch();
    let aeron = invoked(&driver);
    let mut registration = aeron.async_add_exclusive_publication("aeron:ipc", 1).expect("begun");
    assert!(registration.poll().expect("no error").is_none());
    let publication = await_some("the publication", || {
        aeron.do_work().expect("work");
        registration.poll().expect("no error")
    });
    assert_eq!(publication.stream_id(), 1);
}

#[test]
fn conductor_thread_refuses_do_work() {
    let driver = launch();
    let aeron = connect(&driver);
    let error = aeron.do_work().expect_err("it has a thread");
    assert_eq!(error.kind(), ErrorKind::IllegalState);
    let error = ConductorAgent::new(&aeron).expect_err("it has a thread");
    assert_eq!(error.kind(), ErrorKind::IllegalState);
}

#[test]
fn idle_client_is_timed_out() {
    // It must not end while the publication is added, on a busy machine either.
    const LIVENESS_TIMEOUT: Duration = Duration::from_secs(2);
    let driver = launch_with(|context| {
        context
            .set_timer_interval(Duration::from_millis(50))?
            .set_client_liveness_timeout(LIVENESS_TIMEOUT)?
            .set_publication_unblock_timeout(2 * LIVENESS_TIMEOUT)
    });
    let aeron = invoked(&driver);
    let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    let start = Instant::now();
    await_that("the timeout", || start.elapsed() > LIVENESS_TIMEOUT);
    let error = aeron.do_work().expect_err("too late");
    assert!(
        matches!(error.kind(), ErrorKind::ConductorServiceTimeout | ErrorKind::ClientTimeout),
        "{error:?}"
    );
    let helps = error.to_string().contains("call do_work more often");
    assert!(helps || error.kind() == ErrorKind::ClientTimeout, "{error:?}");
    assert!(aeron.is_closed());
    assert!(matches!(publication.offer(b"x"), Err(OfferError::Closed(_))));
    assert_eq!(aeron.do_work().expect_err("closed").kind(), ErrorKind::ClientClosed);
    let other = aeron.clone();
    // The notification may own a handle of the client.
    let (sender, closed) = mpsc::channel();
    publication.close_with(move || sender.send(other.is_closed()).expect("a receiver"));
    assert_eq!(closed.try_iter().collect::<Vec<_>>(), [true]);
}

#[test]
fn destinations_are_added_and_removed() {
    const MANUAL: &str = "aeron:udp?control-mode=manual";
    const DESTINATION: &str = "aeron:udp?endpoint=127.0.0.1:24326";
    let driver = launch();
    let aeron = invoked(&driver);
    let publication = aeron.add_publication(MANUAL, 1).expect("a publication");
    let number = publication.add_destination(DESTINATION).expect("a destination");
    publication.remove_destination_by_id(number).expect("removed");
    let mut adding = publication.async_add_destination(DESTINATION).expect("begun");
    await_that("the outcome", || {
        aeron.do_work().expect("work");
        adding.poll().expect("no error").is_some()
    });
    drop(publication.async_remove_destination(DESTINATION).expect("begun"));
    aeron.do_work().expect("work");
    let outlived = publication.async_add_destination(DESTINATION).expect("begun");
    drop(publication);
    aeron.do_work().expect("work");
    drop(aeron);
    drop(outlived);
}

#[test]
fn close_at_once_or_after_the_callback() {
    let driver = launch();
    let aeron = invoked(&driver);
    let (sender, calls) = mpsc::channel();
    let call = |name: &'static str| {
        let sender = sender.clone();
        move || sender.send(name).expect("a receiver")
    };
    let publication = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    publication.close_with(call("at once"));
    assert_eq!(calls.try_recv(), Ok("at once"));

    let outer = aeron.add_publication("aeron:ipc", 1).expect("a publication");
    let inner =
        aeron.add_exclusive_publication("aeron:udp?control-mode=manual", 2).expect("a publication");
    let dropped = aeron.add_publication("aeron:ipc", 3).expect("a publication");
    let pending = inner.async_add_destination("aeron:udp?endpoint=127.0.0.1:24327").expect("begun");
    let (first, second) = (call("inner"), call("outer"));
    outer.close_with(move || {
        let error = dropped.add_destination("aeron:udp?endpoint=127.0.0.1:24327");
        assert_eq!(error.expect_err("waits").kind(), ErrorKind::CalledFromConductor);
        drop(pending);
        inner.close_with(first);
        second();
    });
    assert_eq!(calls.try_iter().collect::<Vec<_>>(), ["outer", "inner"]);
    aeron.do_work().expect("work");
}

#[test]
fn counter_handler_is_called_without_thread() {
    const TYPE: i32 = 1001;
    let driver = launch();
    let aeron = invoked(&driver);
    let inside: Arc<Mutex<Option<Counter>>> = Arc::default();
    let (available, made) = mpsc::channel();
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
    let id = counter.counter_id();
    // Events of heartbeat counters come as well.
    assert!(made.try_iter().any(|event| event == (counter.registration_id(), id)));
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

/// Has a callback of a client, on its conductor's thread, drop something, and calls `meanwhile`
/// until it has.
fn drop_in_callback(of: &Aeron, what: impl Send + 'static, mut meanwhile: impl FnMut()) {
    const CHANNEL: &str = "aeron:ipc?term-length=64k";
    let (sender, dropped) = mpsc::channel();
    let mut what = Some(what);
    let _subscription = of
        .subscription_builder(CHANNEL, 2)
        .on_available_image(move |_| {
            drop(what.take());
            let _ = sender.send(());
        })
        .add()
        .expect("a subscription");
    let _publication = of.add_publication(CHANNEL, 2).expect("a publication");
    let deadline = Instant::now() + DEADLINE;
    // Without yielding, so that the client's work and the drop meet.
    while dropped.try_recv().is_err() {
        meanwhile();
        assert!(Instant::now() < deadline, "waited in vain: the callback");
    }
}

/// A subscription of a client with a handler that keeps this client open. The weak reference tells
/// when the handler is freed.
fn subscription_that_keeps(aeron: &Aeron) -> (Subscription, Weak<()>) {
    let alive = Arc::new(());
    let watched = Arc::downgrade(&alive);
    let kept = (aeron.clone(), alive);
    let subscription = aeron
        .subscription_builder("aeron:ipc?term-length=64k", 1)
        .on_unavailable_image(move |_| {
            let (aeron, _alive) = &kept;
            assert!(!aeron.is_closed());
        })
        .add()
        .expect("a subscription");
    (subscription, watched)
}

#[test]
fn client_cycle_ends_in_anothers_callback() {
    let driver = launch();
    let other = connect(&driver);
    let aeron = invoked(&driver);
    let (subscription, handler) = subscription_that_keeps(&aeron);
    // No thread does the client's work after this.
    drop(aeron);
    drop_in_callback(&other, subscription, || ());
    await_that("the handler is freed", || handler.strong_count() == 0);
}

#[test]
fn drops_in_anothers_callback_are_seen() {
    let driver = launch();
    let other = connect(&driver);
    for _ in 0..2000 {
        let aeron = invoked(&driver);
        let (subscription, handler) = subscription_that_keeps(&aeron);
        drop_in_callback(&other, subscription, || {
            aeron.do_work().expect("work");
        });
        drop(aeron);
        await_that("the handler is freed", || handler.strong_count() == 0);
    }
}

#[test]
fn requests_beyond_the_buffer_are_refused() {
    let driver = launch_with_long_timeouts();
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let aeron = invoked(&driver);
    // A driver that reads nothing: its files, without it.
    fs::create_dir(&dir).expect("a directory");
    fs::copy(driver.aeron_dir().join("cnc.dat"), dir.join("cnc.dat")).expect("a copy");
    let mut context = context(&dir);
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    let stalled = Aeron::connect(context).expect("a client of the copy");

    let mut registrations = Vec::new();
    // Without yielding: so many yields take minutes on a busy machine.
    let error = loop {
        // Now and then, as a client does.
        if registrations.len() % 256 == 0 {
            stalled.do_work().expect("work");
        }
        match stalled.async_add_subscription("aeron:ipc?alias=some-longer-text", 1) {
            Ok(registration) => registrations.push(registration),
            Err(error) => break error,
        }
        assert!(registrations.len() < 1_000_000, "the buffer is never full");
    };
    assert_eq!(error.kind(), ErrorKind::DriverBufferFull, "{error:?}");
    assert!(error.is_retryable());
    assert!(registrations.len() > 1_000);
    // Looks at every pending registration. Rejected registrations are not among them.
    let deadline = Instant::now() + Duration::from_millis(50);
    while Instant::now() < deadline {
        stalled.do_work().expect("work");
    }
    for registration in &mut registrations {
        assert!(registration.poll().expect("no error").is_none());
    }
    drop(stalled);
    drop(registrations);

    drop(aeron.add_subscription("aeron:ipc", 1).expect("the other client is unharmed"));
}

#[test]
fn conductor_works_on_runner() {
    let driver = launch();
    let aeron = invoked(&driver);
    let agent = ConductorAgent::new(&aeron).expect("an agent");
    let conductor = AgentRunner::builder(agent).start().expect("a thread");
    // Without the agent, neither would ever be connected.
    let mut adding = aeron.async_add_subscription("aeron:ipc", 1001).expect("begun");
    let mut subscription = await_some("the subscription", || adding.poll().expect("no error"));
    let mut adding = aeron.async_add_exclusive_publication("aeron:ipc", 1001).expect("begun");
    let mut publication = await_some("the publication", || adding.poll().expect("no error"));
    await_that("the connection", || publication.is_connected() && subscription.is_connected());
    exchange(&mut publication, &mut subscription, 100);
    conductor.close().expect("a good end");
}

#[test]
fn dead_driver_ends_conductor_agent() {
    let driver = launch();
    let mut context = watchful_context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(context).expect("a client");
    let mut invoker =
        AgentInvoker::start(ConductorAgent::new(&aeron).expect("an agent")).expect("started");
    assert_eq!(invoker.agent().role_name(), "aeron-client-conductor");
    drop(driver);
    let error = await_some("an error", || invoker.invoke().err());
    let cause: &Error = error.downcast_ref().expect("the client's error");
    assert_eq!(cause.kind(), ErrorKind::DriverTimeout, "{error}");
    assert!(aeron.is_closed());
    let error = invoker.invoke().expect_err("a closed client");
    let cause: &Error = error.downcast_ref().expect("the client's error");
    assert_eq!(cause.kind(), ErrorKind::ClientClosed, "{error}");
}
