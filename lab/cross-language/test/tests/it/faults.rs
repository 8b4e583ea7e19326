//! Callers and servers that are killed, or do not read.

use std::thread;
use std::time::Duration;

use cross_language::protocol::{Operation, Void};
use cross_language::{AeronTransport, Caller, ConnectOptions, RESPONSE_STREAM};
use rusteron_client::{IdleStrategyKind, PositionKind};
use rusteron_media_driver::ThreadingMode;
use rusteron_test_support::{ChildProcess, DEADLINE, await_that, connect, free_port, launch_with};

use crate::for_each_server;
use crate::raw_client::RawClient;
use cross_language_test::programs::{CALLERS, LONG, Language, driver};

/// More calls than a test waits for, of which each has many fragments.
const ENDLESS: &[&str] = &["--measure", "80000", "--calls", "3000000", "--warmup-ms", "0"];

for_each_server! { killed_caller killed_server slow_caller session_while_socket_closes }

fn killed_caller(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        let mut command = caller.caller(driver.aeron_dir(), &[ENDLESS, LONG]);
        let mut caller = ChildProcess::spawn(&mut command);
        caller.await_line("measuring");
        caller.kill();
        Language::Rust.check(&driver, &[]);
    }
}

fn killed_server(server: Language) {
    let driver = driver();
    let mut first = server.start(driver.aeron_dir(), &[]);
    let start = |caller: Language| {
        let options = [ENDLESS, &["--timeout-ms", "8000"]];
        let mut process = ChildProcess::spawn(&mut caller.caller(driver.aeron_dir(), &options));
        process.await_line("measuring");
        process
    };
    let mut callers = CALLERS.map(start);
    first.kill();
    for (caller, name) in callers.iter_mut().zip(CALLERS) {
        let (status, _, errors) = caller.finish();
        // Java's options have a line, too.
        let error = errors.lines().last().unwrap_or_default();
        assert_eq!(status.code(), Some(1), "{name:?}: {errors}");
        let kinds = ["TIMED_OUT", "BACK_PRESSURED", "NOT_CONNECTED"];
        let is_typed = kinds.iter().any(|kind| error.starts_with(&format!("error: {kind}: ")));
        assert!(is_typed, "{name:?}: {errors}");
    }
    let _second = server.start(driver.aeron_dir(), &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        caller.check(&driver, &[]);
    }
}

fn slow_caller(server: Language) {
    let driver = driver();
    let mut server = server.start(driver.aeron_dir(), &["--client-timeout-ms", "500"]);
    let mut slow = RawClient::connect(&driver);
    // More than the response channel's window of 2 MiB, less than the server's queue of 16 MiB.
    for id in 1..=60 {
        slow.request(id, Operation::Squares(20_000));
    }
    slow.await_session();
    Language::Rust.check(&driver, &[]);
    let line = server.await_line("session ");
    assert!(line.contains("its caller has read nothing for 500"), "{line}");
    slow.await_end();
    Language::Rust.check(&driver, &[]);
}

/// The driver closes the socket of an earlier session's responses when the next session begins.
fn session_while_socket_closes(server: Language) {
    // The server's driver closes a socket when its sender wakes up. The callers' driver is awake.
    let callers_driver = driver();
    let server_driver = launch_with(|context| {
        context
            .set_threading_mode(ThreadingMode::Dedicated)?
            .set_conductor_idle_strategy(IdleStrategyKind::Backoff)?
            .set_receiver_idle_strategy(IdleStrategyKind::Backoff)?
            .set_sender_idle_strategy_init_args("300ms")?
            .set_sender_idle_strategy(IdleStrategyKind::Sleeping)?
            .set_publication_linger_timeout(Duration::from_millis(1))?
            .set_image_liveness_timeout(Duration::from_secs(1))?
            .set_timer_interval(Duration::from_millis(10))
    });
    let request_channel = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let response_channel =
        format!("aeron:udp?control=127.0.0.1:{}|control-mode=response", free_port());
    let channels = ["--request-channel", &request_channel, "--response-channel", &response_channel];
    let mut server = server.start(server_driver.aeron_dir(), &channels);
    let options = ConnectOptions {
        request_channel,
        response_channel,
        idle: IdleStrategyKind::Yielding,
        ..ConnectOptions::new(callers_driver.aeron_dir())
    };
    let connected =
        || Caller::new(AeronTransport::connect(&options, DEADLINE).unwrap(), DEADLINE, Ok);
    let ping =
        |caller: &mut Caller<AeronTransport>| caller.call(&mut Operation::Ping(Void {}).into());
    let observer = connect(&server_driver);
    let mut last = connected();
    let mut result = ping(&mut last);
    let line = thread::scope(|scope| {
        let line = scope.spawn(|| server.await_line("session "));
        // A ping that is late finds the socket closed. Then another session begins.
        while result.is_ok() && !line.is_finished() {
            let mut next = connected();
            drop(last);
            await_that("the last session's publication is closed", || {
                let streams = observer.counters_reader().stream_positions();
                let mut positions = streams
                    .iter()
                    .filter(|stream| stream.stream_id == RESPONSE_STREAM)
                    .flat_map(|stream| &stream.positions);
                positions.all(|position| position.kind != PositionKind::SenderPosition)
            });
            result = ping(&mut next);
            last = next;
        }
        line.join()
    });
    assert!(result.is_ok(), "{result:?}, server: {line:?}");
    let line = line.expect("a line of the server");
    assert!(line.contains(" waits: "), "{line}");
}
