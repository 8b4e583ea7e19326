//! Steps of the wall clock, as by NTP or after a suspend, in a driver's process and its clients'.
//!
//! The processes have a wall clock of their own. The machine's is never stepped.

use std::path::Path;
use std::time::Duration;

use rusteron_client::{Aeron, CncFile};
use rusteron_test_support::{
    DriverProcess, SHORT_DRIVER_TIMEOUT, SteppedHome, await_that, connected_pair, context,
    exchange, free_port, has_java, java_driver_with, job, read_line, watchful_context,
};

use crate::MEDIA_DRIVER;

/// Types of counters.
const CLIENT_HEARTBEAT: i32 = 11;
const NEIGHBORS: i32 = 15;
const STEP: Duration = Duration::from_secs(15);
const HOUR: Duration = Duration::from_secs(3600);

fn driver(home: &SteppedHome, options: &[&str]) -> DriverProcess {
    let mut command = rusteron_test_support::media_driver(MEDIA_DRIVER);
    command.args(["--threading-mode", "shared", "--dir"]).arg(home.aeron_dir()).args(options);
    DriverProcess::run(home.clock.set(&mut command))
}

fn step_to_and_fro_by(home: &mut SteppedHome, length: Duration) {
    for _ in 0..3 {
        home.step(|clock| clock.step_forward(length));
    }
    home.step(|clock| clock.step_back(length));
}

/// The value of the only counter of a type.
fn value(cnc: &CncFile, type_id: i32) -> Option<i64> {
    let counters = cnc.counters();
    counters.iter().find(|counter| counter.type_id == type_id).map(|counter| counter.value)
}

#[test]
#[ignore = "run by the tests below, in processes with another clock"]
fn client_process() {
    let (kind, dir) = job();
    match &*kind {
        "exchange" => {
            exchange_at_each_line(&Aeron::connect(default_timeout(&dir)).expect("a client"))
        }
        "watch" => {
            let aeron = Aeron::connect(watchful_context(&dir)).expect("a client");
            println!("ready");
            await_that("the end of the client", || aeron.is_closed());
            println!("closed: {}", aeron.close_cause().expect("a cause"));
        }
        "counters" => {
            let aeron = Aeron::connect(context(&dir)).expect("a client");
            let add = || aeron.add_counter(2000, b"", "mine").expect("a counter").counter_id();
            let first = add();
            println!("ready");
            read_line();
            await_that("the first counter's id", || add() == first);
            println!("reused");
        }
        _ => unreachable!("{kind}"),
    }
}

/// The driver timeout is Aeron's: 10 s.
fn default_timeout(dir: &Path) -> rusteron_client::Context {
    let mut context = rusteron_client::Context::new().expect("a context");
    context.set_dir(dir).expect("a directory");
    context
}

fn exchange_at_each_line(aeron: &Aeron) {
    let (mut publication, mut subscription) = connected_pair(aeron, "aeron:ipc?term-length=64k");
    println!("ready");
    while read_line() {
        exchange(&mut publication, &mut subscription, 10);
        println!("exchanged");
    }
}

#[test]
fn driver_and_client_survive_steps() {
    let mut home = SteppedHome::new();
    let _driver = driver(&home, &[]);
    let mut client = home.client("exchange");
    for length in [STEP, HOUR] {
        step_to_and_fro_by(&mut home, length);
    }
    client.write_line("");
    assert_eq!(client.line(), "exchanged");
}

#[test]
fn dead_client_is_noticed_after_step_back() {
    let mut home = SteppedHome::new();
    let _driver = driver(&home, &["-Daeron.client.liveness.timeout=2s"]);
    let mut client = home.client("exchange");
    client.signal("STOP");
    home.clock.step_back(HOUR);
    let cnc = home.cnc();
    await_that("the timeout of the client", || value(&cnc, CLIENT_HEARTBEAT).is_none());
    client.kill();
}

#[test]
fn silent_driver_is_noticed_after_step_back() {
    let mut home = SteppedHome::new();
    let driver = driver(&home, &[]);
    let mut client = home.client("watch");
    driver.signal("STOP");
    home.clock.step_back(HOUR);
    let line = client.await_line("closed: ");
    assert!(line.contains(&format!("{} ms", SHORT_DRIVER_TIMEOUT.as_millis())), "{line}");
}

#[test]
fn counters_are_reused_after_step_back() {
    let mut home = SteppedHome::new();
    let _driver = driver(&home, &[]);
    let mut client = home.client("counters");
    home.step(|clock| clock.step_back(HOUR));
    client.write_line("");
    assert_eq!(client.await_line("reused"), "reused");
}

#[test]
fn dead_neighbor_is_forgotten_after_step_back() {
    let (mut home, other) = (SteppedHome::new(), tempfile::tempdir().expect("a directory"));
    let (own, neighbor) = (free_port(), free_port());
    let named = |name: &str, port: u16| {
        let name = format!("-Daeron.driver.resolver.name={name}");
        let interface = format!("-Daeron.driver.resolver.interface=127.0.0.1:{port}");
        let timeout = "-Daeron.driver.resolver.neighbor.timeout=2s".to_owned();
        ["-Daeron.name.resolver.supplier=driver".to_owned(), name, interface, timeout]
    };
    let mut command = rusteron_test_support::media_driver(MEDIA_DRIVER);
    command.arg("--dir").arg(other.path().join("driver")).args(named("b", neighbor));
    let mut dying = DriverProcess::run(home.clock.set(&mut command));
    let mut options = named("a", own).to_vec();
    options.push(format!("-Daeron.driver.resolver.bootstrap.neighbor=127.0.0.1:{neighbor}"));
    let _driver = driver(&home, &options.iter().map(String::as_str).collect::<Vec<_>>());
    let cnc = home.cnc();
    await_that("the neighbor", || value(&cnc, NEIGHBORS) == Some(1));
    home.clock.step_back(HOUR);
    dying.kill();
    await_that("its end", || value(&cnc, NEIGHBORS) == Some(0));
}

/// Java's driver compares heartbeats with the wall clock, so its timeout is longer than the steps
/// here.
#[test]
fn client_of_java_driver_survives_steps() {
    if !has_java() {
        return;
    }
    let mut home = SteppedHome::new();
    let _driver = java_driver_with(&home.aeron_dir(), |command| {
        let timeouts = ["client.liveness.timeout=60s", "publication.unblock.timeout=120s"];
        home.clock.set(command.args(timeouts.map(|timeout| format!("-Daeron.{timeout}"))))
    });
    let mut client = home.client("exchange");
    step_to_and_fro_by(&mut home, STEP);
    client.write_line("");
    assert_eq!(client.line(), "exchanged");
}
