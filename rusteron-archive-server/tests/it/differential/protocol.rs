//! Requests in bytes, and answers as lines that both archives should send alike.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy)]
pub(super) enum Field {
    Long(i64),
    Int(i32),
}

pub(super) use Field::{Int, Long};

pub(super) const CONNECT: u16 = 58;
pub(super) const ARCHIVE_ID: u16 = 68;
pub(super) const LIST_SUBSCRIPTIONS: u16 = 17;

pub(super) fn encode(template: u16, fields: &[Field], data: &[&[u8]]) -> Vec<u8> {
    let mut block = Vec::new();
    for field in fields {
        match field {
            Long(value) => block.extend(value.to_le_bytes()),
            Int(value) => block.extend(value.to_le_bytes()),
        }
    }
    let header = [block.len() as u16, template, 101, 14];
    let mut message: Vec<u8> = header.iter().flat_map(|field| field.to_le_bytes()).collect();
    message.extend(block);
    for data in data {
        message.extend((data.len() as u32).to_le_bytes());
        message.extend(*data);
    }
    message
}

fn long(block: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(*block[offset..].first_chunk().expect("a field"))
}

fn int(block: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(*block[offset..].first_chunk().expect("a field"))
}

/// A text, and where the next field is.
fn text(block: &[u8], offset: usize) -> (String, usize) {
    let begin = offset + size_of::<u32>();
    let end = begin + int(block, offset) as usize;
    (String::from_utf8(block[begin..end].to_vec()).expect("a text"), end)
}

/// What the id of an answer names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Subscription,
    Replay,
    Token,
}

/// The ids that an archive has given, in the order in which it gave them.
#[derive(Debug, Default)]
pub(super) struct Ids {
    archive_dir: String,
    expected: BTreeMap<i64, Names>,
    pub(super) subscriptions: Vec<i64>,
    pub(super) replays: Vec<i64>,
    pub(super) tokens: Vec<i64>,
    /// How many recordings have started.
    pub(super) recordings: usize,
    /// The channels and streams that are being recorded, by the last answer to such a question.
    pub(super) streams: Vec<(String, i32)>,
}

impl Ids {
    /// `archive_dir` is the path that errors have.
    pub(super) fn of(archive_dir: String) -> Self {
        Self { archive_dir, ..Self::default() }
    }

    /// The answer to a request will give an id.
    pub(super) fn expect(&mut self, correlation_id: i64, names: Names) {
        self.expected.insert(correlation_id, names);
    }

    fn add(&mut self, correlation_id: i64, id: i64) -> String {
        let Some(names) = self.expected.get(&correlation_id) else { return id.to_string() };
        let ids = match names {
            Names::Subscription => &mut self.subscriptions,
            Names::Replay => &mut self.replays,
            Names::Token => &mut self.tokens,
        };
        ids.push(id);
        match names {
            // The lower half is the publication's session id.
            Names::Replay => format!("Replay {}", id >> 32),
            _ => format!("{names:?} {}", ids.len()),
        }
    }

    fn subscription(&self, id: i64) -> String {
        let number = self.subscriptions.iter().position(|known| *known == id);
        number.map_or_else(|| id.to_string(), |index| format!("Subscription {}", index + 1))
    }

    /// Puts numbers in the place of the ids in a text.
    fn replace(&self, mut text: String) -> String {
        for prefix in ["subscriptionId=", "replaySessionId="] {
            let Some(at) = text.find(prefix).map(|at| at + prefix.len()) else { continue };
            let is_digit = |text: char| text.is_ascii_digit() || text == '-';
            let end = text[at..].find(|text| !is_digit(text)).map_or(text.len(), |end| at + end);
            let id = text[at..end].parse::<i64>().expect("an id");
            let number = match prefix {
                "subscriptionId=" => self.subscription(id),
                // The lower half is the publication's session id.
                _ => (id >> 32).to_string(),
            };
            text.replace_range(at..end, &number);
        }
        // Session ids differ, too.
        if text.contains("replay in progress") {
            text.truncate(text.find(" sessionId=").unwrap_or(text.len()));
        }
        // Each has its own directory in the paths of files.
        text = text.replace(&self.archive_dir, "DIR");
        // The clients word differently what the driver refuses. Its number is the same.
        match text.find("errorCodeValue=") {
            Some(at) => text.split_off(at),
            None => text,
        }
    }
}

/// What an archive says.
pub(super) enum Said {
    /// The session that a connect request gets.
    Session(i64),
    /// The last answer to what is no part of the script.
    Barrier,
    Line(String),
    Other,
}

/// Correlation ids of requests that are no part of the script.
pub(super) const CONNECTING: i64 = 1;
pub(super) const BARRIER: i64 = 2;
pub(super) const STREAMS: i64 = 3;

pub(super) fn decode(message: &[u8], ids: &mut Ids) -> Said {
    let (header, block) = message.split_at(8);
    let line = match u16::from_le_bytes([header[2], header[3]]) {
        1 => {
            let (correlation_id, id, code) = (long(block, 8), long(block, 16), int(block, 24));
            let (text, end) = text(block, 32);
            assert_eq!(end, block.len());
            match correlation_id {
                CONNECTING => return Said::Session(long(block, 0)),
                BARRIER | STREAMS => return Said::Barrier,
                _ => {}
            }
            let id = if code == 0 { ids.add(correlation_id, id) } else { id.to_string() };
            let (version, text) = (int(block, 28), ids.replace(text));
            format!("{correlation_id}: code {code}, id {id}, version {version:x}: {text}")
        }
        22 => {
            let fields = [40, 48].map(|at| long(block, at));
            let numbers = [56, 60, 64, 68, 72, 76].map(|at| int(block, at));
            let has_stopped = long(block, 32) != -1;
            let (stripped, end) = text(block, 80);
            let (original, end) = text(block, end);
            let (source, end) = text(block, end);
            let (correlation_id, recording) = (long(block, 8), long(block, 16));
            let padding = &block[end..];
            format!(
                "{correlation_id}: recording {recording}, {has_stopped}, {fields:?}, {numbers:?}, \
                 {stripped}, {original}, {source}, {padding:?}"
            )
        }
        23 => {
            let (channel, end) = text(block, 28);
            assert_eq!(end, block.len());
            let (correlation_id, stream_id) = (long(block, 8), int(block, 24));
            if correlation_id == STREAMS {
                ids.streams.push((channel, stream_id));
                return Said::Other;
            }
            let subscription = ids.subscription(long(block, 16));
            format!("{correlation_id}: {subscription}, stream {stream_id}, {channel}")
        }
        24 => {
            let (correlation_id, recording, position) =
                (long(block, 8), long(block, 16), long(block, 32));
            let (subscription, signal) = (ids.subscription(long(block, 24)), int(block, 40));
            ids.recordings += usize::from(signal == 0);
            format!(
                "{correlation_id}: signal {signal}, recording {recording}, {subscription}, {position}"
            )
        }
        106 => return Said::Other,
        template => format!("template {template}"),
    };
    Said::Line(format!("{line} {header:?}"))
}
