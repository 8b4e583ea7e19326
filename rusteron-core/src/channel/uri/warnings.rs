//! Warnings about parts of a channel that the media driver accepts, and ignores or reads in an
//! unexpected way.
//!
//! A publication and a subscription often have the same channel, so a value that only the other one reads gives no
//! warning.
//!
//! | Part of the channel | Warning |
//! |---|---|
//! | a key close to a known one: `term-lenght=64k` | yes |
//! | another unknown key: `colour=green` | no, because programs put their own parameters into channels |
//! | a parameter of UDP in an IPC channel | yes |
//! | a duration of less than 0.1 ms without a unit: `linger=5` | yes |
//! | flow control of a publication with one receiver | yes; not for a host name, which can be a multicast group's |

use std::borrow::Cow;

use crate::channel::uri::check::has_several_receivers;
use crate::channel::uri::value::{ControlMode, Media};
use crate::channel::uri::{ChannelUri, ChannelUse, Parameter};
use crate::nearest::nearest;
use crate::settings::{NO_UNIT, has_no_unit};

/// Logs one warning with all that the driver ignores, if there is something. The channel has passed
/// the checks.
pub(super) fn log(channel_use: ChannelUse, uri: &ChannelUri) {
    let is_former = matches!(
        channel_use,
        ChannelUse::FormerSendDestination | ChannelUse::FormerReceiveDestination
    );
    if is_former || !log::log_enabled!(log::Level::Warn) {
        return;
    }
    let ignored: Vec<_> = ignored(channel_use, uri).collect();
    if !ignored.is_empty() {
        log::warn!("{} {uri}: {}", channel_use.argument(), ignored.join("; "));
    }
}

/// Returns a text for each parameter that is probably a mistake.
fn ignored(channel_use: ChannelUse, uri: &ChannelUri) -> impl Iterator<Item = String> {
    uri.parameters().filter_map(move |(key, text)| {
        let reason = match Parameter::from_key(key) {
            Some(parameter) => reason(channel_use, uri, parameter, text)?.into(),
            None => {
                let known = nearest(key, Parameter::ALL.iter().map(|parameter| parameter.key()))?;
                Cow::from(format!("Aeron ignores it; did you mean {known}?"))
            }
        };
        Some(format!("{key}={text}: {reason}"))
    })
}

/// Returns whether the parameter is a duration.
fn is_duration(parameter: Parameter) -> bool {
    matches!(
        parameter,
        Parameter::Linger
            | Parameter::NakDelay
            | Parameter::UntetheredWindowLimitTimeout
            | Parameter::UntetheredLingerTimeout
            | Parameter::UntetheredRestingTimeout
    )
}

/// Returns the reason why the driver ignores the value of a parameter that Aeron knows.
fn reason(
    channel_use: ChannelUse,
    uri: &ChannelUri,
    parameter: Parameter,
    text: &str,
) -> Option<&'static str> {
    use Parameter as P;
    if is_duration(parameter) && has_no_unit(text) {
        return Some(NO_UNIT);
    }
    if uri.media() == Media::Ipc {
        return match parameter {
            P::ControlMode => {
                matches!(text.parse(), Ok(ControlMode::Manual | ControlMode::Dynamic))
                    .then_some("ignored, because only UDP channels have this mode")
            }
            P::Endpoint
            | P::Interface
            | P::Control
            | P::Ttl
            | P::CongestionControl
            | P::FlowControl
            | P::GroupTag
            | P::SocketSndbuf
            | P::SocketRcvbuf
            | P::SocketTos
            | P::MediaReceiveTimestampOffset
            | P::ChannelReceiveTimestampOffset
            | P::ChannelSendTimestampOffset
            | P::NakDelay
            | P::Ats => Some("ignored, because only UDP channels have it"),
            _ => None,
        };
    }
    let is_of_one = channel_use == ChannelUse::Publication
        && parameter == P::FlowControl
        && has_several_receivers(uri) == Some(false);
    is_of_one.then_some(
        "ignored by default, because the publication has one receiver: flow control is for multicast \
         endpoints, control-mode=manual and control-mode=dynamic",
    )
}
