//! A replicated service that digests its events: the oracle of tests with several members.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusteron_cluster::{
    CloseReason, Cluster, ClusterSessionId, ClusteredService, CorrelationId, LeadershipTerm,
    Lifecycle, MessageSource, Role, ServiceError, ServiceResult, SessionInfo, SessionMessage,
    SnapshotReader, SnapshotWriter,
};

/// A new leader waits so long for a client's subscription, before it drops an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Events between two lines of the digest file.
const EVENTS_PER_LINE: i64 = 100;
/// Of so many new requests, one sets a timer, one sends a message to the service itself, and one sets a timer and
/// cancels it.
const PERIOD: i64 = 16;
/// Milliseconds until a timer fires.
const DELAY: i64 = 20;
/// Later than the end of any test.
const NEVER: i64 = 365 * 24 * 3600 * 1000;

/// A service that digests kind, position, time, session and bytes of each event, and notes digests in a file. Obeys
/// commands; numbers are little-endian, and have 64 bits:
///
/// | Command | Answer |
/// |---|---|
/// | `n` ID ATTEMPT | NUMBER, the command, POSITION, DIGEST. The first request with an ID gets the next number, from 1 on; later requests with this ID get the same number |
/// | `s` ID | the command, events, DIGEST, POSITION, timers set and fired, messages to itself sent and received, the last NUMBER |
///
/// Some requests set timers or send a message to the service itself. An event of a timer that was not set, or a message
/// that was not sent, or not in its turn, is a failure.
///
/// `LedgerService.java` is the same service.
#[derive(Debug)]
pub struct Ledger {
    state: State,
    file: DigestFile,
    /// Makes the ledger diverge: the order of iteration is digested.
    unordered: Option<HashMap<i64, i64>>,
}

/// The length of the map that a diverging ledger iterates.
const UNORDERED: i64 = 32;

impl Ledger {
    pub fn new(file: DigestFile) -> Self {
        Self { state: State::new(), file, unordered: None }
    }

    /// Makes a ledger with a mistake that oracles must notice: it digests the order in which a `HashMap` iterates.
    pub fn diverging(file: DigestFile) -> Self {
        Self { unordered: Some(HashMap::new()), ..Self::new(file) }
    }

    fn digest(
        &mut self,
        cluster: &Lifecycle<'_>,
        kind: u8,
        of: i64,
        bytes: &[u8],
    ) -> ServiceResult {
        let mut bytes = Cow::Borrowed(bytes);
        if let Some(unordered) = &mut self.unordered {
            unordered.insert(self.state.count % UNORDERED, self.state.count);
            bytes.to_mut().extend(unordered.values().flat_map(|count| count.to_le_bytes()));
        }
        self.state.digest(kind, cluster.log_position(), cluster.time(), of, &bytes);
        if self.state.count % EVENTS_PER_LINE == 0 {
            self.note()?;
        }
        Ok(())
    }

    fn note(&self) -> ServiceResult {
        Ok(self.file.append(self.state.position, self.state.digest)?)
    }

    /// Answers a client.
    fn obey(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: ClusterSessionId,
        command: &[u8],
    ) -> ServiceResult {
        let id = || command.get(1..9).and_then(|id| id.try_into().ok()).map(i64::from_le_bytes);
        let state = &mut self.state;
        match (command.first(), id()) {
            (Some(b'n'), Some(id)) => {
                let next = state.numbers.len() as i64 + 1;
                let number = *state.numbers.entry(id).or_insert(next);
                if number == next {
                    self.act(cluster, number)?;
                }
                let state = &self.state;
                let end = [state.position, state.digest as i64].map(i64::to_le_bytes);
                answer(cluster, session, &[&number.to_le_bytes(), command, end.as_flattened()])
            }
            (Some(b's'), Some(_)) => {
                let numbers = [
                    state.count,
                    state.digest as i64,
                    state.position,
                    state.timers_set,
                    state.timers_fired,
                    state.messages_sent,
                    state.messages_received,
                    state.numbers.len() as i64,
                ];
                answer(cluster, session, &[command, numbers.map(i64::to_le_bytes).as_flattened()])
            }
            _ => Err(ServiceError::failed(format!("unknown command {command:?}"))),
        }
    }

    /// The further effects of a new request.
    fn act(&mut self, cluster: &mut Cluster<'_>, number: i64) -> ServiceResult {
        match number % PERIOD {
            3 => {
                self.state.timers_set += 1;
                let deadline = cluster.time() + DELAY;
                self.state.timers.insert(self.state.timers_set, deadline);
                cluster.schedule_timer(self.state.timers_set.into(), deadline)
            }
            7 => {
                self.state.messages_sent += 1;
                let sent = cluster.offer(&self.state.messages_sent.to_le_bytes())?;
                sent.map_err(|not_sent| ServiceError::failed(not_sent.to_string()))
            }
            11 => {
                // No other timer has a negative id.
                cluster.schedule_timer((-number).into(), cluster.time() + NEVER)?;
                cluster.cancel_timer((-number).into())
            }
            _ => Ok(()),
        }
    }
}

