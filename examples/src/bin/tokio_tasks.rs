//! Aeron beside tokio: one thread polls, and tasks handle the messages. `docs/async.md` has the reasons.
//!
//! A bridge owns the streams on a thread of its own. Bounded channels connect it to the tasks. When they are full,
//! nothing is dropped: one way Aeron's publishers wait, the other way the tasks.

use std::error::Error;

use rusteron_client::agent::{Agent, AgentError, AgentRunner};
use rusteron_client::{Action, Aeron, Context, ExclusivePublication, Header, Subscription};
use rusteron_media_driver::MediaDriver;
use tokio::runtime;
use tokio::sync::mpsc::{Receiver, Sender, channel};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const MESSAGES: usize = 100;
/// How many messages may wait between the thread and the tasks, in each direction.
const CAPACITY: usize = 8;

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
    drop(aeron); // The streams keep the client open. Closing it blocks, so the bridge's thread does it.
    let (to_tasks, mut incoming) = channel(CAPACITY);
    let (outgoing, from_tasks) = channel(CAPACITY);
    let bridge = Bridge { publication, subscription, to_tasks, from_tasks, unsent: None };
    let runner = AgentRunner::builder(bridge).start()?;

    tokio::spawn(async move {
        for number in 1..=MESSAGES {
            // Waits while the channel is full. Fails when the bridge has ended.
            if outgoing.send(format!("Hello {number}").into_bytes()).await.is_err() {
                return;
            }
        }
    });
    for _ in 0..MESSAGES {
        // `None` if the bridge has ended. Then `close` returns its error.
        let Some(message) = incoming.recv().await else { break };
        println!("Received \"{}\"", String::from_utf8_lossy(&message));
    }
    tokio::task::spawn_blocking(move || runner.close()).await??;
    Ok(())
}

struct Bridge {
    publication: ExclusivePublication,
    subscription: Subscription,
    to_tasks: Sender<Vec<u8>>,
    from_tasks: Receiver<Vec<u8>>,
    /// A message that the publication has not accepted yet.
    unsent: Option<Vec<u8>>,
}

impl Agent for Bridge {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let mut work_count = 0;
        if let Some(message) = self.unsent.take().or_else(|| self.from_tasks.try_recv().ok()) {
            match self.publication.offer(&message) {
                Ok(_) => work_count += 1,
                // The message stays here. The channel fills, and the tasks wait.
                Err(error) if error.is_retryable() => self.unsent = Some(message),
                Err(error) => return Err(error.into()),
            }
        }
        let handler = |message: &[u8], _: &Header<'_>| match self.to_tasks.try_reserve() {
            Ok(permit) => {
                permit.send(message.to_vec()); // Aeron lends the message for the call only.
                Action::Continue
            }
            // The message stays in the log buffer, and comes again. When that is full as well, publishers wait.
            Err(_) => Action::Abort,
        };
        Ok(work_count + self.subscription.controlled_poll(handler, 10)?)
    }

    fn role_name(&self) -> &str {
        "aeron-bridge"
    }
}
