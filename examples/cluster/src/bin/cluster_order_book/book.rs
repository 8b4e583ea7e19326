//! A limit order book: price first, then time.
//!
//! All containers are ordered, so that members of a cluster iterate alike. Numbers are whole: prices count ticks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};

use crate::messages::{read_numbers, write_numbers};

/// The side of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Buy,
    Sell,
}

/// An order that rests in the book.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) trader: i64,
    pub(crate) side: Side,
    pub(crate) price: i64,
    /// The quantity that has not been filled, at least 1.
    pub(crate) quantity: i64,
    /// True if a timer will end the order.
    pub(crate) expires: bool,
}

/// A fill of a resting order by a new one. The price is the resting order's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trade {
    pub(crate) order_id: i64,
    pub(crate) trader: i64,
    pub(crate) price: i64,
    pub(crate) quantity: i64,
    /// The quantity of the resting order that is left.
    pub(crate) resting: i64,
    pub(crate) expires: bool,
}

/// Orders by id, and the ids of both sides in the order in which they are filled. Ids rise, so that an id is the time
/// of its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Book {
    orders: BTreeMap<i64, Order>,
    bids: BTreeSet<(Reverse<i64>, i64)>,
    asks: BTreeSet<(i64, i64)>,
    next_id: i64,
}

impl Book {
    pub(crate) fn new() -> Self {
        Self { orders: BTreeMap::new(), bids: BTreeSet::new(), asks: BTreeSet::new(), next_id: 1 }
    }

    /// Fills an order as far as its price allows, and lets the rest stay in the book. Appends the trades. Returns the
    /// id of the order and the rest.
    pub(crate) fn place(&mut self, order: Order, trades: &mut Vec<Trade>) -> (i64, i64) {
        let id = self.next_id;
        self.next_id += 1;
        let mut order = order;
        while order.quantity > 0 {
            let best = match order.side {
                Side::Buy => self.best_ask_id(order.price),
                Side::Sell => self.best_bid_id(order.price),
            };
            let Some(best) = best else { break };
            let Some(resting) = self.orders.get_mut(&best) else { break };
            let quantity = order.quantity.min(resting.quantity);
            order.quantity -= quantity;
            resting.quantity -= quantity;
            let Order { trader, price, quantity: rest, expires, .. } = *resting;
            trades.push(Trade { order_id: best, trader, price, quantity, resting: rest, expires });
            if rest == 0 {
                self.remove(best);
            }
        }
        if order.quantity > 0 {
            self.insert(id, order);
        }
        (id, order.quantity)
    }

    /// Removes the order of a trader.
    pub(crate) fn cancel(&mut self, trader: i64, id: i64) -> Option<Order> {
        if self.orders.get(&id)?.trader != trader {
            return None;
        }
        self.remove(id)
    }

    /// Removes an order.
    pub(crate) fn remove(&mut self, id: i64) -> Option<Order> {
        let order = self.orders.remove(&id)?;
        match order.side {
            Side::Buy => self.bids.remove(&(Reverse(order.price), id)),
            Side::Sell => self.asks.remove(&(order.price, id)),
        };
        Some(order)
    }

