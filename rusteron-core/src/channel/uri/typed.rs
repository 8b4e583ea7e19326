//! Parameters by name and type: a getter and a setter for each.

use std::time::Duration;

use crate::channel::uri::value::{port, word};
use crate::channel::uri::{
    ChannelUri, ChannelUriBuilder, ChannelUriError, CongestionControl, ControlMode, FlowControl,
    Group, Parameter, ResponseCorrelationId, SessionId, TimestampOffset, join_tags, split_tags,
};
use crate::scan;

const FRAME_ALIGNMENT: usize = 32;
const MAX_TERM_LENGTH: usize = 1 << 30;

/// Makes, for each line, `ChannelUri::name() -> Result<Option<type>, _>` and
/// `ChannelUriBuilder::name(type) -> Self`.
macro_rules! typed {
    ($($name:ident: $parameter:ident, $type:ty, $read:expr, $write:expr;)+) => {
        /// Returns whether a parameter takes this value by itself.
        pub(super) fn is_valid(parameter: Parameter, text: &str) -> bool {
            match parameter {
                $(Parameter::$parameter => $read(text).is_some(),)+
                Parameter::SessionId => SessionId::read(text).is_some(),
                Parameter::ResponseCorrelationId => ResponseCorrelationId::read(text).is_some(),
                Parameter::FlowControl => FlowControl::is_valid(text),
                Parameter::Tags => {
                    let (channel, entity) = split_tags(text);
                    (channel.is_empty() || channel_tag(channel).is_some())
                        && (entity.is_empty() || scan::int64(entity, 10).is_some())
                }
                Parameter::Endpoint | Parameter::Control => port(text).is_some(),
                Parameter::Interface | Parameter::ResponseEndpoint | Parameter::Alias => true,
            }
        }

        /// Parameters by type.
        ///
        /// Each getter returns `None` if the parameter is missing, and an error if its value is not
        /// valid.
        impl ChannelUri {
            $(
                #[doc = concat!("[`Parameter::", stringify!($parameter), "`].")]
                ///
                /// # Errors
                /// A value that is not valid.
                pub fn $name(&self) -> Result<Option<$type>, ChannelUriError> {
                    typed(self, Parameter::$parameter, $read)
                }
            )+
        }

        /// Parameters by type. A value out of range makes [`build`](Self::build) fail.
        impl ChannelUriBuilder {
            $(
                #[doc = concat!("Sets [`Parameter::", stringify!($parameter), "`].")]
                #[must_use]
                pub fn $name(self, value: $type) -> Self {
                    self.set(Parameter::$parameter, $write(value))
                }
            )+
        }
    };
}

typed! {
    control_mode: ControlMode, ControlMode, word::<ControlMode>, plain;
    mtu: Mtu, usize, mtu, write_size;
    term_length: TermLength, usize, term_length, write_size;
    initial_term_id: InitialTermId, i32, scan::int32, plain;
    term_id: TermId, i32, scan::int32, plain;
    term_offset: TermOffset, usize, offset, plain;
    ttl: Ttl, u8, byte, plain;
    reliable: Reliable, bool, flag, plain;
    linger: Linger, Duration, scan::duration, scan::format_duration;
    congestion_control: CongestionControl, CongestionControl, word::<CongestionControl>, plain;
    group_tag: GroupTag, i64, integer, plain;
    sparse: Sparse, bool, flag, plain;
    eos: Eos, bool, flag, plain;
    tether: Tether, bool, flag, plain;
    group: Group, Group, word::<Group>, plain;
    rejoin: Rejoin, bool, flag, plain;
    spies_simulate_connection: SpiesSimulateConnection, bool, flag, plain;
    socket_sndbuf: SocketSndbuf, usize, size, write_size;
    socket_rcvbuf: SocketRcvbuf, usize, size, write_size;
    socket_tos: SocketTos, u8, byte, plain;
    receiver_window: ReceiverWindow, usize, size, write_size;
    media_receive_timestamp_offset: MediaReceiveTimestampOffset, TimestampOffset,
        TimestampOffset::read, plain;
    channel_receive_timestamp_offset: ChannelReceiveTimestampOffset, TimestampOffset,
        TimestampOffset::read, plain;
    channel_send_timestamp_offset: ChannelSendTimestampOffset, TimestampOffset,
        TimestampOffset::read, plain;
    nak_delay: NakDelay, Duration, scan::duration, scan::format_duration;
    untethered_window_limit_timeout: UntetheredWindowLimitTimeout, Duration, scan::duration,
        scan::format_duration;
    untethered_linger_timeout: UntetheredLingerTimeout, Duration, scan::duration,
        scan::format_duration;
    untethered_resting_timeout: UntetheredRestingTimeout, Duration, scan::duration,
        scan::format_duration;
    max_resend: MaxResend, u16, resends, plain;
    stream_id: StreamId, i32, scan::int32, plain;
    publication_window: PublicationWindow, usize, publication_window, write_size;
    ats: Ats, bool, flag, plain;
}

/// Makes, for each line, `ChannelUri::name() -> Option<&str>` and `ChannelUriBuilder::name(text) ->
/// Self`.
macro_rules! text {
    ($($name:ident: $parameter:ident;)+) => {
        /// Parameters that are text.
        impl ChannelUri {
            $(
                #[doc = concat!("[`Parameter::", stringify!($parameter), "`].")]
                pub fn $name(&self) -> Option<&str> {
                    self.get(Parameter::$parameter)
                }
            )+
        }

        /// Parameters that are text.
        impl ChannelUriBuilder {
            $(
                #[doc = concat!("Sets [`Parameter::", stringify!($parameter), "`].")]
                #[must_use]
                pub fn $name(self, text: impl Into<String>) -> Self {
                    self.set(Parameter::$parameter, text)
                }
            )+
        }
    };
}

