//! The events of a persistent subscription.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};

use rusteron_client::Error;
use rusteron_core::RecordingId;
use rusteron_core::ffi::{Retained, lossy};
use rusteron_sys::archive as sys;

use crate::error::{ArchiveError, ArchiveErrorKind, phrases};

/// An event of a persistent subscription.
#[doc(alias = "PersistentSubscriptionListener")]
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PersistentSubscriptionEvent {
    /// The subscription has joined the live stream.
    LiveJoined,
    /// The subscription has left the live stream, and falls back to the recording.
    LiveLeft,
    /// An error, of the subscription's own or one that the archive reports, such as a replay that
    /// ends early. The subscription tries again, unless it [has
    /// failed](crate::PersistentSubscription::failure).
    Error(ArchiveError),
}

/// Events that C reports, queued until C has returned.
pub(crate) enum Event {
    LiveJoined,
    LiveLeft,
    Error(c_int, String),
}

/// # Safety
/// `clientd` comes from a live `Retained` of events with no other user.
pub(super) unsafe fn exclusive_events<'a>(clientd: *mut c_void) -> &'a mut VecDeque<Event> {
    // SAFETY: the caller guarantees a live `Retained` that is used by this call only.
    unsafe { Retained::exclusive(clientd) }
}

/// # Safety
/// As for [`exclusive_events`].
pub(crate) unsafe extern "C" fn on_live_joined(clientd: *mut c_void) {
    // SAFETY: C passes the `clientd` that it was given, one call at a time; the subscription retains the events.
    unsafe { exclusive_events(clientd) }.push_back(Event::LiveJoined);
}

/// # Safety
/// As for [`exclusive_events`].
pub(crate) unsafe extern "C" fn on_live_left(clientd: *mut c_void) {
    // SAFETY: as in `on_live_joined`.
    unsafe { exclusive_events(clientd) }.push_back(Event::LiveLeft);
}

/// # Safety
/// As for [`exclusive_events`]; the text is terminated.
pub(crate) unsafe extern "C" fn on_error(
    clientd: *mut c_void,
    code: c_int,
    message: *const c_char,
) {
    // SAFETY: as in `on_live_joined`; the text ends with a NUL.
    let (events, text) = unsafe { (exclusive_events(clientd), lossy(message)) };
    events.push_back(Event::Error(code, text.into_owned()));
}

pub(crate) const OPERATION: &str = "persistent_subscription";

pub(super) const EINVAL: c_int = 22;
pub(super) const ETIMEDOUT: c_int = if cfg!(target_os = "linux") { 110 } else { 60 };

/// Begin texts of our own that pass on an error of the archive: the shim's, and [`Progress`]'s.
///
/// [`Progress`]: crate::persistent_subscription::progress::Progress
const REPORTS: [&str; 2] = ["The archive reports:", NO_PROGRESS];
pub(super) const NO_PROGRESS: &str = "No progress beyond position=";

/// Converts a failure that C or the shim reports, of which there are three. One is an answer of the
/// archive, with its number moved up by 200. One is an error of C's client with its text: its
/// number has lost its sign, or is 11 in place of any other number. One is a text of C's own, with
/// a system error.
pub(super) fn error(recording_id: RecordingId, code: c_int, text: &str) -> ArchiveError {
    /// The numbers of the media driver, which are negative in C's texts.
    const DRIVER: std::ops::RangeInclusive<c_int> = 1..=14;
    /// The archive's number for no particular error, which C uses for one of its own texts.
    const GENERIC: c_int = -(sys::AERON_ARCHIVE_ERROR_CODE_GENERIC as c_int);
    let is_report = ArchiveErrorKind::from_code(code).is_some()
        && REPORTS.iter().any(|report| text.starts_with(report));
    let error = if is_report {
        ArchiveError::reported(OPERATION, code, text)
    } else if phrases::ANSWERS.iter().any(|answer| text.starts_with(answer)) {
        // Without words, the answer is no error, and the number is the id of a recording.
        let is_error = !text.trim_end().ends_with(':');
        ArchiveError::reported(OPERATION, if is_error { code } else { 0 }, text)
    } else {
        let code = match number_in(text) {
            Some(number) => number,
            None if DRIVER.contains(&code) => -code,
            None if code == GENERIC => EINVAL,
            None => code,
        };
        ArchiveError::from_c(&Error::from_code(code, text), OPERATION)
    };
    error.about(Some(recording_id.get()))
}

