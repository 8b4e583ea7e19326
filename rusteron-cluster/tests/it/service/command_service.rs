//! A service that obeys commands, and digests all events: the oracle of tests on one member.

use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};

use rusteron_client::OfferError;
use rusteron_cluster::{
    CloseReason, Cluster, ClusterSessionId, ClusteredService, CorrelationId, LeadershipTerm,
    Lifecycle, MessageSource, Role, ServiceError, ServiceResult, SessionInfo, SessionMessage,
    SnapshotReader, SnapshotWriter,
};

/// Attempts of an answer, before the client counts as gone.
const ATTEMPTS: usize = 1000;

/// No timer.
pub(super) const SNAPSHOT: i64 = i64::MIN;

/// The part of a service that its test sees.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Position and digest after each event of the log.
    pub(super) digests: Vec<(i64, u64)>,
    /// Callbacks that are no events of the log.
    pub(super) lifecycle: Vec<String>,
    /// The timers that have fired, and [`SNAPSHOT`] for each snapshot.
    pub(super) timers: Vec<i64>,
    /// The callback that panics when it is called next.
    pub(super) trap: Option<&'static str>,
}

/// A service that digests position, session, time and bytes of each event. Obeys commands:
///
/// | Command | Answer |
/// |---|---|
/// | `echo TEXT` | `TEXT` |
/// | `digest` | count and digest of all events up to this one |
/// | `timer ID DELAY` | `set`, and later `fired ID` |
/// | `timer-and-cancel ID DELAY`, `cancel ID` | `cancelled` |
/// | `self TEXT` | `sent`, and later `self TEXT` from the service itself |
/// | `close` | none; the session is closed |
/// | `sessions` | the ids of the sessions |
/// | `corrupt` | `corrupted`; the next snapshots cannot be loaded |
pub(super) struct CommandService {
    seen: Arc<Mutex<Seen>>,
    count: u64,
    digest: u64,
    corrupts_snapshots: bool,
    /// Makes the snapshot longer than a fragment.
    ballast: Vec<u8>,
}

impl CommandService {
    pub(super) fn new() -> (Self, Arc<Mutex<Seen>>) {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let service = Self {
            seen: Arc::clone(&seen),
            count: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            corrupts_snapshots: false,
            ballast: Vec::new(),
        };
        (service, seen)
    }

    fn note(&self, text: String) {
        self.seen.lock().expect("no panic").lifecycle.push(text);
    }

    /// Panics if the test wants that of this callback.
    fn enter(&self, callback: &str) {
        let is_trapped = self.seen.lock().expect("no panic").trap.take_if(|it| *it == callback);
        assert!(is_trapped.is_none(), "in {callback}");
    }

