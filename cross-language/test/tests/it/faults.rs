//! Callers and servers that are killed, or do not read.

use cross_language::{Body, Operation};
use rusteron_test_support::ChildProcess;

use crate::for_each_server;
use crate::raw_client::RawClient;
use cross_language_test::programs::{CALLERS, Caller, LONG, Server, driver};

for_each_server! { killed_caller killed_server slow_caller }

fn killed_caller(server: Server) {
    let driver = driver();
    let _server = server.start(&driver, &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        let mut command = caller.command(&driver, &[&["--endless"], LONG]);
        let mut caller = ChildProcess::spawn(&mut command);
        caller.await_line("calling");
        caller.kill();
        Caller::Rust.check(&driver, "binary", &[]);
    }
}

fn killed_server(server: Server) {
    let driver = driver();
    let mut first = server.start(&driver, &[]);
    let start = |caller: Caller| {
        let options: [&[&str]; 2] = [&["--endless"], &["--timeout-ms", "8000"]];
        let mut process = ChildProcess::spawn(&mut caller.command(&driver, &options));
        process.await_line("calling");
        process
    };
    let mut callers = CALLERS.map(start);
    first.kill();
    for (caller, name) in callers.iter_mut().zip(CALLERS) {
        let (status, _, errors) = caller.finish();
        let errors = errors.trim_end();
        assert_eq!(status.code(), Some(1), "{name:?}: {errors}");
        let kinds = ["TIMED_OUT", "BACK_PRESSURED", "NOT_CONNECTED"];
        let is_typed = kinds.iter().any(|kind| errors.starts_with(&format!("error: {kind}: ")));
        assert!(is_typed, "{name:?}: {errors}");
    }
    let _second = server.start(&driver, &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        caller.check(&driver, "binary", &[]);
    }
}

fn slow_caller(server: Server) {
    let driver = driver();
    let mut server = server.start(&driver, &["--client-timeout-ms", "500"]);
    let mut slow = RawClient::connect(&driver);
    // More than the response channel's window of 2 MiB, less than the server's queue of 16 MiB.
    for id in 0..60 {
        slow.request(id, Operation::Squares, &Body::Integer(10_000));
    }
    slow.await_session();
    Caller::Rust.check(&driver, "binary", &[]);
    let line = server.await_line("session ");
    assert!(line.contains("its caller has read nothing for 500"), "{line}");
    slow.await_end();
    Caller::Rust.check(&driver, "binary", &[]);
}
