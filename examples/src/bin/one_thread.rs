//! Application, client and media driver on one thread, as agents.
//!
//! Shows:
//! - an `Agent`: work that is done a little at a time, without ever waiting;
//! - a `CompositeAgent` of three: the application, the client's conductor (`ConductorAgent`) and the media
//!   driver (`DriverInvoker`);
//! - an `AgentInvoker`, which runs the agents in the program's own loop. An `AgentRunner` would run them on
//!   a thread of its own;
//! - a `ShutdownSignal`, which Ctrl-C gives.
//!
//! Nothing on this thread may wait for the driver or the conductor, because they work on the same thread.
//! So the application adds its streams with the functions `async_add_…`, and polls for the outcome.
//!
//! The loop must come around often. If a client does no work for longer than the driver's client liveness
//! timeout, 10 s by default, the driver takes the client for dead.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::agent::{Agent, AgentError, AgentInvoker, CompositeAgent, ShutdownSignal};
use rusteron_client::{
    Aeron, Backoff, ConductorAgent, Context, ExclusivePublication, Header, IdleStrategy,
    Registration, Subscription,
};
use rusteron_media_driver::{Context as DriverContext, DriverInvoker, ThreadingMode};

/// Publishes and receives on the thread that also runs the client and the driver
#[derive(Debug, Parser)]
#[command(name = "one_thread", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of one on this thread
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to publish and receive
    #[arg(long, value_name = "N", default_value_t = 10)]
    messages: usize,
}

/// How long the application may make no progress.
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

    let mut context = Context::new()?;
    let driver = match &options.aeron_dir {
        Some(dir) => {
            context.set_dir(dir)?;
            None
        }
        None => {
            let mut driver_context = DriverContext::new()?;
            driver_context.set_threading_mode(ThreadingMode::Invoker)?;
            let mut driver = DriverInvoker::launch_embedded(driver_context)?;
            // The first duty cycle makes the driver known to clients.
            driver.do_work()?;
            context.set_dir(driver.aeron_dir())?;
            Some(driver)
        }
    };
    context.set_use_conductor_agent_invoker(true)?;
    let aeron = Aeron::connect(context)?;

    // The members work, close and are dropped in this order: the client before its driver.
    let mut members: Vec<Box<dyn Agent>> = vec![
        Box::new(Application::new(&aeron, options.stream_id, options.messages)?),
        Box::new(ConductorAgent::new(&aeron)?),
    ];
    drop(aeron); // The agents have handles of their own.
    if let Some(driver) = driver {
        members.push(Box::new(driver));
    }

    let mut invoker = AgentInvoker::start(CompositeAgent::new(members))?;
    println!("Running {}", invoker.agent().role_name());
    let mut idle = Backoff::default();
    while !shutdown.is_signalled() {
        match invoker.invoke() {
            Ok(work_count) => idle.idle(work_count),
            Err(error) if error.is_termination() => break,
            Err(error) => return Err(error.into()),
        }
    }
    invoker.close()?;
    Ok(())
}

/// Something that is being added, and then is there.
enum Stage<R: rusteron_client::Resource> {
    Adding(Registration<R>),
    Added(R),
}

impl<R: rusteron_client::Resource> Stage<R> {
    /// Returns the resource, if the driver has confirmed it.
    fn advance(&mut self) -> rusteron_client::Result<Option<&mut R>> {
        if let Self::Adding(registration) = self {
            if let Some(resource) = registration.poll()? {
                *self = Self::Added(resource);
            }
        }
        Ok(match self {
            Self::Adding(_) => None,
            Self::Added(resource) => Some(resource),
        })
    }
}

/// Publishes messages, and receives them.
struct Application {
    publication: Stage<ExclusivePublication>,
    subscription: Stage<Subscription>,
    messages: usize,
    sent: usize,
    received: usize,
    deadline: Instant,
}

impl Application {
    fn new(aeron: &Aeron, stream_id: i32, messages: usize) -> rusteron_client::Result<Self> {
        Ok(Self {
            publication: Stage::Adding(
                aeron.async_add_exclusive_publication("aeron:ipc", stream_id)?,
            ),
            subscription: Stage::Adding(aeron.async_add_subscription("aeron:ipc", stream_id)?),
            messages,
            sent: 0,
            received: 0,
            deadline: Instant::now() + DEADLINE,
        })
    }
}

impl Agent for Application {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        if self.received == self.messages {
            println!("Done: {} messages received on one thread", self.received);
            return Err(AgentError::terminate());
        }
        if Instant::now() > self.deadline {
            return Err(AgentError::new(format!("no progress for {DEADLINE:?}")));
        }
        let (Some(publication), Some(subscription)) =
            (self.publication.advance()?, self.subscription.advance()?)
        else {
            return Ok(0);
        };

        let mut work_count = 0;
        if self.sent < self.messages {
            match publication.offer(format!("Hello {}", self.sent + 1).as_bytes()) {
                Ok(_) => {
                    self.sent += 1;
                    work_count += 1;
                }
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let own_session = publication.session_id();
        let handler = |message: &[u8], header: &Header<'_>| {
            // A running driver may have other publishers on the same stream.
            if header.session_id() == own_session {
                self.received += 1;
                println!("Received \"{}\"", String::from_utf8_lossy(message));
            }
        };
        work_count += subscription.poll(handler, 10)?;
        if work_count > 0 {
            self.deadline = Instant::now() + DEADLINE;
        }
        Ok(work_count)
    }

    fn role_name(&self) -> &str {
        "application"
    }
}
