//! Causes of a client's end.

use std::fmt;

use rusteron_sys as sys;

/// The reason why a client, or a handle of a client, is closed.
///
/// `Aeron::close_cause` returns it, and every error for a closed client carries it. Durations are
/// in milliseconds, at most `u32::MAX`, so that errors of the message path stay small.
///
/// ```
/// use rusteron_client::{CloseCause, OfferError};
///
/// fn explain(error: OfferError) -> Option<String> {
///     match error {
///         OfferError::Closed(CloseCause::DriverGone { pid }) => Some(format!("restart driver {pid}")),
///         OfferError::Closed(cause) => Some(cause.to_string()),
///         _ => None,
///     }
/// }
/// let cause = CloseCause::DriverTimeout { age_ms: 10_408, timeout_ms: 10_000 };
/// let text = explain(OfferError::Closed(cause));
/// assert_eq!(text.as_deref(), Some("the media driver's last heartbeat was 10408 ms ago, timeout 10000 ms"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CloseCause {
    /// Only the handle's own publication or subscription has ended. Its client is open.
    Handle,
    /// The cluster session that the publication belonged to has ended. Its client is open: connect
    /// to the cluster anew.
    ClusterSession(
        /// The way in which the session ended.
        SessionEnd,
    ),
    /// The process of the media driver has ended without closing its files: it was killed, or has
    /// crashed.
    DriverGone {
        /// The process id of the driver.
        pid: u32,
    },
    /// The media driver has closed in good order.
    DriverShutdown,
    /// The media driver gave no heartbeat for longer than the driver timeout.
    DriverTimeout {
        /// The age of the driver's last heartbeat, in milliseconds.
        age_ms: u32,
        /// The client's driver timeout, in milliseconds.
        timeout_ms: u32,
    },
    /// The media driver heard nothing from the client for the driver's client liveness timeout,
    /// and regards the client as dead. The client's process or conductor was stopped meanwhile.
    ClientTimeout,
    /// The client's conductor did no work for longer than the inter-service timeout: its process
    /// was paused, or a handler took too long.
    ConductorServiceTimeout {
        /// The time without work, in milliseconds.
        interval_ms: u32,
        /// The inter-service timeout, in milliseconds.
        timeout_ms: u32,
    },
    /// The client fell so far behind the media driver's broadcasts that it has missed some.
    FellBehind,
    /// This process is a fork, and has inherited the client. The client is open only in the process
    /// that made it. Make another one in this process.
    Forked {
        /// The id of the process that made the client.
        pid: u32,
    },
    /// Another fatal error of Aeron's client.
    Fatal {
        /// Aeron's error number, without its sign.
        code: i32,
    },
}

/// The ways in which a cluster session ends while its client stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The cluster has closed the session: a service did, or the session has timed out.
    ClosedByCluster,
    /// No new leader announced itself within the new leader timeout.
    NoNewLeader,
    /// The new leader accepted no message within the message timeout.
    NoConnectionToNewLeader,
    /// A publication to the new leader could not be added. The log has the reason.
    NewLeaderIngressFailed,
    /// The application has closed or dropped one half of the session.
    ClosedByApplication,
}

impl CloseCause {
    /// Converts the reason that C's conductor has. `is_timed_out` returns whether the driver has
    /// freed this client's counters.
    pub fn from_c(end: &sys::rusteron_client_end_t, is_timed_out: impl FnOnce() -> bool) -> Self {
        let (elapsed, timeout_ms) = (millis(end.elapsed_ms), millis(end.timeout_ms));
        match end.code.unsigned_abs() {
            sys::AERON_CLIENT_ERROR_DRIVER_TIMEOUT if end.is_driver_shut_down => {
                Self::DriverShutdown
            }
            // C also reports a missing counter of its own client as a driver timeout.
            sys::AERON_CLIENT_ERROR_DRIVER_TIMEOUT if elapsed <= timeout_ms && is_timed_out() => {
                Self::ClientTimeout
            }
            sys::AERON_CLIENT_ERROR_DRIVER_TIMEOUT => {
                Self::DriverTimeout { age_ms: elapsed, timeout_ms }
            }
            sys::AERON_CLIENT_ERROR_CLIENT_TIMEOUT => Self::ClientTimeout,
            sys::AERON_CLIENT_ERROR_CONDUCTOR_SERVICE_TIMEOUT => {
                Self::ConductorServiceTimeout { interval_ms: elapsed, timeout_ms }
            }
            sys::AERON_CLIENT_ERROR_BROADCAST_RECEIVER_ILLEGAL_STATE => Self::FellBehind,
            _ => Self::Fatal { code: end.code },
        }
    }

