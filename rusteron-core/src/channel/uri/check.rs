//! The media driver's checks when a resource is added, as in Aeron's C code of the same version.
//!
//! Each function stands for one C function and reads the same parameters. Parameters that C ignores
//! are ignored here, too.
//!
//! `parse` checks the form only. `check_publication` and `check_subscription` check the parameters that such a
//! resource reads, because the driver ignores the others, even invalid ones. Destinations are checked when they
//! are added and when they are removed; the driver would accept some endpoints of publication destinations that
//! it cannot read.

use std::borrow::Cow;

use crate::channel::uri::address::{self, Address};
use crate::channel::uri::udp_channel::UdpChannel;
use crate::channel::uri::value::{
    ControlMode, Media, ResponseCorrelationId, SessionId, TimestampOffset,
};
use crate::channel::uri::{
    ChannelUri, ChannelUriError, ChannelUriErrorKind, Parameter, flow_control, no_scheme, scan,
    split_media, split_spy,
};

pub(super) type Checked<T = ()> = Result<T, ChannelUriError>;

/// The minimum and the maximum MTU in any driver configuration.
pub(super) const MIN_MTU: u64 = 64;
const MAX_MTU: u64 = 65504;
const FRAME_ALIGNMENT: u64 = 32;

const MIN_TERM_LENGTH: u64 = 64 << 10;
const MAX_TERM_LENGTH: u64 = 1 << 30;

/// The use of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelUse {
    /// A publication sends to it.
    Publication,
    /// A subscription receives from it.
    Subscription,
    /// A destination that a publication sends to.
    SendDestination,
    /// A destination that a publication shall no longer send to.
    FormerSendDestination,
    /// A destination that a subscription receives from.
    ReceiveDestination,
    /// A destination that a subscription shall no longer receive from.
    FormerReceiveDestination,
}

impl ChannelUse {
    pub(super) fn check(self, uri: &ChannelUri) -> Checked {
        match self {
            Self::Publication => publication(uri),
            Self::Subscription => subscription(uri),
            Self::SendDestination | Self::FormerSendDestination => send_destination(uri),
            Self::ReceiveDestination | Self::FormerReceiveDestination => {
                receive_destination(uri)?;
                self.use_after_free(uri)
            }
        }
    }

    /// Checks a text with [`dangers`] that is not checked otherwise.
    ///
    /// A text without a scheme and a transport is a danger, too: the driver quotes the text in its
    /// error and reads beyond its end, as commands have no NUL byte (`aeron_uri.c`, line 324).
    pub(super) fn check_dangers(self, text: &str) -> Checked {
        let uri = match self {
            Self::Subscription | Self::ReceiveDestination | Self::FormerReceiveDestination => {
                split_spy(text).1
            }
            // Here the driver does not look for the spy prefix, so a text with that prefix has no
            // scheme.
            Self::Publication | Self::SendDestination | Self::FormerSendDestination => text,
        };
        split_media(uri).ok_or_else(|| no_scheme(text))?;
        // A text that cannot be parsed here is not parsed by C, either.
        let Ok(uri) = text.parse() else { return Ok(()) };
        dangers(&uri)?;
        self.use_after_free(&uri)
    }

