//! The program `media_driver`, and clients of a driver that is killed.

#![cfg(all(unix, feature = "binary"))]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rusteron_client::{
    Aeron, CncFile, Context, ErrorKind, Header, OfferError, PollError, request_driver_termination,
};
use rusteron_media_driver::UdpInterceptor;
use support::{
    DriverProcess, PATIENCE, await_that, connected_pair, media_driver, offer, receive,
    watchful_context,
};

#[test]
fn the_program_says_when_it_is_ready_and_ends_orderly_on_a_signal() {
    for signal in ["TERM", "INT"] {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("aeron");
        let mut driver = DriverProcess::start(&dir, &[]);
        assert_eq!(driver.line(), format!("media driver ready: {}", dir.display()));
        assert!(dir.join("cnc.dat").is_file());
        driver.signal(signal);
        assert_eq!(driver.line(), format!("media driver closed: {}", dir.display()));
        assert_eq!(driver.end(), (0, String::new()), "SIG{signal}");
    }
}

#[test]
fn a_closed_terminal_ends_the_program_unless_it_was_started_with_nohup() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    // The tests themselves may have been started with nohup or without.
    let start = |hangup: libc::sighandler_t| {
        let mut command = media_driver();
        command.env("AERON_DIR", &dir).env("AERON_THREADING_MODE", "SHARED");
        // SAFETY: between fork and exec this calls one function, which is safe there.
        unsafe {
            command.pre_exec(move || {
                libc::signal(libc::SIGHUP, hangup);
                Ok(())
            })
        };
        let mut driver = DriverProcess::run(&mut command);
        assert!(driver.line().starts_with("media driver ready"));
        driver.signal("HUP");
        driver
    };
    let mut driver = start(libc::SIG_DFL);
    await_that("its end", || driver.child.try_wait().expect("a status").is_some());
    assert!(driver.line().starts_with("media driver closed"));
    assert_eq!(driver.end(), (0, String::new()));

    let mut driver = start(libc::SIG_IGN);
    let aeron = Aeron::connect(support::context(&dir)).expect("a client");
    for stream_id in 0..100 {
        aeron.add_publication("aeron:ipc?term-length=64k", stream_id).expect("a publication");
    }
    drop(aeron);
    driver.signal("TERM");
    assert!(driver.line().starts_with("media driver closed"));
    assert_eq!(driver.end(), (0, String::new()));
}

#[test]
fn an_end_that_goes_wrong_is_said_and_is_a_failure() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let options = ["-D", "aeron.dir.delete.on.shutdown=true"];
    let mut driver = DriverProcess::start(&dir, &options);
    assert!(driver.line().starts_with("media driver ready"));
    // There is nothing left to delete.
    std::fs::rename(&dir, home.path().join("elsewhere")).expect("another name");
    driver.signal("TERM");
    assert_eq!(driver.line(), "");
    let (code, errors) = driver.end();
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("failed to delete dir"), "{errors}");
}

#[test]
fn what_goes_wrong_in_a_turn_is_in_the_error_log_and_the_driver_goes_on() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    // Nothing can be sent to a broadcast address, here the loopback device's, without asking for it.
    let mut driver = DriverProcess::run(
        media_driver()
            .env("AERON_DIR", &dir)
            .env("AERON_THREADING_MODE", "SHARED")
            .env("AERON_NAME_RESOLVER_SUPPLIER", "driver")
            .env("AERON_DRIVER_RESOLVER_NAME", "first")
            .env("AERON_DRIVER_RESOLVER_INTERFACE", "127.0.0.1:0")
            .env("AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR", "127.255.255.255:9"),
    );
    assert!(driver.line().starts_with("media driver ready"));
    let cnc = CncFile::open(&dir, PATIENCE).expect("the driver's file");
    await_that("an error in the log", || {
        cnc.errors().iter().any(|error| error.text.contains("127.255.255.255:9"))
    });
    let aeron = Aeron::connect(support::context(&dir)).expect("a client");
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    offer(&mut publication, b"still there");
    receive(&mut subscription, 1);
    driver.signal("TERM");
    assert!(driver.line().starts_with("media driver closed"));
    assert_eq!(driver.end(), (0, String::new()));
}

