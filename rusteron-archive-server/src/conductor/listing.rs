//! Listings: which recordings and subscriptions match, and where recordings are.

use std::collections::BTreeMap;

use crate::catalog::Descriptor;
use crate::conductor::Conductor;
use crate::conductor::effect::{Clock, Outside, RecordingId, Sending, SessionId};
use crate::conductor::sessions::Requester;
use crate::control::request::{RecordingFilter, SubscriptionQuery};
use crate::control::responses::{Answer, Failure, descriptor, subscription_descriptor};
use crate::ids::{CorrelationId, NULL_ID};
use crate::protocol::error_code::ErrorCode;

/// The most recordings that a listing looks at in one turn.
const MAX_SCANNED: usize = 64;

/// A listing of recordings. A session has one at a time.
#[derive(Debug)]
pub(crate) struct Listing {
    correlation_id: CorrelationId,
    next: RecordingId,
    /// What the answer names if there are no more, by Java's count.
    end: RecordingId,
    remaining: i32,
    filter: Option<OwnedFilter>,
}

#[derive(Debug)]
struct OwnedFilter {
    stream_id: i32,
    channel_fragment: Vec<u8>,
}

/// All listings, by their session.
pub(crate) type Listings = BTreeMap<SessionId, Listing>;

impl Conductor {
    pub(super) fn check_listing(&self, session: SessionId) -> Result<(), Failure> {
        if self.listings.contains_key(&session) {
            let text = "active listing already in progress";
            return Err(Failure::new(ErrorCode::ActiveListing, text));
        }
        Ok(())
    }

    /// Begins a listing of `count` recordings. Fewer are followed by an answer.
    pub(super) fn list_recordings(
        &mut self,
        requester: Requester,
        from: RecordingId,
        count: i32,
        filter: Option<&RecordingFilter<'_>>,
    ) -> Result<Option<Answer>, Failure> {
        self.check_listing(requester.session)?;
        if count <= 0 {
            // Java never answers that.
            return Ok(Some(Answer::RecordingUnknown(from)));
        }
        let filter = filter.map(|filter| OwnedFilter {
            stream_id: filter.stream_id,
            channel_fragment: filter.channel_fragment.to_vec(),
        });
        let correlation_id = requester.correlation_id;
        let listing = Listing { correlation_id, next: from, end: from, remaining: count, filter };
        self.listings.insert(requester.session, listing);
        Ok(None)
    }

    pub(super) fn list_recording(
        &mut self,
        requester: Requester,
        recording: RecordingId,
    ) -> Result<Option<Answer>, Failure> {
        self.check_listing(requester.session)?;
        if self.catalog.get(recording).is_none() {
            return Ok(Some(Answer::RecordingUnknown(recording)));
        }
        self.list_recordings(requester, recording, 1, None)
    }

    pub(super) fn find_last_matching(
        &self,
        min_recording: RecordingId,
        session_id: i32,
        filter: &RecordingFilter<'_>,
    ) -> Result<Answer, Failure> {
        if min_recording.get() < 0 {
            return Err(Failure::new(
                ErrorCode::UnknownRecording,
                format!("minRecordingId={min_recording} < 0"),
            ));
        }
        let RecordingFilter { stream_id, channel_fragment } = *filter;
        let found = self.catalog.find_last(min_recording, session_id, stream_id, channel_fragment);
        Ok(Answer::Ok(found.map_or(NULL_ID, RecordingId::get)))
    }

    /// Lists subscriptions at once: there are few.
    pub(super) fn list_subscriptions(
        &mut self,
        requester: Requester,
        query: &SubscriptionQuery<'_>,
        now: Clock,
        out: &mut dyn Outside,
    ) -> Result<Option<Answer>, Failure> {
        let Requester { session, correlation_id } = requester;
        self.check_listing(session)?;
        let (Ok(first), Ok(count)) = (usize::try_from(query.first), usize::try_from(query.count))
        else {
            return Ok(Some(Answer::SubscriptionUnknown));
        };
        let matching = self.subscriptions.registered().skip(first).filter(|(_, known)| {
            query.stream_id.is_none_or(|stream_id| known.stream_id == stream_id)
                && known.channel.contains(&*query.channel_fragment)
        });
        let mut sent = 0;
        for (id, known) in matching.take(count) {
            let message = subscription_descriptor(
                session,
                correlation_id,
                id,
                known.stream_id,
                &known.channel,
            );
            if let Some(control) = self.sessions.get_mut(session) {
                control.send(message, now, out);
            }
            sent += 1;
        }
        Ok((sent < count || count == 0).then_some(Answer::SubscriptionUnknown))
    }

    pub(super) fn on_listings_turn(&mut self, now: Clock, out: &mut dyn Outside) -> usize {
        let mut work = 0;
        let sessions: Vec<_> = self.listings.keys().copied().collect();
        for session in sessions {
            let Some(mut listing) = self.listings.remove(&session) else { continue };
            let next = listing.next;
            let is_done = self.advance(session, &mut listing, now, out);
            work += usize::from(is_done || listing.next > next);
            if !is_done {
                self.listings.insert(session, listing);
            }
        }
        work
    }

    /// Sends the next descriptors, and tells whether that was all.
    fn advance(
        &mut self,
        session: SessionId,
        listing: &mut Listing,
        now: Clock,
        out: &mut dyn Outside,
    ) -> bool {
        let correlation_id = listing.correlation_id;
        let to = Requester { session, correlation_id };
        for _ in 0..MAX_SCANNED {
            let mut descriptors = self.catalog.descriptors_from(listing.next);
            let Some(found) = descriptors.next() else {
                let answer = Answer::RecordingUnknown(listing.end);
                self.sessions.respond(to, &answer, now, out);
                return true;
            };
            let recording = found.recording_id;
            if self.matches(found, listing) {
                let Some(entry) = self.catalog.descriptor_bytes(recording) else { return true };
                let message = descriptor(session, correlation_id, entry);
                let Some(control) = self.sessions.get_mut(session) else { return true };
                match control.try_send(&message, now, out) {
                    Sending::Sent => listing.remaining -= 1,
                    Sending::BackPressured => return false,
                    Sending::TooLong => {
                        let failure = Failure::generic(format!(
                            "the descriptor of recording {recording} is too long for the response \
                             channel: give it longer terms by term-length"
                        ));
                        self.sessions.respond(to, &Answer::Error(failure), now, out);
                        return true;
                    }
                    Sending::NotConnected | Sending::Closed | Sending::MaxPosition => return true,
                }
            }
            listing.next = recording.saturating_next();
            listing.end =
                descriptors.next().map_or(listing.end.saturating_next(), |it| it.recording_id);
            if listing.remaining == 0 {
                return true;
            }
        }
        false
    }

    fn matches(&self, descriptor: &Descriptor, listing: &Listing) -> bool {
        listing.filter.as_ref().is_none_or(|filter| {
            descriptor.stream_id == filter.stream_id
                && self.catalog.channel_contains(descriptor.recording_id, &filter.channel_fragment)
        })
    }
}
