//! A scripted network, for the unit tests of this folder.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::IoSlice;

use rusteron_client::{Error, OfferError, Position, Publication};
use rusteron_core::RecordingId;

use crate::codec::{self, MessageHeader};
use crate::service::error::TerminationCause;
use crate::service::network::{Claim, Network, SnapshotContent};
use crate::service::snapshot_writer::{SnapshotError, SnapshotSink};

/// Takes messages of the container, and does as the script says.
#[derive(Default)]
pub(crate) struct Script {
    refusals: VecDeque<(OfferError, usize)>,
    end: Option<(usize, TerminationCause)>,
    /// All messages to the consensus module.
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) errors: Vec<String>,
    /// Channels and streams of the response publications that were requested.
    pub(crate) responses: Vec<(String, i32)>,
    pub(crate) idles: usize,
    /// The messages of the last snapshot.
    pub(crate) snapshot: Vec<Vec<u8>>,
    /// How often a snapshot waits for the archive.
    pub(crate) snapshot_idles: usize,
    /// Makes the publication of snapshots fail.
    pub(crate) snapshot_failure: Option<OfferError>,
    /// The recording id or the failure of the next snapshots.
    pub(crate) recordings: VecDeque<Result<RecordingId, SnapshotError>>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Refuses a number of offers.
    pub(crate) fn refuse(&mut self, error: OfferError, times: usize) {
        self.refusals.push_back((error, times));
    }

    /// Ends the container when it has idled a number of times.
    pub(crate) fn end_after(&mut self, idles: usize, cause: TerminationCause) {
        self.end = Some((idles, cause));
    }

    /// The acknowledgements among the sent messages.
    pub(crate) fn acks(&self) -> Vec<codec::ServiceAck> {
        let decode = |message: &Vec<u8>| {
            let (header, body) = MessageHeader::split(message)?;
            (header.template_id == codec::ServiceAck::TEMPLATE_ID).then_some(())?;
            codec::ServiceAck::decode(header, body)
        };
        self.sent.iter().filter_map(decode).collect()
    }
}

impl Network for Script {
    fn offer(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        while let Some((error, times)) = self.refusals.front_mut() {
            if *times > 0 {
                *times -= 1;
                return Err(*error);
            }
            self.refusals.pop_front();
        }
        self.sent.push(parts.iter().flat_map(|part| part.iter().copied()).collect());
        Ok(0)
    }

    fn max_message_length(&self) -> usize {
        16 * 1024
    }

    fn max_payload_length(&self) -> usize {
        1376
    }

    fn try_claim(&mut self, _length: usize) -> Result<Claim<'_>, OfferError> {
        Err(OfferError::BackPressured)
    }

    fn idle(&mut self, _work_count: usize) -> Result<(), TerminationCause> {
        self.idles += 1;
        match &self.end {
            Some((idles, cause)) if self.idles >= *idles => Err(cause.clone()),
            _ => Ok(()),
        }
    }

    fn add_response_publication(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Publication, Error> {
        self.responses.push((channel.to_owned(), stream_id));
        // A publication needs a driver. The session has no answers without it.
        Err(Error::from(OfferError::NotConnected))
    }

    fn record_error(&mut self, error: &dyn Display) {
        self.errors.push(error.to_string());
    }

    fn record_snapshot(
        &mut self,
        content: &mut dyn SnapshotContent,
    ) -> Result<RecordingId, SnapshotError> {
        let outcome = self.recordings.pop_front().unwrap_or(Ok(0.into()));
        let mut sink =
            Sink { fails_after: self.snapshot_failure.map(|e| (3, e)), ..Sink::default() };
        content.write(&mut sink)?;
        for _ in 0..self.snapshot_idles {
            content.on_idle(self)?;
        }
        self.snapshot = sink.messages;
        outcome
    }

    fn client_id(&self) -> i64 {
        4711
    }
}

/// Takes the messages of a snapshot.
#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) messages: Vec<Vec<u8>>,
    pub(crate) refusals: usize,
    pub(crate) failure: Option<OfferError>,
    /// A number of messages, and the failure behind them.
    pub(crate) fails_after: Option<(usize, OfferError)>,
    /// The archive's report.
    pub(crate) report: Option<SnapshotError>,
}

impl SnapshotSink for Sink {
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        if self.refusals > 0 {
            self.refusals -= 1;
            return Err(OfferError::BackPressured);
        }
        if let Some(error) = self.failure {
            return Err(error);
        }
        if let Some((_, error)) =
            self.fails_after.filter(|(count, _)| self.messages.len() >= *count)
        {
            return Err(error);
        }
        if message.len() > self.max_message_length() {
            let max_message_length = self.max_message_length();
            return Err(OfferError::MessageTooLong { length: message.len(), max_message_length });
        }
        self.messages.push(message.to_vec());
        Ok(0)
    }

    fn max_message_length(&self) -> usize {
        1000
    }

    fn max_payload_length(&self) -> usize {
        100
    }

    fn check(&mut self) -> Result<(), SnapshotError> {
        self.report.clone().map_or(Ok(()), Err)
    }
}
