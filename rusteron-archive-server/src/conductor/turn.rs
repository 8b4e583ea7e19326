//! What all parts of the conductor share, and the one argument that lends it to them.

use std::sync::Arc;

use crate::catalog::{Catalog, Descriptor};
use crate::channel::Channel;
use crate::conductor::effect::{Blame, Clock, Failure, Outside, RecordingId};
use crate::conductor::sessions::{Requester, Sessions};
use crate::conductor::settings::ConductorSettings;
use crate::control::responses::{Answer, SignalEvent};
use crate::protocol::error_code::ErrorCode;
use crate::storage::Storage;

/// The archive's catalog, files and sessions, which each request needs.
pub(crate) struct Shared {
    pub(crate) settings: ConductorSettings,
    pub(crate) catalog: Catalog,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) sessions: Sessions,
}

impl Shared {
    pub(crate) fn turn<'a>(&'a mut self, now: Clock, out: &'a mut dyn Outside) -> Turn<'a> {
        let Self { settings, catalog, storage, sessions } = self;
        Turn { now, settings, catalog, storage: &**storage, sessions, out }
    }
}

/// What a part of the conductor is lent for a request, an event or the work that is due.
pub(crate) struct Turn<'a> {
    pub(crate) now: Clock,
    pub(crate) settings: &'a ConductorSettings,
    pub(crate) catalog: &'a mut Catalog,
    pub(crate) storage: &'a dyn Storage,
    pub(crate) sessions: &'a mut Sessions,
    pub(crate) out: &'a mut dyn Outside,
}

impl Turn<'_> {
    /// Sends a message to the client of a session, if that has not ended.
    pub(super) fn respond(&mut self, to: Requester, answer: &Answer) {
        if let Some(session) = self.sessions.get_mut(to.session) {
            session.send(answer.encode(to.session, to.correlation_id), self.now, self.out);
        }
    }

    /// Tells the client of a session what has become of a recording, if the session has not ended.
    pub(super) fn signal(&mut self, to: Requester, event: &SignalEvent) {
        if let Some(session) = self.sessions.get_mut(to.session) {
            session.send(event.encode(to.session, to.correlation_id), self.now, self.out);
        }
    }

    /// Refuses a request. As in Java's archive, the error log also records a mistake that has no
    /// code of its own.
    pub(super) fn refuse(&mut self, to: Requester, failure: Failure) {
        if failure.is_mistake && failure.code == ErrorCode::Generic {
            self.out.report(Blame::Client, &failure.text);
        }
        self.respond(to, &Answer::Error(failure));
    }

    /// Tells operators and the client why what a request began has ended, or cannot begin.
    pub(super) fn fail(&mut self, to: Requester, failure: Failure) {
        let blame = if failure.is_mistake { Blame::Client } else { Blame::Server };
        self.out.report(blame, &failure.text);
        self.respond(to, &Answer::Error(failure));
    }

    /// Returns a recording that is served.
    pub(super) fn recording(&self, recording: RecordingId) -> Result<Descriptor, Failure> {
        let unknown = || self.unknown(recording, format!("unknown recording id: {recording}"));
        self.catalog.get(recording).copied().ok_or_else(unknown)
    }

    /// Returns a recording whose segments have its name: see [`Catalog::settle`].
    pub(super) fn settled(&mut self, recording: RecordingId) -> Result<Descriptor, Failure> {
        self.catalog.settle(self.storage, recording).map_err(Failure::generic)?;
        self.recording(recording)
    }

    /// Returns the refusal of a request for a recording that is not served. Its text is Java's,
    /// and the reason follows if the recording was set aside.
    pub(super) fn unknown(&self, recording: RecordingId, mut text: String) -> Failure {
        if let Some(reason) = self.catalog.why_set_aside(recording) {
            text = format!("{text}: it was set aside when the archive started: {reason}");
        }
        Failure::new(ErrorCode::UnknownRecording, text)
    }

    /// Replaces the channel of a recording.
    pub(super) fn update_channel(
        &mut self,
        recording: RecordingId,
        channel: &str,
    ) -> Result<Answer, Failure> {
        if self.catalog.get(recording).is_none() {
            return Ok(Answer::RecordingUnknown(recording));
        }
        let stripped = Channel::parse(channel)?.stripped()?;
        self.catalog.update_channel(recording, &stripped, channel)?;
        Ok(Answer::Ok(0))
    }

    pub(super) fn check_storage_space(&self) -> Result<(), Failure> {
        let threshold = self.settings.low_storage_space_threshold;
        let space = self.storage.usable_space().map_err(|error| {
            Failure::generic(format!("cannot find out the space left for recordings: {error}"))
        })?;
        if space <= threshold {
            // Java's words, then what helps.
            let text = format!(
                "low storage threshold={threshold} <= usableSpace={space}: free space, or lower \
                 the threshold (AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD)"
            );
            return Err(Failure::new(ErrorCode::StorageSpace, text));
        }
        Ok(())
    }
}
