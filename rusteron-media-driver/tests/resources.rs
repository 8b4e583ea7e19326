//! A driver gives back every resource that it takes. The test is alone in its process, and looks at that.

#![cfg(target_os = "linux")]

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use rusteron_client::Aeron;
use rusteron_media_driver::{
    DriverContext, DriverInvoker, MediaDriver, NameResolver, ThreadingMode,
};
use rusteron_test_support::{
    await_that, connected_pair, context, driver_context, free_port, offer, receive, resources,
};

/// Messages over the driver, so that it has log buffers and a client; sockets as well with UDP.
fn use_driver(dir: &Path, udp: Option<&str>) {
    let aeron = Aeron::connect(context(dir)).expect("a client");
    for channel in std::iter::once(rusteron_test_support::SHORT_TERMS).chain(udp) {
        let (mut publication, mut subscription) = connected_pair(&aeron, channel);
        offer(&mut publication, b"message");
        assert_eq!(receive(&mut subscription, 1), [b"message"]);
    }
}

/// Each kind of driver in turn, with a client that exchanges messages, for a quarter of them over UDP.
fn start_and_stop(number: usize, udp: &str) {
    let modes = [ThreadingMode::Shared, ThreadingMode::SharedNetwork, ThreadingMode::Dedicated];
    let udp = (number / 4 % 4 == 0).then_some(udp);
    let mut context = DriverContext::new().expect("a context");
    if let Some(mode) = modes.get(number % 4) {
        context.set_threading_mode(*mode).expect("a mode");
        let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
        use_driver(driver.aeron_dir(), udp);
        return;
    }
    context.set_threading_mode(ThreadingMode::Invoker).expect("a mode");
    let mut driver = DriverInvoker::launch_embedded(context).expect("a driver");
    let dir = driver.aeron_dir().to_owned();
    std::thread::scope(|scope| {
        let user = scope.spawn(|| use_driver(&dir, udp));
        while !user.is_finished() {
            let work = driver.do_work().expect("a turn");
            driver.idle(work);
        }
    });
}

/// Launches that fail before the driver's files are made, after that, and when its conductor and the
/// first socket have been made as well.
fn fail_to_start() {
    let mut context = driver_context();
    context.set_mtu_length(33).expect("a length");
    MediaDriver::launch_embedded_with(context).expect_err("no such length");

    let mut context = driver_context();
    context
        .set_client_liveness_timeout(Duration::from_secs(20))
        .and_then(|context| context.set_publication_unblock_timeout(Duration::from_secs(15)))
        .expect("settings");
    MediaDriver::launch_embedded_with(context).expect_err("timeouts that do not fit");

    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let mut context = driver_context();
    context
        .set_name_resolver(NameResolver::Driver)
        .and_then(|context| context.set_resolver_name("second"))
        .and_then(|context| context.set_resolver_interface(&address))
        .expect("settings");
    MediaDriver::launch_embedded_with(context).expect_err("a port that is taken");
}

#[test]
fn two_hundred_drivers_leak_nothing() {
    let standard_input = || fs::read_link("/proc/self/fd/0").ok();
    let input = standard_input();
    // One port for all cycles, because free ports hold descriptors.
    let udp = format!("aeron:udp?term-length=64k|endpoint=127.0.0.1:{}", free_port());
    let cycles = |numbers: std::ops::Range<usize>| {
        for number in numbers {
            start_and_stop(number, &udp);
            if number % 4 == 0 {
                fail_to_start();
            }
        }
    };
    // Resources that are made once and retained come with the first cycle of each kind.
    cycles(0..4);
    assert_eq!(standard_input(), input, "what a driver has not opened is not its to close");
    let before = resources();
    cycles(0..200);
    // A thread that was joined is listed for a moment longer.
    await_that("nothing is left", || {
        let after = resources();
        let is_same = after == before;
        if !is_same && std::env::var_os("RUSTERON_SHOW_RESOURCES").is_some() {
            println!("{before:#?}\n{after:#?}");
        }
        is_same
    });
}
