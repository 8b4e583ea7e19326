//! The messages between the processes: a line of JSON each.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The supervisor's orders to a part, on the part's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A condition is violated: which, how often, and what exactly.
    Fault(String, u64, String),
}

pub(crate) fn to_line(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

pub(crate) fn from_line<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let notice = Notice::Fault("lost".to_owned(), u64::MAX, "a\n b".to_owned());
        let line = to_line(&notice);
        assert!(!line.contains('\n'));
        assert_eq!((from_line(&line), from_line::<Notice>(&line[1..])), (Some(notice), None));
        assert_eq!(from_line(&to_line(&Order::Checkpoint(7))), Some(Order::Checkpoint(7)));
    }
}
