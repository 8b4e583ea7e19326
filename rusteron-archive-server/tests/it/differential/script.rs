//! Random requests, and publishers whose streams are recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, ExclusivePublication, OfferError, UncheckedChannel};
use rusteron_test_support::{Random, free_port};

use super::files::Recording;
use super::protocol::{Field, Ids, Int, Long, Names, encode};
use super::side::Side;

pub(super) const TERM_LENGTH: i64 = 64 * 1024;
const SEGMENT_LENGTH: i64 = 128 * 1024;
const INITIAL_TERM: i64 = 7;
const STREAMS: [i32; 2] = [33, 34];
/// Kinds of requests, and of all steps.
const REQUESTS: usize = 29;
const KINDS: usize = 42;
/// How long messages are offered in a step.
const OFFERING: Duration = Duration::from_secs(2);

/// Messages for both archives.
pub(super) struct Script {
    aeron: Aeron,
    /// Of the streams over UDP.
    endpoint: String,
    random: Random,
    pub(super) publications: BTreeMap<usize, (ExclusivePublication, i32)>,
    /// The recordings that there are before a step.
    pub(super) recordings: Vec<Recording>,
    /// The ends of frames that publications have offered, by their session.
    frames: BTreeMap<i32, Vec<i64>>,
    /// The sessions of recordings.
    sessions: BTreeMap<i64, BTreeSet<i32>>,
    /// Where recordings in progress are.
    active: BTreeMap<i64, i64>,
    /// A counter that bounds replays.
    limit_counter: i32,
    last_correlation: i64,
}

/// What happens in a step.
pub(super) enum Step {
    /// A message for each of the archives.
    Request([Vec<u8>; 2]),
    /// A change of a publisher, which both archives see.
    Publisher,
}

impl Script {
    pub(super) fn new(aeron: Aeron, seed: u64, limit_counter: i32) -> Self {
        let endpoint = format!("endpoint=localhost:{}", free_port());
        let random = Random::new(seed);
        Self {
            aeron,
            endpoint,
            random,
            publications: BTreeMap::new(),
            recordings: Vec::new(),
            frames: BTreeMap::new(),
            sessions: BTreeMap::new(),
            active: BTreeMap::new(),
            limit_counter,
            last_correlation: 100,
        }
    }

    /// Makes up the next step, and says what it is.
    pub(super) fn next(&mut self, sides: &mut [Side; 2]) -> (String, Step) {
        self.active.clear();
        for progress in sides[0].progress().0 {
            self.sessions.entry(progress.recording).or_default().insert(progress.session_id);
            self.active.insert(progress.recording, progress.position);
        }
        let mut random = Random::new(self.random.next());
        let (kind, fitting) = match self.fitting(&mut random) {
            Some((kind, recording)) if random.percent(65) => (kind, Some(recording)),
            _ => (random.below(KINDS), None),
        };
        if kind >= REQUESTS {
            let what = self.publish(random, sides);
            return (what, Step::Publisher);
        }
        self.last_correlation += 1;
        let [(what, first), (other, second)] =
            sides.each_mut().map(|side| self.request(side, kind, fitting, random.clone()));
        assert_eq!(what, other, "the archives have given different ids");
        (format!("{} {what}", self.last_correlation), Step::Request([first, second]))
    }

    /// A kind of step, and a recording with frames whose state it fits.
    fn fitting(&self, random: &mut Random) -> Option<(usize, i64)> {
        let fits = |kind: usize, it: &Recording| {
            let end = self.active.get(&it.id).copied().unwrap_or(it.stop);
            let has_segments = end - first_base(it) >= SEGMENT_LENGTH;
            match kind {
                // To go on behind its end, and to migrate.
                0 => it.is_aligned(),
                5 => it.stop < 0 && has_segments,
                19 | 20 => it.start < it.stop,
                21 => it.start < it.stop && self.recordings.len() > 6,
                22..=24 => has_segments,
                25 | 26 => it.has_detached,
                27 => self.contiguous().iter().any(|&(first, _)| first == it.id),
                // Publishers.
                REQUESTS => it.stop < 0,
                _ => false,
            }
        };
        let recordings = |kind| self.recordings.iter().filter(move |it| fits(kind, it));
        let kinds: Vec<_> = (0..=REQUESTS).filter(|&kind| recordings(kind).count() > 0).collect();
        let &kind = kinds.get(random.below(kinds.len()))?;
        let ids: Vec<_> = recordings(kind).map(|it| it.id).collect();
        Some((kind, ids[random.below(ids.len())]))
    }

