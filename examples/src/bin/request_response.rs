//! A server that answers each of its clients alone, without knowing their addresses.
//!
//! Shows response channels, over UDP on 127.0.0.1. Four things belong together:
//! 1. the server subscribes to requests at its endpoint;
//! 2. the client subscribes to responses, with `control-mode=response` and the server's control
//!    address;
//! 3. the client publishes requests, and says with `response-correlation-id` which subscription of
//!    its own the responses are for;
//! 4. the server publishes responses on the control address, and says with `response-correlation-id`
//!    which image, that is, which client's stream of requests, they answer.

use std::collections::hash_map::{Entry, HashMap};
use std::error::Error;
use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::{
    Aeron, Backoff, ChannelUri, Context, ControlMode, ExclusivePublication, Header, IdleStrategy,
    Subscription,
};
use rusteron_media_driver::MediaDriver;

const REQUESTS: i32 = 1001;
const RESPONSES: i32 = 1002;

/// Asks and answers over a response channel
#[derive(Debug, Parser)]
#[command(name = "request_response", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// How many requests to send, one after the other
    #[arg(long, value_name = "N", default_value_t = 5)]
    messages: usize,
}

/// Answers every request with the same text in capitals.
struct Server {
    aeron: Aeron,
    response_channel: ChannelUri,
    requests: Subscription,
    /// A publication for each client, by the correlation id of the image of its requests.
    clients: HashMap<i64, ExclusivePublication>,
    /// Requests without an answer yet: who asked, and what.
    open: Vec<(i64, Vec<u8>)>,
}

impl Server {
    fn do_work(&mut self) -> Result<usize, Box<dyn Error>> {
        let open = &mut self.open;
        let handler = |message: &[u8], header: &Header<'_>| {
            open.push((header.image_correlation_id(), message.to_ascii_uppercase()));
        };
        let mut work_count = self.requests.poll(handler, 10)?;
        for (client, response) in std::mem::take(&mut self.open) {
            let publication = match self.clients.entry(client) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let channel = self
                        .response_channel
                        .to_builder()
                        .response_correlation_id(client)
                        .build()?;
                    new.insert(self.aeron.add_exclusive_publication(&channel, RESPONSES)?)
                }
            };
            match publication.offer(&response) {
                Ok(_) => work_count += 1,
                // A new publication needs a while until it is connected.
                Err(error) if error.is_retryable() => self.open.push((client, response)),
                Err(error) => return Err(error.into()),
            }
        }
        // Clients that have gone take their images with them.
        let Self { requests, clients, .. } = self;
        if clients.len() > requests.image_count() {
            let ids: Vec<_> = requests.images().map(|image| image.correlation_id()).collect();
            clients.retain(|client, _| ids.contains(client));
        }
        Ok(work_count)
    }
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
    let [endpoint, control] = free_endpoints()?;
    let request_channel = ChannelUri::udp().endpoint(endpoint).build()?;
    let response_channel =
        ChannelUri::udp().control(control).control_mode(ControlMode::Response).build()?;

    let aeron = Aeron::connect(context)?;
    let requests = aeron.add_subscription(&request_channel, REQUESTS)?;
    let (clients, open) = (HashMap::new(), Vec::new());
    let mut server =
        Server { aeron, response_channel: response_channel.clone(), requests, clients, open };

    // A client of its own: it could as well be another process on another machine.
    let mut context = Context::new()?;
    context.set_dir(server.aeron.context().dir())?;
    let aeron = Aeron::connect(context)?;
    let mut responses = aeron.add_subscription(&response_channel, RESPONSES)?;
    let own_id = responses.registration_id();
    let channel = request_channel.to_builder().response_correlation_id(own_id).build()?;
    let mut requests = aeron.add_exclusive_publication(&channel, REQUESTS)?;

    let mut idle = Idle::awaiting("a response");
    for number in 1..=options.messages {
        let request = format!("request {number}");
        let mut is_sent = false;
        let mut response = None;
        while response.is_none() {
            let mut work_count = server.do_work()?;
            if !is_sent {
                match requests.offer(request.as_bytes()) {
                    Ok(_) => is_sent = true,
                    Err(error) if error.is_retryable() => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let handler = |message: &[u8], _: &Header<'_>| {
                response = Some(String::from_utf8_lossy(message).into_owned());
            };
            work_count += responses.poll(handler, 1)?;
            idle.idle(work_count)?;
        }
        let response = response.unwrap_or_default();
        println!("Asked \"{request}\", answered \"{response}\"");
    }
    println!("Done: {} responses", options.messages);
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

/// Two UDP endpoints of this machine that are free now.
fn free_endpoints() -> io::Result<[String; 2]> {
    // Both sockets exist at the same time, so that the ports differ.
    let sockets = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
    Ok([sockets.0.local_addr()?.to_string(), sockets.1.local_addr()?.to_string()])
}
