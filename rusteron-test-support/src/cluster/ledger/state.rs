//! The state of a ledger, as its snapshots have it.

use std::collections::BTreeMap;

/// The FNV-1a hash of no bytes.
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// The state of a ledger. Snapshots are a stream of little-endian numbers of 64 bits, in the order of the fields. Each
/// map begins with its length. `LedgerService.java` reads and writes the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    /// Events of the log.
    pub(super) count: i64,
    pub(super) digest: u64,
    /// The position behind the last event.
    pub(super) position: i64,
    pub(super) timers_set: i64,
    pub(super) timers_fired: i64,
    /// Messages from the service to itself.
    pub(super) messages_sent: i64,
    pub(super) messages_received: i64,
    /// Deadlines of the timers that have not fired, by timer.
    pub(super) timers: BTreeMap<i64, i64>,
    /// Numbers of requests, by request.
    pub(super) numbers: BTreeMap<i64, i64>,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            count: 0,
            digest: EMPTY,
            position: 0,
            timers_set: 0,
            timers_fired: 0,
            messages_sent: 0,
            messages_received: 0,
            timers: BTreeMap::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Digests an event.
    pub(super) fn digest(&mut self, kind: u8, position: i64, time: i64, of: i64, bytes: &[u8]) {
        let numbers = [position, time, of].map(i64::to_le_bytes);
        for &byte in [kind].iter().chain(numbers.as_flattened()).chain(bytes) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        self.count += 1;
        self.position = position;
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut numbers = vec![
            self.count,
            self.digest as i64,
            self.position,
            self.timers_set,
            self.timers_fired,
            self.messages_sent,
            self.messages_received,
        ];
        for map in [&self.timers, &self.numbers] {
            numbers.push(map.len() as i64);
            numbers.extend(map.iter().flat_map(|(&key, &value)| [key, value]));
        }
        numbers.into_iter().flat_map(i64::to_le_bytes).collect()
    }

    /// `None` if the bytes are not a snapshot.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut numbers =
            bytes.chunks(8).map_while(|chunk| Some(i64::from_le_bytes(chunk.try_into().ok()?)));
        let mut state = Self {
            count: numbers.next()?,
            digest: numbers.next()? as u64,
            position: numbers.next()?,
            timers_set: numbers.next()?,
            timers_fired: numbers.next()?,
            messages_sent: numbers.next()?,
            messages_received: numbers.next()?,
            timers: BTreeMap::new(),
            numbers: BTreeMap::new(),
        };
        for map in [&mut state.timers, &mut state.numbers] {
            for _ in 0..numbers.next()? {
                map.insert(numbers.next()?, numbers.next()?);
            }
        }
        (bytes.len() % 8 == 0 && numbers.next().is_none()).then_some(state)
    }
}
