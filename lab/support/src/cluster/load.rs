//! A thread that sends requests to a ledger, follows new leaders, and checks every answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusteron_client::{IdleStrategy as _, IdleStrategyKind};
use rusteron_cluster::{ClusterClient, ClusterContext};

use super::requests::{Answers, Requests, check_numbers};
use crate::{DEADLINE, await_that};

/// The pause between new requests.
const PAUSE: Duration = Duration::from_millis(1);
/// More answers than can be on their way, so that some are new.
const ANSWERS: u64 = 320;

/// Settings of a client over UDP.
pub fn context(endpoints: &str) -> ClusterContext {
    let mut context = ClusterContext::new();
    context
        .set_ingress_channel("aeron:udp")
        .unwrap()
        .set_ingress_endpoints(endpoints.parse().expect("endpoints"))
        .unwrap()
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .unwrap()
        .set_message_timeout(DEADLINE)
        .unwrap();
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
#[derive(Debug)]
pub struct Outcome {
    pub new_leaders: u64,
    /// Sessions after the first one.
    pub new_sessions: u64,
    answers: Answers,
    /// Position and digest of each request.
    pub digests: Vec<(i64, u64)>,
}

impl Default for Outcome {
    fn default() -> Self {
        Self { new_leaders: 0, new_sessions: 0, answers: Answers::new(1), digests: Vec::new() }
    }
}

impl Load {
    pub fn start(client: ClusterClient) -> Self {
        Self::resume(client, Outcome::default())
    }

    /// Starts with a new session and the answers of an old session.
    pub fn resume(client: ClusterClient, outcome: Outcome) -> Self {
        Self::spawn(requests(outcome).with_session(client))
    }

    /// Starts with a session, and opens another one after its end. `connect` may fail; it is called again then.
    pub fn start_persistent(
        mut connect: impl FnMut() -> rusteron_cluster::Result<ClusterClient> + Send + 'static,
    ) -> Self {
        let session = connect().expect("a session");
        let requests = requests(Outcome::default()).with_session(session);
        Self::spawn(requests.with_connect(Box::new(connect)))
    }

    fn spawn(requests: Requests) -> Self {
        let answered = Arc::new(AtomicU64::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let (answered, is_over) = (answered.clone(), is_over.clone());
            move || run(requests, &answered, &is_over)
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

fn requests(outcome: Outcome) -> Requests {
    let mut requests = Requests::new(1, PAUSE, outcome.answers);
    requests.counts.new_leaders = outcome.new_leaders;
    requests.counts.sessions = outcome.new_sessions;
    requests.digests = outcome.digests;
    requests
}

fn run(mut requests: Requests, answered: &AtomicU64, is_over: &AtomicBool) -> Outcome {
    let mut idle = IdleStrategyKind::Backoff.new_strategy();
    loop {
        if requests.advance(is_over.load(Ordering::Relaxed)) {
            // Timers of the ledger, and its messages to itself, come later than answers.
            if requests.effects.is_some_and(|effects| effects.check().is_ok()) {
                break;
            }
            requests.ask_for_effects();
        }
        idle.idle(requests.work());
        assert_eq!((&requests.violations[..], &requests.unexpected), (&[][..], &None));
        // A session may have to be opened anew meanwhile.
        assert!(requests.last_progress.elapsed() < 2 * DEADLINE, "no answers");
        answered.store(requests.counts.answered, Ordering::Relaxed);
    }
    if let Some(effects) = requests.effects {
        assert_eq!(effects.requests, requests.count());
    }
    check_numbers([&requests.answers]).expect("a number for each request");
    Outcome {
        new_leaders: requests.counts.new_leaders,
        new_sessions: requests.counts.sessions,
        answers: requests.answers,
        digests: requests.digests,
    }
}