    fn digest(&mut self, cluster: &Lifecycle<'_>, parts: &[&[u8]]) {
        let position = cluster.log_position();
        let time = cluster.time();
        let numbers = [position.to_le_bytes(), time.to_le_bytes()].concat();
        for byte in parts.iter().copied().chain([&numbers[..]]).flatten() {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
        self.count += 1;
        self.seen.lock().expect("no panic").digests.push((position, self.digest));
    }

    fn obey(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: ClusterSessionId,
        command: &str,
    ) -> ServiceResult {
        let words: Vec<&str> = command.split(' ').collect();
        let answer = match words[..] {
            ["echo", ..] => command["echo ".len()..].to_owned(),
            ["digest"] => format!("{} {:x}", self.count, self.digest),
            ["timer", id, delay] => {
                let deadline = cluster.time() + delay.parse::<i64>()?;
                cluster.schedule_timer(id.parse()?, deadline)?;
                "set".to_owned()
            }
            ["timer-and-cancel", id, delay] => {
                let deadline = cluster.time() + delay.parse::<i64>()?;
                cluster.schedule_timer(id.parse()?, deadline)?;
                cluster.cancel_timer(id.parse()?)?;
                "cancelled".to_owned()
            }
            ["cancel", id] => {
                cluster.cancel_timer(id.parse()?)?;
                "cancelled".to_owned()
            }
            ["self", ..] => match cluster.offer(command.as_bytes())? {
                Ok(()) => "sent".to_owned(),
                Err(not_sent) => format!("not sent: {not_sent}"),
            },
            ["close"] => {
                let mut session = cluster.session(session).expect("an open session");
                while !session.close()? {}
                return Ok(());
            }
            ["sessions"] => {
                format!("{:?}", cluster.sessions().map(SessionInfo::id).collect::<Vec<_>>())
            }
            ["corrupt"] => {
                self.corrupts_snapshots = true;
                "corrupted".to_owned()
            }
            _ => return Err(ServiceError::failed(format!("unknown command {command}"))),
        };
        send(cluster, session, answer.as_bytes())
    }

    fn tell_all(&mut self, cluster: &mut Cluster<'_>, text: &str) -> ServiceResult {
        let ids: Vec<ClusterSessionId> = cluster.sessions().map(SessionInfo::id).collect();
        ids.into_iter().try_for_each(|id| send(cluster, id, text.as_bytes()))
    }
}

/// Answers by an offer or, for every other length, by a claim.
fn send(cluster: &mut Cluster<'_>, session: ClusterSessionId, answer: &[u8]) -> ServiceResult {
    for _ in 0..ATTEMPTS {
        let Some(mut session) = cluster.session(session) else {
            break;
        };
        let sent = if answer.len() % 2 == 0 || answer.len() > 1000 {
            session.offer(answer)
        } else {
            session.try_claim(answer.len()).and_then(|mut claim| {
                claim.copy_from_slice(answer);
                claim.commit()
            })
        };
        match sent {
            Err(not_sent) if is_transient(not_sent.reason()) => cluster.idle(0)?,
            // The client has gone; its session will close.
            Ok(_) | Err(_) => break,
        }
    }
    Ok(())
}

fn is_transient(error: OfferError) -> bool {
    matches!(error, OfferError::BackPressured | OfferError::AdminAction)
}

impl ClusteredService for CommandService {
    fn on_start(
        &mut self,
        cluster: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        let position = cluster.log_position();
        let Some(snapshot) = snapshot else {
            self.note(format!("start at {position}"));
            return Ok(());
        };
        let mut state = Vec::new();
        snapshot.read_to_end(&mut state)?;
        let (count, rest) =
            state.split_first_chunk().ok_or("no count").map_err(ServiceError::failed)?;
        let (digest, ballast) =
            rest.split_first_chunk().ok_or("no digest").map_err(ServiceError::failed)?;
        self.count = u64::from_le_bytes(*count);
        self.digest = u64::from_le_bytes(*digest);
        self.ballast = ballast.to_vec();
        let ballast_is_right = self.ballast == ballast_of(self.count);
        let ids: Vec<ClusterSessionId> = cluster.sessions().map(SessionInfo::id).collect();
        self.note(format!("load at {position}: {} {ids:?} {ballast_is_right}", self.count));
        Ok(())
    }

    fn on_session_open(
        &mut self,
        cluster: &mut Cluster<'_>,
        id: ClusterSessionId,
        _: i64,
    ) -> ServiceResult {
        self.digest(cluster, &[b"open", &id.get().to_le_bytes()]);
        Ok(())
    }

    fn on_session_close(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: &SessionInfo,
        _: i64,
        reason: CloseReason,
    ) -> ServiceResult {
        let id = session.id().get().to_le_bytes();
        self.digest(cluster, &[b"close", &id, format!("{reason:?}").as_bytes()]);
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        let source = format!("{:?}", message.source);
        self.digest(cluster, &[b"message", source.as_bytes(), message.payload]);
        let text = std::str::from_utf8(message.payload)?;
        match message.source {
            MessageSource::Client { session_id } => self.obey(cluster, session_id, text),
            MessageSource::Service { .. } => self.tell_all(cluster, text),
        }
    }

    fn on_timer_event(
        &mut self,
        cluster: &mut Cluster<'_>,
        id: CorrelationId,
        _: i64,
    ) -> ServiceResult {
        self.seen.lock().expect("no panic").timers.push(id.get());
        self.enter("on_timer_event");
        self.digest(cluster, &[b"timer", &id.get().to_le_bytes()]);
        self.tell_all(cluster, &format!("fired {id}"))
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        self.note("snapshot".to_owned());
        self.seen.lock().expect("no panic").timers.push(SNAPSHOT);
        snapshot.write_all(&self.count.to_le_bytes())?;
        if self.corrupts_snapshots {
            return Ok(());
        }
        snapshot.write_all(&self.digest.to_le_bytes())?;
        snapshot.write_all(&ballast_of(self.count))?;
        // Most of it is recorded before the callback panics.
        self.enter("on_take_snapshot");
        Ok(())
    }

    fn on_new_leadership_term(
        &mut self,
        cluster: &mut Cluster<'_>,
        term: &LeadershipTerm,
    ) -> ServiceResult {
        self.digest(cluster, &[b"term", &term.leadership_term_id.get().to_le_bytes()]);
        Ok(())
    }

    fn on_role_change(&mut self, _: &mut Lifecycle<'_>, role: Role) {
        self.note(format!("{role:?}"));
    }

    fn on_terminate(&mut self, _: &mut Lifecycle<'_>) {
        self.note("terminate".to_owned());
    }
}

/// 300 KiB: many fragments, and more than one term of 64 KiB.
fn ballast_of(count: u64) -> Vec<u8> {
    (0..300 * 1024).map(|index: u64| (index ^ count) as u8).collect()
}
