//! A trader: single requests by hand, or a load of orders that is measured.

use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Subcommand;
use hdrhistogram::Histogram;
use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Context, IdleStrategy, IdleStrategyKind};
use rusteron_cluster::{ClusterClient, ClusterContext, ClusterState, Egress};
use rusteron_media_driver::MediaDriver;

use crate::Options;
use crate::book::Side;
use crate::messages::{Answer, Command, Request};
use crate::service::WINDOW;

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Buy at a price or below
    Buy(Order),
    /// Sell at a price or above
    Sell(Order),
    /// Cancel an order
    Cancel {
        /// The order's id
        order_id: i64,
    },
    /// Print the number of orders, and the best prices
    Status,
    /// Send random orders, and measure their rate and round trips
    Load {
        /// How many orders to measure
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        orders: u64,

        /// How many orders to send before the measurement begins
        #[arg(long, value_name = "N", default_value_t = 10_000)]
        warmup: u64,

        /// How many orders wait for their answers at the most
        #[arg(long, value_name = "N", default_value_t = 1,
              value_parser = clap::value_parser!(u64).range(1..=WINDOW as u64))]
        window: u64,

        /// The beginning of the random numbers
        #[arg(long, value_name = "NUMBER", default_value_t = 1)]
        seed: u64,
    },
}

#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Order {
    price: i64,
    quantity: i64,
    /// How long the order stays in the book, such as `5s`; the default is for ever
    #[arg(long, value_name = "TIME")]
    lifetime: Option<humantime::Duration>,
}

impl Order {
    fn command(&self, side: Side) -> Command {
        let lifetime_ms = self.lifetime.map_or(0, |lifetime| lifetime.as_millis() as i64);
        Command::Place { side, price: self.price, quantity: self.quantity, lifetime_ms }
    }
}

/// How long an answer may take. A change of leader takes some seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// How long an embedded driver gets to send the end of a session.
const TIME_TO_SEND: Duration = Duration::from_millis(50);

pub(crate) fn run(options: &Options, task: &Task) -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::new();
    let signal = shutdown.clone();
    ctrlc::set_handler(move || signal.signal())?;

    let mut context = Context::new()?;
    let embedded_driver = match &options.aeron_dir {
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
    let aeron = Aeron::connect(context)?;

    let mut context = ClusterContext::from_env()?;
    context
        .set_ingress_channel("aeron:udp")
        .set_ingress_endpoints(options.ingress_endpoints.clone())
        .set_egress_channel(&options.egress_channel)
        // The first message to a new leader is a keep-alive.
        .set_keep_alive_interval(Some(Duration::from_secs(1)));
    let mut client = Client {
        cluster: ClusterClient::connect(&aeron, context)?,
        trader: options.trader,
        // Higher than all numbers of earlier runs.
        next_number: SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as i64,
        open: VecDeque::new(),
        unsent: 0,
        idle: options.idle,
    };
    let outcome = match *task {
        Task::Buy(order) => client.ask(order.command(Side::Buy), &shutdown),
        Task::Sell(order) => client.ask(order.command(Side::Sell), &shutdown),
        Task::Cancel { order_id } => client.ask(Command::Cancel { order_id }, &shutdown),
        Task::Status => client.ask(Command::Status, &shutdown),
        Task::Load { orders, warmup, window, seed } => {
            client.load(Load { orders, warmup, window: window as usize, seed }, &shutdown)
        }
    };
    drop(client);
    // A session that was not closed counts until its timeout, and a cluster has ten sessions by default.
    if embedded_driver.is_some() {
        std::thread::sleep(TIME_TO_SEND);
    }
    outcome
}

struct Client {
    cluster: ClusterClient,
    trader: i64,
    next_number: i64,
    /// Requests without an answer, in order, with the time at which each was made.
    open: VecDeque<(Request, Instant)>,
    /// How many requests at the end of `open` wait to be sent.
    unsent: usize,
    idle: IdleStrategyKind,
}

struct Load {
    orders: u64,
    warmup: u64,
    window: usize,
    seed: u64,
}

impl Client {
    fn add_request(&mut self, command: Command) {
        let Self { trader, next_number: number, .. } = *self;
        self.open.push_back((Request { trader, number, command }, Instant::now()));
        self.next_number += 1;
        self.unsent += 1;
    }