    /// Refuses destinations that make the C driver use freed memory.
    ///
    /// The C driver sends status messages to the control address of a destination as long as the
    /// subscription exists. If the destination is removed, the driver still does so through freed
    /// memory: `aeron_driver_receiver_on_remove_destination` leaves the entry of line 487 in the
    /// list that is traversed from line 180 on (`aeron_driver_receiver.c`). So such a destination
    /// must not be removed, by any name that the driver could know it by. The driver compares the
    /// endpoint, and the address of the control or of the interface, port included.
    fn use_after_free(self, uri: &ChannelUri) -> Checked {
        use Parameter as P;
        if uri.media() != Media::Udp || uri.is_spy() {
            return Ok(());
        }
        let is_multicast = |text| Address::parse(text).is_ok_and(|address| address.is_multicast());
        if uri.get(P::Endpoint).is_some_and(is_multicast) {
            // The driver does not use the control address then.
            return Ok(());
        }
        let control = uri.get(P::Control);
        match self {
            // This also covers the port of every interface that is given without a port.
            Self::ReceiveDestination => {
                let has_port_0 = |text: &&str| Address::parse(text).is_ok_and(|it| it.port == 0);
                let Some(text) = control.filter(has_port_0) else { return Ok(()) };
                let reason = "a subscription cannot join at port 0";
                Err(ChannelUriError::bad(P::Control, text, reason))
            }
            Self::FormerReceiveDestination => {
                let has_port = |text: &&str| {
                    let behind_address = text.rsplit([']', '}']).next();
                    behind_address.is_some_and(|text| text.contains(':'))
                };
                let interface = uri.get(P::Interface).filter(has_port);
                let control = control.map(|text| (P::Control, text));
                let Some((parameter, text)) = control.or(interface.map(|it| (P::Interface, it)))
                else {
                    return Ok(());
                };
                let reason = "the media driver would go on using such a destination after freeing \
                              it; it is removed by closing the subscription";
                Err(ChannelUriError::bad(parameter, text, reason))
            }
            _ => Ok(()),
        }
    }

    /// Returns the name of the argument.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Self::Publication | Self::Subscription => "channel",
            Self::SendDestination
            | Self::FormerSendDestination
            | Self::ReceiveDestination
            | Self::FormerReceiveDestination => "destination",
        }
    }
}

/// Mirrors `aeron_driver_conductor_execute_add_ipc_publication` and
/// `aeron_driver_conductor_execute_add_network_publication`.
pub(super) fn publication(uri: &ChannelUri) -> Checked {
    refuse_spy(uri, "a spy reads what a publication sends; it cannot be one")?;
    match uri.media() {
        Media::Ipc => publication_parameters(uri),
        Media::Udp => {
            let channel = UdpChannel::check(uri)?;
            publication_parameters(uri)?;
            channel.check_publication(uri)
        }
    }
}

/// Mirrors `aeron_driver_conductor_on_add_ipc_subscription`,
/// `aeron_driver_conductor_execute_add_spy_subscription` and
/// `aeron_driver_conductor_execute_add_network_subscription`.
pub(super) fn subscription(uri: &ChannelUri) -> Checked {
    match (uri.media(), uri.is_spy()) {
        (Media::Ipc, _) => subscription_parameters(uri),
        (Media::Udp, true) => {
            UdpChannel::check(uri)?;
            subscription_parameters(uri)
        }
        (Media::Udp, false) => {
            let channel = UdpChannel::check(uri)?;
            subscription_parameters(uri)?;
            channel.check_subscription(uri)
        }
    }
}

/// Refuses a channel that would be a spy where spies do not exist.
fn refuse_spy(uri: &ChannelUri, reason: &'static str) -> Checked {
    if !uri.is_spy() {
        return Ok(());
    }
    Err(ChannelUriError::new(ChannelUriErrorKind::Spy, reason).with_value(&uri.to_string()))
}

/// Mirrors `aeron_driver_conductor_on_add_receive_ipc_destination`,
/// `aeron_driver_conductor_execute_add_receive_spy_destination` and
/// `aeron_driver_conductor_execute_add_receive_network_destination`. Removing a destination that
/// these would not add makes no sense.
fn receive_destination(uri: &ChannelUri) -> Checked {
    if uri.media() == Media::Ipc {
        return subscription_parameters(uri);
    }
    UdpChannel::check(uri)?;
    if uri.is_spy() {
        return subscription_parameters(uri);
    }
    belongs_to_destination(uri, "it is for the subscription's channel, not for a destination")
}

/// Mirrors `aeron_driver_conductor_validate_destination_uri_params`.
fn belongs_to_destination(uri: &ChannelUri, reason: &'static str) -> Checked {
    use Parameter as P;
    let response = uri
        .get(P::ControlMode)
        .filter(|mode| ControlMode::read(mode) == Some(ControlMode::Response))
        .map(|text| (P::ControlMode, text));
    let not_its_own = [
        P::Mtu,
        P::ReceiverWindow,
        P::SocketRcvbuf,
        P::SocketSndbuf,
        P::SocketTos,
        P::ResponseCorrelationId,
    ];
    let mut not_its_own = not_its_own.into_iter().filter_map(|key| Some((key, uri.get(key)?)));
    match not_its_own.next().or(response) {
        Some((parameter, text)) => Err(ChannelUriError::conflict(parameter, text, reason)),
        None => Ok(()),
    }
}

