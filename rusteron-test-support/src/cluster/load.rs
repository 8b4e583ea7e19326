//! A client that sends requests to a `NumberService` or ledger, follows new leaders, and checks every answer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{DEADLINE, await_that};
use rusteron_client::{Aeron, IdleStrategy, IdleStrategyKind, OfferError};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress, EventCode};

/// The most requests without an answer.
const WINDOW: usize = 32;
/// The pause between new requests.
const PAUSE: Duration = Duration::from_millis(1);
/// Requests without an answer are sent again after this time.
const RETRY: Duration = Duration::from_secs(5);
/// The pause between two questions for the state of a ledger.
const LEDGER_PAUSE: Duration = Duration::from_millis(100);
/// More answers than can be on their way, so that some are new.
const ANSWERS: u64 = 10 * WINDOW as u64;

/// Settings of a client over UDP.
pub fn context(endpoints: &str) -> ClusterContext {
    let mut context = ClusterContext::new();
    context
        .set_ingress_channel("aeron:udp")
        .set_ingress_endpoints(endpoints.parse().expect("endpoints"))
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .set_message_timeout(DEADLINE);
    context
}

/// A thread that sends requests until [`finish`](Self::finish).
#[derive(Debug)]
pub struct Load {
    thread: JoinHandle<Outcome>,
    answered: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

/// The answers to a load.
#[derive(Debug, Default)]
pub struct Outcome {
    pub new_leaders: u32,
    /// Sessions after the first one.
    pub new_sessions: u32,
    last_attempt: i64,
    /// The number that each request has got.
    numbers: HashMap<i64, i64>,
    /// Position and digest of each request, as answers of ledgers have them.
    pub digests: Vec<(i64, u64)>,
}

impl Load {
    pub fn start(client: ClusterClient) -> Self {
        Self::resume(client, Outcome::default())
    }

    /// Starts with a new session and the answers of an old session.
    pub fn resume(client: ClusterClient, outcome: Outcome) -> Self {
        Self::spawn(client, None, outcome)
    }

    /// Starts with a session whose Aeron client has no conductor thread.
    pub fn start_with_invoker(client: ClusterClient, aeron: Aeron) -> Self {
        Self::spawn(client, Some(aeron), Outcome::default())
    }

    /// Starts with a session, and opens another one after its end. `connect` may fail; it is called again then.
    pub fn start_persistent(
        connect: impl FnMut() -> rusteron_cluster::Result<ClusterClient> + Send + 'static,
    ) -> Self {
        let mut connect = Box::new(connect);
        let client = connect().expect("a session");
        Self::spawn_with(move |answered| Requests {
            connect: Some(Connect(connect)),
            ..Requests::new(client, None, Outcome::default(), answered)
        })
    }

    fn spawn(client: ClusterClient, invoker: Option<Aeron>, outcome: Outcome) -> Self {
        Self::spawn_with(move |answered| Requests::new(client, invoker, outcome, answered))
    }

    fn spawn_with(requests: impl FnOnce(Arc<AtomicU64>) -> Requests + Send + 'static) -> Self {
        let answered = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (answered, is_over) = (answered.clone(), is_over.clone());
            move || requests(answered).run(&is_over)
        });
        Self { thread, answered, is_over }
    }

    /// Waits until the cluster has answered requests that are newer than this call.
    pub fn await_answers(&self) {
        let goal = self.answered.load(Ordering::Relaxed) + ANSWERS;
        await_that("answers", || {
            assert!(!self.thread.is_finished(), "the client has failed");
            thread::sleep(PAUSE);
            self.answered.load(Ordering::Relaxed) >= goal
        });
    }

    /// Waits for the last answers, and asks for all of them again: the cluster has forgotten and repeated nothing.
    pub fn finish(self) -> Outcome {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("a load that succeeds")
    }
}

/// Opens a session.
struct Connect(Box<dyn FnMut() -> rusteron_cluster::Result<ClusterClient> + Send>);

