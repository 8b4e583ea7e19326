//! The media driver's checks of a UDP channel. This module continues `check.rs`.

use crate::channel::uri::address::Address;
use crate::channel::uri::check::{
    Checked, MIN_MTU, because, channel_tag, mtu, read, text_of, values, whole_unit,
};
use crate::channel::uri::value::{ControlMode, ResponseCorrelationId, TimestampOffset};
use crate::channel::uri::{ChannelUri, ChannelUriError, Parameter, scan};

/// The result of parsing a UDP channel, for the checks of its uses.
pub(super) struct UdpChannel<'a> {
    endpoint: Option<Address<'a>>,
    control: Option<Address<'a>>,
    control_mode: Option<ControlMode>,
}

impl<'a> UdpChannel<'a> {
    /// Mirrors `aeron_udp_channel_finish_parse`.
    pub(super) fn check(uri: &'a ChannelUri) -> Checked<Self> {
        use Parameter as P;
        let control_mode = uri.get(P::ControlMode).and_then(ControlMode::read);
        if control_mode == Some(ControlMode::Dynamic) && uri.get(P::Control).is_none() {
            let reason = "control-mode=dynamic needs it: control=host:port";
            return Err(ChannelUriError::missing(P::Control, reason));
        }
        // The channel's own tag, not the entity's.
        let tag = uri.get(P::Tags).map(|tags| tags.split_once(',').map_or(tags, |t| t.0));
        let tag = tag.filter(|tag| !tag.is_empty());
        let is_somewhere = uri.get(P::Endpoint).or(uri.get(P::Control)).or(tag).is_some();
        if !is_somewhere
            && !matches!(control_mode, Some(ControlMode::Manual | ControlMode::Response))
        {
            let reason = "a UDP channel needs it, or control, tags, control-mode=manual or \
                          control-mode=response";
            return Err(ChannelUriError::missing(P::Endpoint, reason));
        }
        let address = |parameter: Parameter| {
            let parse = |text| Address::parse(text).map_err(because(parameter, text));
            uri.get(parameter).map(parse).transpose()
        };
        let control = address(P::Control)?;
        let endpoint = address(P::Endpoint)?;
        if let Some(tag) = tag.filter(|tag| channel_tag(tag).is_none()) {
            return Err(ChannelUriError::bad(
                P::Tags,
                uri.get(P::Tags).unwrap_or(tag),
                "the channel's tag is not a number, or is that for none",
            ));
        }
        values(uri, &[P::Ats, P::SocketSndbuf, P::SocketRcvbuf, P::SocketTos, P::ReceiverWindow])?;
        if let Some((text, _)) =
            uri.get(P::Endpoint).zip(endpoint).filter(|(_, it)| it.is_multicast() && !it.is_odd())
        {
            let reason = "a multicast address has to be odd; the even one after it is for control";
            return Err(ChannelUriError::bad(P::Endpoint, text, reason));
        }
        values(uri, &[P::Interface])?;
        timestamp_offsets(uri)?;
        Ok(Self { endpoint, control, control_mode })
    }

    fn is_multicast(&self) -> bool {
        self.endpoint.is_some_and(|endpoint| endpoint.is_multicast())
    }

