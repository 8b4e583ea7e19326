//! Channels to the source, and from it.

use crate::channel::{Channel, ChannelError, ResponseDefaults};

/// The channels of a session with the source, but for the session id of both streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ControlChannels {
    pub(crate) requests: String,
    pub(crate) request_stream_id: i32,
    pub(crate) responses: String,
    pub(crate) response_stream_id: i32,
    /// The source publishes its answers by a response channel, which needs no session id.
    pub(crate) is_response: bool,
}

impl ControlChannels {
    pub(crate) fn new(
        (requests, request_stream_id): (&str, i32),
        (responses, response_stream_id): (&str, i32),
        defaults: ResponseDefaults,
    ) -> Result<Self, ChannelError> {
        let is_response = Channel::parse(responses)?.is_response();
        // Of the session that the client of this archive has with the source: a cluster's backup gives the channel of its
        // own requests.
        let of_another_session = if is_response { "response-correlation-id" } else { "session-id" };
        let with_defaults = |text| -> Result<_, ChannelError> {
            let mut channel = Channel::parse(text)?;
            channel.remove(of_another_session);
            channel.set_default("term-length", defaults.term_length);
            channel.set_default("mtu", defaults.mtu);
            channel.set_default("sparse", defaults.is_sparse);
            Ok(channel.to_string())
        };
        let (requests, responses) = (with_defaults(requests)?, with_defaults(responses)?);
        Ok(Self { requests, request_stream_id, responses, response_stream_id, is_response })
    }

    /// Returns the channel of requests for a replay whose stream comes by a response channel of this subscription.
    pub(super) fn replay_requests(&self, subscription: i64) -> Result<String, ChannelError> {
        let mut channel = Channel::parse(&self.requests)?;
        for key in ["init-term-id", "term-id", "term-offset"] {
            channel.remove(key);
        }
        channel.set("term-length", 64 * 1024);
        channel.set("response-correlation-id", subscription);
        Ok(channel.to_string())
    }
}

/// The channels of the stream that the source sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReplayChannels {
    channel: String,
    /// The tags of channel and subscription, and so destinations that come and go.
    tags: Option<(i64, i64)>,
    /// The source sends by a response channel.
    pub(super) is_response: bool,
}

impl ReplayChannels {
    pub(crate) fn new(channel: &str, tags: Option<(i64, i64)>) -> Result<Self, ChannelError> {
        let is_response = Channel::parse(channel)?.is_response();
        Ok(Self { channel: channel.to_owned(), tags, is_response })
    }

    /// Returns the channel of the subscription that extends the copy, and the destination to add to it, if it has such.
    pub(super) fn extension(
        &self,
        session_id: i32,
    ) -> Result<(String, Option<String>), ChannelError> {
        let mut channel = Channel::parse(&self.channel)?;
        channel.set("rejoin", false);
        if !self.is_response {
            channel.set("session-id", session_id);
        }
        let Some((channel_tag, subscription_tag)) = self.tags else {
            return Ok((channel.to_string(), None));
        };
        channel.remove("endpoint");
        channel.set("tags", format!("{channel_tag},{subscription_tag}"));
        channel.set("control-mode", "manual");
        Ok((channel.to_string(), Some(self.destination()?)))
    }

    /// Returns the destination by which a subscription with tags receives the replay.
    fn destination(&self) -> Result<String, ChannelError> {
        let given = Channel::parse(&self.channel)?;
        let mut destination = Channel::parse(&self.channel)?;
        destination.retain(|key| matches!(key, "endpoint" | "interface"));
        given.require("endpoint").map(|()| destination.to_string())
    }