    fn channel(&self, random: &mut Random) -> String {
        let udp = format!("aeron:udp?{}", self.endpoint);
        // None with tags: it could be recorded beside another that has the same streams, and the driver announces an image
        // to several subscriptions in any order.
        let usual = ["aeron:ipc", "aeron:ipc?alias=x", "aeron:ipc?mtu=1408", &udp];
        let wrong = ["aeron:foo", "nonsense", "aeron:ipc?so-sndbuf=1x", "aeron:udp"];
        let is_wrong = random.percent(15);
        let chosen = random.below(4);
        (if is_wrong { wrong[chosen] } else { usual[chosen] }).to_owned()
    }

    /// Makes a request of a kind, about a recording that it fits, or about any.
    fn request(
        &self,
        side: &mut Side,
        kind: usize,
        fitting: Option<i64>,
        mut random: Random,
    ) -> (String, Vec<u8>) {
        let random = &mut random;
        let correlation_id = self.last_correlation;
        let mut choose = |numbers: &[i64]| numbers[random.below(numbers.len())];
        let position = choose(&[-1, -1, 0, 32, 96, 128, 160, 13, -64, 1 << 17, 1 << 20, i64::MAX]);
        // Not 0: Java never ends such a replay, nor that of a recording without frames that begins elsewhere than at 0.
        let length = choose(&[-1, -1, -2, -2, 32, 64, 1 << 30, i64::MAX, -5, i64::MIN]);
        let io_max = Int(choose(&[-1, 0, 1000, 4096, 1 << 21]) as i32);
        let count = choose(&[1, 2, 5, 100]) as i32;
        let (location, auto_stop) = (choose(&[0, 1]) as i32, choose(&[0, 1]) as i32);
        let position_of = choose(&[52, 12, 15, 67]) as u16;
        let stream = STREAMS[random.below(STREAMS.len())];
        let (channel, number) = (self.channel(random), random.below(1000));
        let recording = match side.ids.recordings {
            known if random.percent(85) => random.below(known) as i64,
            known => [known as i64, 99, -1][random.below(3)],
        };
        let recording = fitting.unwrap_or(recording);
        let known = self.recordings.iter().find(|known| known.id == recording);
        let stream = fitting.and(known).map_or(stream, |known| known.stream);
        let is_empty = known.is_some_and(|known| known.start == known.stop);
        let position = if is_empty { 13 } else { position };
        let fragment = ["", "ipc", "alias", "udp", "zzz"][random.below(5)];

        let pick = |ids: &[i64]| match ids.len() {
            known if known == 0 || number % 5 == 0 => (0, 12_345),
            known => (1 + number % known, ids[number % known]),
        };
        let session = Long(side.session);
        let head = |template: u16, fields: Vec<Field>, data: &[&str]| {
            let fields: Vec<_> =
                [session, Long(correlation_id)].into_iter().chain(fields).collect();
            encode(template, &fields, &data.iter().map(|it| it.as_bytes()).collect::<Vec<_>>())
        };
        let source = || vec![Int(stream), Int(location)];
        let described = format!("{channel} stream {stream} location {location}");
        match kind {
            0 | 1 => {
                side.ids.expect(correlation_id, Names::Subscription);
                (format!("start recording {described}"), head(4, source(), &[&channel]))
            }
            2 => {
                side.ids.expect(correlation_id, Names::Subscription);
                let fields = [source(), vec![Int(auto_stop)]].into_iter().flatten().collect();
                let what = format!("start recording {described} auto-stop {auto_stop}");
                (what, head(63, fields, &[&channel]))
            }
            3 => {
                let what = format!("stop recording {channel} stream {stream}");
                (what, head(5, vec![Int(stream)], &[&channel]))
            }
            4 => {
                let (number, id) = pick(&side.ids.subscriptions);
                (format!("stop subscription {number}"), head(14, vec![Long(id)], &[]))
            }
            5 => (format!("stop recording {recording}"), head(65, vec![Long(recording)], &[])),
            6 | 7 => {
                side.ids.expect(correlation_id, Names::Replay);
                // Java does not answer if it cannot parse the channel.
                let parses = channel.starts_with("aeron:ipc") || channel.contains("endpoint");
                let channel = if parses { &*channel } else { "aeron:ipc" };
                let what = format!("replay {recording} from {position}, {length} to {channel}");
                let stream = Int(side.replay_stream);
                let fields =
                    vec![Long(recording), Long(position), Long(length), stream, io_max, Long(-1)];
                (what, head(6, fields, &[channel]))
            }
            8 => {
                side.ids.expect(correlation_id, Names::Replay);
                let limit = if number % 8 == 0 { 5_000 } else { self.limit_counter };
                let what = format!("replay {recording} from {position}, {length} up to {limit}");
                let fields = vec![
                    Long(recording),
                    Long(position),
                    Long(length),
                    Int(limit),
                    Int(side.replay_stream),
                    io_max,
                    Long(-1),
                ];
                (what, head(18, fields, &["aeron:ipc"]))
            }
            9 => {
                let (number, id) = pick(&side.ids.replays);
                (format!("stop replay {number}"), head(7, vec![Long(id)], &[]))
            }
            10 => (format!("stop replays of {recording}"), head(19, vec![Long(recording)], &[])),
            11 => {
                side.ids.expect(correlation_id, Names::Token);
                (format!("token for {recording}"), head(105, vec![Long(recording)], &[]))
            }
            12 => {
                let what = format!("list {count} from {recording}");
                (what, head(8, vec![Long(recording), Int(count)], &[]))
            }
            13 => {
                let what = format!("list {count} from {recording}, {fragment} stream {stream}");
                let fields = vec![Long(recording), Int(count), Int(stream)];
                (what, head(9, fields, &[fragment]))
            }
            14 => (format!("list {recording}"), head(10, vec![Long(recording)], &[])),
            15 => {
                let mut publications = self.publications.values();
                let (session, stream) = publications
                    .next()
                    .map_or((5, stream), |(it, stream)| (it.session_id(), *stream));
                let what = format!("find from {recording} session {session} {fragment} {stream}");
                let fields = vec![Long(recording), Int(session), Int(stream)];
                (what, head(16, fields, &[fragment]))
            }
            16 => {
                // Of several subscriptions, Java begins with any.
                let (index, count) = [(0, 100), (0, 0), (-1, 100), (50, 100), (0, -1)][number % 5];
                let what = format!("list {count} subscriptions from {index}: {fragment} {stream}");
                let fields = vec![Int(index), Int(count), Int(auto_stop), Int(stream)];
                (what, head(17, fields, &[fragment]))
            }
            17 => {
                let what = format!("position {position_of} of {recording}");
                (what, head(position_of, vec![Long(recording)], &[]))
            }
            18 => {
                side.ids.expect(correlation_id, Names::Subscription);
                // Of several images, Java extends by the next one for a moment if the first ends the subscription.
                let images = self.publications.values().filter(|it| it.1 == stream).count();
                let auto_stop = if images > 1 { 0 } else { auto_stop };
                let what = format!("extend {recording} {described} auto-stop {auto_stop}");
                let fields = [vec![Long(recording)], source(), vec![Int(auto_stop)]];
                (what, head(64, fields.into_iter().flatten().collect(), &[&channel]))
            }
            19 | 20 => {
                let position = self.end(known, random);
                let what = format!("truncate {recording} to {position}");
                (what, head(13, vec![Long(recording), Long(position)], &[]))
            }
            21 => {
                // The number of files depends on time if it is empty.
                let recording = if is_empty { 99 } else { recording };
                (format!("purge {recording}"), head(104, vec![Long(recording)], &[]))
            }
            22..=24 => {
                let start = boundary(known, random);
                let (name, template) = [("purge", 55), ("detach", 53), ("detach", 53)][kind - 22];
                let what = format!("{name} segments of {recording} before {start}");
                (what, head(template, vec![Long(recording), Long(start)], &[]))
            }
            25 => {
                let what = format!("delete detached segments of {recording}");
                (what, head(54, vec![Long(recording)], &[]))
            }
            26 => (format!("attach segments of {recording}"), head(56, vec![Long(recording)], &[])),
            _ => {
                // Only Java migrates a recording that is being replayed.
                let pairs = self.contiguous();
                let (from, to) = match pairs.get(random.below(pairs.len())) {
                    Some(_) if side.has_replays() => (99, 99),
                    Some(&(first, second)) if random.percent(30) => (second, first),
                    Some(&pair) => pair,
                    None => (recording, count.into()),
                };
                let what = format!("migrate {from} to {to}");
                (what, head(57, vec![Long(from), Long(to)], &[]))
            }
        }
    }

