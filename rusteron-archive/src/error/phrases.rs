//! Phrases of Aeron's error texts, for failures that Aeron does not number.
//!
//! The archive sends most of its refusals as text with the number of "no particular error", and C's client uses `-1` and
//! `EINVAL` for several of its own failures. A test looks each phrase up in Aeron's sources, so that a release that words
//! a failure differently is noticed.

use crate::error::ArchiveErrorKind::{
    self, AuthenticationRejected, IncompatibleVersion, InvalidPosition, NotConnected, Timeout,
    UnknownRecording,
};
use Origin::{Both, C, Java};

/// Aeron's sources that have a text: C's client, the archive in Java, or both.
#[derive(Debug, Clone, Copy)]
enum Origin {
    C,
    Java,
    Both,
}

/// Phrases that name a kind.
const KINDS: [(Origin, &str, ArchiveErrorKind); 14] = [
    (C, "connect timeout", Timeout),
    (C, "too many retries", Timeout),
    (C, "archive is not connected", NotConnected),
    (Java, "authentication rejected", AuthenticationRejected),
    (Java, "invalid client version", IncompatibleVersion),
    // The message has another schema.
    (C, "match expected id", IncompatibleVersion),
    (Both, "unknown recording id", UnknownRecording),
    // Archives up to 1.51, at least, have no number for a bad position.
    (Java, "invalid position ", InvalidPosition),
    (C, "earlier than last observed live position", InvalidPosition),
    (C, "earlier than last seen position", InvalidPosition),
    (Both, "requested replay start position", InvalidPosition),
    (Java, "invalid segment start:", InvalidPosition),
    (Java, "invalid detach: newStartPosition", InvalidPosition),
    (Java, "position not aligned to a data header", InvalidPosition),
];

/// Begin the texts in which a persistent subscription passes on an answer of the archive.
pub(crate) const ANSWERS: [&str; 3] = [
    "Get max recorded position request failed:",
    "Replay request failed:",
    "Replay token request failed:",
];

/// Stand in the texts of requests without an answer.
const WITHOUT_ANSWER: [&str; 2] = ["awaiting response", "awaiting recording descriptors"];

/// Begins the text of a merge without progress.
pub(crate) const NO_PROGRESS: &str = "replay_merge no progress";

/// Stands before the code of an answer without a text.
pub(crate) const RESPONSE_CODE: &str = "unexpected response code: ";

/// Stands before the correlation id in answers to most requests.
pub(crate) const CORRELATION_ID: &str = "correlationId=";

/// Stands before the correlation id in answers to listings and merges.
pub(crate) const LISTING_CORRELATION_ID: &str = "correlation_id=";

/// Stands between the numbers of an answer and its text.
pub(crate) const ERROR_TEXT: &str = ", error: ";

/// Stands before the id of a recording that the archive does not have.
pub(crate) const RECORDING_ID: &str = "recording id";

/// Returns the kind that a text names.
pub(crate) fn kind(text: &str) -> Option<ArchiveErrorKind> {
    KINDS.iter().find(|(_, phrase, _)| text.contains(phrase)).map(|(_, _, kind)| *kind)
}

/// Returns whether the text says that a request got no answer.
pub(crate) fn is_without_answer(text: &str) -> bool {
    WITHOUT_ANSWER.iter().any(|phrase| text.contains(phrase))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rusteron_test_support::{aeron_source, skip};

    use super::*;

    /// Returns the text of all files below a folder whose name has the ending.
    fn sources(dir: &Path, ending: &str) -> String {
        let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry"));
        let texts = entries.map(|entry| match entry.path() {
            dir if dir.is_dir() => sources(&dir, ending),
            file if file.extension().is_some_and(|found| found == ending) => {
                fs::read_to_string(file).expect("a readable file")
            }
            _ => String::new(),
        });
        texts.collect()
    }

    #[test]
    fn phrases_stand_in_aerons_sources() {
        let archive = aeron_source().join("aeron-archive/src/main");
        if !archive.join("java").is_dir() {
            return skip("RUSTERON_REQUIRE_DRIFT_TESTS", "the tree has no Java sources");
        }
        let c = sources(&archive.join("c"), "c");
        let java = sources(&archive.join("java"), "java");
        let kinds = KINDS.iter().map(|(origin, phrase, _)| (*origin, *phrase));
        let markers =
            [NO_PROGRESS, RESPONSE_CODE, CORRELATION_ID, LISTING_CORRELATION_ID, ERROR_TEXT];
        let of_c =
            ANSWERS.into_iter().chain(WITHOUT_ANSWER).chain(markers).map(|phrase| (C, phrase));
        let phrases = kinds.chain(of_c).chain([(Both, RECORDING_ID)]);
        let is_lost = |(origin, phrase): &(Origin, &str)| match origin {
            C => !c.contains(phrase),
            Java => !java.contains(phrase),
            Both => !(c.contains(phrase) && java.contains(phrase)),
        };
        let lost: Vec<_> = phrases.filter(is_lost).map(|(_, phrase)| phrase).collect();
        assert_eq!(lost, [""; 0], "Aeron words these failures differently now");
    }
}