#[test]
fn the_program_goes_on_and_ends_orderly_when_nobody_reads_its_output() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(&dir, &["--stats", "0.001"]);
    assert!(driver.line().starts_with("media driver ready"));
    driver.stop_reading();
    let mut context = Context::new().expect("a context");
    context.set_dir(&dir).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    // The driver has printed, or tried to, while it answered all of these.
    for stream_id in 0..100 {
        aeron.add_publication("aeron:ipc?term-length=64k", stream_id).expect("a publication");
    }
    drop(aeron);
    driver.signal("TERM");
    assert_eq!(driver.end(), (0, String::new()));
}

#[test]
fn the_program_refuses_a_directory_in_use_and_options_it_does_not_know() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut first = DriverProcess::start(&dir, &[]);
    assert!(first.line().starts_with("media driver ready"));
    let mut second = DriverProcess::start(&dir, &[]);
    let (code, errors) = second.end();
    assert_eq!(code, 75);
    assert!(errors.contains("Active media driver detected"), "{errors}");
    assert!(errors.contains(&format!("process {}", first.child.id())), "{errors}");
    assert!(dir.join("cnc.dat").is_file());

    let output =
        media_driver().args(["--threading-mode", "sequential"]).output().expect("the program");
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("--threading-mode"), "{errors}");
}

#[test]
fn a_driver_that_is_killed_is_noticed_within_the_driver_timeout_and_crashes_nobody() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(&dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));

    let (errors, reported) = mpsc::channel();
    let mut context = Context::new().expect("a context");
    context
        .set_dir(&dir)
        .and_then(|context| context.set_driver_timeout(Duration::from_secs(1)))
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .and_then(|context| {
            context.set_error_handler(move |error| {
                let _ = errors.send(error.clone());
            })
        })
        .expect("valid settings");
    let aeron = Aeron::connect(context).expect("a client");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut publication =
        aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    await_that("the connection", || publication.is_connected() && subscription.is_connected());
    assert!(publication.offer(b"before").is_ok());

    driver.signal("KILL");
    driver.end();

    // The loops go on all the while, as those of a program would.
    let mut received = 0;
    let publisher_end = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| {
            let mut outcome = Err(OfferError::BackPressured);
            await_that("the publisher's end", || {
                outcome = publication.offer(b"on and on");
                outcome.is_err_and(|error| !error.is_retryable())
            });
            outcome
        });
        await_that("the subscriber's end", || match subscription.poll(|_, _| received += 1, 10) {
            Ok(_) => false,
            Err(error) => error == PollError::Closed,
        });
        publisher.join().expect("the publisher")
    });
    assert_eq!(publisher_end, Err(OfferError::Closed));
    assert!(received > 0);

    let error = reported.recv_timeout(PATIENCE).expect("a report");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.message().contains("MediaDriver keepalive"), "{error:?}");
    let error = aeron.add_subscription("aeron:ipc", 1).expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::ClientClosed);

    // A driver in its place, and a client in this one's, carry on. Without the option the driver
    // would take its predecessor for alive until the driver timeout is over.
    drop((publication, subscription, aeron));
    let mut successor = DriverProcess::start(&dir, &["--delete-on-start"]);
    assert!(successor.line().starts_with("media driver ready"));
    let mut context = Context::new().expect("a context");
    context.set_dir(&dir).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    aeron.add_publication("aeron:ipc", 1001).expect("a publication");
}

/// A service as it should be: when its client has ended, it makes another.
#[derive(Default)]
struct Service {
    channel: String,
    clients: AtomicUsize,
    /// Clients that ended with an error.
    ended: AtomicUsize,
    /// By the latest client.
    received: AtomicUsize,
}

