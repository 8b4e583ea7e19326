//! Clients that nobody knows yet, and the share of the server that they may take.

use std::cmp::Reverse;
use std::hash::{BuildHasher, RandomState};

use crate::control::Clock;
use crate::ids::{ControlSessionId, ImageId};

/// How long a client that is not known keeps its place, whoever else wants it. A client on the same
/// continent has connected before.
const MIN_TIME_NS: i64 = 1_000_000_000;

/// Whether a client that is not known may begin a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// There is a free place.
    Free,
    /// The session of another client, whose host has more places, has to go.
    InPlaceOf(ControlSessionId),
    /// The client has to wait: its request stays in its stream.
    None,
}

/// The sessions of clients that are not authenticated. Each costs a log buffer, a socket and a
/// counter, which the media driver keeps for a while after their end. So there is a limit for all
/// of them, and a session that ends without authentication keeps its place until the time to
/// connect is over.
///
/// Nobody is locked out by a host that takes all places: a client of a host with fewer places, or
/// with fewer on its stream of requests, gets one of those.
#[derive(Debug)]
pub(crate) struct Strangers {
    max: usize,
    connect_timeout_ns: i64,
    /// Keys of its own, so that no host can take the number of another.
    hosts: RandomState,
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    session: ControlSessionId,
    image: ImageId,
    host: u64,
    since_ns: i64,
}

impl Strangers {
    /// There are at most `max` places.
    pub(crate) fn new(max: usize, connect_timeout_ns: i64) -> Self {
        Self { max, connect_timeout_ns, hosts: RandomState::new(), places: Vec::new() }
    }

    /// Decides about a client by its stream of requests and the source of that.
    pub(crate) fn admission(&self, image: ImageId, source_identity: &str, now: Clock) -> Admission {
        if self.places.len() < self.max {
            return Admission::Free;
        }
        let host = self.host(source_identity);
        // The places of a host, and those of a stream of requests, as if the client had one.
        let shares = |of_image: ImageId, of_host: u64| {
            let on_image = self.places.iter().filter(|place| place.image == of_image).count();
            let on_host = self.places.iter().filter(|place| place.host == of_host).count();
            let is_own = (usize::from(of_host == host), usize::from(of_image == image));
            (on_host + is_own.0, on_image + is_own.1)
        };
        let is_settled = |place: &&Place| now.ns.saturating_sub(place.since_ns) >= MIN_TIME_NS;
        let settled = self.places.iter().filter(is_settled);
        let with_shares = settled.map(|place| (shares(place.image, place.host), place));
        // The oldest of those with the greatest share.
        match with_shares
            .max_by_key(|(shares, place)| (*shares, Reverse((place.since_ns, place.session))))
        {
            Some((greatest, place)) if greatest > shares(image, host) => {
                Admission::InPlaceOf(place.session)
            }
            _ => Admission::None,
        }
    }

    /// Returns a number for the host of a stream's source, which is its address, or the medium.
    fn host(&self, source_identity: &str) -> u64 {
        let host = source_identity.rsplit_once(':').map_or(source_identity, |(host, _)| host);
        self.hosts.hash_one(host)
    }

    /// Gives a place to a session that was admitted.
    pub(crate) fn add(
        &mut self,
        session: ControlSessionId,
        image: ImageId,
        source_identity: &str,
        now: Clock,
    ) {
        let host = self.host(source_identity);
        self.places.push(Place { session, image, host, since_ns: now.ns });
    }

    /// Takes the place of a session.
    pub(crate) fn remove(&mut self, session: ControlSessionId) {
        self.places.retain(|place| place.session != session);
    }

    /// Frees places: `is_known` returns whether a session is authenticated, or `None` after its
    /// end.
    pub(crate) fn update(
        &mut self,
        now: Clock,
        is_known: impl Fn(ControlSessionId) -> Option<bool>,
    ) {
        let timeout = self.connect_timeout_ns;
        self.places.retain(|place| match is_known(place.session) {
            Some(is_known) => !is_known,
            None => now.ns.saturating_sub(place.since_ns) < timeout,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_NS: i64 = 5_000_000_000;

    fn at(ms: i64) -> Clock {
        Clock { ns: ms * 1_000_000, epoch_ms: 0 }
    }

    fn admission(strangers: &Strangers, image: i64, source: &str, now: Clock) -> Admission {
        strangers.admission(image.into(), source, now)
    }

    /// Places of four sessions: the image and the source of each.
    fn full(of: [(i64, &str); 4]) -> Strangers {
        let mut strangers = Strangers::new(4, TIMEOUT_NS);
        for (session, (image, source)) in (1..).zip(of) {
            let now = at(session);
            assert_eq!(admission(&strangers, image, source, now), Admission::Free);
            strangers.add(session.into(), image.into(), source, now);
        }
        strangers
    }

    #[test]
    fn greedy_stream_makes_way_for_another() {
        let strangers = full([(1, "a:1"), (2, "a:2"), (2, "a:2"), (2, "a:2")]);
        assert_eq!(admission(&strangers, 3, "a:3", at(500)), Admission::None);
        assert_eq!(admission(&strangers, 3, "a:3", at(2000)), Admission::InPlaceOf(2.into()));
        assert_eq!(admission(&strangers, 2, "a:2", at(2000)), Admission::None);
        let strangers = full([(1, "a:1"), (2, "a:2"), (3, "a:3"), (4, "a:4")]);
        assert_eq!(admission(&strangers, 5, "a:5", at(2000)), Admission::None);
    }

    #[test]
    fn host_with_many_streams_makes_way() {
        let strangers = full([(1, "a:1"), (2, "b:2"), (3, "a:3"), (4, "a:4")]);
        assert_eq!(admission(&strangers, 5, "c:1", at(2000)), Admission::InPlaceOf(1.into()));
        assert_eq!(admission(&strangers, 5, "b:9", at(2000)), Admission::InPlaceOf(1.into()));
        assert_eq!(admission(&strangers, 5, "a:9", at(2000)), Admission::None);
        let even = full([(1, "a:1"), (2, "b:2"), (3, "a:3"), (4, "b:4")]);
        assert_eq!(admission(&even, 5, "b:9", at(2000)), Admission::None);
        assert_eq!(admission(&even, 5, "c:9", at(2000)), Admission::InPlaceOf(1.into()));
    }

    #[test]
    fn place_is_kept_until_known_or_timeout() {
        let mut strangers = full([(1, "a:1"), (1, "a:1"), (1, "a:1"), (1, "a:1")]);
        let known = |session: ControlSessionId| (session.get() <= 2).then_some(session == 1);
        strangers.update(at(100), known);
        assert_eq!(strangers.places.len(), 3);
        strangers.update(at(5003), known);
        let left: Vec<_> = strangers.places.iter().map(|place| place.session).collect();
        assert_eq!(left, [2, 4]);
        strangers.remove(2.into());
        strangers.update(at(5004), known);
        assert!(strangers.places.is_empty());
    }

    #[test]
    fn host_is_address_without_port() {
        let strangers = Strangers::new(1, TIMEOUT_NS);
        let is_same = |one, other| strangers.host(one) == strangers.host(other);
        assert!(is_same("10.0.0.1:4", "10.0.0.1:5") && is_same("[::1]:4", "[::1]:5"));
        assert!(!is_same("10.0.0.1:4", "10.0.0.2:4") && !is_same("[::1]:4", "aeron:ipc"));
    }
}
