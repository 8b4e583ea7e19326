//! Listings: which recordings and subscriptions match, and where recordings are.

use std::collections::BTreeMap;

use crate::catalog::{Catalog, Descriptor};
use crate::conductor::effect::{ControlSessionId, RecordingId, Sending};
use crate::conductor::sessions::Requester;
use crate::conductor::subscriptions::Subscriptions;
use crate::conductor::turn::Turn;
use crate::control::request::{RecordingFilter, text};
use crate::control::responses::{Answer, Failure, descriptor, subscription_descriptor};
use crate::ids::{CorrelationId, NULL_ID};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::ListRecordingSubscriptionsRequest;

/// The most recordings that a listing looks at in one turn.
const MAX_SCANNED: usize = 64;

/// A listing of recordings. A session has one at a time.
#[derive(Debug)]
struct Listing {
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
#[derive(Debug, Default)]
pub(crate) struct Listings {
    by_session: BTreeMap<ControlSessionId, Listing>,
}

impl Listings {
    pub(super) fn check_none(&self, session: ControlSessionId) -> Result<(), Failure> {
        if self.by_session.contains_key(&session) {
            let text = "active listing already in progress";
            return Err(Failure::new(ErrorCode::ActiveListing, text));
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.by_session.is_empty()
    }

    pub(super) fn remove(&mut self, session: ControlSessionId) {
        self.by_session.remove(&session);
    }

    /// Begins a listing of `count` recordings. Fewer are followed by an answer.
    pub(super) fn list_recordings(
        &mut self,
        requester: Requester,
        from: RecordingId,
        count: i32,
        filter: Option<&RecordingFilter<'_>>,
    ) -> Result<Option<Answer>, Failure> {
        self.check_none(requester.session)?;
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
        self.by_session.insert(requester.session, listing);
        Ok(None)
    }

    pub(super) fn list_recording(
        &mut self,
        turn: &Turn<'_>,
        requester: Requester,
        recording: RecordingId,
    ) -> Result<Option<Answer>, Failure> {
        self.check_none(requester.session)?;
        if turn.catalog.get(recording).is_none() {
            return Ok(Some(Answer::RecordingUnknown(recording)));
        }
        self.list_recordings(requester, recording, 1, None)
    }

    /// Lists subscriptions at once: there are few.
    pub(super) fn list_subscriptions(
        &self,
        turn: &mut Turn<'_>,
        requester: Requester,
        query: &ListRecordingSubscriptionsRequest<'_>,
        subscriptions: &Subscriptions,
    ) -> Result<Option<Answer>, Failure> {
        let Requester { session, correlation_id } = requester;
        self.check_none(session)?;
        let first = usize::try_from(query.pseudo_index);
        let (Ok(first), Ok(count)) = (first, usize::try_from(query.subscription_count)) else {
            return Ok(Some(Answer::SubscriptionUnknown));
        };
        let channel_fragment = text(query.channel);
        let matching = subscriptions.registered().skip(first).filter(|(_, known)| {
            (query.apply_stream_id != 1 || known.stream_id == query.stream_id)
                && known.channel.contains(&*channel_fragment)
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
            if let Some(control) = turn.sessions.get_mut(session) {
                control.send(message, turn.now, turn.out);
            }
            sent += 1;
        }
        Ok((sent < count || count == 0).then_some(Answer::SubscriptionUnknown))
    }

    pub(super) fn on_turn(&mut self, turn: &mut Turn<'_>) -> usize {
        let mut work = 0;
        let sessions: Vec<_> = self.by_session.keys().copied().collect();
        for session in sessions {
            let Some(mut listing) = self.by_session.remove(&session) else { continue };
            let next = listing.next;
            let is_done = advance(session, &mut listing, turn);
            work += usize::from(is_done || listing.next > next);
            if !is_done {
                self.by_session.insert(session, listing);
            }
        }
        work
    }
}

pub(super) fn find_last_matching(
    catalog: &Catalog,
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
    let found = catalog.find_last(min_recording, session_id, stream_id, channel_fragment);
    Ok(Answer::Ok(found.map_or(NULL_ID, RecordingId::get)))
}

/// Sends the next descriptors, and returns whether that was all.
fn advance(session: ControlSessionId, listing: &mut Listing, turn: &mut Turn<'_>) -> bool {
    let correlation_id = listing.correlation_id;
    let to = Requester { session, correlation_id };
    for _ in 0..MAX_SCANNED {
        let (found, following) = {
            let mut descriptors = turn.catalog.descriptors_from(listing.next);
            (descriptors.next().copied(), descriptors.next().map(|it| it.recording_id))
        };
        let Some(found) = found else {
            turn.respond(to, &Answer::RecordingUnknown(listing.end));
            return true;
        };
        let recording = found.recording_id;
        if matches(turn.catalog, &found, listing) {
            let Some(entry) = turn.catalog.descriptor_bytes(recording) else { return true };
            let message = descriptor(session, correlation_id, entry);
            let Some(control) = turn.sessions.get_mut(session) else { return true };
            match control.try_send(&message, turn.now, turn.out) {
                Sending::Sent => listing.remaining -= 1,
                Sending::BackPressured => return false,
                Sending::TooLong => {
                    let failure = Failure::generic(format!(
                        "the descriptor of recording {recording} is too long for the response \
                         channel: give it longer terms by term-length"
                    ));
                    turn.respond(to, &Answer::Error(failure));
                    return true;
                }
                Sending::NotConnected | Sending::Closed | Sending::MaxPosition => return true,
            }
        }
        listing.next = recording.saturating_next();
        listing.end = following.unwrap_or(listing.end.saturating_next());
        if listing.remaining == 0 {
            return true;
        }
    }
    false
}

fn matches(catalog: &Catalog, descriptor: &Descriptor, listing: &Listing) -> bool {
    listing.filter.as_ref().is_none_or(|filter| {
        descriptor.stream_id == filter.stream_id
            && catalog.channel_contains(descriptor.recording_id, &filter.channel_fragment)
    })
}