/// Mirrors `aeron_driver_conductor_validate_send_destination_uri`, for adding and for removing.
///
/// The driver also accepts an endpoint that it cannot read, and sends nothing there. Here such an
/// endpoint is refused.
fn send_destination(uri: &ChannelUri) -> Checked {
    use Parameter as P;
    refuse_spy(uri, "a spy reads what a publication sends; it cannot be a destination")?;
    let Some(text) = uri.get(P::Endpoint).filter(|_| uri.media() == Media::Udp) else {
        let reason = "a destination needs it: aeron:udp?endpoint=host:port";
        return Err(ChannelUriError::missing(P::Endpoint, reason));
    };
    if Address::parse(text).map_err(because(P::Endpoint, text))?.port == 0 {
        return Err(ChannelUriError::bad(P::Endpoint, text, "a publication cannot send to port 0"));
    }
    belongs_to_destination(uri, "it is for the publication's channel, not for a destination")?;
    dangers(uri)
}

/// Checks a value by itself.
pub(super) fn value(parameter: Parameter, text: &str) -> Checked {
    use Parameter as P;
    let is_valid = match parameter {
        P::Endpoint | P::Control => {
            return Address::parse(text).map(|_| ()).map_err(because(parameter, text));
        }
        P::Interface => return address::check_interface(text).map_err(because(parameter, text)),
        P::Tags => {
            let (channel, entity) = text.split_once(',').unwrap_or((text, ""));
            (channel.is_empty() || channel_tag(channel).is_some())
                && (entity.is_empty() || scan::int64(entity, 10).is_some())
        }
        P::Mtu => mtu(text).is_some(),
        P::TermLength => term_length(text).is_some(),
        P::TermOffset => term_offset(text).is_some_and(|n| n <= MAX_TERM_LENGTH),
        P::PublicationWindow => publication_window(text).is_some(),
        P::InitialTermId | P::TermId | P::StreamId => scan::int32(text).is_some(),
        P::SessionId => SessionId::read(text).is_some(),
        P::SocketTos => scan::int32(text).is_some_and(|n| (0..=255).contains(&n)),
        P::MaxResend => scan::size(text).is_some_and(|n| (1..=256).contains(&n)),
        P::GroupTag => scan::int64(text, 0).is_some(),
        P::ResponseCorrelationId => ResponseCorrelationId::read(text).is_some(),
        P::FlowControl => flow_control::is_valid(text),
        P::SocketSndbuf | P::SocketRcvbuf | P::ReceiverWindow => scan::size(text).is_some(),
        P::MediaReceiveTimestampOffset
        | P::ChannelReceiveTimestampOffset
        | P::ChannelSendTimestampOffset => TimestampOffset::read(text).is_some(),
        P::Linger
        | P::UntetheredWindowLimitTimeout
        | P::UntetheredLingerTimeout
        | P::UntetheredRestingTimeout => scan::duration(text).is_some(),
        P::Reliable
        | P::Sparse
        | P::Eos
        | P::Tether
        | P::Rejoin
        | P::SpiesSimulateConnection
        | P::Ats => scan::flag(text).is_some(),
        // The driver refuses no value of these parameters.
        P::ControlMode
        | P::Ttl
        | P::Alias
        | P::CongestionControl
        | P::Group
        | P::ResponseEndpoint
        | P::NakDelay => true,
    };
    if is_valid { Ok(()) } else { Err(ChannelUriError::value_of(parameter, text)) }
}

/// Checks all of a channel, for any use. Builders call this.
pub(super) fn everything(uri: &ChannelUri) -> Checked {
    values(uri, Parameter::ALL)?;
    publication_combinations(uri)?;
    if uri.media() == Media::Udp {
        UdpChannel::check(uri)?;
    }
    Ok(())
}

