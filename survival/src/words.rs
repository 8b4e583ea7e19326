//! The messages between the processes: lines of words.

use std::fmt;

/// The supervisor's orders to a part, on the part's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Publishers: send messages of this checkpoint and nothing else, slowly.
    Checkpoint(u64),
    /// Publishers: go on.
    Resume,
    /// Fork a child that uses all handles, drops them and ends.
    Fork,
    /// End in good order.
    End,
}

/// A part's notices to the supervisor, on the part's standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The driver runs, or a client has all its publications or subscriptions.
    Ready,
    /// A client has ended.
    Ended(String),
    /// A connection, a publication, a subscription or a driver was refused.
    Refused(String),
    /// A subscriber's client has received its first message.
    Resumed,
    /// How many messages were sent, or received, since the process was started.
    Messages(u64),
    /// How many messages were not seen because the driver had timed out the subscriber.
    Skipped(u64),
    /// A publisher sends messages of this checkpoint with these publications.
    Publishing(u64, Vec<u64>),
    /// A subscriber has got a message of this checkpoint from this publication.
    Received(u64, u64),
    /// Something is wrong: the word for it in the report, how often, and what exactly.
    Fault(String, u64, String),
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkpoint(number) => write!(f, "checkpoint {number}"),
            Self::Resume => f.write_str("resume"),
            Self::Fork => f.write_str("fork"),
            Self::End => f.write_str("end"),
        }
    }
}

impl Order {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("checkpoint", number) => number.parse().ok().map(Self::Checkpoint),
            ("resume", "") => Some(Self::Resume),
            ("fork", "") => Some(Self::Fork),
            ("end", "") => Some(Self::End),
            _ => None,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Ended(text) => write!(f, "ended {}", one_line(text)),
            Self::Refused(text) => write!(f, "refused {}", one_line(text)),
            Self::Resumed => f.write_str("resumed"),
            Self::Messages(count) => write!(f, "messages {count}"),
            Self::Skipped(count) => write!(f, "skipped {count}"),
            Self::Publishing(checkpoint, publications) => {
                write!(f, "publishing {checkpoint}")?;
                publications.iter().try_for_each(|publication| write!(f, " {publication}"))
            }
            Self::Received(checkpoint, publication) => {
                write!(f, "received {checkpoint} {publication}")
            }
            Self::Fault(name, count, text) => write!(f, "fault {name} {count} {}", one_line(text)),
        }
    }
}

impl Notice {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = rest.split(' ');
        let mut number = || words.next()?.parse().ok();
        Some(match word {
            "ready" => Self::Ready,
            "ended" => Self::Ended(rest.to_owned()),
            "refused" => Self::Refused(rest.to_owned()),
            "resumed" => Self::Resumed,
            "messages" => Self::Messages(number()?),
            "skipped" => Self::Skipped(number()?),
            "publishing" => {
                let checkpoint = number()?;
                Self::Publishing(checkpoint, words.map(str::parse).collect::<Result<_, _>>().ok()?)
            }
            "received" => Self::Received(number()?, number()?),
            "fault" => {
                let (name, rest) = rest.split_once(' ')?;
                let (count, text) = rest.split_once(' ').unwrap_or((rest, ""));
                Self::Fault(name.to_owned(), count.parse().ok()?, text.to_owned())
            }
            _ => return None,
        })
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        for order in [Order::Checkpoint(7), Order::Resume, Order::Fork, Order::End] {
            assert_eq!(Order::parse(&order.to_string()), Some(order));
        }
        let text = "ClientTimeout client was timed out".to_owned();
        for notice in [
            Notice::Ready,
            Notice::Ended(text.clone()),
            Notice::Refused(text.clone()),
            Notice::Resumed,
            Notice::Messages(9),
            Notice::Skipped(3),
            Notice::Publishing(2, vec![1, u64::MAX, 3]),
            Notice::Received(2, 8),
            Notice::Fault("lost".to_owned(), 4, text),
        ] {
            assert_eq!(Notice::parse(&notice.to_string()), Some(notice));
        }
    }

    #[test]
    fn what_is_cut_or_unknown_is_nothing() {
        for line in ["", "fault", "fault lost", "received 1", "publishing", "messages x", "hello"] {
            assert_eq!(Notice::parse(line), None, "{line}");
        }
        assert_eq!(Order::parse("checkpoint"), None);
    }

    #[test]
    fn a_text_of_several_lines_becomes_one() {
        assert_eq!(Notice::Ended("a\n  b".to_owned()).to_string(), "ended a b");
    }
}