impl ClusteredService for Ledger {
    fn on_start(
        &mut self,
        _: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        let Some(snapshot) = snapshot else { return Ok(()) };
        let mut bytes = Vec::new();
        snapshot.read_to_end(&mut bytes)?;
        let state = State::from_bytes(&bytes);
        self.state = state.ok_or_else(|| ServiceError::failed("not a snapshot of a ledger"))?;
        println!("loaded {} events", self.state.count);
        self.note()
    }

    fn on_session_open(
        &mut self,
        cluster: &mut Cluster<'_>,
        id: ClusterSessionId,
        _: i64,
    ) -> ServiceResult {
        self.digest(cluster, b'o', id.get(), &[])
    }

    fn on_session_close(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: &SessionInfo,
        _: i64,
        reason: CloseReason,
    ) -> ServiceResult {
        let reason = match reason {
            CloseReason::ClientAction => 0,
            CloseReason::ServiceAction => 1,
            CloseReason::Timeout => 2,
            other => return Err(ServiceError::failed(format!("{other:?}"))),
        };
        self.digest(cluster, b'c', session.id().get(), &[reason])
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        match message.source {
            MessageSource::Client { session_id } => {
                self.digest(cluster, b'm', session_id.get(), message.payload)?;
                self.obey(cluster, session_id, message.payload)
            }
            MessageSource::Service { service_id } => {
                self.digest(cluster, b'm', -1 - i64::from(service_id.get()), message.payload)?;
                self.state.messages_received += 1;
                let expected = self.state.messages_received.to_le_bytes();
                if message.payload != expected {
                    let payload = message.payload;
                    let error = format!("message {payload:?} to itself, expected {expected:?}");
                    return Err(ServiceError::failed(error));
                }
                Ok(())
            }
        }
    }

    fn on_timer_event(
        &mut self,
        cluster: &mut Cluster<'_>,
        id: CorrelationId,
        time: i64,
    ) -> ServiceResult {
        let sessions: Vec<u8> =
            cluster.sessions().flat_map(|session| session.id().get().to_le_bytes()).collect();
        self.digest(cluster, b't', id.get(), &sessions)?;
        self.state.timers_fired += 1;
        match self.state.timers.remove(&id.get()) {
            Some(deadline) if deadline <= time => Ok(()),
            deadline => {
                Err(ServiceError::failed(format!("timer {id} at {time}, set for {deadline:?}")))
            }
        }
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        self.note()?;
        Ok(snapshot.write_all(&self.state.to_bytes())?)
    }

    fn on_new_leadership_term(
        &mut self,
        cluster: &mut Cluster<'_>,
        term: &LeadershipTerm,
    ) -> ServiceResult {
        self.digest(cluster, b'l', term.leadership_term_id.get(), &[])
    }

    fn on_role_change(&mut self, cluster: &mut Lifecycle<'_>, role: Role) {
        println!("{role:?} at {}", cluster.log_position());
    }
}

/// Sends an answer, unless the client is gone. Its session stays: faults may keep it away for longer.
fn answer(cluster: &mut Cluster<'_>, session: ClusterSessionId, parts: &[&[u8]]) -> ServiceResult {
    let message = parts.concat();
    let start = Instant::now();
    while let Some(mut open) = cluster.session(session) {
        match open.offer(&message) {
            Err(error) if error.is_retryable() && start.elapsed() < ANSWER_TIMEOUT => {}
            Err(error) => {
                println!("session {session}: answer dropped: {error}");
                break;
            }
            Ok(_) => break,
        }
        cluster.idle(0)?;
    }
    Ok(())
}

/// The FNV-1a hash of no bytes.
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// The state of a ledger. Snapshots are a stream of little-endian numbers of 64 bits, in the order of the fields. Each
/// map begins with its length. `LedgerService.java` reads and writes the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    /// Events of the log.
    count: i64,
    digest: u64,
    /// The position behind the last event.
    position: i64,
    timers_set: i64,
    timers_fired: i64,
    /// Messages from the service to itself.
    messages_sent: i64,
    messages_received: i64,
    /// Deadlines of the timers that have not fired, by timer.
    timers: BTreeMap<i64, i64>,
    /// Numbers of requests, by request.
    numbers: BTreeMap<i64, i64>,
}