    /// Sends what can be sent, and passes answers on, with the durations of their round trips. Each request is passed
    /// on once, however often it was sent. Returns the amount of work.
    fn work(
        &mut self,
        mut handler: impl FnMut(&Answer, Duration),
    ) -> Result<usize, Box<dyn Error>> {
        let Self { cluster, open, unsent, .. } = self;
        let mut work_count = 0;
        while let Some((request, _)) = open.get(open.len() - *unsent) {
            // A poll sends the keep-alive that comes first.
            if cluster.state() == ClusterState::AwaitNewLeaderConnection {
                break;
            }
            match cluster.offer(&request.encode()) {
                Ok(_position) => *unsent -= 1,
                // Back pressure, or no leader at the moment.
                Err(error) if error.is_retryable() => break,
                Err(error) => return Err(error.into()),
            }
            work_count += 1;
        }
        work_count += cluster.poll_egress(
            |_ingress, event| match event {
                Egress::Message { payload, .. } => {
                    let Some(answer) = Answer::decode(payload) else { return };
                    let Some(number) = answer.number() else {
                        return handler(&answer, Duration::ZERO);
                    };
                    // Answers come in the order of their requests. A second answer finds no request.
                    match open.front() {
                        Some((request, since)) if request.number == number => {
                            handler(&answer, since.elapsed());
                            open.pop_front();
                            // The old leader's answer can come before the request was sent again.
                            *unsent = (*unsent).min(open.len());
                        }
                        _ => {}
                    }
                }
                Egress::NewLeader { leader_member_id, .. } => {
                    println!("Member {leader_member_id} leads");
                    // The old leader may have lost all of them.
                    *unsent = open.len();
                }
                Egress::SessionEvent { code, detail, .. } => println!("{code:?}: {detail}"),
                _ => {}
            },
            10,
        )?;
        let oldest = open.front().map_or(Duration::ZERO, |(_, since)| since.elapsed());
        if oldest > DEADLINE {
            let text = format!("no answer in state {:?}", cluster.state());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text).into());
        }
        Ok(work_count)
    }

    /// Makes one request, and prints its answer. Then prints news of an order that rests, until it is gone.
    fn ask(&mut self, command: Command, shutdown: &ShutdownSignal) -> Result<(), Box<dyn Error>> {
        self.add_request(command);
        let mut idle = self.idle.new_strategy();
        let mut resting_id = None;
        while !self.open.is_empty() || resting_id.is_some() {
            if shutdown.is_signalled() {
                break;
            }
            let work_count = self.work(|answer, _| {
                println!("{answer:?}");
                match *answer {
                    Answer::Placed { order_id, resting: 1.., .. } => resting_id = Some(order_id),
                    Answer::Filled { order_id, resting: 0, .. }
                    | Answer::Expired { order_id, .. }
                        if Some(order_id) == resting_id =>
                    {
                        resting_id = None;
                    }
                    _ => {}
                }
            })?;
            idle.idle(work_count);
        }
        Ok(())
    }

    fn load(&mut self, load: Load, shutdown: &ShutdownSignal) -> Result<(), Box<dyn Error>> {
        let Load { orders, warmup, window, mut seed } = load;
        let mut idle = self.idle.new_strategy();
        // From 1 ns to a minute, with 3 digits.
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3)?;
        let (mut sent, mut answered, mut filled) = (0, 0, 0);
        let mut start = Instant::now();
        while answered < warmup + orders && !shutdown.is_signalled() {
            while self.open.len() < window && sent < warmup + orders {
                self.add_request(random_order(&mut seed));
                sent += 1;
            }
            let work_count = self.work(|answer, duration| {
                if answer.number().is_none() {
                    return;
                }
                answered += 1;
                if answered <= warmup {
                    start = Instant::now();
                    return;
                }
                histogram.saturating_record(duration.as_nanos() as u64);
                if let Answer::Placed { filled: 1.., .. } = answer {
                    filled += 1;
                }
            })?;
            idle.idle(work_count);
        }
        let rate = histogram.len() as f64 / start.elapsed().as_secs_f64();
        for (name, quantile) in
            [("50%", 0.5), ("90%", 0.9), ("99%", 0.99), ("99.9%", 0.999), ("maximum", 1.0)]
        {
            let micros = histogram.value_at_quantile(quantile) as f64 / 1e3;
            println!("{name:>8} {micros:12.1} µs");
        }
        println!("Done: {} orders, {filled} filled, {rate:.0} orders/sec", histogram.len());
        Ok(())
    }
}

/// Prices around 1,000 that cross now and then, on both sides.
fn random_order(seed: &mut u64) -> Command {
    let mut random = |bound: u64| {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*seed >> 33) % bound) as i64
    };
    let (side, price) =
        if random(2) == 0 { (Side::Buy, 991 + random(12)) } else { (Side::Sell, 998 + random(12)) };
    Command::Place { side, price, quantity: 1 + random(10), lifetime_ms: 0 }
}
