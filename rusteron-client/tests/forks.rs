//! Forks. Each case is a process of its own that forks, and whose child returns from `main`.

#[cfg(unix)]
mod forks {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, ExitCode};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;
    use std::{env, fs, io, process};

    use rusteron_client::agent::{Agent, AgentError, AgentRunner, RunnerError, ShutdownSignal};
    use rusteron_client::{
        Aeron, CloseCause, Context, Error, ErrorKind, IdleStrategy, NoOp, OfferError, PollError,
        Reconnect, Subscription, WaitError,
    };
    use rusteron_media_driver::{DriverInvoker, MediaDriver};
    use rusteron_test_support::{
        DEADLINE, ForkedChild, await_some, block_on, connect, connected_pair, context, exchange,
        launch, offer, receive, send_signal, shared_pair,
    };

    const CHANNEL: &str = "aeron:ipc?term-length=64k";
    const CASE: &str = "RUSTERON_FORK_CASE";
    type Case = (&'static str, fn() -> ExitCode);
    const CASES: &[Case] = &[
        ("child_that_returns_from_main_closes_nothing", child_that_returns_from_main),
        ("uses_in_child_are_errors", uses_in_child),
        ("registrations_in_child_are_errors", registrations_in_child),
        ("claim_is_committed_by_its_process_only", claims),
        ("counter_of_child_is_its_own", counters),
        ("poll_goes_on_in_parent_after_fork_in_handler", fork_in_handler),
        ("driver_invoker_in_child_is_an_error", driver_invoker),
        ("runner_in_child_is_not_joined", runner),
        ("reconnect_in_child_has_client_of_its_own", reconnect),
        ("busy_conductor_is_not_awaited", busy_conductor),
        ("child_makes_driver_and_client_of_its_own", own_client),
        ("files_of_driver_are_not_mapped_in_child", mappings),
        ("commands_are_unaffected", commands),
        ("shutdown_signals_are_of_one_process", shutdown_signals),
        ("ignored_hangup_stays_ignored", ignored_hangup),
    ];

    pub(crate) fn main() -> ExitCode {
        if let Ok(chosen) = env::var(CASE) {
            let case = CASES.iter().find(|(name, _)| *name == chosen);
            return case.map_or(ExitCode::FAILURE, |(_, run)| run());
        }
        // As `cargo nextest` lists the tests of a program, and runs one of them.
        let arguments: Vec<String> = env::args().collect();
        let has = |argument: &str| arguments.iter().any(|one| one == argument);
        if has("--list") {
            let listed = if has("--ignored") { &[] } else { CASES };
            listed.iter().for_each(|(name, _)| println!("{name}: test"));
            return ExitCode::SUCCESS;
        }
        let program = env::current_exe().expect("this program");
        let mut failures = 0;
        for (name, _) in CASES.iter().filter(|(name, _)| !has("--exact") || has(name)) {
            let mut case = Command::new(&program);
            // A child drops nothing of its parent's, which LeakSanitizer takes for leaks.
            case.env(CASE, name).env("ASAN_OPTIONS", "detect_leaks=0");
            // SAFETY: the closure calls one function, which POSIX allows in a forked child.
            unsafe { case.pre_exec(|| set_hangup(libc::SIG_DFL).map(drop)) };
            let status = case.status().expect("a process");
            println!("test {name} ... {}", if status.success() { "ok" } else { "FAILED" });
            failures += u32::from(!status.success());
        }
        ExitCode::from(u8::from(failures > 0))
    }

    /// Sets the action on SIGHUP, which a child inherits if it is to ignore the signal, such as under `nohup`. Returns
    /// the former action.
    fn set_hangup(action: libc::sighandler_t) -> io::Result<libc::sighandler_t> {
        // SAFETY: the callers pass one of C's constants.
        let former = unsafe { libc::signal(libc::SIGHUP, action) };
        if former == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(former) }
    }

    /// Forks. Returns `None` in the child.
    fn fork() -> Option<ForkedChild> {
        ForkedChild::fork().expect("a child")
    }

    #[track_caller]
    fn await_child(child: ForkedChild) {
        child.await_success(Instant::now() + DEADLINE).expect("a child that succeeds");
    }

    #[track_caller]
    fn inherited(error: &Error) {
        assert_eq!(error.kind(), ErrorKind::ClientClosed, "{error}");
        assert!(error.message().contains("made by process"), "{error}");
    }

    fn child_that_returns_from_main() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut publication, mut subscription) = connected_pair(&aeron, CHANNEL);
        let (_shared, _of_shared) = shared_pair(&aeron, CHANNEL);
        let _counter = aeron.add_counter(1001, b"key", "counter").expect("a counter");
        let _handler = aeron.add_close_handler(|| panic!("the client closes"));
        let _registration = aeron.async_add_publication(CHANNEL, 3).expect("a registration");
        let _connecting = Aeron::async_connect(context(driver.aeron_dir())).expect("a thread");
        let Some(child) = fork() else { return ExitCode::SUCCESS };
        await_child(child);
        assert!(driver.aeron_dir().join("cnc.dat").is_file());
        exchange(&mut publication, &mut subscription, 1_000);
        assert!(!aeron.is_closed());
        // Handlers of the parent are as before.
        drop(_handler);
        ExitCode::SUCCESS
    }

    fn uses_in_child() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut publication, mut subscription) = connected_pair(&aeron, CHANNEL);
        let (shared, mut of_shared) = shared_pair(&aeron, CHANNEL);
        let mut lonely = aeron.add_subscription(CHANNEL, 7).expect("a subscription");
        offer(&mut publication, b"for the parent");
        let forked = CloseCause::Forked { pid: process::id() };
        let long = vec![1; publication.max_payload_length() + 1];
        let Some(child) = fork() else {
            assert_eq!(publication.offer(b"x"), Err(OfferError::Closed(forked)));
            assert_eq!(publication.offer(&long), Err(OfferError::Closed(forked)));
            assert_eq!(publication.try_claim(1).err(), Some(OfferError::Closed(forked)));
            assert_eq!(
                publication.offer_with_reserved_value(&long, |_| 1),
                Err(OfferError::Closed(forked))
            );
            assert!(publication.is_closed() && !publication.is_connected());
            assert_eq!(publication.position(), Err(OfferError::Closed(forked)));
            assert_eq!(shared.offer(b"x"), Err(OfferError::Closed(forked)));
            assert_eq!(shared.offer(&long), Err(OfferError::Closed(forked)));
            assert_eq!(shared.try_claim(1).err(), Some(OfferError::Closed(forked)));
            assert!(shared.is_closed());
            for subscription in [&mut subscription, &mut of_shared, &mut lonely] {
                assert_eq!(
                    subscription.poll(|_, _| panic!("a message"), 10),
                    Err(PollError::Closed(forked))
                );
                assert!(subscription.is_closed());
            }
            let soon = Instant::now() + DEADLINE;
            let awaited = lonely.await_connected(soon, &mut NoOp);
            assert!(
                matches!(awaited, Err(WaitError::Closed(cause)) if cause == forked),
                "{awaited:?}"
            );
            inherited(&aeron.add_publication(CHANNEL, 4).unwrap_err());
            inherited(&aeron.add_subscription(CHANNEL, 4).unwrap_err());
            inherited(&aeron.add_counter(1, b"", "").unwrap_err());
            inherited(&aeron.next_session_id(4).unwrap_err());
            inherited(&aeron.do_work().unwrap_err());
            let destination = "aeron:udp?endpoint=127.0.0.1:24325";
            inherited(&publication.add_destination(destination).unwrap_err());
            inherited(&lonely.add_destination(destination).unwrap_err());
            inherited(&driver.close().unwrap_err());
            assert_eq!(aeron.close_cause(), Some(forked));
            drop(aeron.add_close_handler(|| ()));
            drop(aeron.add_available_counter_handler(|_, _, _| ()));
            lonely.close_with(|| panic!("it is closed"));
            return ExitCode::SUCCESS;
        };
        await_child(child);
        assert_eq!(receive(&mut subscription, 1), [b"for the parent"]);
        exchange(&mut publication, &mut subscription, 1_000);
        assert!(driver.aeron_dir().join("cnc.dat").is_file());
        ExitCode::SUCCESS
    }

    fn registrations_in_child() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let mut adding = aeron.async_add_publication(CHANNEL, 3).expect("begun");
        let manual = aeron.add_publication("aeron:udp?control-mode=manual", 5).expect("added");
        let mut destination =
            manual.async_add_destination("aeron:udp?endpoint=127.0.0.1:24326").expect("begun");
        let mut connecting = Aeron::async_connect(context(driver.aeron_dir())).expect("a thread");
        let Some(child) = fork() else {
            inherited(&adding.poll().unwrap_err());
            inherited(&destination.poll().unwrap_err());
            inherited(&connecting.poll().unwrap_err());
            manual.close_with(|| panic!("it is closed"));
            return ExitCode::SUCCESS;
        };
        await_child(child);
        drop(await_some("a publication", || adding.poll().expect("no error")));
        await_some("a destination", || destination.poll().expect("no error"));
        drop(await_some("a client", || connecting.poll().expect("no error")));
        ExitCode::SUCCESS
    }

    fn claims() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut publication, mut subscription) = connected_pair(&aeron, CHANNEL);
        let mut claim = publication.try_claim(6).expect("a range");
        claim.copy_from_slice(b"parent");
        let Some(dropping) = fork() else {
            drop(claim);
            return ExitCode::SUCCESS;
        };
        await_child(dropping);
        let Some(committing) = fork() else {
            claim.copy_from_slice(b"child!");
            assert_eq!(claim.commit(), Err(OfferError::Unblocked));
            return ExitCode::SUCCESS;
        };
        await_child(committing);
        assert_eq!(subscription.poll(|_, _| panic!("a message"), 1), Ok(0));
        claim.commit().expect("still claimed");
        assert_eq!(receive(&mut subscription, 1), [b"parent"]);
        ExitCode::SUCCESS
    }

    fn counters() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let counter = aeron.add_counter(1001, b"", "counter").expect("a counter");
        let fixed = aeron.add_static_counter(1001, b"", "static", 77).expect("a counter");
        let retained = counter.as_atomic();
        counter.set(5);
        let Some(child) = fork() else {
            assert!(counter.is_closed() && fixed.is_closed());
            retained.store(6, Ordering::SeqCst);
            counter.set(7);
            fixed.set(7);
            return ExitCode::SUCCESS;
        };
        await_child(child);
        assert_eq!((counter.get(), fixed.get()), (5, 0));
        assert!(!counter.is_closed());
        ExitCode::SUCCESS
    }

    fn fork_in_handler() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut publication, mut subscription) = connected_pair(&aeron, CHANNEL);
        for message in [b"1", b"2", b"3"] {
            offer(&mut publication, message);
        }
        let (mut child, mut received) = (None, Vec::new());
        let forked = CloseCause::Forked { pid: process::id() };
        let polled = subscription.poll(
            |message, _| {
                received.push(message.to_vec());
                if message == b"1" {
                    child = Some(fork());
                }
            },
            2,
        );
        // The log buffer is also the publication's, so a child has zeros in its place.
        let Some(child) = child.expect("a fork") else {
            assert_eq!(
                subscription.poll(|_, _| panic!("a message"), 1),
                Err(PollError::Closed(forked))
            );
            return ExitCode::SUCCESS;
        };
        await_child(child);
        assert_eq!(polled, Ok(2));
        assert_eq!(received, [b"1", b"2"]);
        assert_eq!(receive(&mut subscription, 1), [b"3"]);
        ExitCode::SUCCESS
    }

    fn driver_invoker() -> ExitCode {
        let mut context = rusteron_media_driver::DriverContext::new().expect("a context");
        context.set_threading_mode(rusteron_media_driver::ThreadingMode::Invoker).expect("a mode");
        let mut driver = DriverInvoker::launch_embedded(context).expect("a driver");
        driver.do_work().expect("work");
        let Some(child) = fork() else {
            inherited(&driver.do_work().unwrap_err());
            return ExitCode::SUCCESS;
        };
        await_child(child);
        driver.do_work().expect("work");
        assert!(driver.aeron_dir().join("cnc.dat").is_file());
        ExitCode::SUCCESS
    }

    struct Quiet;

    impl Agent for Quiet {
        fn do_work(&mut self) -> Result<usize, AgentError> {
            Ok(0)
        }

        fn role_name(&self) -> &str {
            "quiet"
        }
    }

    fn runner() -> ExitCode {
        let [closed, dropped] = [(); 2].map(|()| AgentRunner::builder(Quiet).start().expect("it"));
        let Some(child) = fork() else {
            let ended = closed.close();
            assert!(matches!(ended, Err(RunnerError::Forked { .. })), "{ended:?}");
            return ExitCode::SUCCESS;
        };
        await_child(child);
        assert!(!closed.is_finished() && !dropped.is_finished());
        closed.close().expect("no error");
        ExitCode::SUCCESS
    }

    fn busy_conductor() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let (entered, is_entered) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let handler = aeron.add_available_counter_handler(move |_, _, _| {
            let _ = entered.send(());
            let _ = released.recv();
        });
        let adding = aeron.async_add_counter(1001, b"", "counter").expect("begun");
        // Dropped before the handler after a failure, too.
        let release = release;
        is_entered.recv_timeout(DEADLINE).expect("a call of the handler");
        let Some(child) = fork() else {
            drop(handler);
            // The conductor may have held the channel's lock at the fork.
            std::mem::forget(release);
            return ExitCode::SUCCESS;
        };
        await_child(child);
        drop(release);
        drop((adding, handler));
        ExitCode::SUCCESS
    }

    fn own_client() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let mut subscription = aeron.add_subscription(CHANNEL, 9).expect("a subscription");
        // Starts the thread that wakes futures.
        let adding = aeron.async_add_publication(CHANNEL, 10).expect("begun");
        let _added = block_on(adding).expect("a publication");
        let Some(child) = fork() else {
            let mut context = Context::new().expect("a context");
            context.set_dir(driver.aeron_dir()).expect("a directory");
            let client = Aeron::connect(context).expect("a client of the parent's driver");
            let adding = client.async_add_exclusive_publication(CHANNEL, 9).expect("begun");
            let mut publication = block_on(adding).expect("a publication");
            offer(&mut publication, b"from the child");
            let own = MediaDriver::launch_embedded().expect("a driver");
            let client = connect(&own);
            let (mut publication, mut subscription) = connected_pair(&client, CHANNEL);
            exchange(&mut publication, &mut subscription, 100);
            let dir = own.aeron_dir().to_owned();
            drop((publication, subscription, client, own));
            assert!(!dir.exists());
            return ExitCode::SUCCESS;
        };
        assert_eq!(receive(&mut subscription, 1), [b"from the child"]);
        await_child(child);
        ExitCode::SUCCESS
    }

    fn mappings() -> ExitCode {
        let maps = || fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let driver = launch();
        let aeron = connect(&driver);
        let files = ["cnc.dat", "loss-report.dat"];
        let mapped = maps();
        if mapped.is_empty() {
            return ExitCode::SUCCESS; // not on Linux
        }
        assert!(files.iter().all(|file| mapped.contains(file)), "{mapped}");
        let Some(child) = fork() else {
            let mapped = maps();
            assert!(!files.iter().any(|file| mapped.contains(file)), "{mapped}");
            return ExitCode::SUCCESS;
        };
        await_child(child);
        drop(aeron);
        ExitCode::SUCCESS
    }

    fn commands() -> ExitCode {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut publication, mut subscription) = connected_pair(&aeron, CHANNEL);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            // Takes the guards' lock while others fork.
            let adding = || {
                let mut idle = rusteron_client::Yielding;
                while !stop.load(Ordering::Relaxed) {
                    drop(aeron.add_publication(CHANNEL, 12).expect("a publication"));
                    idle.idle(0);
                }
            };
            scope.spawn(adding);
            for number in 0..20 {
                let mut command = Command::new("true");
                if number % 2 == 0 {
                    // SAFETY: the closure does nothing. It makes the standard library fork.
                    unsafe { command.pre_exec(|| Ok(())) };
                }
                assert!(command.status().expect("a process").success());
                exchange(&mut publication, &mut subscription, 10);
            }
            stop.store(true, Ordering::Relaxed);
        });
        ExitCode::SUCCESS
    }

    fn reconnect() -> ExitCode {
        let driver = launch();
        let dir = driver.aeron_dir().to_owned();
        let open = |aeron: &Aeron| Ok((aeron.clone(), aeron.add_subscription(CHANNEL, 1)?));
        let mut streams = Reconnect::new(move || Ok(context(&dir)), open);
        let client_id = |streams: &mut Reconnect<_>| {
            await_some("a client of this process", || {
                let step = |(aeron, _): &mut (Aeron, Subscription)| Ok(Some(aeron.client_id()));
                streams.work(step).expect("no permanent error")
            })
        };
        // The first child is forked while the parent connects, the second one later.
        let mut of_parent = None;
        streams.work(|_| Ok(())).expect("no permanent error");
        for _ in 0..2 {
            let Some(child) = fork() else {
                assert_ne!(Some(client_id(&mut streams)), of_parent);
                return ExitCode::SUCCESS;
            };
            await_child(child);
            of_parent = Some(client_id(&mut streams));
        }
        assert_eq!(Some(client_id(&mut streams)), of_parent);
        ExitCode::SUCCESS
    }

    fn shutdown_signals() -> ExitCode {
        let own_signal = |name| send_signal(process::id(), name);
        let end = |child: ForkedChild| child.await_success(Instant::now() + DEADLINE);
        let install = || ShutdownSignal::on_interrupt().expect("handlers");
        // A process that installs the handlers is ended by the second Ctrl-C.
        let child = ForkedChild::run(|| {
            let shutdown = install();
            own_signal("INT");
            shutdown.wait();
            own_signal("INT");
            thread::park();
        });
        assert_eq!(end(child.expect("a child")), Err("signal 2".to_owned()));

        // A child that inherits the handlers is ended, and its parent goes on.
        let shutdown = install();
        for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
            let child = ForkedChild::run(|| {
                own_signal(name);
                thread::park();
            });
            assert_eq!(end(child.expect("a child")), Err(format!("signal {number}")));
        }
        // A child that installs handlers after its parent has a signal of its own.
        let child = ForkedChild::run(|| {
            let own = install();
            assert!(!own.is_signalled());
            own_signal("INT");
            assert!(own.wait_timeout(DEADLINE) && !shutdown.is_signalled());
        });
        assert_eq!(end(child.expect("a child")), Ok(()));
        assert!(!shutdown.is_signalled());
        own_signal("TERM");
        assert!(shutdown.wait_timeout(DEADLINE) && install().is_signalled());
        own_signal("TERM");
        ExitCode::SUCCESS
    }

    fn ignored_hangup() -> ExitCode {
        set_hangup(libc::SIG_IGN).expect("an action");
        ShutdownSignal::on_interrupt().expect("handlers");
        assert_eq!(set_hangup(libc::SIG_IGN).expect("an action"), libc::SIG_IGN);
        ExitCode::SUCCESS
    }
}

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    forks::main()
}

#[cfg(not(unix))]
fn main() {}
