//! The checks of answers, without a cluster.

use std::collections::{HashMap, HashSet};

/// The name of a violated condition, and a text for the report.
pub(super) type Violation = (&'static str, String);

/// An answer that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) id: i64,
    pub(super) attempt: i64,
    pub(super) position: i64,
    pub(super) digest: u64,
    /// No earlier answer had this id.
    pub(super) is_first: bool,
}

/// Checks the answers to the requests of one client.
#[derive(Debug)]
pub(super) struct Answers {
    first_attempt: i64,
    /// The last attempt that was sent, or the number before the first.
    last_attempt: i64,
    /// All attempts that were answered.
    attempts: HashSet<i64>,
    /// The number that each request has got.
    numbers: HashMap<i64, i64>,
}

impl Answers {
    pub(super) fn new(first_attempt: i64) -> Self {
        Self {
            first_attempt,
            last_attempt: first_attempt - 1,
            attempts: HashSet::new(),
            numbers: HashMap::new(),
        }
    }

    pub(super) fn next_attempt(&self) -> i64 {
        self.last_attempt + 1
    }

    /// Notes that the next attempt was sent.
    pub(super) fn on_sent(&mut self) {
        self.last_attempt += 1;
    }

    /// Checks an answer to `n`. Returns `None` if its length is wrong.
    pub(super) fn check(
        &mut self,
        message: &[u8],
        violations: &mut Vec<Violation>,
    ) -> Option<Answer> {
        // The command without its first byte is two numbers.
        let is_right = message.len() == 41 && message[8] == b'n';
        let fields = is_right.then(|| [0, 9, 17, 25, 33].map(|at| number(message, at)));
        let Some([Some(number), Some(id), Some(attempt), Some(position), Some(digest)]) = fields
        else {
            violations.push(("corrupted", format!("an answer of {} bytes", message.len())));
            return None;
        };
        if !self.attempts.insert(attempt) {
            let text = format!("attempt {attempt} of request {id} is answered twice");
            violations.push(("repeated", text));
        }
        if !(self.first_attempt..=self.last_attempt).contains(&attempt) {
            let text = format!("attempt {attempt} of request {id} was not sent");
            violations.push(("corrupted", text));
        }
        let known = self.numbers.insert(id, number);
        if let Some(known) = known.filter(|known| *known != number) {
            let text = format!("request {id} had the number {known}, and now {number}");
            violations.push(("lost", text));
        }
        let (digest, is_first) = (digest as u64, known.is_none());
        Some(Answer { id, attempt, position, digest, is_first })
    }

    /// The number of each request.
    pub(super) fn into_numbers(self) -> HashMap<i64, i64> {
        self.numbers
    }
}

/// Checks the numbers of the requests of all clients: each number from 1 on occurs once.
pub(super) fn check_numbers(numbers: &[HashMap<i64, i64>]) -> Result<(), Violation> {
    let mut all: Vec<i64> = numbers.iter().flat_map(HashMap::values).copied().collect();
    all.sort_unstable();
    let count = all.len() as i64;
    if all.iter().copied().eq(1..=count) {
        return Ok(());
    }
    let (first, last) = (all.first(), all.last());
    Err(("repeated", format!("{count} requests have the numbers {first:?} to {last:?}")))
}

/// A ledger's answer to `s`: the effects of requests that come later than their answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effects {
    timers_set: i64,
    timers_fired: i64,
    messages_sent: i64,
    messages_received: i64,
}

impl Effects {
    /// Returns `None` if this is an answer to another command.
    pub(super) fn from_message(message: &[u8]) -> Option<Self> {
        if message.len() != 73 || message[0] != b's' {
            return None;
        }
        Some(Self {
            timers_set: number(message, 33)?,
            timers_fired: number(message, 41)?,
            messages_sent: number(message, 49)?,
            messages_received: number(message, 57)?,
        })
    }

    /// Checks that no timer and no message of the ledger to itself is missing.
    pub(super) fn check(self) -> Result<(), Violation> {
        let Self { timers_set, timers_fired, messages_sent, messages_received } = self;
        if timers_set == timers_fired && messages_sent == messages_received {
            return Ok(());
        }
        let text = format!(
            "of {timers_set} timers, {timers_fired} have fired; of {messages_sent} messages to \
             itself, the ledger has received {messages_received}"
        );
        Err(("lost", text))
    }
}