/// Returns the number in parentheses at the start of an error text of C.
fn number_in(text: &str) -> Option<c_int> {
    text.strip_prefix('(')?.split_once(')')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use rusteron_client::ErrorKind;

    use super::*;
    use crate::error::ArchiveErrorKind as Kind;

    #[test]
    fn failure_kinds() {
        use rusteron_client::ErrorKind as Client;
        let cases = [
            // Answers of the archive, numbered or not.
            (205, "Replay request failed: unknown recording id: 7", Kind::UnknownRecording, 205),
            (211, "Replay token request failed: no space", Kind::StorageSpace, 211),
            (200, "Get max recorded position request failed: no", Kind::Refused, 200),
            (200, "Replay request failed: invalid position 5 for it", Kind::InvalidPosition, 200),
            (200, "The archive reports: unexpected end of recording", Kind::Refused, 200),
            (211, "No progress beyond position=7: no space", Kind::StorageSpace, 211),
            (ETIMEDOUT, "No progress beyond position=7: silence", Kind::Timeout, 0),
            (7, "Replay request failed: ", Kind::Refused, 0),
            (211, "Replay request failed: ", Kind::Refused, 0),
            // The media driver's, of which C has taken the sign away.
            (10, "(-10) resource temporarily unavailable\n[f, g.c:1] busy\n", BUSY, 0),
            (12, "(-12) insufficient storage space\n[f, g.c:1] full\n", FULL, 0),
            (5, "without a number", Kind::Client(Client::UnknownCounter), 0),
            (14, "without a number", Kind::Client(Client::PublicationRevoked), 0),
            // Others, which C numbers 11.
            (11, "(0) generic error, see message\n[f, g.c:1] it\n", Kind::Client(Client::Other), 0),
            (11, "(22) Invalid argument\n[f, g.c:1] no channel\n", Kind::InvalidArgument, 0),
            (11, "no error", Kind::Client(Client::Other), 0),
            // Errors of the session, with their sign.
            (11, "(1) x\n[f, g.c:1] connect timeout\n", Kind::Timeout, 0),
            (22, "(22) Invalid argument\n[f, g.c:1] authentication rejected", REJECTED, 0),
            (
                -1,
                "(-1) x\n[f, g.c:1] found schema id: 9 that doesn't match expected id: 101",
                OLD,
                0,
            ),
            (
                -1000,
                "(-1000) driver timeout\n[f, g.c:1] gone",
                Kind::Client(Client::DriverTimeout),
                0,
            ),
            (-1005, "without a number", Kind::Client(Client::ClientClosed), 0),
            (-205, "(-205) unknown recording\n[f, g.c:1] error: it", Kind::UnknownRecording, 205),
            // C's own words.
            (22, "unknown recording id: 7", Kind::UnknownRecording, 0),
            (22, "requested replay start position=9 is less than", Kind::InvalidPosition, 0),
            (
                22,
                "recording 7 stopped at position=9 which is earlier than last observed live \
              position=12",
                Kind::InvalidPosition,
                0,
            ),
            (-200, "joined at position 5 which is earlier than last seen position 9", BAD, 0),
            (22, "Requested live stream with ID: 1 does not match", Kind::InvalidArgument, 0),
            (ETIMEDOUT, "No image became available on the live subscription", Kind::Timeout, 0),
            (i32::MIN, "", Kind::Client(Client::Other), 0),
        ];
        for (code, text, kind, archive_code) in cases {
            let error = error(RecordingId::new(7), code, text);
            assert_eq!((error.kind(), error.code()), (kind, archive_code), "{code} {text}");
            assert_eq!(error.relevant_id(), Some(7));
            assert_eq!(error.operation(), OPERATION);
        }
    }

    const BUSY: Kind = Kind::Client(ErrorKind::ResourceTemporarilyUnavailable);
    const FULL: Kind = Kind::Client(ErrorKind::StorageSpace);
    const BAD: Kind = Kind::InvalidPosition;
    const REJECTED: Kind = Kind::AuthenticationRejected;
    const OLD: Kind = Kind::IncompatibleVersion;
}
