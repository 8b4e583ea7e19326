//! Clients that keep the rules for exactly-once answers, and check every answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, IdleStrategy, IdleStrategyKind};
use rusteron_cluster::{AdminResponseCode, ClusterClient, ClusterContext, Egress};

use super::answers::{Answers, Effects, Violation};

/// The most requests without an answer.
const WINDOW: usize = 32;
/// The pause between new requests of a client.
const PAUSE: Duration = Duration::from_millis(15);
/// Requests without an answer are sent again after this time.
const RETRY: Duration = Duration::from_secs(5);
/// The timeout of an attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);
/// At the end, a client asks so often for the effects of requests. Each question is an event. Therefore each member
/// notes one more digest.
const QUESTIONS: u32 = 120;
/// The time after which a question is asked again.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(2);

/// Things that clients share with the supervisor.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Requests that were answered for the first time.
    pub(super) answered: AtomicU64,
    /// Answers, those to repeated requests included.
    pub(super) answers: AtomicU64,
    pub(super) sessions: AtomicU64,
    pub(super) new_leaders: AtomicU64,
    /// The leader's member id, as the last session knows it.
    pub(super) leader: AtomicI64,
    pub(super) term: AtomicI64,
    pub(super) snapshot_requested: AtomicBool,
    pub(super) snapshots_accepted: AtomicU64,
    /// No new requests.
    pub(super) is_over: AtomicBool,
    /// Give up.
    pub(super) is_aborted: AtomicBool,
    /// Clients whose requests were all answered twice.
    finished: AtomicU64,
    violations: Mutex<Vec<Violation>>,
    /// Timers and messages that are missing at the end.
    missing: Mutex<Option<Violation>>,
    /// Positions and digests of answers that the supervisor has not looked at.
    digests: Mutex<Vec<(i64, u64)>>,
}