impl Service {
    fn on(channel: &str) -> Self {
        Self { channel: channel.to_owned(), ..Self::default() }
    }

    fn run(&self, dir: &Path, is_over: &AtomicBool) {
        while !is_over.load(Ordering::SeqCst) {
            // Each step may meet a driver that is gone, or not there yet.
            let _ = self.run_one_client(dir, is_over);
        }
    }

    fn run_one_client(&self, dir: &Path, is_over: &AtomicBool) -> rusteron_client::Result<()> {
        let aeron = Aeron::connect(watchful_context(dir))?;
        let mut subscription = aeron.add_subscription(&self.channel, 1001)?;
        let mut publication = aeron.add_exclusive_publication(&self.channel, 1001)?;
        self.received.store(0, Ordering::SeqCst);
        self.clients.fetch_add(1, Ordering::SeqCst);
        while !is_over.load(Ordering::SeqCst) {
            let sent = publication.offer(b"on and on");
            let count = |_: &[u8], _: &Header<'_>| _ = self.received.fetch_add(1, Ordering::SeqCst);
            let polled = subscription.poll(count, 10);
            if polled.is_err() || sent.is_err_and(|error| !error.is_retryable()) {
                self.ended.fetch_add(1, Ordering::SeqCst);
                break;
            }
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// Ends the services also when the test fails, which would wait for them otherwise.
struct EndOfTest<'a>(&'a AtomicBool);

impl Drop for EndOfTest<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn services_survive_drivers_that_are_killed_and_restarted() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let udp = support::udp_channel();
    let channels = ["aeron:ipc", "aeron:ipc", &udp, &udp];
    let (services, is_over) = (channels.map(Service::on), AtomicBool::new(false));
    let counts = |count: fn(&Service) -> &AtomicUsize| {
        services.each_ref().map(|service| count(service).load(Ordering::SeqCst))
    };
    std::thread::scope(|scope| {
        let _end = EndOfTest(&is_over);
        for service in &services {
            scope.spawn(|| service.run(&dir, &is_over));
        }
        for _ in 0..3 {
            let (clients, ended) = (counts(|service| &service.clients), counts(|s| &s.ended));
            let mut driver = DriverProcess::start(&dir, &["--delete-on-start"]);
            assert!(driver.line().starts_with("media driver ready"));
            for (service, clients) in services.iter().zip(clients) {
                await_that("another client's messages", || {
                    service.clients.load(Ordering::SeqCst) > clients
                        && service.received.load(Ordering::SeqCst) > 100
                });
            }
            driver.signal("KILL");
            driver.end();
            for (service, ended) in services.iter().zip(ended) {
                await_that("the client's error", || service.ended.load(Ordering::SeqCst) > ended);
            }
        }
    });
}

/// Over UDP, the other side's driver can be the one that is killed.
#[test]
fn a_publication_finds_the_subscriber_again_whose_driver_was_killed() {
    let home = tempfile::tempdir().expect("a directory");
    let (near, far) = (home.path().join("near"), home.path().join("far"));
    let soon = ["-Daeron.publication.connection.timeout=1s", "--delete-on-start"];
    let mut publisher = DriverProcess::start(&near, &soon);
    assert!(publisher.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(support::context(&near)).expect("a client");
    let channel = support::udp_channel();
    let mut publication = aeron.add_exclusive_publication(&channel, 1001).expect("a publication");

    for _ in 0..2 {
        let mut driver = DriverProcess::start(&far, &soon);
        assert!(driver.line().starts_with("media driver ready"));
        let other = Aeron::connect(watchful_context(&far)).expect("a client");
        let mut subscription = other.add_subscription(&channel, 1001).expect("a subscription");
        await_that("the connection", || publication.is_connected() && subscription.is_connected());
        offer(&mut publication, b"to whoever is there");
        assert_eq!(receive(&mut subscription, 1), [b"to whoever is there"]);
        driver.signal("KILL");
        driver.end();
        await_that("the subscriber's error", || {
            subscription.poll(|_, _| {}, 10) == Err(PollError::Closed)
        });
        // Not by offers: one that is still taken would be the next subscriber's.
        await_that("the publication to notice", || !publication.is_connected());
        assert_eq!(publication.offer(b"to nobody"), Err(OfferError::NotConnected));
    }
}

#[test]
fn a_client_ends_the_program_if_its_validator_agrees() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let name = "AERON_DRIVER_TERMINATION_VALIDATOR";
    for validator in ["allow", "aeron_driver_termination_validator_default_allow"] {
        let mut driver =
            DriverProcess::run(media_driver().env("AERON_DIR", &dir).env(name, validator));
        assert!(driver.line().starts_with("media driver ready"));
        request_driver_termination(&dir, b"").expect("a request");
        assert_eq!(driver.line(), format!("media driver closed: {}", dir.display()));
        assert_eq!(driver.end(), (0, String::new()), "{validator}");
    }

    let mut driver = DriverProcess::start(&dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));
    request_driver_termination(&dir, b"").expect("a request");
    // The request comes before the publication's, and did nothing.
    let mut context = Context::new().expect("a context");
    context.set_dir(&dir).expect("a directory");
    let aeron = Aeron::connect(context).expect("a client");
    aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    assert!(driver.child.try_wait().expect("a status").is_none());
}