/// Refuses values that make C crash or read beyond their end. For texts that are not checked
/// otherwise.
fn dangers(uri: &ChannelUri) -> Checked {
    use Parameter as P;
    for parameter in [P::Endpoint, P::Control, P::Interface] {
        let is_safe = |text| address::is_safe_for_c(text, parameter == P::Interface);
        if let Some(text) = uri.get(parameter).filter(|text| !is_safe(text)) {
            let reason = "the media driver would crash over it";
            return Err(ChannelUriError::bad(parameter, text, reason));
        }
    }
    let durations = [
        P::Linger,
        P::NakDelay,
        P::UntetheredWindowLimitTimeout,
        P::UntetheredLingerTimeout,
        P::UntetheredRestingTimeout,
    ];
    for parameter in durations {
        whole_unit(uri, parameter)?;
    }
    let options = uri.get(P::FlowControl).into_iter().flat_map(|options| options.split(','));
    options
        .filter_map(|option| option.strip_prefix("t:"))
        .try_for_each(|timeout| refuse_unit_cut_short(P::FlowControl, timeout))
}

/// Refuses a duration that makes C read beyond its end. Other faults of the duration do not matter
/// here.
pub(super) fn whole_unit(uri: &ChannelUri, parameter: Parameter) -> Checked {
    uri.get(parameter).map_or(Ok(()), |text| refuse_unit_cut_short(parameter, text))
}

fn refuse_unit_cut_short(parameter: Parameter, text: &str) -> Checked {
    if scan::is_unit_cut_short(text) {
        let reason = "the media driver would read beyond the end of it";
        return Err(ChannelUriError::bad(parameter, text, reason));
    }
    Ok(())
}

/// Refuses values that do not fit together in a publication.
fn publication_combinations(uri: &ChannelUri) -> Checked {
    initial_position(uri)?;
    let Some((text, window)) = read(uri, Parameter::PublicationWindow, publication_window)? else {
        return Ok(());
    };
    if let Some((mtu, bytes)) = read(uri, Parameter::Mtu, mtu)? {
        if window < bytes {
            let reason = format!("less than mtu={mtu}");
            return Err(ChannelUriError::conflict(Parameter::PublicationWindow, text, reason));
        }
    }
    if let Some((term_length, bytes)) = read(uri, Parameter::TermLength, term_length)? {
        if window > bytes / 2 {
            let reason = format!("more than half of term-length={term_length}");
            return Err(ChannelUriError::conflict(Parameter::PublicationWindow, text, reason));
        }
    }
    Ok(())
}

/// Mirrors the end of `aeron_diver_uri_publication_params`.
fn initial_position(uri: &ChannelUri) -> Checked {
    const SET: [Parameter; 3] =
        [Parameter::InitialTermId, Parameter::TermId, Parameter::TermOffset];
    let given = SET.map(|parameter| uri.get(parameter));
    let [Some(initial_text), Some(id_text), Some(offset_text)] = given else {
        return match SET.into_iter().find(|&parameter| uri.get(parameter).is_none()) {
            Some(missing) if given != [None; 3] => {
                let reason = "init-term-id, term-id and term-offset go together";
                Err(ChannelUriError::missing(missing, reason))
            }
            _ => Ok(()),
        };
    };
    let invalid = ChannelUriError::value_of;
    let initial_id =
        scan::int32(initial_text).ok_or_else(|| invalid(Parameter::InitialTermId, initial_text))?;
    let id = scan::int32(id_text).ok_or_else(|| invalid(Parameter::TermId, id_text))?;
    let offset =
        term_offset(offset_text).ok_or_else(|| invalid(Parameter::TermOffset, offset_text))?;
    if id.wrapping_sub(initial_id) < 0 {
        let reason = format!("more than 2147483647 after init-term-id={initial_text}");
        return Err(ChannelUriError::conflict(Parameter::TermId, id_text, reason));
    }
    match read(uri, Parameter::TermLength, term_length)? {
        Some((text, length)) if offset > length => {
            let reason = format!("more than term-length={text}");
            Err(ChannelUriError::conflict(Parameter::TermOffset, offset_text, reason))
        }
        None if offset > MAX_TERM_LENGTH => Err(invalid(Parameter::TermOffset, offset_text)),
        _ => Ok(()),
    }
}

