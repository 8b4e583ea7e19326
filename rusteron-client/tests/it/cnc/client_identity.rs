//! Clients that are closed by another one, because their processes have ended.

use rusteron_client::Aeron;
use rusteron_client::raw_client::RawClient;
use rusteron_test_support::{await_that, connect, context, launch_with_long_timeouts};

const CLIENT_HEARTBEAT: i32 = 11;

#[test]
fn only_the_client_of_this_driver_is_closed() {
    let driver = launch_with_long_timeouts();
    // Without a thread, it is as silent as a client whose process has ended.
    let mut silent = context(driver.aeron_dir());
    silent.set_use_conductor_agent_invoker(true).expect("a setting");
    let silent = Aeron::connect(silent).expect("a client");
    let _counter = silent.add_counter(1001, b"", "a counter").expect("a counter");
    let identity = RawClient::new(&silent).identity();
    assert_eq!(identity.client_id, silent.client_id());

    let aeron = connect(&driver);
    let client = RawClient::new(&aeron);
    assert!(identity.has_driver_of(&client.identity()));
    let mut other_start = identity;
    other_start.driver_start_timestamp += 1;
    let mut other_process = identity;
    other_process.driver_pid += 1;
    assert!(!client.close_ended(&other_start) && !client.close_ended(&other_process));
    // The driver answers in the order of the commands, and marks a closed client by a heartbeat of zero.
    let _after = aeron.add_counter(1001, b"", "another").expect("a counter");
    let counters = aeron.counters_reader();
    let heartbeat =
        counters.find_by_type_id_and_registration_id(CLIENT_HEARTBEAT, identity.client_id);
    assert_ne!(counters.value(heartbeat.expect("a heartbeat")), Some(0));

    assert!(client.close_ended(&identity));
    await_that("the end of the client", || {
        counters.iter().all(|counter| counter.owner_id != identity.client_id)
    });
    assert!(!aeron.is_closed());
}
