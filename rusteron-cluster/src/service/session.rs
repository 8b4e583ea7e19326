//! The sessions of clients, as a service knows them.

use std::collections::BTreeMap;

use rusteron_client::{ChannelUri, Media, Publication};

use crate::codec::SessionMessageHeader;
use crate::ids::ClusterSessionId;
use crate::service::network::Network;

/// Length of the header before each message.
pub(crate) const HEADER_LENGTH: usize = SessionMessageHeader::LENGTH;

/// Aeron's default MTU, in bytes.
const DEFAULT_MTU: usize = 1408;

/// Aeron's default terms and the longest message, in bytes.
const DEFAULT_TERM_LENGTH: usize = 16 * 1024 * 1024;
const DEFAULT_IPC_TERM_LENGTH: usize = 64 * 1024 * 1024;
const MAX_MESSAGE_LENGTH: usize = 16 * 1024 * 1024;

/// Length of a frame's header.
const FRAME_HEADER_LENGTH: usize = 32;

/// A session of a client: its id, and what the client said about itself.
///
/// All members have the same sessions at the same position of the log. The publication to the
/// client is the leader's only.
pub struct SessionInfo {
    id: ClusterSessionId,
    response_stream_id: i32,
    response_channel: String,
    encoded_principal: Vec<u8>,
    max_message_length: usize,
    max_claim_length: usize,
    is_closing: bool,
    publication: Option<Publication>,
}

impl SessionInfo {
    pub(crate) fn new(
        id: ClusterSessionId,
        response_stream_id: i32,
        response_channel: &[u8],
        encoded_principal: &[u8],
    ) -> Self {
        let response_channel = String::from_utf8_lossy(response_channel).into_owned();
        let (max_message_length, max_claim_length) = max_lengths(&response_channel);
        Self {
            id,
            response_stream_id,
            max_message_length,
            max_claim_length,
            response_channel,
            encoded_principal: encoded_principal.to_vec(),
            is_closing: false,
            publication: None,
        }
    }

    /// Returns the id of the session, unique in the cluster.
    pub fn id(&self) -> ClusterSessionId {
        self.id
    }

    /// Returns the stream id on which the client receives.
    pub fn response_stream_id(&self) -> i32 {
        self.response_stream_id
    }

    /// Returns the channel on which the client receives, in the client's words.
    pub fn response_channel(&self) -> &str {
        &self.response_channel
    }

    /// Returns the client's identity, as the cluster's authenticator encoded it. Empty without
    /// authentication.
    pub fn encoded_principal(&self) -> &[u8] {
        &self.encoded_principal
    }

    /// Returns the length of the longest [claim](crate::ClientSession::try_claim), in bytes.
    ///
    /// The length is the MTU without 64 bytes of headers. The MTU is the `mtu` of the
    /// [response channel](Self::response_channel), or else Aeron's default, 1,408. So all members
    /// have the same answer, whatever the settings of their media drivers are.
    pub fn max_claim_length(&self) -> usize {
        self.max_claim_length
    }

    /// Returns the length of the longest [message](crate::ClientSession::offer) to the client, in
    /// bytes, for media drivers with Aeron's default terms.
    ///
    /// The length is an eighth of a term, at most 16 MiB, without 32 bytes of header: 2 MiB over
    /// UDP, 8 MiB over IPC. The [response channel](Self::response_channel) may name the length of
    /// its terms. All members have the same answer. A leader whose media driver has other defaults
    /// accepts longer messages, or refuses shorter ones.
    pub fn max_message_length(&self) -> usize {
        self.max_message_length
    }

    /// Returns whether this member's service has asked to close the session. The answer differs
    /// between members.
    pub fn is_closing(&self) -> bool {
        self.is_closing
    }

    pub(crate) fn set_closing(&mut self, is_closing: bool) {
        self.is_closing = is_closing;
    }

    pub(crate) fn publication(&self) -> Option<&Publication> {
        self.publication.as_ref()
    }

    /// Adds the publication to the client. A failure is recorded, and leaves the session without
    /// answers: the client chose the channel.
    pub(crate) fn connect(&mut self, network: &mut dyn Network) {
        if self.publication.is_some() {
            return;
        }
        match network.add_response_publication(&self.response_channel, self.response_stream_id) {
            Ok(publication) => self.publication = Some(publication),
            Err(error) => network.record_error(&format_args!(
                "session {}: no publication to {} stream {}: {error}",
                self.id, self.response_channel, self.response_stream_id
            )),
        }
    }

    pub(crate) fn disconnect(&mut self) {
        self.publication = None;
    }
}

/// Returns the lengths of the longest message and of the longest claim. They depend on the log alone:
/// followers do not know the settings of the leader's media driver.
fn max_lengths(response_channel: &str) -> (usize, usize) {
    let channel = response_channel.parse::<ChannelUri>().ok();
    let channel = channel.as_ref();
    let default = match channel.map(ChannelUri::media) {
        Some(Media::Ipc) => DEFAULT_IPC_TERM_LENGTH,
        _ => DEFAULT_TERM_LENGTH,
    };
    let term_length = channel.and_then(|channel| channel.term_length().ok().flatten());
    let max_message_length = (term_length.unwrap_or(default) / 8).min(MAX_MESSAGE_LENGTH);
    let mtu = channel.and_then(|channel| channel.mtu().ok().flatten()).unwrap_or(DEFAULT_MTU);
    (
        max_message_length.saturating_sub(HEADER_LENGTH),
        mtu.saturating_sub(FRAME_HEADER_LENGTH + HEADER_LENGTH),
    )
}

rusteron_core::impl_debug!(SessionInfo: id, response_stream_id, response_channel, is_closing);

/// The open sessions, in the order of their ids.
pub(crate) type Sessions = BTreeMap<ClusterSessionId, SessionInfo>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_claim_length_by_channel() {
        let cases = [
            ("aeron:ipc", 1344),
            ("aeron:udp?endpoint=localhost:0|mtu=8k", 8128),
            ("aeron:udp?endpoint=localhost:0|mtu=2048", 1984),
            ("aeron:udp?mtu=65504", 65_440),
            ("aeron:udp?mtu=32", 1344),
            ("aeron:udp?mtu=big", 1344),
            ("no channel", 1344),
        ];
        for (channel, expected) in cases {
            let session = SessionInfo::new(ClusterSessionId::new(1), 2, channel.as_bytes(), &[]);
            assert_eq!(session.max_claim_length(), expected, "{channel}");
        }
    }

    #[test]
    fn max_message_length_by_channel() {
        let cases = [
            ("aeron:ipc", 8 * 1024 * 1024 - 32),
            ("aeron:udp?endpoint=localhost:0", 2 * 1024 * 1024 - 32),
            ("aeron:udp?endpoint=localhost:0|term-length=64k", 8 * 1024 - 32),
            ("aeron:ipc?term-length=1g", 16 * 1024 * 1024 - 32),
            ("no channel", 2 * 1024 * 1024 - 32),
        ];
        for (channel, expected) in cases {
            let session = SessionInfo::new(ClusterSessionId::new(1), 2, channel.as_bytes(), &[]);
            assert_eq!(session.max_message_length(), expected, "{channel}");
        }
    }
}