impl Connect {
    /// Tries until there is a session.
    fn call(&mut self) -> ClusterClient {
        let deadline = Instant::now() + 2 * DEADLINE;
        loop {
            match self.0() {
                Ok(client) => return client,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        }
    }
}

/// The requests of a client, with the rules for exactly-once answers that the crate documents.
struct Requests {
    client: ClusterClient,
    invoker: Option<Aeron>,
    /// Opens another session. Without it, the end of the session is a failure.
    connect: Option<Connect>,
    outcome: Outcome,
    answered: Arc<AtomicU64>,
    last_id: i64,
    /// Requests without an answer, and their first attempts.
    unanswered: BTreeMap<i64, i64>,
    /// Requests that are to be sent again, in order.
    again: Vec<i64>,
    needs_keep_alive: bool,
    /// A ledger has said that nothing is outstanding.
    is_balanced: bool,
    /// All attempts that were answered.
    answers: HashSet<i64>,
    /// The time of the last answer or the last new request.
    last_progress: Instant,
    last_retry: Instant,
}

impl Requests {
    fn new(
        client: ClusterClient,
        invoker: Option<Aeron>,
        outcome: Outcome,
        answered: Arc<AtomicU64>,
    ) -> Self {
        let now = Instant::now();
        Self {
            client,
            invoker,
            connect: None,
            last_id: outcome.numbers.len() as i64,
            outcome,
            answered,
            unanswered: BTreeMap::new(),
            again: Vec::new(),
            needs_keep_alive: false,
            is_balanced: false,
            answers: HashSet::new(),
            last_progress: now,
            last_retry: now,
        }
    }

    fn run(mut self, is_over: &AtomicBool) -> Outcome {
        let mut idle = IdleStrategyKind::Backoff.new_strategy();
        let mut next = Instant::now();
        while !is_over.load(Ordering::Relaxed) || !self.unanswered.is_empty() {
            let is_time = !is_over.load(Ordering::Relaxed) && Instant::now() >= next;
            if is_time && self.send_new(self.last_id + 1) {
                self.last_id += 1;
                next = Instant::now() + PAUSE;
            }
            idle.idle(self.work());
        }
        // Each request a second time.
        let mut id = 1;
        while id <= self.last_id || !self.unanswered.is_empty() {
            if id <= self.last_id && self.send_new(id) {
                id += 1;
            }
            idle.idle(self.work());
        }
        // Each request has its own number, so none was applied twice.
        let numbers: HashSet<i64> = self.outcome.numbers.values().copied().collect();
        assert_eq!(numbers.len() as i64, self.last_id);
        assert_eq!(numbers.iter().max(), Some(&self.last_id));
        if !self.outcome.digests.is_empty() {
            self.await_ledger(&mut idle);
        }
        self.outcome
    }

    /// Waits until all timers of the ledger have fired, and all its messages to itself have arrived.
    fn await_ledger(&mut self, idle: &mut dyn IdleStrategy) {
        let mut next = Instant::now();
        while !self.is_balanced {
            // Answers can be lost with a leader.
            if Instant::now() >= next {
                if let Err(error) = self.client.offer(&[b's', 0, 0, 0, 0, 0, 0, 0, 0]) {
                    self.check(error);
                }
                next = Instant::now() + LEDGER_PAUSE;
            }
            idle.idle(self.work());
        }
    }

    /// Sends a request, unless too many wait for their answers, or have to be sent again first.
    fn send_new(&mut self, id: i64) -> bool {
        let is_free = self.again.is_empty() && !self.needs_keep_alive;
        let is_sent = is_free && self.unanswered.len() < WINDOW && self.send(id);
        if is_sent {
            self.last_progress = Instant::now();
        }
        is_sent
    }

