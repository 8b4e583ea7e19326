//! Warnings about parts of a channel that the media driver accepts and ignores.
//!
//! The driver ignores a misspelled key, and a value that it does not read. A publication and a
//! subscription often have the same channel, so a valid value that only the other one reads gives no
//! warning.
//!
//! | Part of the channel | Warning |
//! |---|---|
//! | a key close to a known one: `term-lenght=64k` | yes |
//! | another unknown key: `colour=green` | no, because programs put their own parameters into channels |
//! | an invalid value that this use does not read: `reliable=maybe` of a publication | yes |
//! | an invalid value that the driver never refuses: `cc=cubicc`, `nak-delay=1sec`, `group=yes` | yes, with its effect |
//! | a parameter of UDP in an IPC channel | yes |
//! | flow control of a publication with one receiver | yes; not for a host name, which can be a multicast group's |

use std::borrow::Cow;

use crate::channel::uri::check::has_several_receivers;
use crate::channel::uri::parameter::Reader;
use crate::channel::uri::typed::is_valid;
use crate::channel::uri::value::{CongestionControl, ControlMode, Group, Media};
use crate::channel::uri::{ChannelUri, ChannelUse, Parameter};
use crate::nearest::nearest;
use crate::scan;

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
            Some(parameter) => reason(channel_use, uri, parameter, text)?,
            None => {
                let known = nearest(key, Parameter::ALL.iter().map(|parameter| parameter.key()))?;
                format!("not a parameter that Aeron knows, such as {known}").into()
            }
        };
        Some(format!("{key}={text}: {reason}"))
    })
}

/// Returns the reason why the driver ignores the value of a parameter that Aeron knows.
fn reason(
    channel_use: ChannelUse,
    uri: &ChannelUri,
    parameter: Parameter,
    text: &str,
) -> Option<Cow<'static, str>> {
    use Parameter as P;
    if uri.media() == Media::Ipc {
        if matches!(parameter.reader(), Reader::Udp | Reader::UdpUnchecked) {
            return Some("ignored, because only UDP channels have it".into());
        }
        let mode = if parameter == P::ControlMode { ControlMode::read(text) } else { None };
        if matches!(mode, Some(ControlMode::Manual | ControlMode::Dynamic)) {
            return Some("ignored, because only UDP channels have this mode".into());
        }
    }
    let is_for_publication = channel_use == ChannelUse::Publication && parameter == P::FlowControl;
    if is_for_publication && has_several_receivers(uri) == Some(false) {
        return Some(
            "ignored by default, because the publication has one receiver: flow control is for \
             multicast endpoints, control-mode=manual and control-mode=dynamic"
                .into(),
        );
    }
    let effect = match parameter {
        P::ControlMode => ControlMode::read(text).is_none().then_some("ignored"),
        P::Ttl => {
            let is_valid = scan::int32(text).is_some_and(|ttl| (0..=255).contains(&ttl));
            (!is_valid).then_some("the driver takes the nearest number, or its default")
        }
        P::Group => Group::read(text).is_none().then_some("the driver takes false"),
        P::CongestionControl => {
            CongestionControl::read(text).is_none().then_some("the subscription gets no image")
        }
        P::NakDelay => scan::duration(text).is_none().then_some("the subscription gets no image"),
        // The archive reads it, and the driver does not.
        P::ResponseEndpoint => None,
        // The driver refuses these where it reads them.
        P::Tags => None,
        P::TermOffset if channel_use == ChannelUse::Publication => None,
        // The check of the channel has passed, so the driver has not read an invalid value.
        _ => (!is_valid(parameter, text)).then_some("ignored"),
    }?;
    Some(format!("not {}: {effect}", parameter.valid_values()).into())
}