    /// Returns the number of orders.
    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }

    /// Returns the highest price of a buyer.
    pub(crate) fn best_bid(&self) -> Option<i64> {
        self.bids.first().map(|&(Reverse(price), _)| price)
    }

    /// Returns the lowest price of a seller.
    pub(crate) fn best_ask(&self) -> Option<i64> {
        self.asks.first().map(|&(price, _)| price)
    }

    fn best_ask_id(&self, limit: i64) -> Option<i64> {
        self.asks.first().filter(|&&(price, _)| price <= limit).map(|&(_, id)| id)
    }

    fn best_bid_id(&self, limit: i64) -> Option<i64> {
        self.bids.first().filter(|&&(Reverse(price), _)| price >= limit).map(|&(_, id)| id)
    }

    fn insert(&mut self, id: i64, order: Order) {
        match order.side {
            Side::Buy => self.bids.insert((Reverse(order.price), id)),
            Side::Sell => self.asks.insert((order.price, id)),
        };
        self.orders.insert(id, order);
    }

    /// Writes the book into a snapshot.
    pub(crate) fn save(&self, target: &mut impl Write) -> io::Result<()> {
        write_numbers(target, [self.next_id, self.orders.len() as i64])?;
        for (&id, order) in &self.orders {
            let Order { trader, side, price, quantity, expires } = *order;
            let is_sale = (side == Side::Sell).into();
            write_numbers(target, [id, trader, is_sale, price, quantity, expires.into()])?;
        }
        Ok(())
    }

    /// Reads a book from a snapshot.
    pub(crate) fn load(source: &mut impl Read) -> io::Result<Self> {
        let mut book = Self::new();
        let [next_id, count] = read_numbers(source)?;
        for _ in 0..count {
            let [id, trader, is_sale, price, quantity, expires] = read_numbers(source)?;
            let side = if is_sale == 0 { Side::Buy } else { Side::Sell };
            book.insert(id, Order { trader, side, price, quantity, expires: expires != 0 });
        }
        book.next_id = next_id;
        Ok(book)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUYER: i64 = 7;
    const SELLER: i64 = 8;

    fn order(side: Side, price: i64, quantity: i64) -> Order {
        let trader = if side == Side::Buy { BUYER } else { SELLER };
        Order { trader, side, price, quantity, expires: false }
    }

    /// Order, price, quantity and rest of a trade.
    type Fill = (i64, i64, i64, i64);

    /// Places an order. Returns its id, the rest and the trades.
    fn place(book: &mut Book, side: Side, price: i64, quantity: i64) -> (i64, i64, Vec<Fill>) {
        let mut trades = Vec::new();
        let (id, rest) = book.place(order(side, price, quantity), &mut trades);
        let trades = trades.iter().map(|it| (it.order_id, it.price, it.quantity, it.resting));
        (id, rest, trades.collect())
    }

    #[test]
    fn orders_that_do_not_cross_rest() {
        let mut book = Book::new();
        assert_eq!(place(&mut book, Side::Buy, 99, 5), (1, 5, vec![]));
        assert_eq!(place(&mut book, Side::Sell, 101, 5), (2, 5, vec![]));
        assert_eq!((book.best_bid(), book.best_ask(), book.len()), (Some(99), Some(101), 2));
    }

    #[test]
    fn best_price_fills_first() {
        let mut book = Book::new();
        place(&mut book, Side::Sell, 103, 1);
        place(&mut book, Side::Sell, 101, 1);
        place(&mut book, Side::Sell, 102, 1);
        let (_, rest, trades) = place(&mut book, Side::Buy, 102, 5);
        assert_eq!(trades, [(2, 101, 1, 0), (3, 102, 1, 0)]);
        assert_eq!((rest, book.best_bid(), book.best_ask()), (3, Some(102), Some(103)));
    }

    #[test]
    fn earlier_order_of_a_price_fills_first() {
        let mut book = Book::new();
        for quantity in [4, 5, 6] {
            place(&mut book, Side::Buy, 100, quantity);
        }
        let (_, rest, trades) = place(&mut book, Side::Sell, 100, 6);
        assert_eq!((rest, trades), (0, vec![(1, 100, 4, 0), (2, 100, 2, 3)]));
        // An order that was filled in part keeps its turn.
        let (_, _, trades) = place(&mut book, Side::Sell, 90, 4);
        assert_eq!(trades, [(2, 100, 3, 0), (3, 100, 1, 5)]);
    }

    #[test]
    fn highest_bid_fills_first() {
        let mut book = Book::new();
        place(&mut book, Side::Buy, 98, 1);
        place(&mut book, Side::Buy, 99, 1);
        let (_, rest, trades) = place(&mut book, Side::Sell, 98, 2);
        assert_eq!((rest, trades), (0, vec![(2, 99, 1, 0), (1, 98, 1, 0)]));
        assert_eq!(book, Book { next_id: 4, ..Book::new() });
    }

    #[test]
    fn cancelled_order_is_not_filled() {
        let mut book = Book::new();
        let (id, ..) = place(&mut book, Side::Sell, 100, 1);
        assert_eq!(book.cancel(BUYER, id), None);
        assert_eq!(book.cancel(SELLER, id), Some(order(Side::Sell, 100, 1)));
        assert_eq!(book.cancel(SELLER, id), None);
        let (_, rest, trades) = place(&mut book, Side::Buy, 100, 1);
        assert_eq!((rest, trades), (1, vec![]));
    }

    /// Random orders and cancellations, and a restart from a snapshot in the middle.
    #[test]
    fn restored_book_goes_on_alike() {
        let mut seed = 1_u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) % bound) as i64
        };
        let mut book = Book::new();
        let mut restored = None;
        let (mut trades, mut restored_trades) = (Vec::new(), Vec::new());
        for step in 0..20_000 {
            if step == 10_000 {
                let mut bytes = Vec::new();
                book.save(&mut bytes).expect("a vector");
                let copy = Book::load(&mut &bytes[..]).expect("a book");
                assert_eq!(copy, book);
                restored = Some(copy);
                trades.clear();
            }
            let side = if random(2) == 0 { Side::Buy } else { Side::Sell };
            let new = order(side, 90 + random(20), 1 + random(9));
            let is_order = random(4) > 0;
            let id = (step - random(100)).max(1);
            for (book, trades) in [(&mut book, &mut trades)]
                .into_iter()
                .chain(restored.as_mut().map(|book| (book, &mut restored_trades)))
            {
                if is_order {
                    book.place(new, trades);
                } else {
                    book.remove(id);
                }
                assert!(book.best_bid() < book.best_ask() || book.best_ask().is_none());
            }
        }
        assert!(trades.len() > 1000 && book.len() > 10);
        assert_eq!((restored, restored_trades), (Some(book), trades));
    }

    #[test]
    fn short_snapshot_is_an_error() {
        let mut book = Book::new();
        place(&mut book, Side::Buy, 1, 1);
        let mut bytes = Vec::new();
        book.save(&mut bytes).expect("a vector");
        bytes.pop();
        assert!(Book::load(&mut &bytes[..]).is_err());
    }
}