    /// Sends a request; `false` if the cluster does not accept it now.
    fn send(&mut self, id: i64) -> bool {
        let attempt = self.outcome.last_attempt + 1;
        let mut request = vec![b'n'];
        request.extend(id.to_le_bytes());
        request.extend(attempt.to_le_bytes());
        match self.client.offer(&request) {
            Ok(_) => {
                self.outcome.last_attempt = attempt;
                self.unanswered.entry(id).or_insert(attempt);
                true
            }
            Err(error) => {
                self.check(error);
                false
            }
        }
    }

    /// Asserts that an offer can succeed later.
    fn check(&self, error: OfferError) {
        assert!(error.is_retryable() || self.connect.is_some(), "{error}");
    }

    /// Polls, and sends requests again as far as the cluster accepts them.
    fn work(&mut self) -> usize {
        let work = self.poll();
        assert!(self.last_progress.elapsed() < DEADLINE, "no answers to {:?}", self.unanswered);
        // A new leader drops an answer if the client's subscription is not there soon.
        let is_late = |since: Instant| since.elapsed() >= RETRY;
        if is_late(self.last_progress) && is_late(self.last_retry) {
            self.start_again();
        }
        if self.needs_keep_alive {
            match self.client.send_keep_alive() {
                Ok(_) => self.needs_keep_alive = false,
                Err(error) => self.check(error),
            }
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
        if let Some(aeron) = &self.invoker {
            aeron.do_work().expect("an open client");
        }
        let mut messages = Vec::new();
        let mut new_leaders = 0;
        let is_persistent = self.connect.is_some();
        let handler = |_: &mut _, event: Egress<'_>| match event {
            Egress::Message { payload, .. } => messages.push(payload.to_vec()),
            Egress::NewLeader { .. } => new_leaders += 1,
            // A new leader confirms a session that the old leader has opened.
            Egress::SessionEvent { code: EventCode::Ok, .. } => {}
            Egress::SessionEvent { code: EventCode::Closed, .. } if is_persistent => {}
            other => panic!("{other:?}"),
        };
        let polled = self.client.poll_egress(handler, 10);
        messages.iter().for_each(|message| self.on_answer(message));
        self.answered.store(self.outcome.numbers.len() as u64, Ordering::Relaxed);
        self.outcome.new_leaders += new_leaders;
        if new_leaders > 0 {
            self.start_again();
        }
        match (polled, &mut self.connect) {
            (Ok(work), _) => work,
            (Err(error), None) => panic!("{error}"),
            (Err(_), Some(connect)) => {
                self.client = connect.call();
                self.outcome.new_sessions += 1;
                self.last_progress = Instant::now();
                self.start_again();
                1
            }
        }
    }

    fn on_answer(&mut self, message: &[u8]) {
        let field =
            |at: usize| i64::from_le_bytes(message[at..at + 8].try_into().expect("8 bytes"));
        if message[0] == b's' && message.len() == 73 {
            let [set, fired, sent, received, numbers] = [33, 41, 49, 57, 65].map(field);
            assert_eq!(numbers, self.last_id);
            self.is_balanced = set == fired && sent == received;
            return;
        }
        let (number, id, attempt) = (field(0), field(9), field(17));
        assert_eq!(message[8], b'n');
        match message.len() {
            // From `NumberService`.
            25 => {}
            41 => self.outcome.digests.push((field(25), field(33) as u64)),
            length => panic!("{length} bytes"),
        }
        assert!(
            self.answers.insert(attempt),
            "attempt {attempt} of request {id} is answered twice"
        );
        assert!(
            (1..=self.outcome.last_attempt).contains(&attempt),
            "nobody sent attempt {attempt}"
        );
        let known = *self.outcome.numbers.entry(id).or_insert(number);
        assert_eq!(known, number, "the cluster has forgotten its answer to request {id}");
        // One of several attempts is enough. Late answers to attempts of the first round do not count in the second.
        if self.unanswered.get(&id).is_some_and(|&first| attempt >= first) {
            self.unanswered.remove(&id);
        }
        self.last_progress = Instant::now();
    }
}
