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
use std::process::ExitCode;

use clap::Parser;
use rusteron_client::{Aeron, ChannelUri, ControlMode, ExclusivePublication, Header, Subscription};
use rusteron_examples::failure::{self, Failure};
use rusteron_examples::interrupt::Interrupt;
use rusteron_examples::output::Output;
use rusteron_examples::sample::{self, Driver, DriverOption, Turns};

const REQUESTS: i32 = 1001;
const RESPONSES: i32 = 1002;

/// Asks and answers over a response channel
#[derive(Debug, Parser)]
#[command(name = "request_response", version)]
struct Options {
    #[command(flatten)]
    driver: DriverOption,

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
    fn turn(&mut self) -> Result<usize, Failure> {
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

fn main() -> ExitCode {
    failure::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<(), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);
    let driver = Driver::start(&options.driver)?;
    let [endpoint, control] = sample::free_endpoints()?;
    let request_channel = ChannelUri::udp().endpoint(endpoint).build()?;
    let response_channel =
        ChannelUri::udp().control(control).control_mode(ControlMode::Response).build()?;

    let aeron = driver.connect()?;
    let requests = aeron.add_subscription(&request_channel, REQUESTS)?;
    let (clients, open) = (HashMap::new(), Vec::new());
    let mut server =
        Server { aeron, response_channel: response_channel.clone(), requests, clients, open };

    // A client of its own: it could as well be another process on another machine.
    let aeron = driver.connect()?;
    let mut responses = aeron.add_subscription(&response_channel, RESPONSES)?;
    let own_id = responses.registration_id();
    let channel = request_channel.to_builder().response_correlation_id(own_id).build()?;
    let mut requests = aeron.add_exclusive_publication(&channel, REQUESTS)?;

    let mut turns = Turns::awaiting("a response", &interrupt);
    for number in 1..=options.messages {
        let request = format!("request {number}");
        let mut is_sent = false;
        let mut response = None;
        while response.is_none() {
            let mut work_count = server.turn()?;
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
            turns.idle(work_count)?;
        }
        let response = response.unwrap_or_default();
        output.line(format_args!("Asked \"{request}\", answered \"{response}\""))?;
    }
    output.line(format_args!("Done: {} responses", options.messages))
}