    /// Returns the channel on which the source is to replay. `local_address` is where the subscription receives.
    pub(super) fn replay(
        &self,
        local_address: &str,
        session_id: i32,
        is_live: bool,
        subscription: i64,
    ) -> Result<String, ChannelError> {
        let mut channel = Channel::parse(&self.channel)?;
        let port = local_address.rsplit(':').next().unwrap_or_default();
        let host = channel.get("endpoint").and_then(|it| it.strip_suffix(":0")).map(str::to_owned);
        if let Some(host) = host {
            channel.set("endpoint", format!("{host}:{port}"));
        }
        if is_live {
            // The image goes on with the live stream.
            channel.set("linger", 0);
            channel.set("eos", false);
        }
        if self.is_response {
            channel.set("response-correlation-id", subscription);
        } else {
            channel.set("session-id", session_id);
        }
        Ok(channel.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: ResponseDefaults =
        ResponseDefaults { mtu: 1408, term_length: 64 << 10, is_sparse: true };

    #[test]
    fn control_channels_have_defaults() {
        let channels = |requests, responses| {
            ControlChannels::new((requests, 10), (responses, 20), DEFAULTS).expect("channels")
        };
        let plain = channels("aeron:udp?endpoint=a:1|mtu=4096", "aeron:ipc");
        assert_eq!(plain.requests, "aeron:udp?endpoint=a:1|mtu=4096|term-length=65536|sparse=true");
        assert_eq!(plain.responses, "aeron:ipc?term-length=65536|mtu=1408|sparse=true");
        assert!(!plain.is_response);
        let response = channels("aeron:udp?endpoint=a:1", "aeron:udp?control-mode=response");
        assert!(response.is_response);
        let replays = channels("aeron:udp?endpoint=a:1|term-id=7|term-length=1m", "aeron:ipc");
        assert_eq!(
            replays.replay_requests(77).expect("a channel"),
            "aeron:udp?endpoint=a:1|mtu=1408|sparse=true|term-length=65536|response-correlation-id=77"
        );
        assert!(ControlChannels::new(("udp", 10), ("aeron:ipc", 20), DEFAULTS).is_err());
    }

    #[test]
    fn control_channels_forget_another_session() {
        let channels = |requests: &str, responses: &str| {
            ControlChannels::new((requests, 10), (responses, 20), DEFAULTS).expect("channels")
        };
        let rest = "mtu=1408|sparse=true|term-length=65536";
        let plain = channels(
            &format!("aeron:udp?endpoint=a:1|session-id=7|{rest}"),
            &format!("aeron:udp?endpoint=b:0|session-id=7|{rest}"),
        );
        assert_eq!(plain.requests, format!("aeron:udp?endpoint=a:1|{rest}"));
        assert_eq!(plain.responses, format!("aeron:udp?endpoint=b:0|{rest}"));
        let response = channels(
            &format!("aeron:udp?endpoint=a:1|response-correlation-id=7|{rest}"),
            "aeron:udp?control-mode=response",
        );
        assert_eq!(response.requests, format!("aeron:udp?endpoint=a:1|{rest}"));
    }

    #[test]
    fn plain_stream_has_the_session_id_of_the_replay() {
        let channels = ReplayChannels::new("aeron:udp?endpoint=a:0|alias=x", None).expect("it");
        let (extension, destination) = channels.extension(-7).expect("a channel");
        assert_eq!(extension, "aeron:udp?endpoint=a:0|alias=x|rejoin=false|session-id=-7");
        assert_eq!(destination, None);
        assert_eq!(
            channels.replay("127.0.0.1:99", -7, false, 5).expect("a channel"),
            "aeron:udp?alias=x|endpoint=a:99|session-id=-7"
        );
        let fixed = ReplayChannels::new("aeron:udp?endpoint=a:8", None).expect("channels");
        let replay = fixed.replay("127.0.0.1:99", -7, true, 5).expect("a channel");
        assert_eq!(replay, "aeron:udp?endpoint=a:8|linger=0|eos=false|session-id=-7");
    }

    #[test]
    fn tagged_stream_has_a_destination() {
        let channel = "aeron:udp?endpoint=a:0|interface=lo|alias=x";
        let channels = ReplayChannels::new(channel, Some((3, 4))).expect("channels");
        let (extension, destination) = channels.extension(-7).expect("a channel");
        assert_eq!(
            extension,
            "aeron:udp?interface=lo|alias=x|rejoin=false|session-id=-7|tags=3,4|control-mode=manual"
        );
        assert_eq!(destination.as_deref(), Some("aeron:udp?endpoint=a:0|interface=lo"));
        let nowhere = ReplayChannels::new("aeron:udp?control=a:1", Some((3, 4))).expect("channels");
        assert!(nowhere.extension(1).is_err());
    }

    #[test]
    fn response_channel_names_the_subscription() {
        let channel = "aeron:udp?control-mode=response|control=a:1";
        let channels = ReplayChannels::new(channel, None).expect("channels");
        let (extension, _) = channels.extension(-7).expect("a channel");
        assert_eq!(extension, format!("{channel}|rejoin=false"));
        assert_eq!(
            channels.replay("127.0.0.1:99", -7, false, 5).expect("a channel"),
            format!("{channel}|response-correlation-id=5")
        );
    }
}
