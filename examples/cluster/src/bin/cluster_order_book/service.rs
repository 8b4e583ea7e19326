//! The replicated service: the book, its traders, and their orders' timers.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::Duration;

use rusteron_cluster::{
    Cluster, ClusterTimeUnit, ClusteredService, Lifecycle, MessageSource, Role, ServiceError,
    ServiceResult, SessionMessage, SnapshotReader, SnapshotWriter,
};

use crate::book::{Book, Order, Trade};
use crate::messages::{
    ANSWER_LENGTH, Answer, Command, MAX_VALUE, Request, read_numbers, write_numbers,
};

/// How many answers to a trader are remembered, for requests that come twice. A trader has no more open requests.
pub(crate) const WINDOW: usize = 256;

/// The format of snapshots. Another release can read older formats.
const SNAPSHOT_VERSION: i64 = 1;

/// A client that takes no answer for so long loses its session. The whole cluster waits meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// All fields are replicated state, and in the snapshot, but `trades`.
pub(crate) struct OrderBookService {
    book: Book,
    traders: BTreeMap<i64, Trader>,
    /// The trades of one order, kept for their memory.
    trades: Vec<Trade>,
}

struct Trader {
    /// The session of the last request. News go there.
    session_id: i64,
    last_number: i64,
    /// The last answers, by number.
    answers: VecDeque<Answer>,
}

impl OrderBookService {
    pub(crate) fn new() -> Self {
        Self { book: Book::new(), traders: BTreeMap::new(), trades: Vec::new() }
    }

    /// Carries out a request, and returns its answer.
    fn carry_out(&mut self, cluster: &mut Cluster<'_>, request: &Request) -> ServiceResult<Answer> {
        let Request { trader, number, command } = *request;
        match command {
            Command::Place { side, price, quantity, lifetime_ms } => {
                let is_valid = |value: i64, min: i64| (min..=MAX_VALUE).contains(&value);
                if !is_valid(price, 1) || !is_valid(quantity, 1) || !is_valid(lifetime_ms, 0) {
                    return Ok(Answer::Rejected { number });
                }
                let expires = lifetime_ms > 0;
                let order = Order { trader, side, price, quantity, expires };
                let (order_id, resting) = self.book.place(order, &mut self.trades);
                if expires && resting > 0 {
                    // Each member's service sets the timer, and the leader's fires, through the log.
                    let deadline = cluster.time().saturating_add(in_unit(cluster, lifetime_ms));
                    cluster.schedule_timer(order_id, deadline)?;
                }
                self.report_trades(cluster)?;
                Ok(Answer::Placed { number, order_id, filled: quantity - resting, resting })
            }
            Command::Cancel { order_id } => match self.book.cancel(trader, order_id) {
                Some(order) => {
                    if order.expires {
                        cluster.cancel_timer(order_id)?;
                    }
                    Ok(Answer::Cancelled { number, order_id, quantity: order.quantity })
                }
                None => Ok(Answer::Rejected { number }),
            },
            Command::Status => Ok(Answer::Status {
                number,
                orders: self.book.len() as i64,
                best_bid: self.book.best_bid().unwrap_or(0),
                best_ask: self.book.best_ask().unwrap_or(0),
            }),
        }
    }

    /// Tells the traders of filled orders, and ends the timers of orders that are gone.
    fn report_trades(&mut self, cluster: &mut Cluster<'_>) -> ServiceResult {
        for trade in &self.trades {
            let Trade { order_id, trader, price, quantity, resting, expires } = *trade;
            if expires && resting == 0 {
                cluster.cancel_timer(order_id)?;
            }
            if let Some(trader) = self.traders.get(&trader) {
                let news = Answer::Filled { order_id, price, quantity, resting };
                send(cluster, trader.session_id, &news.encode())?;
            }
        }
        self.trades.clear();
        Ok(())
    }

    fn save(&self, target: &mut impl io::Write) -> io::Result<()> {
        write_numbers(target, [SNAPSHOT_VERSION])?;
        self.book.save(target)?;
        write_numbers(target, [self.traders.len() as i64])?;
        for (&id, trader) in &self.traders {
            let count = trader.answers.len() as i64;
            write_numbers(target, [id, trader.session_id, trader.last_number, count])?;
            trader.answers.iter().try_for_each(|answer| target.write_all(&answer.encode()))?;
        }
        Ok(())
    }