fn number(bytes: &[u8], at: usize) -> Option<i64> {
    bytes.get(at..)?.first_chunk().copied().map(i64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: i64 = 100;

    fn answer(number: i64, id: i64, attempt: i64) -> Vec<u8> {
        let fields = [id, attempt, 4096, -1].map(i64::to_le_bytes);
        [&number.to_le_bytes(), &b"n"[..], fields.as_flattened()].concat()
    }

    /// Checks these answers after three attempts. Returns the names of the violations.
    fn violations(messages: &[Vec<u8>]) -> Vec<&'static str> {
        let mut answers = Answers::new(FIRST);
        (0..3).for_each(|_| answers.on_sent());
        let mut violations = Vec::new();
        for message in messages {
            answers.check(message, &mut violations);
        }
        violations.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn right_answers_are_accepted() {
        let mut answers = Answers::new(FIRST);
        assert_eq!(answers.next_attempt(), FIRST);
        answers.on_sent();
        let mut violations = Vec::new();
        let first = answers.check(&answer(1, 7, FIRST), &mut violations);
        let expected =
            Answer { id: 7, attempt: FIRST, position: 4096, digest: u64::MAX, is_first: true };
        assert_eq!(first, Some(expected));
        answers.on_sent();
        let again = answers.check(&answer(1, 7, FIRST + 1), &mut violations);
        assert_eq!(again, Some(Answer { attempt: FIRST + 1, is_first: false, ..expected }));
        assert_eq!((violations, answers.into_numbers()), (vec![], [(7, 1)].into()));
    }

    #[test]
    fn wrong_answers_are_noticed() {
        let right = || answer(1, 7, FIRST);
        assert_eq!(violations(&[right(), right()]), ["repeated"]);
        assert_eq!(violations(&[right(), answer(2, 7, FIRST + 1)]), ["lost"]);
        assert_eq!(violations(&[answer(1, 7, FIRST - 1)]), ["corrupted"]);
        assert_eq!(violations(&[answer(1, 7, FIRST + 2)]), [""; 0]);
        assert_eq!(violations(&[answer(1, 7, FIRST + 3)]), ["corrupted"]);
        let mut other = right();
        other[8] = b'x';
        for wrong in [right()[..40].to_vec(), [right(), vec![0]].concat(), Vec::new(), other] {
            assert_eq!(violations(&[wrong]), ["corrupted"]);
        }
    }

    #[test]
    fn numbers_of_requests_are_checked() {
        let check = |numbers: [&[i64]; 2]| {
            let numbers = numbers.map(|numbers| (0..).zip(numbers.iter().copied()).collect());
            check_numbers(&numbers).map_err(|(name, _)| name)
        };
        assert_eq!(check([&[], &[]]), Ok(()));
        assert_eq!(check([&[1, 4], &[3, 2]]), Ok(()));
        // A request that was applied twice leaves a gap.
        assert_eq!(check([&[1, 4], &[2]]), Err("repeated"));
        assert_eq!(check([&[2], &[3]]), Err("repeated"));
        assert_eq!(check([&[1, 2], &[2, 3]]), Err("repeated"));
    }

    #[test]
    fn missing_effects_are_lost() {
        let message = |[set, fired, sent, received]: [i64; 4]| {
            let fields = [5, 640, -1, 4096, set, fired, sent, received, 9].map(i64::to_le_bytes);
            [b"s", fields.as_flattened()].concat()
        };
        let check = |counts| {
            let effects = Effects::from_message(&message(counts)).expect("an answer to s");
            effects.check().map_err(|(name, _)| name)
        };
        assert_eq!(check([3, 3, 2, 2]), Ok(()));
        assert_eq!(check([3, 2, 2, 2]), Err("lost"));
        assert_eq!(check([3, 3, 2, 1]), Err("lost"));
        assert_eq!(check([3, 3, 2, 3]), Err("lost"));
        // 115 is `s`.
        assert_eq!(Effects::from_message(&answer(115, 7, FIRST)), None);
    }
}
