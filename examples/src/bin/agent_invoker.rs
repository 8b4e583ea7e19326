//! A client without a thread of its own.
//!
//! Shows `use_conductor_agent_invoker`. The client's conductor talks to the media driver, notices
//! publishers and subscribers, and calls handlers. Here `Aeron::do_work` does that work, in the program's
//! own loop, between publishing and polling. All of the client is then on one thread.
//!
//! The loop must come around often. If a client does no work for longer than the driver's client liveness
//! timeout, 10 s by default, the driver takes the client for dead.

use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;

use clap::Parser;
use rusteron_client::{Aeron, Context};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::{Driver, DriverOption, Turns};

/// Publishes and receives with a client that has no thread
#[derive(Debug, Parser)]
#[command(name = "agent_invoker", version)]
struct Options {
    #[command(flatten)]
    driver: DriverOption,

    /// Stream id, over IPC
    #[arg(long, allow_hyphen_values = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// How many messages to publish and receive
    #[arg(long, value_name = "N", default_value_t = 10)]
    messages: usize,
}

fn main() -> ExitCode {
    failure::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let driver = Driver::start(&options.driver)?;

    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?.set_use_conductor_agent_invoker(true)?;
    let aeron = Aeron::connect(context)?;

    // Handlers run inside of `do_work`, which is on this thread.
    let own_thread = thread::current().id();
    let (sender, images) = mpsc::channel();
    // The functions that wait for the driver do the conductor's work themselves meanwhile.
    let mut subscription = aeron
        .subscription_builder("aeron:ipc", options.stream_id)
        .on_available_image(move |image| {
            let place = if thread::current().id() == own_thread { "this" } else { "another" };
            let session = image.session_id();
            let _ = sender.send(format!("Session {session} has come, said on {place} thread"));
        })
        .add()?;
    let mut publication = aeron.add_exclusive_publication("aeron:ipc", options.stream_id)?;

    let own_session = publication.session_id();
    let (mut sent, mut received) = (0, 0);
    let mut lines = Vec::new();
    let mut turns = Turns::awaiting("messages", &interrupt);
    while received < options.messages {
        // The conductor first: without it nothing that the driver says is heard.
        let mut work_count = aeron.do_work()?;

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
            output.line(line)?;
        }
        turns.idle(work_count)?;
    }
    output.line(format_args!("Done: {received} messages received on one thread"))
}
