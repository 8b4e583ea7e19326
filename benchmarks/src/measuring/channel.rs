//! Channel URIs, as far as the options need them.

use std::fmt;
use std::str::FromStr;

/// Where Aeron's buffer for a channel URI ends, its terminating NUL included.
const MAX_LENGTH: usize = 4096;

/// A channel URI such as `aeron:ipc?term-length=65536`.
///
/// It is checked for what would not even reach the media driver; the driver checks the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel(String);

impl Channel {
    /// The URI.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is a channel within the machine.
    pub fn is_ipc(&self) -> bool {
        self.media() == "aeron:ipc"
    }

    /// The value of a parameter, if the URI has it.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, parameters) = self.0.split_once('?')?;
        let mut pairs = parameters.split('|').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The same channel with one more parameter, or itself if it has that parameter already.
    pub fn with_default(&self, name: &str, value: impl fmt::Display) -> Self {
        if self.parameter(name).is_some() {
            return self.clone();
        }
        let separator = match self.0.split_once('?') {
            None => "?",
            Some((_, "")) => "",
            Some(_) => "|",
        };
        Self(format!("{}{separator}{name}={value}", self.0))
    }

    fn media(&self) -> &str {
        self.0.split_once('?').map_or(self.0.as_str(), |(media, _)| media)
    }
}

impl FromStr for Channel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let channel = Self(text.to_owned());
        // 64 bytes are left for the parameters that the programs add.
        let fits = text.len() < MAX_LENGTH - 64 && !text.contains(char::is_control);
        if fits && matches!(channel.media(), "aeron:ipc" | "aeron:udp") {
            Ok(channel)
        } else {
            Err("expected aeron:ipc or aeron:udp, with parameters after a question mark, such as \
                 aeron:udp?endpoint=localhost:20121"
                .to_owned())
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(text: &str) -> Channel {
        text.parse().expect(text)
    }

    #[test]
    fn only_what_can_be_a_channel_is_accepted() {
        for text in ["aeron:ipc", "aeron:ipc?", "aeron:udp?endpoint=localhost:20121"] {
            assert_eq!(channel(text).as_str(), text);
        }
        let long = format!("aeron:ipc?alias={}", "x".repeat(MAX_LENGTH));
        for text in ["", "ipc", "aeron:", "aeron:tcp", "aeron:ipcx", "aeron:ipc?a=\0", &long] {
            assert!(Channel::from_str(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn parameters_are_found() {
        let channel = channel("aeron:udp?endpoint=localhost:20121|mtu=8k");
        assert_eq!(channel.parameter("endpoint"), Some("localhost:20121"));
        assert_eq!(channel.parameter("mtu"), Some("8k"));
        assert_eq!(channel.parameter("term-length"), None);
        assert!(!channel.is_ipc());
    }

    #[test]
    fn parameters_are_added_unless_they_are_there() {
        let cases = [
            ("aeron:ipc", "aeron:ipc?mtu=8"),
            ("aeron:ipc?", "aeron:ipc?mtu=8"),
            ("aeron:ipc?alias=a", "aeron:ipc?alias=a|mtu=8"),
            ("aeron:ipc?mtu=9", "aeron:ipc?mtu=9"),
        ];
        for (before, after) in cases {
            assert_eq!(channel(before).with_default("mtu", 8).as_str(), after);
        }
    }
}
