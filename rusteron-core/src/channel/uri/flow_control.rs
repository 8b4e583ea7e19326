//! The flow control of a publication with several receivers.

use std::fmt;
use std::time::Duration;

use crate::channel::uri::scan;

/// The strategy by which a publication with several receivers controls its flow: the parameter
/// [`FlowControl`](crate::channel::Parameter::FlowControl).
///
/// ```
/// use std::time::Duration;
/// use rusteron_client::FlowControl;
///
/// let two_receivers = FlowControl::Min { group_size: Some(2), timeout: None };
/// assert_eq!(two_receivers.to_string(), "min,g:/2");
///
/// let timeout = Some(Duration::from_secs(5));
/// let tagged = FlowControl::Tagged { group_tag: Some(7), group_size: Some(2), timeout };
/// assert_eq!(tagged.to_string(), "tagged,g:7/2,t:5s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowControl {
    /// The publication follows the fastest receiver.
    Max,
    /// The publication follows the slowest receiver.
    Min {
        /// The number of receivers that have to be present before anything is sent. A negative
        /// number is refused.
        group_size: Option<i32>,
        /// The silence after which a receiver is forgotten.
        timeout: Option<Duration>,
    },
    /// The publication follows the slowest receiver with a tag.
    Tagged {
        /// The tag. With `None`, the driver's own tag.
        group_tag: Option<i64>,
        /// The number of receivers with the tag that have to be present before anything is sent. A
        /// negative number is refused.
        group_size: Option<i32>,
        /// The silence after which a receiver is forgotten.
        timeout: Option<Duration>,
    },
}

/// Writes the value as Aeron's `ChannelUriStringBuilder` does.
impl fmt::Display for FlowControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group_tag, group_size, timeout) = match *self {
            Self::Max => return f.write_str("max"),
            Self::Min { group_size, timeout } => {
                f.write_str("min")?;
                (None, group_size, timeout)
            }
            Self::Tagged { group_tag, group_size, timeout } => {
                f.write_str("tagged")?;
                (group_tag, group_size, timeout)
            }
        };
        if group_tag.is_some() || group_size.is_some() {
            f.write_str(",g:")?;
        }
        if let Some(tag) = group_tag {
            write!(f, "{tag}")?;
        }
        if let Some(size) = group_size {
            write!(f, "/{size}")?;
        }
        timeout.map_or(Ok(()), |timeout| write!(f, ",t:{}", scan::format_duration(timeout)))
    }
}

/// Returns whether Aeron accepts this for the parameter `fc`. Mirrors
/// `aeron_flow_control_parse_max_options` and `aeron_flow_control_parse_tagged_options`.
pub(super) fn is_valid(text: &str) -> bool {
    // The last comma may be at the end, without an option behind it.
    let mut options = text.strip_suffix(',').unwrap_or(text).split(',');
    match options.next() {
        Some("max") => options.all(|option| option.starts_with("max") || is_valid_multiple(option)),
        Some("min" | "tagged") => options.all(is_valid_group_option),
        _ => false,
    }
}

fn is_valid_group_option(option: &str) -> bool {
    /// `AERON_FLOW_CONTROL_NUMBER_BUFFER_LEN`, with C's terminator.
    const MAX_NUMBER_LENGTH: usize = 64;
    match (option.strip_prefix("g:"), option.strip_prefix("t:")) {
        (Some(value), _) | (_, Some(value)) if value.len() >= MAX_NUMBER_LENGTH => false,
        (Some(group), _) if !group.is_empty() => is_valid_group(group),
        (_, Some(timeout)) if !timeout.is_empty() => scan::duration(timeout).is_some(),
        _ => is_valid_multiple(option),
    }
}

/// Checks a tag, a slash and a size, or only the tag or the size. C ignores a group without any
/// digits.
fn is_valid_group(group: &str) -> bool {
    const MAX_SIZE: i64 = i32::MAX as i64;
    let (tag, rest) = match scan::integer_prefix(group) {
        Some((tag, rest)) => (Some(tag), rest),
        None => (None, group),
    };
    match (tag, rest.strip_prefix('/')) {
        (_, Some(size)) => scan::int64(size, 10).is_some_and(|n| (0..=MAX_SIZE).contains(&n)),
        (Some(tag), None) => tag.is_some() && rest.is_empty(),
        (None, None) => true,
    }
}

/// Checks the maximum length of a retransmission, in receiver windows.
fn is_valid_multiple(option: &str) -> bool {
    let multiple = option.strip_prefix("rrwm:").and_then(scan::integer_prefix);
    matches!(multiple, Some((Some(1..), _)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_as_in_c() {
        #[rustfmt::skip]
        let texts = [
            "max", "max,", "max,rrwm:4", "min", "min,", "min,t:5s", "min,g:/3", "min,g:/3,t:5s",
            "tagged,g:7", "tagged,g:7/3,t:10ms", "tagged,g:-7", "min,rrwm:2x", "tagged,g:word",
            "max,maximum", "tagged,g:99999999999999999999/3",
        ];
        for text in texts {
            assert!(is_valid(text), "{text}");
        }
        #[rustfmt::skip]
        let texts = [
            "", ",", "maximum", "MAX", "max,g:7", "min,,t:5s", "min,t:", "min,t:5m", "min,g:",
            "min,g:3/", "min,g:3x", "min,g:/-1", "min,g:/2147483648", "min,x", "max,rrwm:0",
            "max,rrwm:", "tagged,g:99999999999999999999",
        ];
        for text in texts {
            assert!(!is_valid(text), "{text}");
        }
    }

    #[test]
    fn what_is_written_is_valid() {
        let timeout = Some(Duration::from_millis(1500));
        for flow_control in [
            FlowControl::Max,
            FlowControl::Min { group_size: None, timeout: None },
            FlowControl::Min { group_size: Some(3), timeout },
            FlowControl::Tagged { group_tag: Some(-7), group_size: None, timeout },
            FlowControl::Tagged { group_tag: None, group_size: Some(0), timeout: None },
        ] {
            assert!(is_valid(&flow_control.to_string()), "{flow_control}");
        }
        assert!(!is_valid(&FlowControl::Min { group_size: Some(-1), timeout }.to_string()));
    }
}
