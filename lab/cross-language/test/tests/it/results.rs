//! Equal results of all callers from all servers.

use cross_language_test::programs::{CALLERS, Language, check, driver};
use cross_language_test::{cases, wrong_input};
use rusteron_test_support::free_port;

use crate::for_each_server;
use crate::raw_client::RawClient;

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

/// Each wrong request gets the expected error, and changes no object.
fn wrong_input(server: Language) {
    let driver = driver();
    let _server = server.start(driver.aeron_dir(), &[]);
    let mut client = RawClient::connect(&driver);
    let mut expected = include_str!("../../expected-wrong-input.txt").lines();
    for (label, message) in wrong_input::messages() {
        client.send(&message);
        let response = cases::text(&client.receive_bytes());
        assert_eq!(Some(format!("{label} {response}").as_str()), expected.next());
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