#[test]
fn properties_and_options_win_over_the_environment_each_over_those_before() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("driver.properties");
    std::fs::write(&file, "# comment\naeron.mtu.length=2048\n\naeron.ipc.mtu.length : 4096\n")
        .expect("a file");
    let output = media_driver()
        .envs([
            ("AERON_MTU_LENGTH", "8192"),
            ("AERON_IPC_MTU_LENGTH", "8192"),
            ("AERON_TERM_BUFFER_LENGTH", "131072"),
            ("AERON_SENDER_IDLE_STRATEGY", "noop"),
        ])
        .args(["-D", "aeron.mtu.length=1024", "-Daeron.socket.so_sndbuf=262144"])
        .args(["--term-buffer-length", "1m", "--idle", "yield", "--cpu", "-,1", "--print-config"])
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the program");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    for line in [
        "AERON_MTU_LENGTH=2048",
        "AERON_IPC_MTU_LENGTH=4096",
        "AERON_SOCKET_SO_SNDBUF=262144",
        "AERON_TERM_BUFFER_LENGTH=1048576",
        "AERON_SENDER_IDLE_STRATEGY=yield",
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY=sleep-ns",
        "AERON_CONDUCTOR_CPU_AFFINITY=-1",
        "AERON_SENDER_CPU_AFFINITY=1",
        "AERON_RECEIVER_CPU_AFFINITY=-1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn threading_modes_have_the_documented_threads() {
    let home = tempfile::tempdir().expect("a directory");
    let threads = |mode: &str| {
        let mut command = media_driver();
        command.env("AERON_DIR", home.path().join(mode)).args(["--threading-mode", mode]);
        let mut driver = DriverProcess::run(&mut command);
        assert!(driver.line().starts_with("media driver ready"));
        let tasks = format!("/proc/{}/task", driver.child.id());
        std::fs::read_dir(tasks).expect("its threads").count()
    };
    // The process has others beside the agents', the same ones in every mode.
    let others = threads("shared") - 1;
    for (mode, agents) in [("invoker", 1), ("shared-network", 3), ("dedicated", 4)] {
        assert_eq!(threads(mode) - others, agents, "{mode}");
    }
}

