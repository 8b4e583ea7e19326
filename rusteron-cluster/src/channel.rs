//! Channels as consensus modules spell them, and the channels to members.

use std::fmt::{self, Display};

use rusteron_client::{ChannelUri, ChannelUriError, Error, Parameter};

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

/// The ingress channel to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IngressChannel {
    Uri(ChannelUri),
    /// The endpoint is a name without a port. Only the media driver's name resolver knows whether
    /// the name is valid.
    Named(String),
}

impl IngressChannel {
    /// Returns the channel with the endpoint of a member.
    pub(crate) fn with_endpoint(
        ingress: &ChannelUri,
        endpoint: &str,
    ) -> Result<Self, ChannelUriError> {
        let with = |endpoint| ingress.to_builder().set(Parameter::Endpoint, endpoint).build();
        if !is_name(endpoint) {
            return with(endpoint).map(Self::Uri);
        }
        // The other parameters are checked as if the name were known.
        let uri = with("localhost:1")?;
        uri.check_publication()?;
        Ok(Self::Named(with_parameter(&uri.to_string(), "endpoint", endpoint)))
    }

    /// Checks the channel of a publication.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self {
            Self::Uri(uri) => uri.check_publication().map_err(Error::from),
            Self::Named(_) => Ok(()),
        }
    }
}

/// Returns whether an endpoint has no port, nor anything else than the letters of a name.
fn is_name(endpoint: &str) -> bool {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !endpoint.is_empty() && endpoint.chars().all(is_of_name)
}

impl fmt::Display for IngressChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri(uri) => uri.fmt(f),
            Self::Named(text) => f.write_str(text),
        }
    }
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

    fn channel(ingress: &str, endpoint: &str) -> Result<String, String> {
        let ingress = ingress.parse().expect("a channel");
        let channel = IngressChannel::with_endpoint(&ingress, endpoint);
        let channel = channel.map_err(|error| error.to_string())?;
        channel.check().map_err(|error| error.to_string())?;
        Ok(channel.to_string())
    }

    #[test]
    fn names_are_left_to_the_driver() {
        let named = |ingress| channel(ingress, "node-0.cluster_a");
        assert_eq!(named("aeron:udp?").as_deref(), Ok("aeron:udp?endpoint=node-0.cluster_a"));
        let expected = "aeron:udp?term-length=64k|endpoint=node-0.cluster_a";
        assert_eq!(named("aeron:udp?endpoint=x:9|term-length=64k").as_deref(), Ok(expected));
        assert_eq!(channel("aeron:udp?", "a:1").as_deref(), Ok("aeron:udp?endpoint=a:1"));
    }

    #[test]
    fn other_faults_are_found() {
        for (ingress, endpoint, text) in [
            ("aeron:udp?", "a:b", "port"),
            ("aeron:udp?", "a:99999", "port"),
            ("aeron:udp?", "a b", "endpoint"),
            ("aeron:udp?", "a|mtu=1k", "endpoint"),
            ("aeron:udp?", "", "endpoint"),
            ("aeron:udp?mtu=7", "node", "mtu"),
        ] {
            let error = channel(ingress, endpoint).expect_err(endpoint);
            assert!(error.contains(text), "{endpoint}: {error}");
        }
    }
}
