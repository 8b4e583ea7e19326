//! Clients and streams that are made again when they have ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rusteron_client::agent::{Agent, AgentError, AgentRunner};
use rusteron_client::{
    Aeron, CloseCause, Context, Counter, CounterState, Error, ErrorKind, ExclusivePublication,
    OfferError, Reconnect, Result, Subscription,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    DriverProcess, SHORT_DRIVER_TIMEOUT, await_some, await_that, block_on, connect, context,
    driver_context_in, launch, launch_with, media_driver_beside, offer, watchful_context,
};

type Pair = (ExclusivePublication, Subscription);
type Changes = Receiver<Result<()>>;

fn open_pair(aeron: &Aeron) -> Result<Pair> {
    Ok((aeron.add_exclusive_publication("aeron:ipc", 1)?, aeron.add_subscription("aeron:ipc", 1)?))
}

/// Streams of clients that soon notice when their driver stops, and their changes.
fn reconnect<S: Send + 'static>(
    dir: &Path,
    open: impl Fn(&Aeron) -> Result<S> + Send + Sync + 'static,
) -> (Reconnect<S>, Changes) {
    let dir = dir.to_owned();
    watch(Reconnect::new(move || Ok(watchful_context(&dir)), open))
}

fn watch<S: Send + 'static>(streams: Reconnect<S>) -> (Reconnect<S>, Changes) {
    let (sender, changes) = channel();
    let streams = streams.on_change(move |change| {
        let change = change.map(|_streams| ()).map_err(Clone::clone);
        sender.send(change).expect("a receiver");
    });
    (streams, changes)
}

fn await_change<S: Send + 'static>(streams: &mut Reconnect<S>, changes: &Changes) -> Result<()> {
    await_some("a change", || {
        streams.work(|_| Ok(())).expect("no permanent error");
        changes.try_recv().ok()
    })
}

fn await_exchange(streams: &mut Reconnect<Pair>) {
    await_that("a message arrives", || {
        let step = |(publication, subscription): &mut Pair| {
            publication.offer(b"hello")?;
            Ok(subscription.poll(|_, _| {}, 10)?)
        };
        streams.work(step).expect("no permanent error") > 0
    });
}

#[test]
fn streams_survive_killed_driver() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let deps = std::env::current_exe().expect("a path");
    let program = media_driver_beside(deps.parent().and_then(Path::to_str).expect("a path"));
    let start = || DriverProcess::start(&program, &dir, &["--delete-on-start"]);
    let (mut streams, changes) = reconnect(&dir, open_pair);
    let mut driver = start();
    await_exchange(&mut streams);
    assert!(await_some("the first change", || changes.try_iter().find(Result::is_ok)).is_ok());

    driver.kill();
    let cause = await_change(&mut streams, &changes).expect_err("a closed client");
    assert_eq!(cause.kind(), ErrorKind::ClientClosed, "{cause}");
    let _driver = start();
    await_exchange(&mut streams);
    assert!(changes.try_iter().last().expect("a change").is_ok());
}

#[test]
fn timed_out_client_is_replaced() {
    let driver = launch_with(|context| {
        context
            .set_timer_interval(Duration::from_millis(20))?
            .set_client_liveness_timeout(2 * SHORT_DRIVER_TIMEOUT)
    });
    let dir = driver.aeron_dir().to_owned();
    let new_context = move || {
        let mut context = context(&dir);
        context.set_use_conductor_agent_invoker(true)?;
        Ok(context)
    };
    let open = |aeron: &Aeron| Ok((aeron.clone(), aeron.add_counter(2000, b"", "a counter")?));
    let (mut streams, changes) = watch(Reconnect::new(new_context, open));
    assert!(await_change(&mut streams, &changes).is_ok());
    let step =
        |(aeron, counter): &mut (Aeron, Counter)| Ok(Some((aeron.clone(), counter.counter_id())));
    let (timed_out, id) = streams.work(step).expect("no error").expect("a connection");

    let cnc = driver.cnc_file().expect("the CnC file");
    await_that("the driver gives the client up", || {
        cnc.counters().state(id) == Some(CounterState::Reclaimed)
    });
    let ended = await_some("the end of the connection", || {
        streams.work(|(aeron, _)| aeron.do_work()).expect("no permanent error");
        changes.try_recv().ok()
    });
    assert!(ended.is_err());
    // The client measures its pause as well, and may notice first.
    let cause = timed_out.close_cause();
    let is_timeout = |cause| {
        matches!(cause, CloseCause::ClientTimeout | CloseCause::ConductorServiceTimeout { .. })
    };
    assert!(cause.is_some_and(is_timeout), "{cause:?}");
    assert!(await_change(&mut streams, &changes).is_ok());
}

#[test]
fn peers_come_and_go_without_change() {
    let driver = launch();
    let open = |aeron: &Aeron| aeron.add_subscription("aeron:ipc", 1);
    let (mut streams, changes) = reconnect(driver.aeron_dir(), open);
    assert!(await_change(&mut streams, &changes).is_ok());
    for _ in 0..2 {
        let peer = connect(&driver);
        let mut publication = peer.add_exclusive_publication("aeron:ipc", 1).expect("a stream");
        offer(&mut publication, b"hello");
        await_that("the message", || {
            let step = |subscription: &mut Subscription| Ok(subscription.poll(|_, _| {}, 10)?);
            streams.work(step).expect("no error") == 1
        });
    }
    assert!(changes.try_recv().is_err());
}