#[test]
fn properties_are_fetched_from_a_url() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/driver.properties", listener.local_addr().expect("an address"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut connection, _) = listener.accept().expect("a connection");
            let mut request = BufReader::new(connection.try_clone().expect("a clone"));
            let mut line = String::new();
            while request.read_line(&mut line).is_ok_and(|length| length > 2) {
                line.clear();
            }
            let text = "aeron.mtu.length=2048\n";
            write!(
                connection,
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            )
            .expect("an answer");
        });
        let output = media_driver().arg("--print-config").arg(&url).output().expect("the program");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains("\nAERON_MTU_LENGTH=2048\n"), "{text}");
    });
}

#[test]
fn the_exit_status_tells_a_wrong_setting_from_a_wrong_command_line() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let missing = home.path().join("missing").display().to_string();
    let file = home.path().join("file");
    std::fs::write(&file, b"in the way").expect("a file");
    let in_the_way = file.join("aeron").display().to_string();
    let cases: [(&[&str], i32, &str); 7] = [
        (&["-D", "nonsense"], 78, "nonsense"),
        (&["-D", "aeron.mtu.length=33"], 78, "mtu"),
        (&["-D", "aeron.sender.idle.strategy=sleepy"], 78, "sleepy"),
        (&[&missing], 78, "missing"),
        (&["--dir", &in_the_way], 73, "aeron"),
        (&["--term-buffer-length", "100k"], 2, "power of two"),
        (&["--idle", "sleepy"], 2, "backoff"),
    ];
    for (arguments, status, text) in cases {
        let mut driver = DriverProcess::run(media_driver().env("AERON_DIR", &dir).args(arguments));
        let (code, errors) = driver.end();
        assert_eq!(code, status, "{arguments:?}: {errors}");
        assert!(errors.contains(text), "{arguments:?}: {errors}");
        assert!(!dir.exists(), "{arguments:?}");
    }
}

#[test]
fn an_address_in_use_is_not_taken_for_a_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let occupied = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let interface = occupied.local_addr().expect("an address").to_string();
    let mut driver = DriverProcess::run(
        media_driver()
            .env("AERON_DIR", home.path().join("aeron"))
            .env("AERON_NAME_RESOLVER_SUPPLIER", "driver")
            .env("AERON_DRIVER_RESOLVER_NAME", "first")
            .env("AERON_DRIVER_RESOLVER_INTERFACE", &interface),
    );
    let (code, errors) = driver.end();
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("in use"), "{errors}");
}

#[test]
fn statistics_show_what_was_published() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(&dir, &["--stats", "0.1"]);
    assert!(driver.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(support::context(&dir)).expect("a client");
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    await_that("a line with a rate", || {
        offer(&mut publication, &[7; 1000]);
        receive(&mut subscription, 1);
        let line = driver.line();
        let rate = line.split("published ").nth(1).and_then(|rest| rest.split(' ').next());
        assert!(line.starts_with("stats 0.") && line.contains(", errors 0, lost 0 B"), "{line}");
        rate.and_then(|rate| rate.parse().ok()).is_some_and(|rate: u64| rate > 0)
    });
    driver.signal("TERM");
    driver.line_that_begins("media driver closed");
    assert_eq!(driver.end(), (0, String::new()));
}

