//! A channel in its parts, as it was written.

use std::borrow::Cow;
use std::fmt::{self, Display};

use crate::channel::Media;
use crate::channel::uri::SCHEME;

/// A channel's text in its parts, each as it was written.
///
/// Use it for the channels of others, such as those of a consensus module or of an archive's
/// clients, whose text must stay as it is except for a parameter. Any text has these parts. A
/// channel that a user has given is a [`ChannelUri`](crate::channel::ChannelUri), which is checked.
#[derive(Debug, Clone)]
pub struct ChannelText<'a> {
    /// The text before the question mark.
    address: &'a str,
    /// The text between the separators, also where it is empty; `None` without a question mark.
    parameters: Option<Vec<Cow<'a, str>>>,
}

impl<'a> ChannelText<'a> {
    /// Takes a text apart.
    pub fn new(text: &'a str) -> Self {
        let (address, parameters) = match text.split_once('?') {
            Some((address, rest)) => (address, Some(rest.split('|').map(Cow::Borrowed).collect())),
            None => (text, None),
        };
        Self { address, parameters }
    }

    /// Returns the medium. `None` for a spy, and for a medium that Aeron does not know.
    pub fn media(&self) -> Option<Media> {
        self.address.strip_prefix(SCHEME)?.parse().ok()
    }

    /// Returns the values of a parameter in the order of the text. Which of several counts depends
    /// on the reader.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        let parameters = self.parameters.iter().flatten();
        let named = parameters.filter_map(|parameter| parameter.split_once('='));
        named.filter(move |(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Sets a parameter, as the last one. Leaves out other values of it, and empty parameters.
    #[must_use]
    pub fn with(self, key: &str, value: impl Display) -> Self {
        let is_other = |parameter: &Cow<'_, str>| {
            !parameter.is_empty() && parameter.split('=').next() != Some(key)
        };
        let mut parameters = self.parameters.unwrap_or_default();
        parameters.retain(is_other);
        parameters.push(Cow::Owned(format!("{key}={value}")));
        Self { address: self.address, parameters: Some(parameters) }
    }

    /// Replaces the values for which `replace`, which gets key and value, returns another one.
    ///
    /// # Errors
    /// The first error of `replace`.
    pub fn try_replace<E>(
        mut self,
        mut replace: impl FnMut(&str, &str) -> Result<Option<String>, E>,
    ) -> Result<Self, E> {
        for parameter in self.parameters.iter_mut().flatten() {
            let Some((key, value)) = parameter.split_once('=') else { continue };
            if let Some(value) = replace(key, value)? {
                *parameter = Cow::Owned(format!("{key}={value}"));
            }
        }
        Ok(self)
    }
}

/// Writes the parts. Without a change, this is the text that was taken apart.
impl Display for ChannelText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.address)?;
        for (index, parameter) in self.parameters.iter().flatten().enumerate() {
            write!(f, "{}{parameter}", if index == 0 { '?' } else { '|' })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_a_change_stays() {
        for text in ["", "?", "aeron:udp?", "aeron:ipc", "aeron:udp?a=b||c|d=|=", "x?y?z=?"] {
            assert_eq!(ChannelText::new(text).to_string(), text);
        }
    }

    #[test]
    fn set_parameter_comes_last() {
        let set = |text| ChannelText::new(text).with("alias", "b").to_string();
        assert_eq!(set("aeron:ipc"), "aeron:ipc?alias=b");
        assert_eq!(set("aeron:udp?"), "aeron:udp?alias=b");
        assert_eq!(set("aeron:udp?alias=a|mtu=8K||alias|"), "aeron:udp?mtu=8K|alias=b");
        assert_eq!(set("aeron:udp?xalias=a"), "aeron:udp?xalias=a|alias=b");
        let spy = "aeron-spy:aeron:udp?tags=4|session-id=7|alias=log";
        assert_eq!(set(spy), "aeron-spy:aeron:udp?tags=4|session-id=7|alias=b");
    }

    #[test]
    fn replaced_value_stays_in_its_place() {
        let replaced =
            ChannelText::new("aeron:udp?mtu=8K|endpoint=a:1|x").try_replace(|key, value| {
                Ok::<_, ()>((key == "endpoint").then(|| value.replace('a', "b")))
            });
        assert_eq!(replaced.unwrap().to_string(), "aeron:udp?mtu=8K|endpoint=b:1|x");
        let failed = ChannelText::new("aeron:udp?mtu=8K").try_replace(|_, value| Err(value.len()));
        assert_eq!(failed.unwrap_err(), 2);
    }

    #[test]
    fn medium_has_scheme_and_no_prefix() {
        let media = |text| ChannelText::new(text).media();
        assert_eq!(media("aeron:ipc?mtu=8k"), Some(Media::Ipc));
        assert_eq!(media("aeron:udp?"), Some(Media::Udp));
        assert_eq!(media("aeron-spy:aeron:udp?"), None);
        assert_eq!(media("aeron:ipcx"), None);
        assert_eq!(media("ipc"), None);
    }
}
