//! Requests to a ledger, with the rules for exactly-once answers that `rusteron-cluster` documents,
//! and checks of the answers.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::AddAssign;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::OfferError;
use rusteron_cluster::{AdminResponseCode, ClusterClient, Egress, EventCode};

/// The most requests without an answer.
const WINDOW: usize = 32;
/// Requests without an answer are sent again after this time.
const RETRY: Duration = Duration::from_secs(5);
const RECONNECT_PAUSE: Duration = Duration::from_millis(200);
/// The time after which a question for the effects of requests is asked again.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(2);

/// Opens a session.
pub type Connect = Box<dyn FnMut() -> rusteron_cluster::Result<ClusterClient> + Send>;

/// The name of a violated condition, and a text for the report.
pub type Violation = (&'static str, String);

/// The events since the last look at them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Requests that were answered for the first time.
    pub answered: u64,
    /// Answers, those to repeated requests included.
    pub answers: u64,
    pub sessions: u64,
    pub new_leaders: u64,
    pub snapshots: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.answered += other.answered;
        self.answers += other.answers;
        self.sessions += other.sessions;
        self.new_leaders += other.new_leaders;
        self.snapshots += other.snapshots;
    }
}

/// The requests of one client, and their answers.
pub struct Requests {
    session: Option<ClusterClient>,
    /// Without it, the end of the session is a panic.
    connect: Option<Connect>,
    pub answers: Answers,
    pub counts: Counts,
    /// Position and digest of each request.
    pub digests: Vec<(i64, u64)>,
    pub violations: Vec<Violation>,
    /// The last event that neither a new leader nor an accepted request explains.
    pub unexpected: Option<String>,
    /// The last answer to a question for the effects of requests.
    pub effects: Option<Effects>,
    pub questions_answered: u32,
    next_question: Instant,
    first_id: i64,
    /// Behind the ids of all requests.
    next_id: i64,
    /// The next request to send a second time.
    next_repeated: i64,
    /// The pause between new requests, and when the next one is due.
    pause: Duration,
    next: Instant,
    /// Requests without an answer, and their first attempts.
    unanswered: BTreeMap<i64, i64>,
    /// Requests that are to be sent again; the next one is the last.
    again: Vec<i64>,
    needs_keep_alive: bool,
    /// The time of the last answer, new request or session.
    pub last_progress: Instant,
    last_retry: Instant,
}

impl Requests {
    /// Describes requests with ids from `first_id` on. The answers may be those of an earlier client.
    pub fn new(first_id: i64, pause: Duration, answers: Answers) -> Self {
        let now = Instant::now();
        Self {
            session: None,
            connect: None,
            next_id: first_id + answers.numbers.len() as i64,
            answers,
            counts: Counts::default(),
            digests: Vec::new(),
            violations: Vec::new(),
            unexpected: None,
            effects: None,
            questions_answered: 0,
            next_question: now,
            first_id,
            next_repeated: first_id,
            pause,
            next: now,
            unanswered: BTreeMap::new(),
            again: Vec::new(),
            needs_keep_alive: false,
            last_progress: now,
            last_retry: now,
        }
    }

    #[must_use]
    pub fn with_session(self, session: ClusterClient) -> Self {
        Self { session: Some(session), ..self }
    }

    /// Opens a session when there is none.
    #[must_use]
    pub fn with_connect(self, connect: Connect) -> Self {
        Self { connect: Some(connect), ..self }
    }

    pub fn session(&mut self) -> Option<&mut ClusterClient> {
        self.session.as_mut()
    }

    /// How many requests there are.
    pub fn count(&self) -> i64 {
        self.next_id - self.first_id
    }

    /// Sends the next request: new ones until the end, and then each a second time. Returns whether the cluster has
    /// answered all of them twice.
    pub fn advance(&mut self, is_over: bool) -> bool {
        if !is_over {
            if Instant::now() >= self.next && self.send_new(self.next_id) {
                self.next_id += 1;
                self.next = Instant::now() + self.pause;
            }
        } else if self.next_repeated < self.next_id && self.send_new(self.next_repeated) {
            self.next_repeated += 1;
        }
        is_over && self.next_repeated == self.next_id && self.unanswered.is_empty()
    }

