//! Session ids from the media driver: asked for and waited for, abandoned, and never answered.

use std::sync::mpsc;
use std::time::Duration;

use rusteron_client::{Aeron, ChannelUri, ErrorKind};
use rusteron_media_driver::DriverInvoker;
use rusteron_test_support::{
    DEADLINE, SHORT_DRIVER_TIMEOUT, await_some, block_on, connect, context, driver_context, launch,
};

#[test]
fn given_once_and_free() {
    let driver = launch();
    let aeron = connect(&driver);
    let first = aeron.next_session_id(7).expect("a session id");
    let channel = ChannelUri::ipc().session_id(first).build().expect("a channel");
    let publication = aeron.add_exclusive_publication(&channel, 7).expect("a free id");
    assert_eq!(publication.session_id(), first);
    assert_ne!(aeron.next_session_id(7).expect("another"), first);
}

#[test]
fn used_id_is_passed_over() {
    let driver = launch();
    let aeron = connect(&driver);
    // The driver counts, so that this is what would come next.
    let taken = aeron.next_session_id(7).expect("a session id").wrapping_add(1);
    let channel = ChannelUri::ipc().session_id(taken).build().expect("a channel");
    let _publication = aeron.add_exclusive_publication(&channel, 7).expect("a publication");
    assert_eq!(aeron.next_session_id(7).expect("the one behind"), taken.wrapping_add(1));
}

#[test]
fn polled_and_awaited() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut registration = aeron.async_next_session_id(7).expect("begun");
    let polled = await_some("the session id", || registration.poll().expect("no error"));
    assert_eq!(registration.poll().expect_err("it is done").kind(), ErrorKind::IllegalState);
    let awaited = block_on(aeron.async_next_session_id(7).expect("begun")).expect("a session id");
    assert_eq!(awaited.get(), polled.get().wrapping_add(1));
}

#[test]
fn dropped_requests_leave_no_trace() {
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
fn silent_driver_is_driver_timeout() {
    // Alive, and without work: nothing invokes it.
    let mut driver_context = driver_context();
    driver_context
        .set_publication_unblock_timeout(3 * DEADLINE)
        .and_then(|context| context.set_client_liveness_timeout(2 * DEADLINE))
        .expect("valid settings");
    let driver = DriverInvoker::launch_embedded(driver_context).expect("a driver");
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
fn driver_death_ends_the_wait() {
    let driver = launch();
    let (errors, reported) = mpsc::channel();
    let mut context = context(driver.aeron_dir());
    context
        .set_driver_timeout(SHORT_DRIVER_TIMEOUT)
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .and_then(|context| {
            context.set_error_handler(move |error| {
                let _ = errors.send(error.kind());
            })
        })
        .expect("valid settings");
    let aeron = Aeron::connect(context).expect("a client");
    drop(driver);
    // On a busy machine it may be too late already even for that.
    let begun = aeron.async_next_session_id(7);
    let error = aeron.next_session_id(7).expect_err("no driver");
    // Of the two that give up at the same time, whichever is first.
    assert!(
        matches!(error.kind(), ErrorKind::DriverTimeout | ErrorKind::ClientClosed),
        "{error:?}"
    );
    assert_eq!(reported.recv_timeout(DEADLINE), Ok(ErrorKind::DriverTimeout));
    drop(begun);
    let error = aeron.async_next_session_id(7).expect_err("a closed client");
    assert_eq!(error.kind(), ErrorKind::ClientClosed);
}

#[test]
fn invoker_waits_by_working() {
    let driver = launch();
    let mut context = context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(context).expect("a client");
    let first = aeron.next_session_id(7).expect("a session id");
    let mut registration = aeron.async_next_session_id(7).expect("begun");
    assert_eq!(registration.poll().expect("no error"), None);
    let second = await_some("the session id", || {
        aeron.do_work().expect("work");
        registration.poll().expect("no error")
    });
    assert_eq!(second.get(), first.wrapping_add(1));
    drop(aeron.async_next_session_id(7).expect("begun"));
    aeron.do_work().expect("work");
}

#[test]
fn callback_may_request_but_not_wait() {
    let driver = launch();
    let aeron = connect(&driver);
    let (outcomes, reported) = mpsc::channel();
    let publication = aeron.add_publication("aeron:ipc", 7).expect("a publication");
    let in_callback = aeron.clone();
    publication.close_with(move || {
        let waited = in_callback.next_session_id(7).map_err(|error| error.kind());
        let _ = outcomes.send((waited, in_callback.async_next_session_id(7)));
    });
    let (waited, begun) = reported.recv_timeout(DEADLINE).expect("the callback");
    assert_eq!(waited, Err(ErrorKind::CalledFromConductor));
    block_on(begun.expect("begun")).expect("a session id");
}