    /// A new end of a recording, which may be wrong, but not within a frame: Java refuses that after it has done it.
    fn end(&self, known: Option<&Recording>, random: &mut Random) -> i64 {
        let Some(&Recording { id, start, stop, .. }) = known.filter(|it| it.start < it.stop) else {
            return 13;
        };
        let sessions = self.sessions.get(&id);
        // A recording that was extended has frames of two.
        let session = sessions.filter(|it| it.len() == 1).and_then(|it| it.first());
        let frames = session.and_then(|session| self.frames.get(session));
        let is_within = |position: &&i64| (start..stop).contains(*position);
        let frames: Vec<_> = frames.into_iter().flatten().filter(is_within).collect();
        match random.below(8) {
            0 => start,
            1 => stop,
            2 => [13, -64, start - 32, stop + 32, i64::MAX][random.below(5)],
            3..6 => {
                let boundary = boundary(known, random) & !(TERM_LENGTH - 1);
                if (start..=stop).contains(&boundary) { boundary } else { start }
            }
            _ if frames.is_empty() => stop,
            _ => *frames[random.below(frames.len())],
        }
    }

    /// Pairs of recordings of which the second begins at a segment's start where the first has ended.
    fn contiguous(&self) -> Vec<(i64, i64)> {
        let mut pairs = Vec::new();
        let has_frames = |it: &&Recording| it.start != it.stop;
        for first in self.recordings.iter().filter(|it| it.is_aligned()) {
            let next = |it: &&Recording| it.start == first.stop && it.id != first.id;
            pairs.extend(
                self.recordings.iter().filter(has_frames).filter(next).map(|it| (first.id, it.id)),
            );
        }
        pairs
    }