impl State {
    fn new() -> Self {
        Self {
            count: 0,
            digest: EMPTY,
            position: 0,
            timers_set: 0,
            timers_fired: 0,
            messages_sent: 0,
            messages_received: 0,
            timers: BTreeMap::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Digests an event.
    fn digest(&mut self, kind: u8, position: i64, time: i64, of: i64, bytes: &[u8]) {
        let numbers = [position, time, of].map(i64::to_le_bytes);
        for &byte in [kind].iter().chain(numbers.as_flattened()).chain(bytes) {
            self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        self.count += 1;
        self.position = position;
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut numbers = vec![
            self.count,
            self.digest as i64,
            self.position,
            self.timers_set,
            self.timers_fired,
            self.messages_sent,
            self.messages_received,
        ];
        for map in [&self.timers, &self.numbers] {
            numbers.push(map.len() as i64);
            numbers.extend(map.iter().flat_map(|(&key, &value)| [key, value]));
        }
        numbers.into_iter().flat_map(i64::to_le_bytes).collect()
    }

    /// `None` if the bytes are not a snapshot.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut numbers =
            bytes.chunks(8).map_while(|chunk| Some(i64::from_le_bytes(chunk.try_into().ok()?)));
        let mut state = Self {
            count: numbers.next()?,
            digest: numbers.next()? as u64,
            position: numbers.next()?,
            timers_set: numbers.next()?,
            timers_fired: numbers.next()?,
            messages_sent: numbers.next()?,
            messages_received: numbers.next()?,
            timers: BTreeMap::new(),
            numbers: BTreeMap::new(),
        };
        for map in [&mut state.timers, &mut state.numbers] {
            for _ in 0..numbers.next()? {
                map.insert(numbers.next()?, numbers.next()?);
            }
        }
        (bytes.len() % 8 == 0 && numbers.next().is_none()).then_some(state)
    }
}

/// A file to which a ledger appends `POSITION DIGEST`. Restarts of the ledger go on with the same file.
#[derive(Debug)]
pub struct DigestFile(File);

impl DigestFile {
    /// Opens a file, and makes it if it is missing.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::options().create(true).append(true).open(path)?))
    }

    /// Appends a line by one call, so that a kill leaves no half of it.
    fn append(&self, position: i64, digest: u64) -> io::Result<()> {
        (&self.0).write_all(format!("{position} {digest:016x}\n").as_bytes())
    }
}

/// Digests by position, of several ledgers.
#[derive(Debug, Default)]
pub struct Digests {
    /// The digest, and the file that had it first.
    by_position: BTreeMap<i64, (u64, PathBuf)>,
    /// Lines whose position another line had before, with the same digest.
    repeated: usize,
}

impl Digests {
    /// Reads files of ledgers.
    ///
    /// # Errors
    /// Two digests differ at the same position, or a file cannot be read.
    pub fn read(files: impl IntoIterator<Item = PathBuf>) -> Result<Self, String> {
        let mut digests = Self::default();
        for file in files {
            let text = fs::read_to_string(&file)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            for (position, digest) in Self::parse(&text, &file)?.0 {
                digests.add(position, digest, &file)?;
            }
        }
        Ok(digests)
    }

    /// Reads the complete lines of a ledger's file. Returns positions and digests, and the length
    /// of the lines.
    ///
    /// # Errors
    /// A line is none of a ledger's.
    pub fn parse(text: &str, file: &Path) -> Result<(Vec<(i64, u64)>, usize), String> {
        let lines = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let parse = |line: &str| {
            let (position, digest) = line.split_once(' ')?;
            Some((position.parse().ok()?, u64::from_str_radix(digest, 16).ok()?))
        };
        let parse = |line| parse(line).ok_or_else(|| format!("{}: {line:?}", file.display()));
        Ok((lines.lines().map(parse).collect::<Result<_, _>>()?, lines.len()))
    }

    /// Adds a digest from a source, such as a file.
    ///
    /// # Errors
    /// The digest of another source differs at this position.
    pub fn add(&mut self, position: i64, digest: u64, source: &Path) -> Result<(), String> {
        let (first, file) =
            self.by_position.entry(position).or_insert_with(|| (digest, source.to_owned()));
        if *first != digest {
            return Err(format!(
                "position {position}: digest {first:x} in {}, {digest:x} in {}",
                file.display(),
                source.display()
            ));
        }
        self.repeated += usize::from(file != source);
        Ok(())
    }

    /// The last position with a digest.
    pub fn last_position(&self) -> Option<i64> {
        self.by_position.last_key_value().map(|(&position, _)| position)
    }

    pub fn contains(&self, position: i64) -> bool {
        self.by_position.contains_key(&position)
    }

    /// The number of digests that were compared with the digest of another file.
    pub fn compared(&self) -> usize {
        self.repeated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The oracle of the tests on clusters can say no.
    #[test]
    fn divergence_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str, lines: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, lines).expect("a file");
            path
        };
        let first = file("first", "96 a1\n192 a2\n288 a3\n");
        // A killed process can leave a part of a line.
        let equal = file("equal", "192 a2\n288 a3\n38");
        let other = file("other", "192 a2\n288 a4\n");
        let digests = Digests::read([first.clone(), equal]).expect("equal digests");
        assert_eq!((digests.compared(), digests.last_position()), (2, Some(288)));
        let error = Digests::read([first, other]).expect_err("different digests");
        assert!(error.contains("position 288: digest a3 in "), "{error}");
    }
}