    /// Asks a ledger for the effects of all requests, when that is due.
    pub fn ask_for_effects(&mut self) {
        if Instant::now() < self.next_question || self.needs_keep_alive {
            return;
        }
        let question = [b"s", &self.first_id.to_le_bytes()[..]].concat();
        if self.offer(&question) {
            self.next_question = Instant::now() + QUESTION_TIMEOUT;
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
        let attempt = self.answers.next_attempt();
        let request = [b"n", &id.to_le_bytes()[..], &attempt.to_le_bytes()].concat();
        let is_sent = self.offer(&request);
        if is_sent {
            self.answers.on_sent();
            self.unanswered.entry(id).or_insert(attempt);
        }
        is_sent
    }

    fn offer(&mut self, message: &[u8]) -> bool {
        let Some(session) = &mut self.session else { return false };
        match session.offer(message) {
            Ok(_) => true,
            Err(error) => {
                self.check(error);
                false
            }
        }
    }

    /// Leaves a session for which an offer cannot succeed later.
    fn check(&mut self, error: OfferError) {
        if !error.is_retryable() {
            self.leave(&error);
        }
    }

    fn leave(&mut self, error: &dyn fmt::Display) {
        assert!(self.connect.is_some(), "the session has ended: {error}");
        self.session = None;
    }

    /// Connects and polls, and sends requests again as far as the cluster accepts them.
    pub fn work(&mut self) -> usize {
        if !self.is_connected() {
            return 0;
        }
        let work = self.poll();
        // A new leader drops an answer if the client's subscription is not there soon.
        let is_late = |since: Instant| since.elapsed() >= RETRY;
        if is_late(self.last_progress) && is_late(self.last_retry) {
            self.start_again();
        }
        if let (true, Some(session)) = (self.needs_keep_alive, &mut self.session) {
            match session.send_keep_alive() {
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

    fn is_connected(&mut self) -> bool {
        if let (None, Some(connect)) = (&self.session, &mut self.connect) {
            match connect() {
                Ok(session) => {
                    self.session = Some(session);
                    self.counts.sessions += 1;
                    self.last_progress = Instant::now();
                    self.start_again();
                }
                Err(_) => thread::sleep(RECONNECT_PAUSE),
            }
        }
        self.session.is_some()
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
        let is_persistent = self.connect.is_some();
        let (snapshots, unexpected) = (&mut self.counts.snapshots, &mut self.unexpected);
        let handler = |_: &mut _, event: Egress<'_>| match event {
            Egress::Message { payload, .. } => messages.push(payload.to_vec()),
            Egress::NewLeader { .. } => new_leaders += 1,
            Egress::AdminResponse { response_code: AdminResponseCode::Ok, .. } => *snapshots += 1,
            // A new leader confirms a session that the old leader has opened.
            Egress::SessionEvent { code: EventCode::Ok, .. } => {}
            Egress::SessionEvent { code: EventCode::Closed, .. } if is_persistent => {}
            other => *unexpected = Some(format!("{other:?}")),
        };
        let polled = session.poll_egress(handler, 10);
        messages.iter().for_each(|message| self.on_answer(message));
        self.counts.new_leaders += new_leaders;
        if new_leaders > 0 {
            self.start_again();
        }
        polled.unwrap_or_else(|error| {
            self.leave(&error);
            0
        })
    }

    fn on_answer(&mut self, message: &[u8]) {
        self.last_progress = Instant::now();
        if let Some(effects) = Effects::from_message(message) {
            self.questions_answered += 1;
            self.next_question = self.last_progress + self.pause;
            self.effects = Some(effects);
            return;
        }
        let Some(answer) = self.answers.check(message, &mut self.violations) else { return };
        self.counts.answers += 1;
        self.counts.answered += u64::from(answer.is_first);
        self.digests.push(answer.digest);
        // One of several attempts is enough. Late answers to attempts of the first round do not count in the second.
        if self.unanswered.get(&answer.id).is_some_and(|&first| answer.attempt >= first) {
            self.unanswered.remove(&answer.id);
        }
    }
}

/// An answer that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub id: i64,
    pub attempt: i64,
    /// Position and digest.
    pub digest: (i64, u64),
    /// No earlier answer had this id.
    pub is_first: bool,
}

/// Checks the answers to the requests of one client.
#[derive(Debug)]
pub struct Answers {
    first_attempt: i64,
    /// The last attempt that was sent, or the number before the first.
    last_attempt: i64,
    /// All attempts that were answered.
    attempts: HashSet<i64>,
    /// The number that each request has got.
    numbers: HashMap<i64, i64>,
}

impl Answers {
    pub fn new(first_attempt: i64) -> Self {
        Self {
            first_attempt,
            last_attempt: first_attempt - 1,
            attempts: HashSet::new(),
            numbers: HashMap::new(),
        }
    }

    pub fn next_attempt(&self) -> i64 {
        self.last_attempt + 1
    }

    /// Notes that the next attempt was sent.
    pub fn on_sent(&mut self) {
        self.last_attempt += 1;
    }

    /// Checks an answer to `n`. Returns `None` if its length is wrong.
    pub fn check(&mut self, message: &[u8], violations: &mut Vec<Violation>) -> Option<Answer> {
        // The command without its first byte is two numbers. The ledger adds two.
        let is_right = message.len() == 41 && message[8] == b'n';
        let fields = [0, 9, 17, 25, 33].map(|at| number(message, at).filter(|_| is_right));
        let [Some(number_of_request), Some(id), Some(attempt), Some(position), Some(digest)] =
            fields
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
        let known = self.numbers.insert(id, number_of_request);
        if let Some(known) = known.filter(|known| *known != number_of_request) {
            let text = format!("request {id} had the number {known}, and now {number_of_request}");
            violations.push(("lost", text));
        }
        Some(Answer { id, attempt, digest: (position, digest as u64), is_first: known.is_none() })
    }
}

/// Checks the numbers of the requests of all clients: each number from 1 on occurs once.
pub fn check_numbers<'a>(clients: impl IntoIterator<Item = &'a Answers>) -> Result<(), Violation> {
    let numbers = clients.into_iter().flat_map(|answers| answers.numbers.values());
    let mut all: Vec<i64> = numbers.copied().collect();
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
pub struct Effects {
    timers_set: i64,
    timers_fired: i64,
    messages_sent: i64,
    messages_received: i64,
    /// Requests with a number.
    pub requests: i64,
}

impl Effects {
    /// Returns `None` if this is an answer to another command.
    pub fn from_message(message: &[u8]) -> Option<Self> {
        if message.len() != 73 || message[0] != b's' {
            return None;
        }
        Some(Self {
            timers_set: number(message, 33)?,
            timers_fired: number(message, 41)?,
            messages_sent: number(message, 49)?,
            messages_received: number(message, 57)?,
            requests: number(message, 65)?,
        })
    }

    /// Checks that no timer and no message of the ledger to itself is missing.
    pub fn check(self) -> Result<(), Violation> {
        let Self { timers_set, timers_fired, messages_sent, messages_received, .. } = self;
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
        let expected = Answer { id: 7, attempt: FIRST, digest: (4096, u64::MAX), is_first: true };
        assert_eq!(first, Some(expected));
        answers.on_sent();
        let again = answers.check(&answer(1, 7, FIRST + 1), &mut violations);
        assert_eq!(again, Some(Answer { attempt: FIRST + 1, is_first: false, ..expected }));
        assert_eq!((violations, answers.numbers), (vec![], [(7, 1)].into()));
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
            let clients = numbers.map(|numbers| {
                let numbers = (0..).zip(numbers.iter().copied()).collect();
                Answers { numbers, ..Answers::new(FIRST) }
            });
            check_numbers(&clients).map_err(|(name, _)| name)
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
