//! The checks of a channel before the media driver gets it.
//!
//! The driver checks each channel and answers with a text of its own. Checked here is the rest:
//! - faults that C does not survive, also of an [`UncheckedChannel`](super::UncheckedChannel);
//! - the endpoint of a publication's destination: the driver accepts one that it cannot read, and
//!   sends nothing there;
//! - a missing control address, with a text that names the parameters;
//! - values that the driver refuses too late, so that it leaks memory or a socket;
//! - values that are not valid by themselves, also where this use of the channel does not read them: the
//!   driver ignores some of them silently, and an error with the parameter's range helps more than the
//!   driver's.

use crate::channel::uri::typed::is_valid;
use crate::channel::uri::value::port;
use crate::channel::uri::{
    ChannelUri, ChannelUriError, ChannelUriErrorKind, ControlMode, Media, Parameter, no_scheme,
    split_media, split_spy,
};
use crate::scan;

type Checked = Result<(), ChannelUriError>;

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
        if uri.is_spy() && !self.knows_spies() {
            let reason = "a spy reads what a publication sends; only subscriptions can be spies";
            let error = ChannelUriError::new(ChannelUriErrorKind::Spy, reason);
            return Err(error.with_value(&uri.to_string()));
        }
        if matches!(self, Self::SendDestination | Self::FormerSendDestination) {
            send_endpoint(uri)?;
        }
        self.dangers(uri)?;
        values(uri)?;
        self.dynamic_control(uri)?;
        self.leaks(uri)
    }

    /// Checks a text only for the faults that C does not survive.
    ///
    /// A text without a scheme and a transport is one of them: the driver quotes the text in its
    /// error and reads beyond its end, as commands have no NUL byte (`aeron_uri.c`, line 324).
    pub(super) fn check_dangers(self, text: &str) -> Checked {
        // For other uses, the driver does not look for the spy prefix, so a text with that prefix has
        // no scheme.
        let uri = if self.knows_spies() { split_spy(text).1 } else { text };
        split_media(uri).ok_or_else(|| no_scheme(text))?;
        // A text that cannot be parsed here is not parsed by C, either.
        text.parse().map_or(Ok(()), |uri| self.dangers(&uri))
    }

    fn knows_spies(self) -> bool {
        matches!(
            self,
            Self::Subscription | Self::ReceiveDestination | Self::FormerReceiveDestination
        )
    }

    /// Checks that subscribers can announce themselves somewhere. The driver reads no control mode of a
    /// destination that a publication sends to.
    fn dynamic_control(self, uri: &ChannelUri) -> Checked {
        let is_send = matches!(self, Self::SendDestination | Self::FormerSendDestination);
        let is_dynamic = control_mode(uri) == Some(ControlMode::Dynamic);
        if is_send
            || uri.media() != Media::Udp
            || !is_dynamic
            || uri.get(Parameter::Control).is_some()
        {
            return Ok(());
        }
        let reason =
            "missing; control-mode=dynamic needs control=host:port, the publication's address";
        let error = ChannelUriError::new(ChannelUriErrorKind::Missing, reason);
        Err(error.with_key(Parameter::Control.key()))
    }

    /// Refuses values, each valid by itself, over which the driver leaks memory or a socket.
    fn leaks(self, uri: &ChannelUri) -> Checked {
        use Parameter as P;
        let is_subscription = self == Self::Subscription
            || self.knows_spies() && (uri.media() == Media::Ipc || uri.is_spy());
        let tag = uri.get(P::SessionId).filter(|text| scan::int32(text).is_none());
        if let Some(tag) = tag.filter(|_| is_subscription) {
            return Err(ChannelUriError::value_of(P::SessionId, tag));
        }
        // With manual control, there is no socket yet.
        let has_socket = self == Self::Subscription
            && uri.media() == Media::Udp
            && !uri.is_spy()
            && control_mode(uri) != Some(ControlMode::Manual);
        let lengths = (uri.get(P::ReceiverWindow), uri.get(P::SocketRcvbuf));
        if let (true, (Some(window), Some(buffer))) = (has_socket, lengths) {
            let (length, least) = (scan::size(buffer), scan::size(window));
            if length > Some(0) && length < least {
                let reason = format!("more than so-rcvbuf={buffer}");
                return Err(ChannelUriError::bad(P::ReceiverWindow, window, reason));
            }
        }
        Ok(())
    }

    /// Refuses values that make C crash, read beyond their end, or use freed memory.
    fn dangers(self, uri: &ChannelUri) -> Checked {
        use Parameter as P;
        for parameter in [P::Endpoint, P::Control, P::Interface] {
            let is_safe = |text| is_safe_for_c(text, parameter == P::Interface);
            if let Some(text) = uri.get(parameter).filter(|text| !is_safe(text)) {
                let reason = "the media driver would crash over it";
                return Err(ChannelUriError::bad(parameter, text, reason));
            }
        }
        let is_publication = self == Self::Publication;
        let durations = [
            if is_publication { P::Linger } else { P::NakDelay },
            P::UntetheredWindowLimitTimeout,
            P::UntetheredLingerTimeout,
            P::UntetheredRestingTimeout,
        ];
        let durations = durations.into_iter().filter_map(|it| Some((it, uri.get(it)?)));
        let options = uri.get(P::FlowControl).filter(|_| is_publication);
        let options = options.into_iter().flat_map(|options| options.split(','));
        let timeouts =
            options.filter_map(|option| Some((P::FlowControl, option.strip_prefix("t:")?)));
        match durations.chain(timeouts).find(|(_, text)| scan::is_unit_cut_short(text)) {
            Some((parameter, text)) => {
                let reason = "the media driver would read beyond the end of it";
                Err(ChannelUriError::bad(parameter, text, reason))
            }
            None => self.use_after_free(uri),
        }
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
        // With a multicast endpoint, the driver does not use the control address.
        let is_multicast =
            uri.get(P::Endpoint).is_some_and(|text| is_multicast(text) == Some(true));
        if uri.media() != Media::Udp || uri.is_spy() || is_multicast {
            return Ok(());
        }
        let control = uri.get(P::Control).map(|text| (P::Control, text));
        match self {
            // This also covers the port of every interface that is given without a port.
            Self::ReceiveDestination => match control {
                Some((_, text)) if ends_in_port_0(text) => {
                    let reason = "a subscription cannot join at port 0";
                    Err(ChannelUriError::bad(P::Control, text, reason))
                }
                _ => Ok(()),
            },
            Self::FormerReceiveDestination => {
                let has_port = |text: &&str| {
                    let behind_address = text.rsplit([']', '}']).next();
                    behind_address.is_some_and(|text| text.contains(':'))
                };
                let interface = uri.get(P::Interface).filter(has_port);
                match control.or(interface.map(|text| (P::Interface, text))) {
                    Some((parameter, text)) => {
                        let reason = "the media driver would go on using such a destination after \
                                      freeing it; it is removed by closing the subscription";
                        Err(ChannelUriError::bad(parameter, text, reason))
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Returns the name of the argument.
    pub(super) fn argument(self) -> &'static str {
        match self {
            Self::Publication | Self::Subscription => "channel",
            _ => "destination",
        }
    }
}

/// Checks the values, each by itself.
pub(super) fn values(uri: &ChannelUri) -> Checked {
    let mut known =
        uri.parameters().filter_map(|(key, text)| Some((Parameter::from_key(key)?, text)));
    match known.find(|&(parameter, text)| !is_valid(parameter, text)) {
        Some((parameter, text)) => Err(ChannelUriError::value_of(parameter, text)),
        None => Ok(()),
    }
}

/// Checks the endpoint of a destination that a publication sends to.
fn send_endpoint(uri: &ChannelUri) -> Checked {
    const PARAMETER: Parameter = Parameter::Endpoint;
    let Some(text) = uri.get(PARAMETER).filter(|_| uri.media() == Media::Udp) else {
        let reason = "a destination needs it: aeron:udp?endpoint=host:port";
        let error = ChannelUriError::new(ChannelUriErrorKind::Missing, reason);
        return Err(error.with_key(PARAMETER.key()));
    };
    match port(text) {
        Some(0) => {
            Err(ChannelUriError::bad(PARAMETER, text, "a publication cannot send to port 0"))
        }
        Some(_) if text.rsplit_once(':').is_some_and(|(host, _)| is_host(host)) => Ok(()),
        _ => Err(ChannelUriError::value_of(PARAMETER, text)),
    }
}

/// Returns whether this is a name, or an address that may have brackets and a scope.
fn is_host(text: &str) -> bool {
    let in_brackets = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let text = in_brackets.unwrap_or(text);
    let address = text.split('%').next().unwrap_or(text);
    let is_address = address.parse::<std::net::IpAddr>().is_ok();
    !address.is_empty() && (is_address || !text.contains([':', '[', ']']))
}

fn ends_in_port_0(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(_, port)| scan::unsigned_prefix(port, 0) == Some(0))
}

fn control_mode(uri: &ChannelUri) -> Option<ControlMode> {
    uri.get(Parameter::ControlMode).and_then(|text| text.parse().ok())
}

/// Returns whether a publication has several receivers. `None` if that depends on a name, which only
/// the driver resolves.
pub(super) fn has_several_receivers(uri: &ChannelUri) -> Option<bool> {
    if let Some(ControlMode::Manual | ControlMode::Dynamic) = control_mode(uri) {
        return Some(true);
    }
    let endpoint = uri.get(Parameter::Endpoint)?;
    if endpoint.starts_with("localhost:") { Some(false) } else { is_multicast(endpoint) }
}

/// Returns whether an endpoint is a multicast group's. `None` for a name, which only the driver
/// resolves.
fn is_multicast(endpoint: &str) -> Option<bool> {
    let address: std::net::SocketAddr = endpoint.parse().ok()?;
    Some(address.ip().is_multicast())
}

/// Returns whether C parses an address without copying a text of negative length, which crashes the
/// driver.
///
/// The lengths mirror `aeron_address_split`, and `aeron_interface_split` for an interface.
pub fn is_safe_for_c(text: &str, is_interface: bool) -> bool {
    let last = |c: char| text.rfind(c);
    let (opening, closing) = (last('['), last(']'));
    let is_v6 = opening > Some(0) || closing > Some(0);
    if is_interface && text.starts_with('{') || is_v6 && (opening.is_none() || closing < opening) {
        // The text is a name in braces, or has brackets that C refuses.
        return true;
    }
    let slash = last('/').filter(|_| is_interface);
    let port_colon = last(':').filter(|&colon| Some(colon) > closing);
    if let (Some(colon), Some(slash)) = (port_colon, slash) {
        if 0 < slash && slash < colon + 1 && colon + 1 < text.len() {
            return false;
        }
    }
    let scope = last('%').filter(|&scope| Some(scope) < closing);
    let end = scope.or(port_colon).or(slash).unwrap_or(text.len());
    let least = match (is_v6, scope) {
        (false, _) => 0,
        (true, Some(_)) => 1,
        (true, None) => 2,
    };
    end >= least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_crashes_c_is_known() {
        for text in ["%[::1]:80", "%]", "%[::1]"] {
            assert_eq!(is_safe_for_c(text, false), text == "%]", "{text}");
        }
        for text in ["127.0.0.1/24:80", "[::1]/64:80", "%[::1]", "/[::1]", "x/[:y]:80"] {
            assert!(!is_safe_for_c(text, true), "{text}");
        }
        for text in ["127.0.0.1:80/24", "127.0.0.1/24", "[::1%lo]:80/64", "{lo/x:y", "x[::1]", ""] {
            assert!(is_safe_for_c(text, true), "{text}");
        }
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for host in ["localhost", "127.1", "::1", "::1%lo", "[::1]", "[::1%lo]", "[127.0.0.1]"] {
            assert!(is_host(host), "{host}");
        }
        for host in ["", "[]", "[%lo]", "localhost:1", "zz::1", "[zz::1]", "[::1]x", "x[::1]"] {
            assert!(!is_host(host), "{host}");
        }
    }
}