/// Mirrors `aeron_diver_uri_publication_params`.
fn publication_parameters(uri: &ChannelUri) -> Checked {
    use Parameter as P;
    if let Some(tags) = uri.get(P::Tags) {
        if tags.split_once(',').is_some_and(|(_, entity)| scan::int64(entity, 10).is_none()) {
            let reason = "the entity's tag, after the comma, is not an integer of 64 bits";
            return Err(ChannelUriError::bad(P::Tags, tags, reason));
        }
    }
    values(
        uri,
        &[
            P::SessionId,
            P::Linger,
            P::TermLength,
            P::MaxResend,
            P::Mtu,
            P::PublicationWindow,
            P::InitialTermId,
            P::TermId,
            P::Sparse,
            P::Eos,
            P::SpiesSimulateConnection,
            P::ResponseCorrelationId,
            P::UntetheredWindowLimitTimeout,
            P::UntetheredLingerTimeout,
            P::UntetheredRestingTimeout,
        ],
    )?;
    publication_combinations(uri)
}

/// Mirrors `aeron_driver_uri_subscription_params`.
fn subscription_parameters(uri: &ChannelUri) -> Checked {
    use Parameter as P;
    if let Some(text) = uri.get(P::SessionId) {
        if scan::int32(text).is_none() {
            let reason = "not an integer of 32 bits, and only publications take a tag";
            return Err(ChannelUriError::bad(P::SessionId, text, reason));
        }
    }
    values(
        uri,
        &[
            P::Reliable,
            P::Sparse,
            P::Tether,
            P::Rejoin,
            P::ReceiverWindow,
            P::UntetheredWindowLimitTimeout,
            P::UntetheredLingerTimeout,
            P::UntetheredRestingTimeout,
        ],
    )
}

pub(super) fn values(uri: &ChannelUri, parameters: &[Parameter]) -> Checked {
    for &parameter in parameters {
        if let Some(text) = uri.get(parameter) {
            value(parameter, text)?;
        }
    }
    Ok(())
}

/// Returns the text and the value of a parameter that is present.
pub(super) fn read<T>(
    uri: &ChannelUri,
    parameter: Parameter,
    read: impl Fn(&str) -> Option<T>,
) -> Checked<Option<(&str, T)>> {
    let Some(text) = uri.get(parameter) else { return Ok(None) };
    let value = read(text).ok_or_else(|| ChannelUriError::value_of(parameter, text))?;
    Ok(Some((text, value)))
}

pub(super) fn text_of(uri: &ChannelUri, parameter: Parameter) -> &str {
    uri.get(parameter).unwrap_or_default()
}

pub(super) fn because<R: Into<Cow<'static, str>>>(
    parameter: Parameter,
    text: &str,
) -> impl FnOnce(R) -> ChannelUriError {
    move |reason| ChannelUriError::bad(parameter, text, reason)
}

/// Mirrors `aeron_uri_parse_tag`: an unsigned number, after which any text may follow.
///
/// The number wraps around to a signed number, and −1 stands for no tag. On Windows, C's `long` has
/// 32 bits, so C accepts fewer numbers.
pub(super) fn channel_tag(text: &str) -> Option<i64> {
    scan::unsigned_prefix(text, 10).map(|tag| tag as i64).filter(|&tag| tag != -1)
}

/// Mirrors `aeron_driver_context_validate_mtu_length`.
pub(super) fn mtu(text: &str) -> Option<u64> {
    scan::size(text)
        .filter(|bytes| (MIN_MTU..=MAX_MTU).contains(bytes) && bytes % FRAME_ALIGNMENT == 0)
}

/// Mirrors `aeron_logbuffer_check_term_length`.
fn term_length(text: &str) -> Option<u64> {
    scan::size(text).filter(|bytes| {
        (MIN_TERM_LENGTH..=MAX_TERM_LENGTH).contains(bytes) && bytes.is_power_of_two()
    })
}

/// Reads a number, after which any text may follow. The caller compares it with the term length.
fn term_offset(text: &str) -> Option<u64> {
    scan::unsigned_prefix(text, 0).filter(|offset| offset % FRAME_ALIGNMENT == 0)
}

/// Reads a window within the bounds of any MTU and term length.
fn publication_window(text: &str) -> Option<u64> {
    scan::size(text).filter(|bytes| (MIN_MTU..=MAX_TERM_LENGTH / 2).contains(bytes))
}
