//! The callbacks of a driver, their threads, and their end.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use rusteron_client::{Aeron, Context, ErrorKind, request_driver_termination};
use rusteron_media_driver::{DriverContext, DriverInvoker, MediaDriver, ThreadingMode};
use rusteron_test_support::{DEADLINE, await_that, connect, driver_context};

#[test]
fn hook_follows_validator() {
    let (tokens, seen) = mpsc::channel();
    let (hook, called) = mpsc::channel();
    let mut context = driver_context();
    context
        .set_termination_validator(move |token| {
            tokens.send(token.to_vec()).expect("a test that listens");
            token.starts_with(b"please")
        })
        .and_then(|context| {
            context.set_termination_hook(move || hook.send(()).expect("a test that listens"))
        })
        .expect("settings");
    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    for token in [&b"now"[..], b"", b"please", &[7; 4096]] {
        request_driver_termination(driver.aeron_dir(), token).expect("a request");
        assert_eq!(seen.recv_timeout(DEADLINE).expect("the token"), token);
    }
    called.recv_timeout(DEADLINE).expect("the call");
    // The driver goes on until it is dropped.
    drop(connect(&driver).add_publication("aeron:ipc", 1).expect("a publication"));
    drop(driver);
    assert!(called.try_recv().is_err(), "called for one request of four");
}

#[test]
fn end_in_hook_is_handed_over() {
    type End = fn(MediaDriver) -> Result<(), ErrorKind>;
    let ends: [(End, _); 2] = [
        (
            |driver| driver.close().map_err(|error| error.kind()),
            Err(ErrorKind::CalledFromConductor),
        ),
        (
            |driver| {
                drop(driver);
                Ok(())
            },
            Ok(()),
        ),
    ];
    for mode in [ThreadingMode::Shared, ThreadingMode::Dedicated] {
        for (end, expected) in ends {
            let captured = Arc::new(());
            let in_hook = Arc::clone(&captured);
            let driver = Arc::new(Mutex::new(None::<MediaDriver>));
            let shared = Arc::clone(&driver);
            let (outcomes, outcome) = mpsc::channel();
            let mut context = driver_context();
            context
                .set_threading_mode(mode)
                .and_then(|context| context.set_termination_validator(|_| true))
                .and_then(|context| {
                    context.set_termination_hook(move || {
                        assert!(Arc::strong_count(&in_hook) > 0);
                        let driver = shared.lock().expect("no panic").take().expect("one call");
                        outcomes.send(end(driver)).expect("a test that listens");
                    })
                })
                .expect("settings");
            let mut slot = driver.lock().expect("no panic");
            let launched = MediaDriver::launch_embedded_with(context).expect("a driver");
            let dir = launched.aeron_dir().to_owned();
            *slot = Some(launched);
            drop(slot);
            request_driver_termination(&dir, b"").expect("a request");
            assert_eq!(outcome.recv_timeout(DEADLINE).expect("no deadlock"), expected);
            await_that("the end of the driver", || !dir.exists());
            await_that("the end of its context", || Arc::strong_count(&captured) == 1);
        }
    }
}

#[test]
fn validator_panic_rejects_request() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (validations, hooks) = (Arc::clone(&calls), Arc::clone(&calls));
    let mut context = driver_context();
    context
        .set_termination_validator(move |token| {
            validations.fetch_add(1, Ordering::SeqCst);
            assert!(token != b"panic", "on purpose");
            true
        })
        .and_then(|context| {
            context.set_termination_hook(move || {
                hooks.fetch_add(100, Ordering::SeqCst);
                panic!("on purpose");
            })
        })
        .and_then(|context| context.set_agent_on_start(|_| panic!("on purpose")))
        .expect("settings");
    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    request_driver_termination(driver.aeron_dir(), b"panic").expect("a request");
    request_driver_termination(driver.aeron_dir(), b"").expect("a request");
    await_that("both requests", || calls.load(Ordering::SeqCst) == 102);
    drop(connect(&driver).add_publication("aeron:ipc", 1).expect("a publication"));
}

#[test]
fn blocking_client_call_is_rejected() {
    let (outcomes, outcome) = mpsc::channel();
    let client = Arc::new(Mutex::new(None::<Aeron>));
    let shared = Arc::clone(&client);
    let mut context = driver_context();
    context
        .set_termination_validator(move |_| {
            let client = shared.lock().expect("no panic");
            let added = client.as_ref().expect("a client").add_publication("aeron:ipc", 1);
            outcomes.send(added.map(drop)).expect("a test that listens");
            false
        })
        .expect("a validator");
    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    *client.lock().expect("no panic") = Some(connect(&driver));
    request_driver_termination(driver.aeron_dir(), b"").expect("a request");
    let error = outcome.recv_timeout(DEADLINE).expect("an outcome").expect_err("a deadlock");
    assert_eq!(error.kind(), ErrorKind::CalledFromConductor);
    client.lock().expect("no panic").take();
}