impl Shared {
    pub(super) fn take_violations(&self) -> Vec<Violation> {
        std::mem::take(&mut *self.violations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn take_missing(&self) -> Option<Violation> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn take_digests(&self) -> Vec<(i64, u64)> {
        std::mem::take(&mut *self.digests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A client: the requests that it has sent, and the answers that it has got.
pub(super) struct Client<'a> {
    shared: &'a Shared,
    aeron: Aeron,
    endpoints: String,
    /// Asks for snapshots, and for the effects of all requests at the end.
    is_first: bool,
    clients: u64,
    session: Option<ClusterClient>,
    /// Behind the ids of all requests of this client.
    next_id: i64,
    first_id: i64,
    /// Requests without an answer, and their first attempts.
    unanswered: BTreeMap<i64, i64>,
    /// Requests that are to be sent again; the next one is the last.
    again: Vec<i64>,
    needs_keep_alive: bool,
    answers: Answers,
    /// Answers to questions for the effects of requests.
    questions_answered: u32,
    /// When to ask next.
    next_question: Option<Instant>,
    last_answer: Instant,
    last_retry: Instant,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        aeron: Aeron,
        endpoints: String,
        index: u16,
        clients: u16,
    ) -> Self {
        let first_id = i64::from(index) << 40;
        let now = Instant::now();
        Self {
            shared,
            aeron,
            endpoints,
            is_first: index == 0,
            clients: clients.into(),
            session: None,
            next_id: first_id,
            first_id,
            unanswered: BTreeMap::new(),
            again: Vec::new(),
            needs_keep_alive: false,
            // Attempts of other clients have other numbers.
            answers: Answers::new(first_id + 1),
            questions_answered: 0,
            next_question: None,
            last_answer: now,
            last_retry: now,
        }
    }

    /// Sends requests until the end of the campaign, and then each request a second time. When all clients have done
    /// that, one of them waits for the effects of all requests. Returns the number of each request.
    pub(super) fn run(mut self) -> HashMap<i64, i64> {
        let mut idle = IdleStrategyKind::Backoff.new_strategy();
        let mut next = Instant::now();
        let is_over = || self.shared.is_over.load(Ordering::Relaxed);
        let mut repeated = self.first_id;
        let mut is_finished = false;
        loop {
            if self.shared.is_aborted.load(Ordering::Relaxed) {
                return self.answers.into_numbers();
            }
            if !self.is_connected() {
                continue;
            }
            if !is_over() {
                if Instant::now() >= next && self.send_new(self.next_id) {
                    self.next_id += 1;
                    next = Instant::now() + PAUSE;
                }
            } else if repeated < self.next_id {
                if self.send_new(repeated) {
                    repeated += 1;
                }
            } else if self.unanswered.is_empty() {
                if !is_finished {
                    is_finished = true;
                    self.shared.finished.fetch_add(1, Ordering::Relaxed);
                }
                if !self.is_first || self.are_effects_complete() {
                    return self.answers.into_numbers();
                }
            }
            idle.idle(self.work());
        }
    }

    fn is_connected(&mut self) -> bool {
        if self.session.is_some() {
            return true;
        }
        let mut context = ClusterContext::new();
        let Ok(endpoints) = self.endpoints.parse() else { return false };
        context
            .set_ingress_channel("aeron:udp")
            .set_ingress_endpoints(endpoints)
            .set_egress_channel("aeron:udp?endpoint=localhost:0")
            .set_message_timeout(CONNECT_TIMEOUT)
            .set_keep_alive_interval(Some(Duration::from_secs(1)));
        match ClusterClient::connect(&self.aeron, context) {
            Ok(session) => {
                self.session = Some(session);
                self.shared.sessions.fetch_add(1, Ordering::Relaxed);
                self.start_again();
                self.note_leader();
                true
            }
            Err(_) => {
                thread::sleep(RECONNECT_PAUSE);
                false
            }
        }
    }

    fn note_leader(&self) {
        if let Some(session) = &self.session {
            self.shared.leader.store(session.leader_member_id().into(), Ordering::Relaxed);
            self.shared.term.fetch_max(session.leadership_term_id(), Ordering::Relaxed);
        }
    }

    /// Asks for the effects of all requests. Returns whether enough answers have come, and no effect is missing.
    fn are_effects_complete(&mut self) -> bool {
        let is_missing =
            || self.shared.missing.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if self.questions_answered >= QUESTIONS && !is_missing() {
            return true;
        }
        let now = Instant::now();
        let is_due = self.next_question.is_none_or(|next| now >= next);
        let are_all_finished = self.shared.finished.load(Ordering::Relaxed) == self.clients;
        if let (true, false, Some(session)) =
            (are_all_finished && is_due, self.needs_keep_alive, &mut self.session)
        {
            let question = [b"s", &self.first_id.to_le_bytes()[..]].concat();
            match session.offer(&question) {
                Ok(_) => self.next_question = Some(now + QUESTION_TIMEOUT),
                Err(error) if error.is_retryable() => {}
                Err(_) => self.session = None,
            }
        }
        false
    }

    /// Sends a request, unless too many wait for their answers, or have to be sent again first.
    fn send_new(&mut self, id: i64) -> bool {
        let is_free = self.again.is_empty() && !self.needs_keep_alive;
        is_free && self.unanswered.len() < WINDOW && self.send(id)
    }

    /// Sends a request; `false` if the cluster does not accept it now.
    fn send(&mut self, id: i64) -> bool {
        let Some(session) = &mut self.session else { return false };
        let attempt = self.answers.next_attempt();
        let mut request = vec![b'n'];
        request.extend(id.to_le_bytes());
        request.extend(attempt.to_le_bytes());
        match session.offer(&request) {
            Ok(_) => {
                self.answers.on_sent();
                self.unanswered.entry(id).or_insert(attempt);
                true
            }
            Err(error) => {
                if !error.is_retryable() {
                    self.session = None;
                }
                false
            }
        }
    }

    /// Polls, and sends requests again as far as the cluster accepts them.
    fn work(&mut self) -> usize {
        let work = self.poll();
        // A new leader drops an answer if the client's subscription is not there soon.
        let is_late = |since: Instant| since.elapsed() >= RETRY;
        if !self.unanswered.is_empty() && is_late(self.last_answer) && is_late(self.last_retry) {
            self.start_again();
        }
        let Some(session) = &mut self.session else { return work };
        if self.needs_keep_alive && session.send_keep_alive().is_ok() {
            self.needs_keep_alive = false;
        }
        if self.is_first
            && self.shared.snapshot_requested.load(Ordering::Relaxed)
            && session.request_snapshot(1).is_ok()
        {
            self.shared.snapshot_requested.store(false, Ordering::Relaxed);
        }
        if let (false, Some(&id)) = (self.needs_keep_alive, self.again.last()) {
            // Its answer may have arrived meanwhile.
            if !self.unanswered.contains_key(&id) || self.send(id) {
                self.again.pop();
            }
        }
        work
    }

    /// Begins to send all unanswered requests again, in order, behind a keep-alive.
    fn start_again(&mut self) {
        self.needs_keep_alive = true;
        self.again = self.unanswered.keys().rev().copied().collect();
        self.last_retry = Instant::now();
    }

    fn poll(&mut self) -> usize {
        let Some(session) = &mut self.session else { return 0 };
        let mut messages = Vec::new();
        let mut new_leaders = 0;
        let mut snapshots = 0;
        let handler = |_: &mut _, event: Egress<'_>| match event {
            Egress::Message { payload, .. } => messages.push(payload.to_vec()),
            Egress::NewLeader { .. } => new_leaders += 1,
            Egress::AdminResponse { response_code: AdminResponseCode::Ok, .. } => snapshots += 1,
            _ => {}
        };
        let polled = session.poll_egress(handler, 10);
        messages.iter().for_each(|message| self.on_answer(message));
        self.shared.snapshots_accepted.fetch_add(snapshots, Ordering::Relaxed);
        if new_leaders > 0 {
            self.shared.new_leaders.fetch_add(new_leaders, Ordering::Relaxed);
            self.note_leader();
            self.start_again();
        }
        match polled {
            Ok(work) => work,
            Err(_) => {
                // The session is closed.
                self.session = None;
                0
            }
        }
    }

    fn on_answer(&mut self, message: &[u8]) {
        if let Some(effects) = Effects::from_message(message) {
            self.questions_answered += 1;
            self.next_question = Some(Instant::now() + PAUSE);
            *self.shared.missing.lock().unwrap_or_else(PoisonError::into_inner) =
                effects.check().err();
            return;
        }
        let mut violations = Vec::new();
        let answer = self.answers.check(message, &mut violations);
        self.shared
            .violations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(&mut violations);
        let Some(answer) = answer else { return };
        self.shared.answered.fetch_add(answer.is_first.into(), Ordering::Relaxed);
        self.shared
            .digests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((answer.position, answer.digest));
        self.shared.answers.fetch_add(1, Ordering::Relaxed);
        // One of several attempts is enough. Late answers to attempts of the first round do not count in the second.
        if self.unanswered.get(&answer.id).is_some_and(|&first| answer.attempt >= first) {
            self.unanswered.remove(&answer.id);
        }
        self.last_answer = Instant::now();
    }
}