#[test]
fn first_permanent_error_is_returned() {
    let await_error = |streams: &mut Reconnect<Subscription>| {
        await_some("an error", || streams.work(|_| Ok(())).err()).kind()
    };
    let driver = launch();
    let open = |aeron: &Aeron| aeron.add_subscription("aeron:udp?endpoint=localhost", 1);
    let (mut streams, changes) = reconnect(driver.aeron_dir(), open);
    // The second attempt is no later one: none has connected.
    for _ in 0..2 {
        assert_eq!(await_error(&mut streams), ErrorKind::InvalidChannel);
    }
    let refuse = || Err(Error::new(ErrorKind::InvalidArgument, "no such setting"));
    let (mut streams, _changes) = watch(Reconnect::new(refuse, open));
    assert_eq!(await_error(&mut streams), ErrorKind::InvalidArgument);
    assert!(changes.try_recv().is_err());
}

#[test]
fn later_permanent_error_is_retried() {
    let driver = launch();
    let attempts = AtomicUsize::new(0);
    let open = move |aeron: &Aeron| match attempts.fetch_add(1, Ordering::Relaxed) {
        1 => Err(Error::new(ErrorKind::InvalidChannel, "for now")),
        _ => open_pair(aeron),
    };
    let (mut streams, changes) = reconnect(driver.aeron_dir(), open);
    assert!(await_change(&mut streams, &changes).is_ok());
    let end = |_: &mut Pair| Err(Error::from(OfferError::MaxPositionExceeded));
    assert_eq!(streams.work::<usize>(end).expect("retried"), 0);
    let kinds = [(); 2].map(|()| await_change(&mut streams, &changes).map_err(|e| e.kind()));
    assert_eq!(kinds, [Err(ErrorKind::MaxPositionExceeded), Err(ErrorKind::InvalidChannel)]);
    assert!(await_change(&mut streams, &changes).is_ok());
}

#[test]
fn error_of_step_decides_about_connection() {
    let driver = launch();
    let (mut streams, changes) = reconnect(driver.aeron_dir(), open_pair);
    assert!(await_change(&mut streams, &changes).is_ok());
    let session = |streams: &mut Reconnect<Pair>| {
        streams.work(|(publication, _)| Ok(publication.session_id())).expect("no error")
    };
    let first = session(&mut streams);

    let rejected = streams.work(|_| Err::<usize, _>(OfferError::BackPressured.into()));
    assert_eq!(rejected.expect("no work"), 0);
    let too_long = OfferError::MessageTooLong { length: 9, max_message_length: 8 };
    let error = streams.work(|_| Err::<(), _>(too_long.into())).expect_err("a permanent error");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(session(&mut streams), first);
    assert!(changes.try_recv().is_err());

    let ended = streams.work(|_| Err::<usize, _>(OfferError::CorruptLogBuffer.into()));
    assert_eq!(ended.expect("no work"), 0);
    let cause = changes.try_recv().expect("a change").expect_err("an end");
    assert_eq!(cause.kind(), ErrorKind::CorruptLogBuffer);
    assert!(await_change(&mut streams, &changes).is_ok());
    assert_ne!(session(&mut streams), first);
}

#[test]
fn panic_of_open_reaches_caller() {
    let driver = launch();
    let open = |_: &Aeron| -> Result<()> { panic!("of open") };
    let (mut streams, _changes) = reconnect(driver.aeron_dir(), open);
    let payload = await_some("the panic", || {
        catch_unwind(AssertUnwindSafe(|| streams.work(|()| Ok(())))).err()
    });
    assert_eq!(payload.downcast_ref(), Some(&"of open"));
}

/// Settings of clients that wait for a driver for an hour, with a reference that lives as long as
/// an attempt.
fn patient(dir: PathBuf, witness: &Arc<()>) -> Reconnect<Pair> {
    let witness = Arc::clone(witness);
    let new_context = move || {
        let _witness = &witness;
        let mut context = Context::new()?;
        context.set_dir(&dir)?.set_driver_timeout(Duration::from_secs(3600))?;
        Ok(context)
    };
    Reconnect::new(new_context, open_pair)
}

#[test]
fn drop_while_connecting_ends_attempt() {
    let parent = tempfile::tempdir().expect("a directory");
    let witness = Arc::default();
    let mut streams = patient(parent.path().join("driver"), &witness);
    streams.work(|_| Ok(())).expect("no error");
    assert_eq!(Arc::strong_count(&witness), 2);
    drop(streams);
    await_that("the end of the attempt", || Arc::strong_count(&witness) == 1);
}

#[test]
fn agent_ends_while_connecting() {
    struct Service(Reconnect<Pair>, mpsc::Sender<()>);
    impl Agent for Service {
        fn do_work(&mut self) -> Result<usize, AgentError> {
            let _ = self.1.send(());
            Ok(self.0.work(|(_, subscription)| Ok(subscription.poll(|_, _| {}, 10)?))?)
        }

        fn role_name(&self) -> &str {
            "service"
        }
    }
    let parent = tempfile::tempdir().expect("a directory");
    let (sender, worked) = channel();
    let streams = patient(parent.path().join("driver"), &Arc::default());
    let runner = AgentRunner::builder(Service(streams, sender)).start().expect("a thread");
    for _ in 0..3 {
        worked.recv().expect("the agent works while it connects");
    }
    runner.close().expect("no error");
}

#[test]
fn connection_is_awaited_again_and_again() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let (mut streams, _changes) = reconnect(&dir, |aeron| Ok(aeron.clone()));
    for _ in 0..2 {
        let dir = dir.clone();
        let launching = thread::spawn(move || MediaDriver::launch(driver_context_in(&dir)));
        let aeron = block_on(streams.connected()).expect("a client").clone();
        assert!(block_on(streams.connected()).is_ok_and(|open| !open.is_closed()));
        drop(launching.join().expect("no panic").expect("a driver"));
        await_that("the end of the client", || aeron.is_closed());
    }
}
