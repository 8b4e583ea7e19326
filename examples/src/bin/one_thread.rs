//! Application, client and media driver on one thread, as agents.
//!
//! An `Agent` does a little work each time it is called. Nothing here may wait for the driver, which works on the same
//! thread. The loop has to come around often: after ten seconds without work, the driver takes the client for dead.

use std::error::Error;

use rusteron_client::agent::{Agent, AgentError, AgentInvoker, CompositeAgent};
use rusteron_client::{Aeron, Backoff, ConductorAgent, Context, IdleStrategy};
use rusteron_client::{ExclusivePublication, Registration, Subscription};
use rusteron_media_driver::{DriverContext, DriverInvoker, ThreadingMode};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const MESSAGES: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut context = DriverContext::new()?;
    context.set_threading_mode(ThreadingMode::Invoker)?;
    let mut driver = DriverInvoker::launch_embedded(context)?;
    driver.do_work()?; // The first duty cycle makes the driver known to clients.

    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?.set_use_conductor_agent_invoker(true)?;
    let aeron = Aeron::connect(context)?;
    let application = Application {
        adding_publication: aeron.async_add_exclusive_publication(CHANNEL, STREAM_ID)?,
        adding_subscription: aeron.async_add_subscription(CHANNEL, STREAM_ID)?,
        publication: None,
        subscription: None,
        received: 0,
    };
    let conductor = ConductorAgent::new(&aeron)?;
    drop(aeron); // The agents have handles of their own, and the client has to end before its driver.

    // Agents work, close and are dropped in this order. An `AgentRunner` would run them on a thread of its own.
    let mut agents = AgentInvoker::start(CompositeAgent::new((application, conductor, driver)))?;
    let mut idle = Backoff::default();
    loop {
        match agents.invoke() {
            Ok(work_count) => idle.idle(work_count),
            Err(error) if error.is_termination() => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(agents.close()?)
}

struct Application {
    adding_publication: Registration<ExclusivePublication>,
    adding_subscription: Registration<Subscription>,
    publication: Option<ExclusivePublication>,
    subscription: Option<Subscription>,
    received: usize,
}

impl Agent for Application {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        if self.publication.is_none() {
            self.publication = self.adding_publication.poll()?;
        }
        if self.subscription.is_none() {
            self.subscription = self.adding_subscription.poll()?;
        }
        let Some(publication) = &mut self.publication else { return Ok(0) };
        let Some(subscription) = &mut self.subscription else { return Ok(0) };
        match publication.offer(b"hello") {
            Err(error) if !error.is_retryable() => return Err(error.into()),
            _ => {}
        }
        let received =
            subscription.poll(|_, header| println!("Position {}", header.position()), 10)?;
        self.received += received;
        if self.received < MESSAGES { Ok(received) } else { Err(AgentError::terminate()) }
    }

    fn role_name(&self) -> &str {
        "application"
    }
}