    /// Returns the control address that the driver uses. With a multicast endpoint, it uses none.
    fn explicit_control(&self) -> Option<Address<'a>> {
        self.control.filter(|_| !self.is_multicast())
    }

    fn is_multi_destination(&self) -> bool {
        matches!(self.control_mode, Some(ControlMode::Dynamic | ControlMode::Manual))
    }

    /// Mirrors the rest of `aeron_driver_conductor_execute_add_network_publication_validate`. Also
    /// refuses values that make the creation of the publication fail.
    pub(super) fn check_publication(&self, uri: &ChannelUri) -> Checked {
        use Parameter as P;
        if !self.is_multi_destination() && self.endpoint.is_some_and(|endpoint| endpoint.port == 0)
        {
            let reason = "a publication cannot send to port 0";
            return Err(ChannelUriError::bad(P::Endpoint, text_of(uri, P::Endpoint), reason));
        }
        if self.explicit_control().is_some()
            && self.endpoint.is_none()
            && uri.get(P::ControlMode).is_none()
        {
            let reason = "a publication with a control address needs it, or endpoint";
            return Err(ChannelUriError::missing(P::ControlMode, reason));
        }
        self.check_response(uri)?;
        if let Some((text, length)) = read(uri, P::SocketSndbuf, scan::size)? {
            let (reason, least) = match read(uri, P::Mtu, mtu)? {
                Some((mtu, bytes)) => (format!("less than mtu={mtu}"), bytes),
                None => (format!("less than the least mtu, {MIN_MTU}"), MIN_MTU),
            };
            if length != 0 && length < least {
                return Err(ChannelUriError::conflict(P::SocketSndbuf, text, reason));
            }
        }
        if self.is_multi_destination() || self.is_multicast() {
            values(uri, &[P::FlowControl])?;
        }
        Ok(())
    }

    /// Mirrors `aeron_driver_conductor_validate_response_subscription` and
    /// `aeron_driver_conductor_find_response_publication_image`.
    fn check_response(&self, uri: &ChannelUri) -> Checked {
        const PARAMETER: Parameter = Parameter::ResponseCorrelationId;
        let id = uri.get(PARAMETER).and_then(ResponseCorrelationId::read);
        let is_response = self.control_mode == Some(ControlMode::Response);
        match id {
            None | Some(ResponseCorrelationId::Id(-1)) if is_response => {
                let reason = "a publication with control-mode=response needs it";
                Err(ChannelUriError::missing(PARAMETER, reason))
            }
            Some(ResponseCorrelationId::Prototype) if !is_response => {
                let reason = "it goes with control-mode=response only";
                Err(ChannelUriError::conflict(PARAMETER, text_of(uri, PARAMETER), reason))
            }
            _ => Ok(()),
        }
    }

    /// Mirrors the rest of `aeron_driver_conductor_execute_add_network_subscription`.
    pub(super) fn check_subscription(&self, uri: &ChannelUri) -> Checked {
        use Parameter as P;
        if self.explicit_control().is_some_and(|control| control.port == 0) {
            let reason = "a subscription cannot join at port 0";
            return Err(ChannelUriError::bad(P::Control, text_of(uri, P::Control), reason));
        }
        values(uri, &[P::GroupTag])?;
        // The driver reads this when a publisher arrives. With an invalid duration, there is no
        // image.
        whole_unit(uri, P::NakDelay)?;
        // A channel with a tag and manual control can join an existing socket. Then the driver does
        // not compare the lengths.
        let may_join = self.control_mode == Some(ControlMode::Manual) && uri.get(P::Tags).is_some();
        let buffer = read(uri, P::SocketRcvbuf, scan::size)?;
        let window = read(uri, P::ReceiverWindow, scan::size)?;
        if let (Some((buffer, length)), Some((text, window))) = (buffer, window) {
            if length != 0 && length < window && !may_join {
                let reason = format!("more than so-rcvbuf={buffer}");
                return Err(ChannelUriError::conflict(P::ReceiverWindow, text, reason));
            }
        }
        Ok(())
    }
}

/// Mirrors `aeron_udp_channel_verify_timestamp_offsets_do_not_overlap`.
fn timestamp_offsets(uri: &ChannelUri) -> Checked {
    const OFFSETS: [Parameter; 3] = [
        Parameter::MediaReceiveTimestampOffset,
        Parameter::ChannelReceiveTimestampOffset,
        Parameter::ChannelSendTimestampOffset,
    ];
    const NONE: i32 = -1;
    const TIMESTAMP_LENGTH: i32 = 8;
    let mut seen: Vec<(Parameter, i32)> = Vec::new();
    for parameter in OFFSETS {
        let Some((text, offset)) = read(uri, parameter, TimestampOffset::read)? else { continue };
        let offset = offset.bytes();
        if offset == NONE {
            continue;
        }
        for &(other, other_offset) in &seen {
            if other_offset.wrapping_sub(offset).wrapping_abs() < TIMESTAMP_LENGTH {
                let reason = format!("overlaps with the eight bytes of {other}");
                return Err(ChannelUriError::conflict(parameter, text, reason));
            }
        }
        seen.push((parameter, offset));
    }
    Ok(())
}
