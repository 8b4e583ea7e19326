//! Equal results of all callers from all servers.

use rusteron_test_support::free_port;

use crate::for_each_server;
use cross_language_test::programs::{
    CALLERS, Caller, LONG, Server, assert_output, driver, file, path,
};

for_each_server! { binary json wrong_input over_udp }

fn binary(server: Server) {
    results(server, "binary");
}

fn json(server: Server) {
    results(server, "json");
}

fn results(server: Server, encoding: &str) {
    let driver = driver();
    let _server = server.start(&driver, &[]);
    for caller in CALLERS {
        println!("{caller:?}");
        caller.check(&driver, encoding, &[]);
    }
}

fn wrong_input(server: Server) {
    let driver = driver();
    let _server = server.start(&driver, &[]);
    let messages = file("wrong-input", &cross_language_test::wrong_input());
    for caller in CALLERS {
        println!("{caller:?}");
        let finished = caller.run(&driver, &[&["--wrong-input", path(&messages)], LONG]);
        assert_output(&finished, include_str!("../../expected-wrong-input.txt"));
    }
}

fn over_udp(server: Server) {
    for caller in [Caller::C, Caller::Java, Caller::Python] {
        println!("{caller:?}");
        // A driver that is closing a socket refuses a channel with the same address.
        let driver = driver();
        let requests = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
        let responses =
            format!("aeron:udp?control=127.0.0.1:{}|control-mode=response", free_port());
        let channels = ["--request-channel", &requests, "--response-channel", &responses];
        let _server = server.start(&driver, &channels);
        caller.check(&driver, "binary", &channels);
    }
}
