//! Random requests, and publishers whose streams are recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, ExclusivePublication, OfferError, UncheckedChannel};
use rusteron_test_support::{Random, free_port};

use super::files::Recording;
use super::protocol::{Ids, Int, Long, Names};
use super::request::{KINDS, Kind, Request, Values};
use super::side::Side;

pub(super) const TERM_LENGTH: i64 = 64 * 1024;
const SEGMENT_LENGTH: i64 = 128 * 1024;
const INITIAL_TERM: i64 = 7;
const STREAMS: [i32; 2] = [33, 34];
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
            _ => {
                let times = KINDS.iter().flat_map(|(it, times)| iter::repeat_n(*it, *times));
                let all: Vec<_> = times.collect();
                (all[random.below(all.len())], None)
            }
        };
        if kind == Kind::Publish {
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
    fn fitting(&self, random: &mut Random) -> Option<(Kind, i64)> {
        let fits = |kind: Kind, it: &Recording| {
            let end = self.active.get(&it.id).copied().unwrap_or(it.stop);
            let has_segments = end - first_base(it) >= SEGMENT_LENGTH;
            match kind {
                // To go on behind its end, and to migrate.
                Kind::StartRecording => it.is_aligned(),
                Kind::StopByIdentity => it.stop < 0 && has_segments,
                Kind::Truncate => it.start < it.stop,
                Kind::Purge => it.start < it.stop && self.recordings.len() > 6,
                Kind::PurgeSegments | Kind::DetachSegments => has_segments,
                Kind::DeleteDetached | Kind::Attach => it.has_detached,
                Kind::Migrate => self.contiguous().iter().any(|&(first, _)| first == it.id),
                Kind::Publish => it.stop < 0,
                _ => false,
            }
        };
        let recordings = |kind| self.recordings.iter().filter(move |it| fits(kind, it));
        // Truncated and detached twice as often as others.
        let kinds = KINDS.iter().flat_map(|(kind, times)| match kind {
            Kind::Truncate | Kind::DetachSegments => iter::repeat_n(*kind, *times),
            _ => iter::repeat_n(*kind, 1),
        });
        let kinds: Vec<_> = kinds.filter(|&kind| recordings(kind).count() > 0).collect();
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
        kind: Kind,
        fitting: Option<i64>,
        mut random: Random,
    ) -> (String, Vec<u8>) {
        let values = self.values(side, fitting, &mut random);
        let request = self
            .of_recordings(kind, &values, side)
            .or_else(|| self.of_replays(kind, &values, side))
            .or_else(|| self.of_listings(kind, &values, &mut random))
            .unwrap_or_else(|| self.of_segments(kind, &values, side, &mut random));
        if let Some(names) = request.names {
            side.ids.expect(self.last_correlation, names);
        }
        let message = request.encode(side.session, self.last_correlation);
        (request.what, message)
    }

    fn values(&self, side: &Side, fitting: Option<i64>, random: &mut Random) -> Values<'_> {
        let mut choose = |numbers: &[i64]| numbers[random.below(numbers.len())];
        let position = choose(&[-1, -1, 0, 32, 96, 128, 160, 13, -64, 1 << 17, 1 << 20, i64::MAX]);
        // Not 0: Java never ends such a replay, nor that of a recording without frames that begins
        // elsewhere than at 0.
        let length = choose(&[-1, -1, -2, -2, 32, 64, 1 << 30, i64::MAX, -5, i64::MIN]);
        let io_max = choose(&[-1, 0, 1000, 4096, 1 << 21]) as i32;
        let count = choose(&[1, 2, 5, 100]) as i32;
        let (location, auto_stop) = (choose(&[0, 1]) as i32, choose(&[0, 1]) as i32);
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
        Values {
            channel,
            stream,
            location,
            auto_stop,
            recording,
            known,
            position,
            length,
            io_max,
            count,
            fragment,
            number,
        }
    }

    fn of_recordings(&self, kind: Kind, values: &Values<'_>, side: &Side) -> Option<Request> {
        let Values { channel, stream, recording, auto_stop, .. } = values;
        let described = values.described();
        Some(match kind {
            Kind::StartRecording => {
                let what = format!("start recording {described}");
                Request::new(4, values.source(), what).with(channel).giving(Names::Subscription)
            }
            Kind::StartRecordingUntilEnd => {
                let what = format!("start recording {described} auto-stop {auto_stop}");
                let fields = values.source().into_iter().chain([Int(*auto_stop)]);
                Request::new(63, fields, what).with(channel).giving(Names::Subscription)
            }
            Kind::Extend => {
                // If there are several images and the first ends the subscription, Java extends by
                // the next one for a moment.
                let images = self.publications.values().filter(|it| it.1 == *stream).count();
                let auto_stop = if images > 1 { 0 } else { *auto_stop };
                let what = format!("extend {recording} {described} auto-stop {auto_stop}");
                let fields = [Long(*recording)].into_iter().chain(values.source());
                let fields = fields.chain([Int(auto_stop)]);
                Request::new(64, fields, what).with(channel).giving(Names::Subscription)
            }
            Kind::StopRecording => {
                let what = format!("stop recording {channel} stream {stream}");
                Request::new(5, [Int(*stream)], what).with(channel)
            }
            Kind::StopSubscription => {
                let (number, id) = values.pick(&side.ids.subscriptions);
                Request::new(14, [Long(id)], format!("stop subscription {number}"))
            }
            Kind::StopByIdentity => {
                Request::new(65, [Long(*recording)], format!("stop recording {recording}"))
            }
            _ => return None,
        })
    }

    fn of_replays(&self, kind: Kind, values: &Values<'_>, side: &Side) -> Option<Request> {
        let Values { recording, position, length, io_max, number, .. } = *values;
        let range = [Long(recording), Long(position), Long(length)];
        let stream = Int(side.replay_stream);
        let replay = format!("replay {recording} from {position}, {length}");
        Some(match kind {
            Kind::Replay => {
                // Java does not answer if it cannot parse the channel.
                let channel = &*values.channel;
                let parses = channel.starts_with("aeron:ipc") || channel.contains("endpoint");
                let channel = if parses { channel } else { "aeron:ipc" };
                let fields = range.into_iter().chain([stream, Int(io_max), Long(-1)]);
                let what = format!("{replay} to {channel}");
                Request::new(6, fields, what).with(channel).giving(Names::Replay)
            }
            Kind::BoundedReplay => {
                let limit = if number % 8 == 0 { 5_000 } else { self.limit_counter };
                let fields = range.into_iter().chain([Int(limit), stream, Int(io_max), Long(-1)]);
                let what = format!("{replay} up to {limit}");
                Request::new(18, fields, what).with("aeron:ipc").giving(Names::Replay)
            }
            Kind::StopReplay => {
                let (number, id) = values.pick(&side.ids.replays);
                Request::new(7, [Long(id)], format!("stop replay {number}"))
            }
            Kind::StopAllReplays => {
                Request::new(19, [Long(recording)], format!("stop replays of {recording}"))
            }
            Kind::ReplayToken => {
                let what = format!("token for {recording}");
                Request::new(105, [Long(recording)], what).giving(Names::Token)
            }
            _ => return None,
        })
    }

    fn of_listings(&self, kind: Kind, values: &Values<'_>, random: &mut Random) -> Option<Request> {
        let Values { recording, count, stream, fragment, .. } = *values;
        Some(match kind {
            Kind::List => {
                let what = format!("list {count} from {recording}");
                Request::new(8, [Long(recording), Int(count)], what)
            }
            Kind::ListForUri => {
                let what = format!("list {count} from {recording}, {fragment} stream {stream}");
                let fields = [Long(recording), Int(count), Int(stream)];
                Request::new(9, fields, what).with(fragment)
            }
            Kind::ListOne => Request::new(10, [Long(recording)], format!("list {recording}")),
            Kind::FindLast => {
                let first = self.publications.values().next();
                let (session, stream) =
                    first.map_or((5, stream), |(it, stream)| (it.session_id(), *stream));
                let what = format!("find from {recording} session {session} {fragment} {stream}");
                let fields = [Long(recording), Int(session), Int(stream)];
                Request::new(16, fields, what).with(fragment)
            }
            Kind::ListSubscriptions => {
                // Of several subscriptions, Java begins with any.
                let ranges = [(0, 100), (0, 0), (-1, 100), (50, 100), (0, -1)];
                let (index, count) = ranges[values.number % 5];
                let what = format!("list {count} subscriptions from {index}: {fragment} {stream}");
                let fields = [Int(index), Int(count), Int(values.auto_stop), Int(stream)];
                Request::new(17, fields, what).with(fragment)
            }
            Kind::Position => {
                let template = [52, 12, 15, 67][random.below(4)];
                let what = format!("position {template} of {recording}");
                Request::new(template, [Long(recording)], what)
            }
            _ => return None,
        })
    }

    fn of_segments(
        &self,
        kind: Kind,
        values: &Values<'_>,
        side: &Side,
        random: &mut Random,
    ) -> Request {
        let Values { recording, known, count, .. } = *values;
        match kind {
            Kind::Truncate => {
                let position = self.end(known, random);
                let what = format!("truncate {recording} to {position}");
                Request::new(13, [Long(recording), Long(position)], what)
            }
            Kind::Purge => {
                // The number of files depends on time if it is empty.
                let is_empty = known.is_some_and(|known| known.start == known.stop);
                let recording = if is_empty { 99 } else { recording };
                Request::new(104, [Long(recording)], format!("purge {recording}"))
            }
            Kind::PurgeSegments | Kind::DetachSegments => {
                let start = boundary(known, random);
                let is_purge = kind == Kind::PurgeSegments;
                let (name, template) = if is_purge { ("purge", 55) } else { ("detach", 53) };
                let what = format!("{name} segments of {recording} before {start}");
                Request::new(template, [Long(recording), Long(start)], what)
            }
            Kind::DeleteDetached => {
                let what = format!("delete detached segments of {recording}");
                Request::new(54, [Long(recording)], what)
            }
            Kind::Attach => {
                Request::new(56, [Long(recording)], format!("attach segments of {recording}"))
            }
            Kind::Migrate => {
                // Only Java migrates a recording that is being replayed.
                let pairs = self.contiguous();
                let (from, to) = match pairs.get(random.below(pairs.len())) {
                    Some(_) if side.has_replays() => (99, 99),
                    Some(&(first, second)) if random.percent(30) => (second, first),
                    Some(&pair) => pair,
                    None => (recording, count.into()),
                };
                Request::new(57, [Long(from), Long(to)], format!("migrate {from} to {to}"))
            }
            other => unreachable!("{other:?} is not about segments"),
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
