//! A client's conductor as an agent.

use rusteron_client::agent::{Agent, AgentInvoker, AgentRunner};
use rusteron_client::{Aeron, ConductorAgent, Error, ErrorKind};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    await_some, await_that, connect, context, exchange, launch, watchful_context,
};

fn invoked(driver: &MediaDriver) -> Aeron {
    let mut context = context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    Aeron::connect(context).expect("a client")
}

#[test]
fn conductor_with_thread_is_refused() {
    let driver = launch();
    let error = ConductorAgent::new(&connect(&driver)).expect_err("a client with a thread");
    assert_eq!(error.kind(), ErrorKind::IllegalState);
}

#[test]
fn conductor_works_on_runner() {
    let driver = launch();
    let aeron = invoked(&driver);
    let agent = ConductorAgent::new(&aeron).expect("an agent");
    let conductor = AgentRunner::builder(agent).start().expect("a thread");
    // Without the agent, neither would ever be connected.
    let mut adding = aeron.async_add_subscription("aeron:ipc", 1001).expect("begun");
    let mut subscription = await_some("the subscription", || adding.poll().expect("no error"));
    let mut adding = aeron.async_add_exclusive_publication("aeron:ipc", 1001).expect("begun");
    let mut publication = await_some("the publication", || adding.poll().expect("no error"));
    await_that("the connection", || publication.is_connected() && subscription.is_connected());
    exchange(&mut publication, &mut subscription, 100);
    conductor.close().expect("a good end");
}

#[test]
fn dead_driver_ends_conductor_agent() {
    let driver = launch();
    let mut context = watchful_context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(context).expect("a client");
    let mut invoker =
        AgentInvoker::start(ConductorAgent::new(&aeron).expect("an agent")).expect("started");
    assert_eq!(invoker.agent().role_name(), "aeron-client-conductor");
    drop(driver);
    let error = await_some("an error", || invoker.invoke().err());
    let cause: &Error = error.downcast_ref().expect("the client's error");
    assert_eq!(cause.kind(), ErrorKind::DriverTimeout, "{error}");
    assert!(aeron.is_closed());
    let error = invoker.invoke().expect_err("a closed client");
    let cause: &Error = error.downcast_ref().expect("the client's error");
    assert_eq!(cause.kind(), ErrorKind::ClientClosed, "{error}");
}
