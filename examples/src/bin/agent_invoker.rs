//! A client without a thread of its own.
//!
//! Shows `use_conductor_agent_invoker`. The client's conductor talks to the media driver, notices
//! publishers and subscribers, and calls handlers. Here `Aeron::do_work` does that work, in the program's
//! own loop, between publishing and polling. All of the client is then on one thread.
//!
//! The loop must come around often. If a client does no work for longer than the driver's client liveness
//! timeout, 10 s by default, the driver takes the client for dead.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{Aeron, Backoff, Context, IdleStrategy};
use rusteron_media_driver::MediaDriver;

/// Publishes and receives with a client that has no thread
#[derive(Debug, Parser)]
#[command(name = "agent_invoker", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to publish and receive
    #[arg(long, value_name = "N", default_value_t = 10)]
    messages: usize,
}

/// How long a loop may make no progress.
const DEADLINE: Duration = Duration::from_secs(60);

/// `false` after Ctrl-C.
static RUNNING: AtomicBool = AtomicBool::new(true);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Interrupted: the error is only the way out of a loop.
        Err(_) if !RUNNING.load(Ordering::Relaxed) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    ctrlc::set_handler(|| RUNNING.store(false, Ordering::Relaxed))?;

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

    context.set_use_conductor_agent_invoker(true)?;
    let aeron = Aeron::connect(context)?;

    // Handlers run inside of `do_work`, which is on this thread.
    let own_thread = thread::current().id();
    let (sender, images) = mpsc::channel();
    // The functions that wait for the driver do the conductor's work themselves meanwhile.
    let mut subscription = aeron
        .subscription_builder("aeron:ipc", options.stream_id)
        .on_available_image(move |image| {
            let thread = if thread::current().id() == own_thread { "this" } else { "another" };
            let session = image.session_id();
            let _ = sender.send(format!("Session {session} has come, said on {thread} thread"));
        })
        .add()?;
    let mut publication = aeron.add_exclusive_publication("aeron:ipc", options.stream_id)?;

    let own_session = publication.session_id();
    let (mut sent, mut received) = (0, 0);
    let mut lines = Vec::new();
    let mut idle = Idle::awaiting("the messages");
    while received < options.messages {
        // The conductor first: without it nothing that the driver says is heard. Its work, such as keepalives,
        // is not progress of the messages.
        aeron.do_work()?;

        let mut work_count = 0;
        if sent < options.messages {
            match publication.offer(format!("Hello {}", sent + 1).as_bytes()) {
                Ok(_) => {
                    sent += 1;
                    work_count += 1;
                }
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }

        let handler = |message: &[u8], header: &rusteron_client::Header<'_>| {
            // A running driver may have other publishers on the same stream.
            if header.session_id() == own_session {
                received += 1;
                lines.push(format!("Received \"{}\"", String::from_utf8_lossy(message)));
            }
        };
        work_count += subscription.poll(handler, 10)?;

        for line in images.try_iter().chain(lines.drain(..)) {
            println!("{line}");
        }
        idle.idle(work_count)?;
    }
    println!("Done: {received} messages received on one thread");
    Ok(())
}

/// Idles in a loop that waits for something.
struct Idle {
    awaited: &'static str,
    backoff: Backoff,
    deadline: Instant,
}

impl Idle {
    fn awaiting(awaited: &'static str) -> Self {
        Self { awaited, backoff: Backoff::default(), deadline: Instant::now() + DEADLINE }
    }

    /// Idles if there was no work. Returns an error after Ctrl-C, or after `DEADLINE` without work.
    fn idle(&mut self, work_count: usize) -> Result<(), Box<dyn Error>> {
        if !RUNNING.load(Ordering::Relaxed) {
            return Err("interrupted".into());
        }
        if work_count > 0 {
            self.deadline = Instant::now() + DEADLINE;
        } else if Instant::now() > self.deadline {
            return Err(format!("no progress for {DEADLINE:?}, awaiting {}", self.awaited).into());
        }
        self.backoff.idle(work_count);
        Ok(())
    }
}