    fn load(&mut self, source: &mut impl io::Read) -> ServiceResult {
        let [version] = read_numbers(source)?;
        if version != SNAPSHOT_VERSION {
            return Err(ServiceError::failed(format!("a snapshot of version {version}")));
        }
        self.book = Book::load(source)?;
        let [count] = read_numbers(source)?;
        for _ in 0..count {
            let [id, session_id, last_number, count] = read_numbers(source)?;
            let mut answers = VecDeque::new();
            for _ in 0..count {
                let mut bytes = [0; ANSWER_LENGTH];
                source.read_exact(&mut bytes)?;
                let answer = Answer::decode(&bytes);
                answers.push_back(answer.ok_or_else(|| ServiceError::failed("no answer"))?);
            }
            self.traders.insert(id, Trader { session_id, last_number, answers });
        }
        Ok(())
    }
}

impl ClusteredService for OrderBookService {
    fn on_start(
        &mut self,
        cluster: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        if let Some(snapshot) = snapshot {
            self.load(snapshot)?;
        }
        let (position, orders) = (cluster.log_position(), self.book.len());
        println!("Start at position {position} with {orders} orders");
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        let MessageSource::Client { session_id } = message.source else { return Ok(()) };
        // All members ignore a malformed message. An error would end them all.
        let Some(request) = Request::decode(message.payload) else { return Ok(()) };
        let number = request.number;
        let new = || Trader { session_id, last_number: i64::MIN, answers: VecDeque::new() };
        let trader = self.traders.entry(request.trader).or_insert_with(new);
        trader.session_id = session_id;
        let answer = if number > trader.last_number {
            trader.last_number = number;
            let answer = self.carry_out(cluster, &request)?;
            if let Some(trader) = self.traders.get_mut(&request.trader) {
                if trader.answers.len() == WINDOW {
                    trader.answers.pop_front();
                }
                trader.answers.push_back(answer);
            }
            answer
        } else {
            // The request comes again, after a change of leader. It gets the same answer, and changes nothing.
            let known = trader.answers.iter().find(|answer| answer.number() == Some(number));
            known.copied().unwrap_or(Answer::Rejected { number })
        };
        send(cluster, session_id, &answer.encode())
    }

    fn on_timer_event(
        &mut self,
        cluster: &mut Cluster<'_>,
        order_id: i64,
        _timestamp: i64,
    ) -> ServiceResult {
        // The timer may have fired just before it was cancelled.
        let Some(order) = self.book.remove(order_id) else { return Ok(()) };
        let Some(trader) = self.traders.get(&order.trader) else { return Ok(()) };
        let news = Answer::Expired { order_id, quantity: order.quantity };
        send(cluster, trader.session_id, &news.encode())
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        self.save(snapshot)?;
        println!("Snapshot of {} orders", self.book.len());
        Ok(())
    }

    fn on_role_change(&mut self, cluster: &mut Lifecycle<'_>, role: Role) {
        println!("Member {} is {role:?}", cluster.member_id().unwrap_or(-1));
    }
}

/// Converts milliseconds to the unit of the cluster's clock.
fn in_unit(cluster: &Lifecycle<'_>, millis: i64) -> i64 {
    let factor = match cluster.time_unit() {
        ClusterTimeUnit::Millis => 1,
        ClusterTimeUnit::Micros => 1000,
        ClusterTimeUnit::Nanos => 1_000_000,
    };
    millis.saturating_mul(factor)
}

/// Sends an answer or news, and closes the session of a client that does not take it. Members that do not lead
/// send nothing.
fn send(cluster: &mut Cluster<'_>, session_id: i64, message: &[u8]) -> ServiceResult {
    // A service may have closed the session.
    let Some(mut session) = cluster.session(session_id) else { return Ok(()) };
    session.offer_or_close(message, ANSWER_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Side;

    #[test]
    fn saved_state_is_restored() {
        let mut service = OrderBookService::new();
        let order = Order { trader: 3, side: Side::Buy, price: 9, quantity: 2, expires: true };
        service.book.place(order, &mut service.trades);
        let answers = [1, 2].map(|number| Answer::Rejected { number });
        let trader = Trader { session_id: 5, last_number: 2, answers: answers.into() };
        service.traders.insert(3, trader);
        let mut saved = Vec::new();
        service.save(&mut saved).expect("a vector");

        let mut restored = OrderBookService::new();
        restored.load(&mut &saved[..]).expect("a snapshot");
        assert_eq!(restored.book, service.book);
        let mut again = Vec::new();
        restored.save(&mut again).expect("a vector");
        assert_eq!(again, saved);
    }

    #[test]
    fn foreign_snapshot_is_an_error() {
        let error = OrderBookService::new().load(&mut &[2, 0, 0, 0, 0, 0, 0, 0][..]);
        assert_eq!(error.expect_err("refused").to_string(), "a snapshot of version 2");
    }
}
