//! Equal results of all callers from all servers.

use cross_language::{AeronTransport, Caller, ConnectOptions, Envelope, Status};
use cross_language_test::programs::{CALLERS, Language, check, driver};
use cross_language_test::wrong_input;
use rusteron_test_support::{DEADLINE, free_port};

use crate::for_each_server;

for_each_server! { over_ipc over_udp wrong_input }

fn over_ipc(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        caller.check(&driver, &[]);
    }
}

fn over_udp(server: Language) {
    for caller in CALLERS {
        println!("{caller:?}");
        // A driver that is closing a socket refuses a channel with the same address.
        let driver = driver();
        let requests = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
        let responses =
            format!("aeron:udp?control=127.0.0.1:{}|control-mode=response", free_port());
        let channels = ["--request-channel", &requests, "--response-channel", &responses];
        let _server = server.start(driver.aeron_dir(), &channels);
        caller.check(&driver, &channels);
    }
}

/// Each malformed request gets the expected error, and changes no object.
fn wrong_input(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &[]);
    let options = ConnectOptions {
        aeron_dir: Some(driver.aeron_dir().to_owned()),
        ..ConnectOptions::default()
    };
    let transport = AeronTransport::connect(&options, DEADLINE).unwrap();
    let mut caller = Caller::new(transport, DEADLINE, Ok);
    let mut expected = include_str!("../../expected-wrong-input.txt").lines();
    for (label, message) in wrong_input::messages() {
        let (Envelope { correlation_id, code, .. }, body) = caller.call_raw(&message).unwrap();
        let status = Status::from_number(code).unwrap();
        let mut line = format!("{label} {correlation_id} {status}");
        if status == Status::Ok {
            line += " ";
            line += &cross_language::modes::digits(&body);
        }
        assert_eq!(Some(line.as_str()), expected.next());
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn in_process() {
    for caller in CALLERS {
        println!("{caller:?}");
        check(|options| caller.in_process_caller(&[options]));
    }
}
