//! A client that sends requests to `NumberService`, follows new leaders, and checks every answer.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusteron_client::{IdleStrategy, IdleStrategyKind};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress, EventCode};
use rusteron_test_support::{DEADLINE, await_that};

/// How many requests wait for their answers at the most.
const WINDOW: usize = 32;
/// The pause between new requests.
const PAUSE: Duration = Duration::from_millis(1);
/// How many answers prove that the cluster answers: more than were on their way before.
const ANSWERS: u64 = 10 * WINDOW as u64;

/// Settings of a client over UDP.
pub(crate) fn context(endpoints: &str) -> ClusterContext {
    let mut context = ClusterContext::new();
    context
        .set_ingress_channel("aeron:udp")
        .set_ingress_endpoints(endpoints.parse().expect("endpoints"))
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .set_message_timeout(DEADLINE);
    context
}

/// A thread that sends requests until [`finish`](Self::finish).
pub(crate) struct Load {
    thread: JoinHandle<Outcome>,
    answered: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

/// What a load has seen.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) new_leaders: u32,
}

impl Load {
    pub(crate) fn start(client: ClusterClient) -> Self {
        let answered = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (answered, is_over) = (answered.clone(), is_over.clone());
            move || Requests::new(client, answered).run(&is_over)
        });
        Self { thread, answered, is_over }
    }

    /// Waits until the cluster has answered requests that are newer than this call.
    pub(crate) fn await_answers(&self) {
        let goal = self.answered.load(Ordering::Relaxed) + ANSWERS;
        await_that("answers", || {
            assert!(!self.thread.is_finished(), "the client has failed");
            thread::sleep(PAUSE);
            self.answered.load(Ordering::Relaxed) >= goal
        });
    }

    /// Waits for the last answers, and asks for all of them again: the cluster has forgotten and repeated nothing.
    pub(crate) fn finish(self) -> Outcome {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("a load that succeeds")
    }
}

/// The requests of a client, with the rules for exactly-once answers that the crate documents.
struct Requests {
    client: ClusterClient,
    answered: Arc<AtomicU64>,
    idle: Box<dyn FnMut(usize)>,
    last_id: i64,
    last_attempt: i64,
    /// The last attempts of requests without an answer.
    unanswered: BTreeMap<i64, i64>,
    /// The numbers that answered requests have got.
    numbers: HashMap<i64, i64>,
    /// All attempts that were answered.
    answers: HashSet<i64>,
    new_leaders: u32,
}

impl Requests {
    fn new(client: ClusterClient, answered: Arc<AtomicU64>) -> Self {
        let mut idle = IdleStrategyKind::Backoff.new_strategy();
        Self {
            client,
            answered,
            idle: Box::new(move |work| idle.idle(work)),
            last_id: 0,
            last_attempt: 0,
            unanswered: BTreeMap::new(),
            numbers: HashMap::new(),
            answers: HashSet::new(),
            new_leaders: 0,
        }
    }

    fn run(mut self, is_over: &AtomicBool) -> Outcome {
        let mut next = Instant::now();
        while !is_over.load(Ordering::Relaxed) {
            if self.unanswered.len() < WINDOW
                && Instant::now() >= next
                && self.send(self.last_id + 1)
            {
                self.last_id += 1;
                next = Instant::now() + PAUSE;
            }
            self.poll();
        }
        self.await_all();
        for id in 1..=self.last_id {
            while self.unanswered.len() >= WINDOW || !self.send(id) {
                self.poll();
            }
        }
        self.await_all();
        // Each request has its own number, so none was applied twice.
        let numbers: HashSet<i64> = self.numbers.values().copied().collect();
        assert_eq!(numbers.len() as i64, self.last_id);
        assert_eq!(numbers.iter().max(), Some(&self.last_id));
        Outcome { new_leaders: self.new_leaders }
    }

    fn await_all(&mut self) {
        let deadline = Instant::now() + DEADLINE;
        while !self.unanswered.is_empty() {
            assert!(Instant::now() < deadline, "no answers to {:?}", self.unanswered.keys());
            self.poll();
        }
    }

    /// Sends a request; `false` if the cluster does not take it now.
    fn send(&mut self, id: i64) -> bool {
        let attempt = self.last_attempt + 1;
        let mut request = vec![b'n'];
        request.extend(id.to_le_bytes());
        request.extend(attempt.to_le_bytes());
        match self.client.offer(&request) {
            Ok(_) => {
                self.last_attempt = attempt;
                self.unanswered.insert(id, attempt);
                true
            }
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                false
            }
        }
    }

    fn poll(&mut self) {
        let mut messages = Vec::new();
        let mut new_leaders = 0;
        let handler = |_: &mut _, event: Egress<'_>| match event {
            Egress::Message { payload, .. } => messages.push(payload.to_vec()),
            Egress::NewLeader { .. } => new_leaders += 1,
            // A new leader confirms a session that the old leader has opened.
            Egress::SessionEvent { code: EventCode::Ok, .. } => {}
            other => panic!("{other:?}"),
        };
        let work = self.client.poll_egress(handler, 10).expect("an open session");
        messages.iter().for_each(|message| self.on_answer(message));
        self.answered.store(self.numbers.len() as u64, Ordering::Relaxed);
        self.new_leaders += new_leaders;
        if new_leaders > 0 {
            self.send_again();
        }
        (self.idle)(work);
    }

    /// Sends all unanswered requests to a new leader, in order, behind a keep-alive.
    fn send_again(&mut self) {
        let deadline = Instant::now() + DEADLINE;
        let wait = |error: rusteron_client::OfferError| {
            assert!(error.is_retryable() && Instant::now() < deadline, "{error}");
            thread::sleep(PAUSE);
        };
        while let Err(error) = self.client.send_keep_alive() {
            wait(error);
        }
        for id in self.unanswered.keys().copied().collect::<Vec<_>>() {
            while !self.send(id) {
                thread::sleep(PAUSE);
                assert!(Instant::now() < deadline, "the new leader takes no request");
            }
        }
    }

    fn on_answer(&mut self, message: &[u8]) {
        let field =
            |at: usize| i64::from_le_bytes(message[at..at + 8].try_into().expect("8 bytes"));
        let (number, id, attempt) = (field(0), field(9), field(17));
        assert_eq!((message.len(), message[8]), (25, b'n'));
        assert!(
            self.answers.insert(attempt),
            "attempt {attempt} of request {id} is answered twice"
        );
        assert!((1..=self.last_attempt).contains(&attempt), "nobody sent attempt {attempt}");
        let known = *self.numbers.entry(id).or_insert(number);
        assert_eq!(known, number, "the cluster has forgotten its answer to request {id}");
        if self.unanswered.get(&id) == Some(&attempt) {
            self.unanswered.remove(&id);
        }
    }
}
