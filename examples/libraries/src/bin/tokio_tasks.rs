//! Aeron beside tokio: one thread polls, tasks handle the messages.
//!
//! Shows:
//! - awaiting the connection, and the registrations of a publication and a subscription;
//! - a bridge: an agent on a thread of its own, which owns publication and subscription, and polls;
//! - bounded channels between the agent and the tasks, and what happens when they are full: nothing is
//!   dropped. A full channel to the tasks makes Aeron's publishers wait, and a full channel from the tasks
//!   makes tasks wait;
//! - an end without blocking the runtime: the agent's thread drops the handles.
//!
//! `docs/async.md` has the reasons.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusteron_client::agent::{Agent, AgentError, AgentRunner, ShutdownSignal};
use rusteron_client::{Action, Aeron, Context, ExclusivePublication, Header, Subscription};
use rusteron_media_driver::MediaDriver;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

/// Sends and receives messages in tokio tasks
#[derive(Debug, Parser)]
#[command(name = "tokio_tasks", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to send and receive
    #[arg(long, value_name = "N", default_value_t = 10)]
    messages: usize,

    /// How many messages may wait between the polling thread and the tasks, in each direction
    #[arg(long, value_name = "N", default_value_t = 64,
          value_parser = clap::value_parser!(u16).range(1..))]
    capacity: u16,
}

/// How long the tasks may make no progress.
const DEADLINE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::new();
    let on_interrupt = shutdown.clone();
    ctrlc::set_handler(move || on_interrupt.signal())?;

    // Launching and dropping a driver block. So both are done outside of the runtime.
    let mut context = Context::new()?;
    let _embedded_driver = match &options.aeron_dir {
        Some(dir) => {
            context.set_dir(dir)?;
            None
        }
        None => {
            let driver = MediaDriver::launch_embedded()?;
            context.set_dir(driver.aeron_dir())?;
            Some(driver)
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(serve(context, options, shutdown))
}

async fn serve(
    context: Context,
    options: &Options,
    shutdown: ShutdownSignal,
) -> Result<(), Box<dyn Error>> {
    let aeron = Aeron::async_connect(context)?.await?;
    // Both requests are on their way before the first is awaited.
    let adding = aeron.async_add_subscription("aeron:ipc", options.stream_id)?;
    let publication = aeron.async_add_exclusive_publication("aeron:ipc", options.stream_id)?;
    let (subscription, publication) = (adding.await?, publication.await?);

    let own_session = publication.session_id();
    let (to_tasks, incoming) = channel(options.capacity.into());
    let (outgoing, from_tasks) = channel(options.capacity.into());
    let bridge =
        Bridge { publication, subscription, _aeron: aeron, to_tasks, from_tasks, unsent: None };
    let runner = AgentRunner::builder(bridge).shutdown_signal(shutdown).start()?;

    let sending = tokio::spawn(send(outgoing, options.messages));
    let received = receive(incoming, own_session, options.messages).await;

    // Joining the thread blocks, so it is not done on a thread of the runtime. The end of the bridge closes the
    // channels, so that no task waits for it.
    tokio::task::spawn_blocking(move || runner.close()).await??;
    sending.await?;
    received
}

async fn send(outgoing: Sender<Vec<u8>>, messages: usize) {
    for number in 1..=messages {
        // Waits while the channel is full. Fails when the bridge has ended.
        if outgoing.send(format!("Hello {number}").into_bytes()).await.is_err() {
            return;
        }
    }
}

async fn receive(
    mut incoming: Receiver<Message>,
    own_session: i32,
    messages: usize,
) -> Result<(), Box<dyn Error>> {
    let mut received = 0;
    while received < messages {
        let next = timeout(DEADLINE, incoming.recv()).await;
        let Some(message) = next.map_err(|_| format!("no message for {DEADLINE:?}"))? else {
            return Ok(()); // The bridge has ended: by Ctrl-C, or by an error that its runner returns.
        };
        // A running driver may have other publishers on the same stream.
        if message.session_id == own_session {
            received += 1;
            println!("Received \"{}\"", String::from_utf8_lossy(&message.payload));
        }
    }
    println!("Done: {received} messages received in a task");
    Ok(())
}

/// A message for the tasks. Aeron lends a message for the length of the poll, so the payload is a copy.
struct Message {
    session_id: i32,
    payload: Vec<u8>,
}

/// Carries messages between Aeron and the tasks, on the polling thread.
///
/// Dropped on that thread, with its handles: closing them may block.
struct Bridge {
    publication: ExclusivePublication,
    subscription: Subscription,
    _aeron: Aeron,
    to_tasks: Sender<Message>,
    from_tasks: Receiver<Vec<u8>>,
    /// A message that the publication has not accepted yet.
    unsent: Option<Vec<u8>>,
}

/// The most messages in each direction in a duty cycle, so that neither direction starves the other.
const LIMIT: usize = 10;

impl Bridge {
    /// Offers the messages of the tasks, in order. Stops at the first that is not accepted now: it stays
    /// here, the channel fills, and the tasks wait.
    fn send(&mut self) -> Result<usize, AgentError> {
        for count in 0..LIMIT {
            let message = match self.unsent.take().map_or_else(|| self.from_tasks.try_recv(), Ok) {
                Ok(message) => message,
                // No task sends any more; some may still receive.
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return Ok(count),
            };
            match self.publication.offer(&message) {
                Ok(_) => {}
                Err(error) if error.is_retryable() => {
                    self.unsent = Some(message);
                    return Ok(count);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(LIMIT)
    }

    /// Passes messages to the tasks. If the channel is full, the message stays in the log buffer and comes
    /// again. When the log buffer is full as well, the publishers wait.
    fn receive(&mut self) -> Result<usize, AgentError> {
        let mut is_over = false;
        let handler = |message: &[u8], header: &Header<'_>| match self.to_tasks.try_reserve() {
            Ok(permit) => {
                let payload = message.to_vec();
                permit.send(Message { session_id: header.session_id(), payload });
                Action::Continue
            }
            Err(TrySendError::Full(())) => Action::Abort,
            Err(TrySendError::Closed(())) => {
                is_over = true;
                Action::Abort
            }
        };
        let work_count = self.subscription.controlled_poll(handler, LIMIT)?;
        if is_over { Err(AgentError::terminate()) } else { Ok(work_count) }
    }
}

impl Agent for Bridge {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        Ok(self.send()? + self.receive()?)
    }

    fn role_name(&self) -> &str {
        "aeron-bridge"
    }
}