#[test]
fn agent_on_start_per_agent() {
    let cases: [(ThreadingMode, &[&str]); 3] = [
        (ThreadingMode::Dedicated, &["aeron-md-nra", "conductor", "receiver", "sender"]),
        (ThreadingMode::SharedNetwork, &["[sender, receiver]", "aeron-md-nra", "conductor"]),
        (ThreadingMode::Shared, &["[conductor, sender, receiver]"]),
    ];
    for (mode, roles) in cases {
        let started = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&started);
        let mut context = DriverContext::new().expect("a context");
        context
            .set_threading_mode(mode)
            .and_then(|context| {
                context.set_agent_on_start(move |role| {
                    let thread = std::thread::current().id();
                    shared.lock().expect("no panic").push((role.to_owned(), thread));
                })
            })
            .expect("settings");
        let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
        await_that("all agents", || started.lock().expect("no panic").len() >= roles.len());
        drop(driver);
        let mut started = started.lock().expect("no panic").clone();
        started.sort_by(|a, b| a.0.cmp(&b.0));
        let names: Vec<_> = started.iter().map(|(role, _)| role.as_str()).collect();
        assert_eq!(names, roles);
        let mut threads: HashSet<_> = started.iter().map(|(_, thread)| *thread).collect();
        threads.insert(std::thread::current().id());
        assert_eq!(threads.len(), roles.len() + 1);
    }
}

#[test]
fn invoker_starts_on_the_launching_thread() {
    let threads = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&threads);
    let mut context = DriverContext::new().expect("a context");
    context
        .set_threading_mode(ThreadingMode::Invoker)
        .and_then(|context| {
            context.set_agent_on_start(move |_| {
                shared.lock().expect("no panic").push(std::thread::current().id());
            })
        })
        .expect("settings");
    let driver = DriverInvoker::launch_embedded(context).expect("a driver");
    assert_eq!(*threads.lock().expect("no panic"), [std::thread::current().id()]);
    let dir = driver.aeron_dir().to_owned();
    drop(driver);
    assert!(!dir.exists());
}

#[test]
fn captures_dropped_with_driver() {
    let captured = Arc::new(());
    let context = || {
        let mut context = driver_context();
        let (hook, validator, start) =
            (Arc::clone(&captured), Arc::clone(&captured), Arc::clone(&captured));
        let replaced = Arc::clone(&captured);
        // Callbacks that are running now hold no more than they captured.
        let hold = |captured: &Arc<()>| assert!(Arc::strong_count(captured) > 0);
        context
            .set_termination_hook(move || hold(&replaced))
            .and_then(|context| context.set_termination_hook(move || hold(&hook)))
            .and_then(|context| {
                context.set_termination_validator(move |_| Arc::strong_count(&validator) > 0)
            })
            .and_then(|context| context.set_agent_on_start(move |_| hold(&start)))
            .expect("settings");
        context
    };
    let driver = MediaDriver::launch_embedded_with(context()).expect("a driver");
    request_driver_termination(driver.aeron_dir(), b"").expect("a request");
    assert_eq!(Arc::strong_count(&captured), 5);
    drop(driver);
    assert_eq!(Arc::strong_count(&captured), 1);

    // Never launched, and launched in vain.
    drop(context());
    let mut invalid = context();
    invalid.set_mtu_length(33).expect("a length");
    MediaDriver::launch_embedded_with(invalid).expect_err("no such length");
    assert_eq!(Arc::strong_count(&captured), 1);

    let mut invoker = context();
    invoker.set_threading_mode(ThreadingMode::Invoker).expect("a mode");
    drop(DriverInvoker::launch_embedded(invoker).expect("a driver"));
    assert_eq!(Arc::strong_count(&captured), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn end_during_an_add_unmaps_its_log() {
    let mut was_mapped = false;
    for duty_cycles in 0..12 {
        let mut context = DriverContext::new().expect("a context");
        context.set_threading_mode(ThreadingMode::Invoker).expect("a mode");
        let mut driver = DriverInvoker::launch_embedded(context).expect("a driver");
        let dir = driver.aeron_dir().to_owned();
        let name = dir.to_str().expect("a text").to_owned();
        let is_mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings");
            maps.lines().any(|line| line.contains(&name) && line.contains(".logbuffer"))
        };
        let mut context = Context::new().expect("a context");
        context
            .set_dir(&dir)
            .and_then(|context| context.set_use_conductor_agent_invoker(true))
            .expect("settings");
        driver.do_work().expect("a turn");
        let aeron = Aeron::connect(context).expect("a client");
        let adding = aeron
            .async_add_publication("aeron:udp?endpoint=127.0.0.1:24325", 1001)
            .expect("a registration");
        for _ in 0..duty_cycles {
            driver.do_work().expect("a turn");
        }
        was_mapped |= is_mapped();
        drop((adding, aeron, driver));
        assert!(!is_mapped(), "after {duty_cycles} duty cycles");
    }
    assert!(was_mapped, "too few duty cycles");
}