text! {
    endpoint: Endpoint;
    interface: Interface;
    control: Control;
    alias: Alias;
    response_endpoint: ResponseEndpoint;
}

impl ChannelUri {
    /// Returns the channel's own tag, from [`Parameter::Tags`].
    ///
    /// # Errors
    /// A tag that is not valid.
    pub fn channel_tag(&self) -> Result<Option<i64>, ChannelUriError> {
        self.tag(|tags| split_tags(tags).0, channel_tag)
    }

    /// Returns the publication's tag, from [`Parameter::Tags`].
    ///
    /// # Errors
    /// A tag that is not valid.
    pub fn entity_tag(&self) -> Result<Option<i64>, ChannelUriError> {
        self.tag(|tags| split_tags(tags).1, |tag| scan::int64(tag, 10))
    }

    fn tag(
        &self,
        choose: fn(&str) -> &str,
        read: fn(&str) -> Option<i64>,
    ) -> Result<Option<i64>, ChannelUriError> {
        let tags = self.get(Parameter::Tags).unwrap_or_default();
        let tag = choose(tags);
        if tag.is_empty() {
            return Ok(None);
        }
        read(tag).map(Some).ok_or_else(|| ChannelUriError::value_of(Parameter::Tags, tags))
    }

    /// Returns [`Parameter::SessionId`].
    ///
    /// # Errors
    /// A value that is not valid.
    pub fn session_id(&self) -> Result<Option<SessionId>, ChannelUriError> {
        typed(self, Parameter::SessionId, SessionId::read)
    }

    /// Returns [`Parameter::ResponseCorrelationId`].
    ///
    /// # Errors
    /// A value that is not valid.
    pub fn response_correlation_id(
        &self,
    ) -> Result<Option<ResponseCorrelationId>, ChannelUriError> {
        typed(self, Parameter::ResponseCorrelationId, ResponseCorrelationId::read)
    }

    /// Returns [`Parameter::FlowControl`] with its options, as it was written.
    pub fn flow_control(&self) -> Option<&str> {
        self.get(Parameter::FlowControl)
    }
}

impl ChannelUriBuilder {
    /// Sets the channel's own tag, in [`Parameter::Tags`].
    #[must_use]
    pub fn channel_tag(self, tag: i64) -> Self {
        let (_, entity) = split_tags(self.get(Parameter::Tags).unwrap_or_default());
        let tags = join_tags(&tag.to_string(), entity);
        self.set(Parameter::Tags, tags)
    }

    /// Sets the publication's tag, in [`Parameter::Tags`].
    #[must_use]
    pub fn entity_tag(self, tag: i64) -> Self {
        let (channel, _) = split_tags(self.get(Parameter::Tags).unwrap_or_default());
        let tags = join_tags(channel, &tag.to_string());
        self.set(Parameter::Tags, tags)
    }

    /// Sets [`Parameter::SessionId`] to a number, or to the session id of a tagged publication.
    #[must_use]
    pub fn session_id(self, session_id: impl Into<SessionId>) -> Self {
        self.set(Parameter::SessionId, session_id.into().to_string())
    }

    /// Sets [`Parameter::ResponseCorrelationId`].
    #[must_use]
    pub fn response_correlation_id(self, id: impl Into<ResponseCorrelationId>) -> Self {
        self.set(Parameter::ResponseCorrelationId, id.into().to_string())
    }

    /// Sets [`Parameter::FlowControl`].
    #[must_use]
    pub fn flow_control(self, flow_control: FlowControl) -> Self {
        self.set(Parameter::FlowControl, flow_control.to_string())
    }
}

fn typed<T>(
    uri: &ChannelUri,
    parameter: Parameter,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, ChannelUriError> {
    uri.get(parameter)
        .map(|text| read(text).ok_or_else(|| ChannelUriError::value_of(parameter, text)))
        .transpose()
}

/// Reads the channel's own tag. −1 stands for no tag, and C refuses it.
fn channel_tag(text: &str) -> Option<i64> {
    scan::int64(text, 10).filter(|&tag| tag != -1)
}

fn size(text: &str) -> Option<usize> {
    scan::size(text)?.try_into().ok()
}

fn mtu(text: &str) -> Option<usize> {
    size(text).filter(|bytes| (64..=65504).contains(bytes) && bytes % FRAME_ALIGNMENT == 0)
}

fn term_length(text: &str) -> Option<usize> {
    size(text)
        .filter(|bytes| (64 << 10..=MAX_TERM_LENGTH).contains(bytes) && bytes.is_power_of_two())
}

/// Reads a window within the bounds of any MTU and term length.
fn publication_window(text: &str) -> Option<usize> {
    size(text).filter(|bytes| (64..=MAX_TERM_LENGTH / 2).contains(bytes))
}

fn offset(text: &str) -> Option<usize> {
    let offset: usize = scan::int64(text, 0)?.try_into().ok()?;
    (offset <= MAX_TERM_LENGTH && offset % FRAME_ALIGNMENT == 0).then_some(offset)
}

fn flag(text: &str) -> Option<bool> {
    text.parse().ok()
}

fn integer(text: &str) -> Option<i64> {
    scan::int64(text, 0)
}

fn byte(text: &str) -> Option<u8> {
    scan::int32(text)?.try_into().ok()
}

fn resends(text: &str) -> Option<u16> {
    size(text).filter(|resends| (1..=256).contains(resends))?.try_into().ok()
}

fn plain<T: ToString>(value: T) -> String {
    value.to_string()
}

fn write_size(bytes: usize) -> String {
    scan::format_size(bytes as u64)
}