    /// Adds or removes a publication, or offers messages.
    fn publish(&mut self, mut random: Random, sides: &mut [Side; 2]) -> String {
        let aligned: Vec<_> = self.recordings.iter().filter(|it| it.is_aligned()).collect();
        let key = if aligned.is_empty() || random.percent(50) { random.below(4) } else { 3 };
        if self.publications.contains_key(&key) && random.percent(25) {
            self.publications.remove(&key);
            return format!("close publication {key}");
        }
        if let Some((publication, _)) = self.publications.get_mut(&key) {
            let (count, length) = [(3, 40), (150, 1000)][random.below(2)];
            let mut offered = 0;
            let start = Instant::now();
            // An image beyond the limit of recordings stays unread, and stops the publisher.
            while offered < count && publication.is_connected() && start.elapsed() < OFFERING {
                if let Ok(position) = publication.offer(&random.clone().bytes(length)) {
                    let frames = self.frames.entry(publication.session_id()).or_default();
                    frames.push(position);
                    random.next();
                    offered += 1;
                }
                sides.iter_mut().for_each(Side::poll);
            }
            return format!("offer {offered} messages of {length} B by publication {key}");
        }
        let stream = STREAMS[if key == 3 { random.below(2) } else { key % 2 }];
        let channel = match key {
            2 => format!("aeron:udp?{}", self.endpoint),
            _ => "aeron:ipc".to_owned(),
        };
        // The last one continues a recording.
        let stopped: Vec<_> = self.recordings.iter().filter(|it| it.stop >= 0).collect();
        let (stream, position) = match key {
            3 if !aligned.is_empty() && random.percent(70) => {
                let continued = aligned[random.below(aligned.len())];
                (continued.stream, continued.stop)
            }
            3 if !stopped.is_empty() => (stream, stopped[random.below(stopped.len())].stop),
            _ => (stream, 0),
        };
        let (term, offset) = (INITIAL_TERM + position / TERM_LENGTH, position % TERM_LENGTH);
        let separator = if channel.contains('?') { '|' } else { '?' };
        let channel = format!(
            "{channel}{separator}init-term-id={INITIAL_TERM}|term-id={term}|term-offset={offset}\
             |term-length={TERM_LENGTH}|linger=0"
        );
        let publication = self
            .aeron
            .add_exclusive_publication(UncheckedChannel(&channel), stream)
            .expect("a publication");
        self.publications.insert(key, (publication, stream));
        format!("add publication {key} of stream {stream} at {position}")
    }

    /// Tells whether publications over UDP have the subscribers that they should have.
    pub(super) fn is_connected(&self, ids: &Ids) -> bool {
        self.publications.values().filter(|(it, _)| it.channel().contains("udp")).all(
            |(publication, stream)| {
                let is_received = |(channel, known): &(String, i32)| {
                    channel.starts_with("aeron:udp") && known == stream
                };
                publication.is_connected() || !ids.streams.iter().any(is_received)
            },
        )
    }

    /// Where the publication of a session is, if it is still there.
    pub(super) fn position(&self, session_id: i32) -> Option<i64> {
        let mut publications = self.publications.values().map(|(publication, _)| publication);
        let publication = publications.find(|it| it.session_id() == session_id)?;
        match publication.position() {
            Ok(position) => Some(position),
            Err(OfferError::Closed(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }
}

impl Recording {
    /// Tells whether it has frames and ends where a segment does.
    fn is_aligned(&self) -> bool {
        self.start < self.stop && self.stop % SEGMENT_LENGTH == 0
    }
}

fn first_base(recording: &Recording) -> i64 {
    recording.start & !(TERM_LENGTH - 1)
}

/// The start of a segment of a recording, or near it.
fn boundary(known: Option<&Recording>, random: &mut Random) -> i64 {
    let first = known.map_or(0, first_base);
    let known_count = known.map(|known| (known.stop - first) / SEGMENT_LENGTH);
    let count = known_count.filter(|&count| count > 0).unwrap_or(3);
    let number = match random.below(8) {
        0 => [-1, 0, count + 1][random.below(3)],
        _ => 1 + random.below(count as usize) as i64,
    };
    let shift = if random.percent(10) { 32 } else { 0 };
    first + number * SEGMENT_LENGTH + shift
}
