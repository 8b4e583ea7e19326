//! Round trips to a tokio task, as in the example `tokio_tasks`.

use std::sync::atomic::AtomicBool;
use std::thread;

use hdrhistogram::Histogram;
use rusteron_client::agent::{Agent, AgentError, AgentRunner};
use rusteron_client::{Action, Header};
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::contenders::latency::RustEnd;
use crate::contenders::ping_pong::{self, Plan};
use crate::measuring::message_path::FRAGMENT_LIMIT;

/// How many messages fit between the polling thread and the task, in each direction.
const CAPACITY: usize = 64;

/// Measures the latencies of messages from this thread to a task, and back. Three threads take part: this
/// one, the thread that polls, and the thread of the task's runtime.
///
/// # Errors
/// As [`ping_pong::measure`].
pub fn measure(
    near: &mut RustEnd,
    far: RustEnd,
    plan: &Plan,
    interrupt: &Interrupt,
) -> Result<Histogram<u64>, Failure> {
    let (to_task, mut incoming) = channel::<Vec<u8>>(CAPACITY);
    let (outgoing, from_task) = channel(CAPACITY);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Failure::run("cannot build a runtime", error))?;
    let task = thread::Builder::new()
        .name("tokio".to_owned())
        .spawn(move || {
            runtime.block_on(async move {
                while let Some(message) = incoming.recv().await {
                    if outgoing.send(message).await.is_err() {
                        break;
                    }
                }
            });
        })
        .map_err(|error| Failure::run("cannot start the runtime's thread", error))?;

    let bridge = Bridge { far, to_task, from_task, unsent: None };
    let runner = AgentRunner::builder(bridge).idle_strategy(plan.idle.new_strategy()).start()?;
    let running = AtomicBool::new(true);
    let measured = ping_pong::ping(near, plan, &running, interrupt);
    // The end of the bridge ends the task.
    let ended = runner.close().map_err(|error| Failure::run("the bridge", error));
    task.join().map_err(|_| Failure::Run("the task panicked".to_owned()))?;
    ended.and(measured)
}

/// Carries messages between Aeron and the task.
struct Bridge {
    far: RustEnd,
    to_task: Sender<Vec<u8>>,
    from_task: Receiver<Vec<u8>>,
    unsent: Option<Vec<u8>>,
}

impl Bridge {
    fn send(&mut self) -> Result<usize, AgentError> {
        for count in 0..FRAGMENT_LIMIT {
            let message = match self.unsent.take().map_or_else(|| self.from_task.try_recv(), Ok) {
                Ok(message) => message,
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(count),
            };
            match self.far.publication.offer(&message) {
                Ok(_) => {}
                Err(error) if error.is_retryable() => {
                    self.unsent = Some(message);
                    return Ok(count);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(FRAGMENT_LIMIT)
    }

    fn receive(&mut self) -> Result<usize, AgentError> {
        let to_task = &self.to_task;
        let handler = |message: &[u8], _: &Header<'_>| match to_task.try_reserve() {
            Ok(permit) => {
                permit.send(message.to_vec());
                Action::Continue
            }
            Err(TrySendError::Full(()) | TrySendError::Closed(())) => Action::Abort,
        };
        Ok(self.far.subscription.controlled_poll(handler, FRAGMENT_LIMIT)?)
    }
}

impl Agent for Bridge {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        Ok(self.send()? + self.receive()?)
    }

    fn role_name(&self) -> &str {
        "bridge"
    }
}
