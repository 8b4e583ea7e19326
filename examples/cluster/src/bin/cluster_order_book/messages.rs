//! Messages between traders and the order book: numbers of 8 bytes, little endian.

use std::io::{self, Read, Write};

use crate::book::Side;

/// A message of a trader. Numbers of a trader rise, so that the service knows a request that comes twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) trader: i64,
    pub(crate) number: i64,
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    /// Buys or sells at a price or better. The rest stays in the book for the lifetime; 0 is for ever.
    Place {
        side: Side,
        price: i64,
        quantity: i64,
        lifetime_ms: i64,
    },
    Cancel {
        order_id: i64,
    },
    /// Asks for the state of the book.
    Status,
}

/// A message to a trader. Answers have the number of their request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The order was filled as far as `resting` says.
    Placed {
        number: i64,
        order_id: i64,
        filled: i64,
        resting: i64,
    },
    Cancelled {
        number: i64,
        order_id: i64,
        quantity: i64,
    },
    /// There is no such order, a value is out of range, or the number is too old.
    Rejected {
        number: i64,
    },
    /// Prices are 0 without an order.
    Status {
        number: i64,
        orders: i64,
        best_bid: i64,
        best_ask: i64,
    },
    /// A resting order was filled by another trader's order.
    Filled {
        order_id: i64,
        price: i64,
        quantity: i64,
        resting: i64,
    },
    /// The lifetime of a resting order is over.
    Expired {
        order_id: i64,
        quantity: i64,
    },
}

/// The greatest price, quantity and lifetime in milliseconds.
pub(crate) const MAX_VALUE: i64 = 1_000_000_000_000;

const REQUEST_NUMBERS: usize = 6;
const ANSWER_NUMBERS: usize = 5;
pub(crate) const REQUEST_LENGTH: usize = 8 * REQUEST_NUMBERS;
pub(crate) const ANSWER_LENGTH: usize = 8 * ANSWER_NUMBERS;

impl Request {
    pub(crate) fn encode(&self) -> [u8; REQUEST_LENGTH] {
        let Self { trader, number, command } = *self;
        let [kind, a, b, c] = match command {
            Command::Place { side: Side::Buy, price, quantity, lifetime_ms } => {
                [1, price, quantity, lifetime_ms]
            }
            Command::Place { side: Side::Sell, price, quantity, lifetime_ms } => {
                [2, price, quantity, lifetime_ms]
            }
            Command::Cancel { order_id } => [3, order_id, 0, 0],
            Command::Status => [4, 0, 0, 0],
        };
        bytes([kind, trader, number, a, b, c])
    }

    /// Decodes a request; `None` for anything else.
    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        let [kind, trader, number, a, b, c] = numbers(message)?;
        let place = |side| Command::Place { side, price: a, quantity: b, lifetime_ms: c };
        let command = match kind {
            1 => place(Side::Buy),
            2 => place(Side::Sell),
            3 => Command::Cancel { order_id: a },
            4 => Command::Status,
            _ => return None,
        };
        Some(Self { trader, number, command })
    }
}

impl Answer {
    pub(crate) fn encode(&self) -> [u8; ANSWER_LENGTH] {
        bytes(match *self {
            Self::Placed { number, order_id, filled, resting } => {
                [1, number, order_id, filled, resting]
            }
            Self::Cancelled { number, order_id, quantity } => [2, number, order_id, quantity, 0],
            Self::Rejected { number } => [3, number, 0, 0, 0],
            Self::Status { number, orders, best_bid, best_ask } => {
                [4, number, orders, best_bid, best_ask]
            }
            Self::Filled { order_id, price, quantity, resting } => {
                [5, order_id, price, quantity, resting]
            }
            Self::Expired { order_id, quantity } => [6, order_id, quantity, 0, 0],
        })
    }

    /// Decodes an answer; `None` for anything else.
    pub(crate) fn decode(message: &[u8]) -> Option<Self> {
        let [kind, a, b, c, d] = numbers(message)?;
        Some(match kind {
            1 => Self::Placed { number: a, order_id: b, filled: c, resting: d },
            2 => Self::Cancelled { number: a, order_id: b, quantity: c },
            3 => Self::Rejected { number: a },
            4 => Self::Status { number: a, orders: b, best_bid: c, best_ask: d },
            5 => Self::Filled { order_id: a, price: b, quantity: c, resting: d },
            6 => Self::Expired { order_id: a, quantity: b },
            _ => return None,
        })
    }

    /// Returns the number of the answered request.
    pub(crate) fn number(&self) -> Option<i64> {
        match *self {
            Self::Placed { number, .. }
            | Self::Cancelled { number, .. }
            | Self::Rejected { number }
            | Self::Status { number, .. } => Some(number),
            Self::Filled { .. } | Self::Expired { .. } => None,
        }
    }
}

fn bytes<const N: usize, const LENGTH: usize>(numbers: [i64; N]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    for (target, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        target.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn numbers<const N: usize>(mut message: &[u8]) -> Option<[i64; N]> {
    if message.len() != 8 * N {
        return None;
    }
    read_numbers(&mut message).ok()
}

/// Reads numbers from a message or a snapshot.
pub(crate) fn read_numbers<const N: usize>(source: &mut impl Read) -> io::Result<[i64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        let mut bytes = [0; 8];
        source.read_exact(&mut bytes)?;
        *number = i64::from_le_bytes(bytes);
    }
    Ok(numbers)
}

/// Writes numbers into a snapshot.
pub(crate) fn write_numbers<const N: usize>(
    target: &mut impl Write,
    numbers: [i64; N],
) -> io::Result<()> {
    numbers.iter().try_for_each(|number| target.write_all(&number.to_le_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_decoded() {
        let place =
            |side| Command::Place { side, price: 3, quantity: i64::MAX, lifetime_ms: i64::MIN };
        let cancel = Command::Cancel { order_id: 9 };
        for command in [place(Side::Buy), place(Side::Sell), cancel, Command::Status] {
            let request = Request { trader: -1, number: 2, command };
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        assert_eq!(Request::decode(&[0; REQUEST_LENGTH]), None);
        assert_eq!(Request::decode(&[1; REQUEST_LENGTH - 1]), None);
    }

    #[test]
    fn answers_are_decoded() {
        for answer in [
            Answer::Placed { number: 1, order_id: 2, filled: 3, resting: 4 },
            Answer::Cancelled { number: 1, order_id: 2, quantity: 3 },
            Answer::Rejected { number: 1 },
            Answer::Status { number: 1, orders: 2, best_bid: 3, best_ask: 4 },
            Answer::Filled { order_id: 1, price: 2, quantity: 3, resting: 4 },
            Answer::Expired { order_id: 1, quantity: 2 },
        ] {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
        assert_eq!(Answer::decode(&[0; ANSWER_LENGTH]), None);
    }
}