#[test]
fn events_are_logged_where_the_environment_says() {
    let home = tempfile::tempdir().expect("a directory");
    let (dir, log) = (home.path().join("aeron"), home.path().join("events"));
    let mut driver = DriverProcess::run(
        media_driver()
            .env("AERON_DIR", &dir)
            .env("AERON_THREADING_MODE", "SHARED")
            .env("AERON_EVENT_LOG", "admin")
            .env("AERON_EVENT_LOG_FILENAME", &log),
    );
    assert!(driver.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(support::context(&dir)).expect("a client");
    aeron.add_publication("aeron:ipc?alias=seen", 1001).expect("a publication");
    await_that("the event", || {
        std::fs::read_to_string(&log).is_ok_and(|text| {
            text.contains("CMD_IN_ADD_PUBLICATION") && text.contains("alias=seen")
        })
    });
}

#[test]
fn an_interceptor_of_the_environment_loses_what_it_is_told_to() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::run(
        media_driver()
            .env("AERON_DIR", &dir)
            .env("AERON_THREADING_MODE", "SHARED")
            .env("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", "loss")
            // Data frames only.
            .env(
                "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS",
                "rate=0.2|seed=3|recv-msg-mask=2",
            ),
    );
    assert!(driver.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(support::context(&dir)).expect("a client");
    let channel = support::udp_channel();
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    support::exchange(&mut publication, &mut subscription, 300);
    let counters = aeron.counters_reader();
    let retransmits = rusteron_client::SystemCounter::RetransmitsSent.read(&counters);
    assert!(retransmits.is_some_and(|count| count > 0), "{retransmits:?}");
}

/// Which is why the library offers none for outgoing datagrams.
#[test]
fn none_of_aerons_interceptors_is_for_outgoing_datagrams_and_each_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    for interceptor in
        [UdpInterceptor::Loss, UdpInterceptor::FixedLoss, UdpInterceptor::MultiGapLoss]
    {
        // Aeron would call a function that there is none of when the first channel is opened.
        let mut driver = DriverProcess::run(
            media_driver()
                .env("AERON_DIR", home.path().join("aeron"))
                .env("AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS", interceptor.name()),
        );
        assert_eq!(driver.line(), "", "it is not ready");
        let (code, errors) = driver.end();
        assert_eq!(code, 78, "{interceptor:?}: {errors}");
        assert!(errors.contains("outgoing_interceptors"), "{interceptor:?}: {errors}");
    }
}

/// Claims, a message, a counter and a registration in the hands of a client whose driver is killed.
#[test]
fn what_is_held_when_a_driver_is_killed_stays_usable() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(&dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));
    let mut context = Context::new().expect("a context");
    context
        .set_dir(&dir)
        .and_then(|context| context.set_driver_timeout(Duration::from_secs(1)))
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .expect("valid settings");
    let aeron = Aeron::connect(context).expect("a client");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut exclusive = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let mut forgetful = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    let counter = aeron.add_counter(1001, b"key", "label").expect("a counter");
    await_that("the connections", || subscription.image_count() == 3);
    await_that("a place", || exclusive.offer(b"held").is_ok());
    await_that("places for claims", || {
        forgetful.available_window().is_ok_and(|room| room > 0)
            && shared.available_window().is_ok_and(|room| room > 0)
    });

    let mut of_exclusive = exclusive.try_claim(1_000).expect("a place");
    let mut of_shared = shared.try_claim(1_000).expect("a place");
    std::mem::forget(forgetful.try_claim(1_000).expect("a place"));
    let mut received = 0;
    await_that("the message", || {
        let polled = subscription.poll(
            |message, header| {
                driver.signal("KILL");
                driver.end();
                await_that("the client's end", || aeron.is_closed());
                of_exclusive.fill(1);
                of_shared.fill(2);
                counter.increment();
                assert_eq!((message, header.stream_id()), (&b"held"[..], 1001));
                received += 1;
            },
            1,
        );
        polled.is_err() || received > 0
    });
    assert_eq!(received, 1);
    let outcome = aeron.async_add_publication("aeron:ipc", 7);
    assert_eq!(outcome.expect_err("closed").kind(), ErrorKind::ClientClosed);
    let other = std::thread::scope(|scope| {
        scope.spawn(move || of_shared.commit()).join().expect("a claim moves to any thread")
    });
    assert!(matches!(other, Ok(_) | Err(OfferError::Unblocked)), "{other:?}");
    of_exclusive.abort();
    assert_eq!(exclusive.try_claim(1).expect_err("closed"), OfferError::Closed);
    assert_eq!(subscription.poll(|_, _| {}, 10), Err(PollError::Closed));
    assert_eq!(aeron.counters_reader().value(counter.counter_id()), Some(1));
    drop((aeron, exclusive, forgetful, counter, subscription));
    assert_eq!(shared.offer(b"x"), Err(OfferError::Closed));
}
