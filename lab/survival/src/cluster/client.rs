//! Clients that keep the rules for exactly-once answers, and check every answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusteron_client::{Aeron, IdleStrategy as _, IdleStrategyKind};
use rusteron_cluster::{ClusterClient, ClusterContext, IngressEndpoints};
use rusteron_test_support::cluster::requests::{Answers, Counts, Requests, Violation};

/// The pause between new requests of a client.
const PAUSE: Duration = Duration::from_millis(15);
/// The timeout of an attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// At the end, a client asks so often for the effects of requests. Each question is an event. Therefore each member
/// notes one more digest.
const QUESTIONS: u32 = 120;

/// The lines that clients and the supervisor send each other.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) counts: Counts,
    pub(super) term: i64,
    /// The leader's member id, as the last session knows it.
    pub(super) leader: i32,
    pub(super) violations: Vec<Violation>,
    /// Positions and digests of answers.
    pub(super) digests: Vec<(i64, u64)>,
    /// Timers and messages that are missing at the end.
    pub(super) missing: Option<Violation>,
    pub(super) snapshot_requested: bool,
    /// No new requests.
    pub(super) is_over: bool,
    /// Give up.
    pub(super) is_aborted: bool,
    /// Clients whose requests were all answered twice.
    finished: u16,
}

/// The state that all share.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared(Arc<Mutex<State>>);

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client. The first one asks for snapshots, and for the effects of all requests at the end.
pub(super) struct Client {
    shared: Shared,
    requests: Requests,
    is_first: bool,
    clients: u16,
}

impl Client {
    pub(super) fn new(
        shared: Shared,
        aeron: Aeron,
        endpoints: IngressEndpoints,
        index: u16,
        clients: u16,
    ) -> Self {
        // Ids and attempts of other clients are others.
        let first_id = i64::from(index) << 40;
        let connect = move || {
            let mut context = ClusterContext::new();
            context
                .set_ingress_channel("aeron:udp")?
                .set_ingress_endpoints(endpoints.clone())?
                .set_egress_channel("aeron:udp?endpoint=localhost:0")?
                .set_message_timeout(CONNECT_TIMEOUT)?
                .set_keep_alive_interval(Some(Duration::from_secs(1)))?;
            ClusterClient::connect(&aeron, context)
        };
        let requests = Requests::new(first_id, PAUSE, Answers::new(first_id + 1));
        let requests = requests.with_connect(Box::new(connect));
        Self { shared, requests, is_first: index == 0, clients }
    }

    /// Sends requests until the end of the campaign, and then each request a second time. When all clients have done
    /// that, one of them waits for the effects of all requests. Returns the answers.
    pub(super) fn run(mut self) -> Answers {
        let mut idle = IdleStrategyKind::Backoff.new_strategy();
        let mut is_finished = false;
        loop {
            let is_over = match &*self.shared.lock() {
                State { is_aborted: true, .. } => break,
                state => state.is_over,
            };
            if self.requests.advance(is_over) {
                self.shared.lock().finished += u16::from(!is_finished);
                is_finished = true;
                if !self.is_first || self.are_effects_complete() {
                    break;
                }
            }
            idle.idle(self.requests.work());
            self.tell();
        }
        self.tell();
        self.requests.answers
    }

    /// Asks for the effects of all requests. Returns whether enough answers have come, and no effect is missing.
    fn are_effects_complete(&mut self) -> bool {
        let missing = self.requests.effects.and_then(|effects| effects.check().err());
        let is_complete = self.requests.questions_answered >= QUESTIONS && missing.is_none();
        let mut state = self.shared.lock();
        state.missing = missing;
        if !is_complete && state.finished == self.clients {
            self.requests.ask_for_effects();
        }
        is_complete
    }

    /// Tells the supervisor what has happened, and asks for a snapshot that it wants.
    fn tell(&mut self) {
        let mut state = self.shared.lock();
        state.counts += std::mem::take(&mut self.requests.counts);
        state.violations.append(&mut self.requests.violations);
        state.digests.append(&mut self.requests.digests);
        let Some(session) = self.requests.session() else { return };
        state.leader = session.leader_member_id().get();
        state.term = state.term.max(session.leadership_term_id().get());
        if self.is_first && state.snapshot_requested && session.request_snapshot(1.into()).is_ok() {
            state.snapshot_requested = false;
        }
    }
}
