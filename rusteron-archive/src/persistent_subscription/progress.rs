//! Whether the replays of a persistent subscription get anywhere.

use std::ffi::c_int;

use rusteron_client::Position;

use crate::error::ArchiveError;
use crate::persistent_subscription::events::{ETIMEDOUT, NO_PROGRESS};

/// Counts the replays that have ended without a message.
///
/// C asks for the next replay for ever. That helps if the network or the archive recovers, and not
/// if the recording is damaged.
#[derive(Debug)]
pub(super) struct Progress {
    max_replays: u32,
    /// Where the running replay began.
    start: Option<Position>,
    /// Replays since the last message, the last live stream and the last session.
    replays: u32,
    /// The last error since then.
    error: Option<ArchiveError>,
    /// No error has been reported since the last replay began.
    is_silent: bool,
}

/// What a subscription does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    Replaying,
    /// It has the messages from elsewhere, or no session with which to ask for them.
    Other,
    /// It asks for a replay, or for what it needs first.
    Asking,
}

/// What is to be reported, with the code and text of an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Report {
    Error(c_int, String),
    Failure(c_int, String),
}

impl Progress {
    pub(super) fn new(max_replays: u32) -> Self {
        Self { max_replays, start: None, replays: 0, error: None, is_silent: false }
    }

    /// An error has been reported to the listener.
    pub(super) fn on_error(&mut self, error: &ArchiveError) {
        self.error = Some(error.clone());
        self.is_silent = false;
    }

    /// Observes the subscription after each poll. The replay begins, or has ended, at `position`.
    pub(super) fn observe(&mut self, activity: Activity, position: Position) -> Option<Report> {
        match (self.start, activity) {
            (None, Activity::Replaying) => {
                self.start = Some(position);
                let is_silent = std::mem::replace(&mut self.is_silent, true) && self.replays > 0;
                let text = || format!("The replay from position={position} has brought no message");
                is_silent.then(|| Report::Error(ETIMEDOUT, text()))
            }
            (Some(start), Activity::Asking) if position <= start => {
                self.start = None;
                self.replays += 1;
                (self.replays >= self.max_replays).then(|| self.failure(position))
            }
            (Some(_), Activity::Asking) | (_, Activity::Other) => {
                *self = Self::new(self.max_replays);
                None
            }
            (Some(_), Activity::Replaying) | (None, Activity::Asking) => None,
        }
    }

    fn failure(&self, position: Position) -> Report {
        let replays = self.replays;
        let (code, text) = match &self.error {
            Some(error) if error.code() != 0 => (error.code(), error.message()),
            Some(error) => (ETIMEDOUT, error.message()),
            None => (ETIMEDOUT, "the archive has not said why"),
        };
        Report::Failure(code, format!("{NO_PROGRESS}{position} in {replays} replays: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ArchiveErrorKind;
    use Activity::{Asking, Other, Replaying};

    #[test]
    fn replays_without_progress_end() {
        let mut progress = Progress::new(2);
        assert_eq!(progress.observe(Replaying, 64), None);
        assert_eq!(progress.observe(Replaying, 96), None);
        assert_eq!(progress.observe(Asking, 96), None, "it has brought something");
        assert_eq!(progress.observe(Replaying, 96), None);
        progress.on_error(&ArchiveError::reported("replay", 200, "a torn frame"));
        assert_eq!(progress.observe(Asking, 96), None);
        assert_eq!(progress.observe(Asking, 96), None);
        assert_eq!(progress.observe(Replaying, 96), None, "reported already");
        let text = "No progress beyond position=96 in 2 replays: a torn frame";
        assert_eq!(progress.observe(Asking, 96), Some(Report::Failure(200, text.into())));
    }

    #[test]
    fn silent_end_of_replay_is_reported() {
        let mut progress = Progress::new(2);
        progress.observe(Replaying, 64);
        progress.observe(Asking, 64);
        let text = "The replay from position=64 has brought no message";
        assert_eq!(progress.observe(Replaying, 64), Some(Report::Error(ETIMEDOUT, text.into())));
        progress.on_error(&ArchiveError::new(ArchiveErrorKind::Timeout, "replay", text));
        let text = format!("No progress beyond position=64 in 2 replays: {text}");
        assert_eq!(progress.observe(Asking, 64), Some(Report::Failure(ETIMEDOUT, text)));
    }

    #[test]
    fn live_streams_and_lost_sessions_are_forgiven() {
        let mut progress = Progress::new(2);
        for _ in 0..5 {
            progress.observe(Replaying, 64);
            assert_eq!(progress.observe(Asking, 64), None);
            assert_eq!(progress.observe(Other, 64), None);
        }
    }
}
