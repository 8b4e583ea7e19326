//! Tokens that let a replay be requested on another image than the session's.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use crate::conductor::effect::{Clock, ControlSessionId, RecordingId};
use crate::ids::ReplayToken;

/// The most tokens at a time. They last for the connect timeout.
const MAX_TOKENS: usize = 64 * 1024;

#[derive(Debug)]
struct Token {
    session: ControlSessionId,
    recording: RecordingId,
    deadline_ns: i64,
}

/// Replay tokens that are valid.
#[derive(Debug)]
pub(crate) struct Tokens {
    by_value: HashMap<ReplayToken, Token>,
    timeout_ns: i64,
    /// Hashes a running number. Whoever does not know the key, which the operating system has
    /// drawn, cannot guess the next token.
    random: RandomState,
    drawn: u64,
}

impl Tokens {
    pub(crate) fn new(timeout_ns: i64) -> Self {
        Self { by_value: HashMap::new(), timeout_ns, random: RandomState::new(), drawn: 0 }
    }

    /// Returns a token for replays of a recording. `None`: there are too many.
    pub(crate) fn draw(
        &mut self,
        session: ControlSessionId,
        recording: RecordingId,
        now: Clock,
    ) -> Option<ReplayToken> {
        if self.by_value.len() >= MAX_TOKENS {
            return None;
        }
        loop {
            self.drawn = self.drawn.wrapping_add(1);
            let token = ReplayToken::of(self.random.hash_one(self.drawn) as i64);
            if let Some(token) = token.filter(|token| !self.by_value.contains_key(token)) {
                let deadline_ns = now.ns.saturating_add(self.timeout_ns);
                self.by_value.insert(token, Token { session, recording, deadline_ns });
                return Some(token);
            }
        }
    }

    /// Returns the session that has drawn a token for this recording. A token may be used several
    /// times.
    pub(crate) fn session(
        &self,
        token: ReplayToken,
        recording: RecordingId,
        now: Clock,
    ) -> Option<ControlSessionId> {
        let token = self.by_value.get(&token)?;
        let is_valid = token.recording == recording && now.ns < token.deadline_ns;
        is_valid.then_some(token.session)
    }

    pub(crate) fn remove_expired(&mut self, now: Clock) {
        self.by_value.retain(|_, token| now.ns < token.deadline_ns);
    }

    pub(crate) fn remove_session(&mut self, session: ControlSessionId) {
        self.by_value.retain(|_, token| token.session != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: i64) -> Clock {
        Clock { ns, epoch_ms: 0 }
    }

    #[test]
    fn token_is_for_one_recording_until_its_deadline() {
        let mut tokens = Tokens::new(10);
        let token = tokens.draw(1.into(), 5.into(), at(0)).unwrap();
        assert_eq!(tokens.session(token, 5.into(), at(9)), Some(1.into()));
        assert_eq!(tokens.session(token, 6.into(), at(9)), None);
        let other = ReplayToken::of(token.get() ^ 1).unwrap();
        assert_eq!(tokens.session(other, 5.into(), at(9)), None);
        assert_eq!(tokens.session(token, 5.into(), at(10)), None);
    }

    #[test]
    fn token_ends_with_its_session() {
        let mut tokens = Tokens::new(10);
        let (first, second) = (
            tokens.draw(1.into(), 5.into(), at(0)).unwrap(),
            tokens.draw(2.into(), 5.into(), at(0)).unwrap(),
        );
        assert_ne!(first, second);
        tokens.remove_session(1.into());
        assert_eq!(tokens.session(first, 5.into(), at(0)), None);
        assert_eq!(tokens.session(second, 5.into(), at(0)), Some(2.into()));
    }

    #[test]
    fn tokens_are_bounded_until_they_expire() {
        let mut tokens = Tokens::new(10);
        for _ in 0..MAX_TOKENS {
            assert!(tokens.draw(1.into(), 5.into(), at(0)).is_some());
        }
        assert_eq!(tokens.draw(1.into(), 5.into(), at(0)), None);
        tokens.remove_expired(at(10));
        assert!(tokens.draw(1.into(), 5.into(), at(10)).is_some());
    }
}
