//! A server that answers each of its clients alone, without knowing their addresses.
//!
//! Shows response channels. Server and client could as well be processes on different machines.

use std::collections::HashMap;
use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Backoff, Context, Header, IdleStrategy, Publication, Subscription};
use rusteron_media_driver::MediaDriver;

const REQUESTS: i32 = 1001;
const RESPONSES: i32 = 1002;
const TIMEOUT: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;

    // 1. The server subscribes to requests at its endpoint. Its ports are fixed in practice; here, free ones.
    let requests = aeron.add_subscription("aeron:udp?endpoint=127.0.0.1:0", REQUESTS)?;
    let endpoint = requests.resolved_endpoint()?.ok_or("no socket")?;
    let control = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let channel = format!("aeron:udp?control-mode=response|control={control}");
    // 2. The client subscribes to responses, at the server's control address.
    let mut responses = aeron.add_subscription(&channel, RESPONSES)?;
    let mut server = Server { aeron: aeron.clone(), channel, requests, clients: HashMap::new() };
    // 3. The client publishes requests, and names the subscription that the responses are for.
    let id = responses.registration_id();
    let channel = format!("aeron:udp?endpoint={endpoint}|response-correlation-id={id}");
    let mut publication = aeron.add_exclusive_publication(channel, REQUESTS)?;

    for request in ["first", "second", "third"] {
        publication.offer_until(request.as_bytes(), Instant::now() + TIMEOUT)?;
        let mut idle = Backoff::default();
        let mut is_answered = false;
        while !is_answered {
            let handler = |message: &[u8], _: &Header<'_>| {
                println!("Asked \"{request}\", answered \"{}\"", String::from_utf8_lossy(message));
                is_answered = true;
            };
            idle.idle(server.do_work()? + responses.poll(handler, 10)?);
        }
    }
    Ok(())
}

struct Server {
    aeron: Aeron,
    /// The channel of the responses.
    channel: String,
    requests: Subscription,
    /// A publication for each client, by the correlation id of the image of its requests.
    clients: HashMap<i64, Publication>,
}

impl Server {
    fn do_work(&mut self) -> Result<usize, Box<dyn Error>> {
        let mut received = Vec::new();
        let handler = |message: &[u8], header: &Header<'_>| {
            received.push((header.image_correlation_id(), message.to_ascii_uppercase()));
        };
        let work_count = self.requests.poll(handler, 10)?;
        for (client, response) in received {
            if !self.clients.contains_key(&client) {
                // 4. The server publishes at its control address, and names the image that it answers.
                let channel = format!("{}|response-correlation-id={client}", self.channel);
                self.clients.insert(client, self.aeron.add_publication(channel, RESPONSES)?);
            }
            self.clients[&client].offer_until(&response, Instant::now() + TIMEOUT)?;
        }
        // A client that has gone has taken its image with it.
        let images: Vec<_> = self.requests.images().map(|image| image.correlation_id()).collect();
        self.clients.retain(|client, _| images.contains(client));
        Ok(work_count)
    }
}
