//! Clients that keep the rules for exactly-once answers, and check every answer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, IdleStrategy, IdleStrategyKind};
use rusteron_cluster::{AdminResponseCode, ClusterClient, ClusterContext, Egress};

/// The most requests without an answer.
const WINDOW: usize = 32;
/// The pause between new requests of a client.
const PAUSE: Duration = Duration::from_millis(15);
/// Requests without an answer are sent again after this time.
const RETRY: Duration = Duration::from_secs(5);
/// The timeout of an attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);

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
    violations: Mutex<Vec<(&'static str, String)>>,
    /// Positions and digests of answers that the supervisor has not looked at.
    digests: Mutex<Vec<(i64, u64)>>,
}

impl Shared {
    pub(super) fn take_violations(&self) -> Vec<(&'static str, String)> {
        std::mem::take(&mut *self.violations.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn take_digests(&self) -> Vec<(i64, u64)> {
        std::mem::take(&mut *self.digests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn accuse(&self, name: &'static str, text: String) {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).push((name, text));
    }
}

/// A client: the requests that it has sent, and the answers that it has got.
pub(super) struct Client<'a> {
    shared: &'a Shared,
    aeron: Aeron,
    endpoints: String,
    /// Asks for snapshots.
    is_first: bool,
    session: Option<ClusterClient>,
    /// Behind the ids of all requests of this client.
    next_id: i64,
    first_id: i64,
    last_attempt: i64,
    /// Requests without an answer, and their first attempts.
    unanswered: BTreeMap<i64, i64>,
    /// Requests that are to be sent again; the next one is the last.
    again: Vec<i64>,
    needs_keep_alive: bool,
    /// All attempts that were answered.
    attempts: HashSet<i64>,
    /// The number that each request has got.
    numbers: HashMap<i64, i64>,
    last_answer: Instant,
    last_retry: Instant,
}

impl<'a> Client<'a> {
    pub(super) fn new(shared: &'a Shared, aeron: Aeron, endpoints: String, index: u16) -> Self {
        let first_id = i64::from(index) << 40;
        let now = Instant::now();
        Self {
            shared,
            aeron,
            endpoints,
            is_first: index == 0,
            session: None,
            next_id: first_id,
            first_id,
            // Attempts of other clients have other numbers.
            last_attempt: first_id,
            unanswered: BTreeMap::new(),
            again: Vec::new(),
            needs_keep_alive: false,
            attempts: HashSet::new(),
            numbers: HashMap::new(),
            last_answer: now,
            last_retry: now,
        }
    }

    /// Sends requests until the end of the campaign, and then each request a second time. Returns the number of each
    /// request.
    pub(super) fn run(mut self) -> HashMap<i64, i64> {
        let mut idle = IdleStrategyKind::Backoff.new_strategy();
        let mut next = Instant::now();
        let is_over = || self.shared.is_over.load(Ordering::Relaxed);
        let mut repeated = self.first_id;
        loop {
            if self.shared.is_aborted.load(Ordering::Relaxed) {
                return self.numbers;
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
                return self.numbers;
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

    /// Sends a request, unless too many wait for their answers, or have to be sent again first.
    fn send_new(&mut self, id: i64) -> bool {
        let is_free = self.again.is_empty() && !self.needs_keep_alive;
        is_free && self.unanswered.len() < WINDOW && self.send(id)
    }

    /// Sends a request; `false` if the cluster does not accept it now.
    fn send(&mut self, id: i64) -> bool {
        let Some(session) = &mut self.session else { return false };
        let attempt = self.last_attempt + 1;
        let mut request = vec![b'n'];
        request.extend(id.to_le_bytes());
        request.extend(attempt.to_le_bytes());
        match session.offer(&request) {
            Ok(_) => {
                self.last_attempt = attempt;
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
        let field = |at: usize| {
            let bytes = message.get(at..).and_then(|bytes| bytes.first_chunk());
            bytes.copied().map(i64::from_le_bytes)
        };
        let (Some(number), Some(id), Some(attempt), Some(position), Some(digest)) =
            (field(0), field(9), field(17), field(25), field(33))
        else {
            return self
                .shared
                .accuse("corrupted", format!("an answer of {} bytes", message.len()));
        };
        if !self.attempts.insert(attempt) {
            let text = format!("attempt {attempt} of request {id} is answered twice");
            self.shared.accuse("repeated", text);
        }
        if attempt <= self.first_id || attempt > self.last_attempt {
            self.shared
                .accuse("corrupted", format!("attempt {attempt} of request {id} was not sent"));
        }
        match self.numbers.insert(id, number) {
            Some(known) if known != number => {
                let text = format!("request {id} had the number {known}, and now {number}");
                self.shared.accuse("lost", text);
            }
            Some(_) => {}
            None => {
                self.shared.answered.fetch_add(1, Ordering::Relaxed);
            }
        }
        let digests = &mut *self.shared.digests.lock().unwrap_or_else(PoisonError::into_inner);
        digests.push((position, digest as u64));
        self.shared.answers.fetch_add(1, Ordering::Relaxed);
        // One of several attempts is enough. Late answers to attempts of the first round do not count in the second.
        if self.unanswered.get(&id).is_some_and(|&first| attempt >= first) {
            self.unanswered.remove(&id);
        }
        self.last_answer = Instant::now();
    }
}
