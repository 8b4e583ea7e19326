//! Channels in the words of others, with a parameter changed.

use std::fmt::Display;

/// Sets a parameter of a channel, and keeps the rest of the text.
pub(crate) fn with_parameter(channel: &str, name: &str, value: impl Display) -> String {
    let (address, parameters) = channel.split_once('?').unwrap_or((channel, ""));
    let is_other =
        |parameter: &&str| !parameter.is_empty() && parameter.split('=').next() != Some(name);
    let mut text = format!("{address}?");
    for parameter in parameters.split('|').filter(is_other) {
        text += parameter;
        text.push('|');
    }
    text + &format!("{name}={value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_is_added_or_replaced() {
        let set = |channel| with_parameter(channel, "alias", "log-sc-0");
        assert_eq!(set("aeron:ipc"), "aeron:ipc?alias=log-sc-0");
        assert_eq!(set("aeron:ipc?"), "aeron:ipc?alias=log-sc-0");
        let spy = "aeron-spy:aeron:udp?tags=4|session-id=7|alias=log";
        let expected = "aeron-spy:aeron:udp?tags=4|session-id=7|alias=log-sc-0";
        assert_eq!(set(spy), expected);
        assert_eq!(set("aeron:udp?alias=a|tags=4"), "aeron:udp?tags=4|alias=log-sc-0");
        assert_eq!(set("aeron:udp?aliases=a"), "aeron:udp?aliases=a|alias=log-sc-0");
    }
}