    /// Returns the cause and what helps, for the text of an error.
    #[doc(hidden)]
    pub fn with_advice(self) -> String {
        match self {
            Self::Handle | Self::Forked { .. } => self.to_string(),
            Self::ClusterSession(_) => format!("{self}; connect to the cluster anew"),
            Self::ConductorServiceTimeout { .. } => format!(
                "{self}; make a new client, and call do_work more often or return from handlers sooner"
            ),
            _ => format!("{self}; make a new client, as Reconnect does"),
        }
    }
}

fn millis(value: i64) -> u32 {
    u32::try_from(value.max(0)).unwrap_or(u32::MAX)
}

impl fmt::Display for CloseCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Handle => f.write_str("it alone was closed, its client is open"),
            Self::ClusterSession(end) => end.fmt(f),
            Self::DriverGone { pid } => write!(f, "the media driver, process {pid}, has died"),
            Self::DriverShutdown => f.write_str("the media driver was shut down"),
            Self::DriverTimeout { age_ms, timeout_ms } => write!(
                f,
                "the media driver's last heartbeat was {age_ms} ms ago, timeout {timeout_ms} ms"
            ),
            Self::ClientTimeout => f.write_str("the media driver has timed out the client"),
            Self::ConductorServiceTimeout { interval_ms, timeout_ms } => write!(
                f,
                "the client's conductor did no work for {interval_ms} ms, timeout {timeout_ms} ms"
            ),
            Self::FellBehind => f.write_str("the client fell behind the media driver's broadcasts"),
            Self::Forked { pid } => {
                let used = std::process::id();
                write!(
                    f,
                    "made by process {pid}, used in process {used}, a fork: make your own after the \
                     fork"
                )
            }
            Self::Fatal { code } => write!(f, "fatal error {code} of Aeron's client"),
        }
    }
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClosedByCluster => "the cluster has closed the session",
            Self::NoNewLeader => "no new leader announced itself in time",
            Self::NoConnectionToNewLeader => "the new leader accepted no message in time",
            Self::NewLeaderIngressFailed => "no publication to the new leader could be added",
            Self::ClosedByApplication => "the application has closed the session",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{OfferError, PollError};

    fn cause(code: u32, elapsed_ms: i64, is_timed_out: bool) -> CloseCause {
        let end = sys::rusteron_client_end_t {
            code: code as i32,
            is_driver_shut_down: false,
            elapsed_ms,
            timeout_ms: 10_000,
        };
        CloseCause::from_c(&end, || is_timed_out)
    }

    #[test]
    fn codes_of_c_have_causes() {
        let timeout_ms = 10_000;
        let silent = CloseCause::DriverTimeout { age_ms: 10_408, timeout_ms };
        assert_eq!(cause(sys::AERON_CLIENT_ERROR_DRIVER_TIMEOUT, 10_408, true), silent);
        let freed = cause(sys::AERON_CLIENT_ERROR_DRIVER_TIMEOUT, 3, true);
        assert_eq!(freed, CloseCause::ClientTimeout);
        let told = cause(sys::AERON_CLIENT_ERROR_CLIENT_TIMEOUT, 0, false);
        assert_eq!(told, CloseCause::ClientTimeout);
        let paused = cause(sys::AERON_CLIENT_ERROR_CONDUCTOR_SERVICE_TIMEOUT, i64::MAX, false);
        let interval_ms = u32::MAX;
        assert_eq!(paused, CloseCause::ConductorServiceTimeout { interval_ms, timeout_ms });
        assert_eq!(cause(99, -1, false), CloseCause::Fatal { code: 99 });
    }

    #[test]
    fn errors_of_the_message_path_stay_small() {
        assert_eq!(size_of::<OfferError>(), 24);
        assert_eq!(size_of::<Result<usize, PollError>>(), 16);
    }
}
