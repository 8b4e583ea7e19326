//! Aeron beside tokio: one thread polls, and tasks handle the messages. `docs/async.md` has the reasons.
//!
//! Bounded queues connect the thread to the tasks. When they are full, nothing is dropped: one way Aeron's publishers
//! wait, the other way the tasks.

use std::error::Error;
use std::num::NonZeroUsize;

use rusteron_client::agent::{AgentRunner, CompositeAgent};
use rusteron_client::{Aeron, Context, PublicationAgent, SubscriptionAgent};
use rusteron_media_driver::MediaDriver;
use tokio::runtime;

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const MESSAGES: usize = 100;
/// How many messages may wait between the thread and the tasks, in each direction.
const CAPACITY: NonZeroUsize = NonZeroUsize::new(8).unwrap();

fn main() -> Result<(), Box<dyn Error>> {
    // Launching and dropping a driver block. So both happen outside of the runtime.
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    runtime::Builder::new_current_thread().build()?.block_on(run(context))
}

async fn run(context: Context) -> Result<(), Box<dyn Error>> {
    let aeron = Aeron::async_connect(context)?.await?;
    let subscription = aeron.async_add_subscription(CHANNEL, STREAM_ID)?.await?;
    let publication = aeron.async_add_exclusive_publication(CHANNEL, STREAM_ID)?.await?;
    drop(aeron); // The streams keep the client open. Closing it blocks, so the agents' thread does it.
    // Aeron lends a message for the call only, so the thread copies it.
    let (polling, mut incoming) =
        SubscriptionAgent::new(subscription, CAPACITY, |message, _| message.to_vec());
    let (offering, mut outgoing) = PublicationAgent::new(publication, CAPACITY);
    let runner = AgentRunner::builder(CompositeAgent::new((polling, offering))).start()?;

    tokio::spawn(async move {
        for number in 1..=MESSAGES {
            // Waits while the queue is full. Fails when the agent has ended.
            if outgoing.send(format!("Hello {number}")).await.is_err() {
                return;
            }
        }
    });
    for _ in 0..MESSAGES {
        // `None` if the agent has ended. Then `close` returns its error.
        let Some(message) = incoming.recv().await else { break };
        println!("Received \"{}\"", String::from_utf8_lossy(&message));
    }
    tokio::task::spawn_blocking(move || runner.close()).await??;
    Ok(())
}
