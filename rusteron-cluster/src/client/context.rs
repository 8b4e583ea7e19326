//! The configuration of a cluster client.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusteron_client::{ChannelUri, IdleStrategyKind, Media, Parameter};
use rusteron_core::CredentialsSupplier;

use crate::client::endpoints::IngressEndpoints;
use crate::error::{ClusterError, Result};
use crate::settings::{duration, parsed, settings, stream_id, text};

/// Maximum length of a client's name in bytes, as in Java.
const MAX_CLIENT_NAME_LENGTH: usize = 100;

/// Timeouts beyond this one would overflow the clock.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

settings! {
    /// The configuration of a cluster client: channels, streams, timeouts.
    ///
    /// [`new`](Self::new) returns Aeron's defaults, and [`from_env`](Self::from_env) the defaults with
    /// the values of environment variables. Ingress channel and egress channel have no default.
    ///
    /// A setter refuses a value that is wrong by itself, and changes nothing then. Connecting
    /// refuses channels that are missing or do not fit each other.
    ///
    /// ```
    /// use rusteron_cluster::ClusterContext;
    ///
    /// # fn main() -> rusteron_cluster::Result<()> {
    /// let mut context = ClusterContext::new();
    /// context
    ///     .set_ingress_channel("aeron:udp")?
    ///     .set_ingress_endpoints("0=localhost:9002,1=localhost:9102,2=localhost:9202".parse()?)?
    ///     .set_egress_channel("aeron:udp?endpoint=localhost:0")?;
    /// assert_eq!(context.ingress_stream_id(), 101);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Corresponds to `io.aeron.cluster.client.AeronCluster.Context`.
    #[doc(alias("AeronCluster.Context", "AeronCluster.Configuration"))]
    ClusterContext {
        credentials: Arc<Mutex<dyn CredentialsSupplier>> = Arc::new(Mutex::new(NoCredentials));
    }

    /// Sets the channel to the cluster: UDP, multicast or IPC. Has no default.
    ///
    /// With [endpoints](Self::set_ingress_endpoints) of the members, `aeron:udp` is enough: each
    /// member's endpoint is put in. IPC reaches a leader on the same media driver only, if the
    /// cluster allows it.
    set_ingress_channel, ingress_channel: text = String::new(),
        "AERON_CLUSTER_INGRESS_CHANNEL" => text, check channel_syntax;

    /// Sets the stream id of the ingress. The default is 101.
    set_ingress_stream_id, ingress_stream_id: value(i32) = 101,
        "AERON_CLUSTER_INGRESS_STREAM_ID" => stream_id;

    /// Sets the ingress endpoints of the members. The default is none: the ingress channel alone
    /// reaches the cluster, by multicast or IPC, or reaches a cluster of one member.
    ///
    /// Endpoints of some members are enough; a follower redirects the client to the leader.
    set_ingress_endpoints, ingress_endpoints: optional(IngressEndpoints) = None,
        "AERON_CLUSTER_INGRESS_ENDPOINTS" => |value| parsed(value).map(Some), check some_member;

    /// Sets whether the ingress is an exclusive publication. The default is true. Sessions of one
    /// client with a shared publication use one stream to the cluster.
    set_is_ingress_exclusive, is_ingress_exclusive: value(bool) = true;

    /// Sets the channel on which the client receives. Has no default.
    ///
    /// The cluster publishes to this channel, so its endpoint has to be reachable from all members.
    /// Port 0 lets the operating system choose a port. A UDP channel gets `rejoin=false`: an egress
    /// that was lost must not continue with messages left out.
    set_egress_channel, egress_channel: text = String::new(),
        "AERON_CLUSTER_EGRESS_CHANNEL" => text, check channel_syntax;

    /// Sets the stream id of the egress. The default is 102.
    set_egress_stream_id, egress_stream_id: value(i32) = 102,
        "AERON_CLUSTER_EGRESS_STREAM_ID" => stream_id;

    /// Sets the time for connecting, and for the first accepted message to a new leader. The
    /// default is 5 s. From 1 ns to a year.
    set_message_timeout, message_timeout: value(Duration) = Duration::from_secs(5),
        "AERON_CLUSTER_MESSAGE_TIMEOUT" => duration, check timeout;

    /// Sets the time that a session waits for a new leader after it has lost the connection. From
    /// 1 ns to a year.
    ///
    /// The default, `None`, is twice the leader's heartbeat timeout, as the leader reports it when
    /// the client connects. Leaders before version 13 of the schema do not report it; the default
    /// is then 20 s.
    set_new_leader_timeout, new_leader_timeout: value(Option<Duration>) = None,
        check optional_timeout;

    /// Sets the name that operators of the cluster see, at most 100 bytes of ASCII. The default is
    /// empty.
    set_client_name, client_name: text = String::new(),
        "AERON_CLUSTER_CLIENT_NAME" => text, check name_of_client;

    /// Sets how often polls of the egress send a keep-alive. The default, `None`, leaves
    /// keep-alives to the application.
    ///
    /// A session without messages to the cluster closes after the cluster's session timeout, 10 s
    /// by default. With automatic keep-alives, a poll also sends the first message to a new leader.
    /// A poll then reads the clock. A client that does not poll sends no keep-alives. In a
    /// [split](crate::ClusterClient::split) session,
    /// [`Ingress::poll_state_changes`](crate::Ingress::poll_state_changes) sends them instead.
    set_keep_alive_interval, keep_alive_interval: value(Option<Duration>) = None,
        check optional_timeout;

    /// Sets the idle strategy of [`ClusterClient::connect`](crate::ClusterClient::connect). The
    /// default is to back off: to spin, then to yield, then to sleep up to a millisecond.
    set_idle_strategy, idle_strategy: reference(IdleStrategyKind) = IdleStrategyKind::Backoff;
}

impl ClusterContext {
    /// Sets the supplier of the credentials for connecting. The default is no credentials. Clones
    /// of the context share the supplier, which serves one attempt to connect at a time. A panic of the supplier goes
    /// through to the caller of the poll that connects.
    pub fn set_credentials_supplier(
        &mut self,
        value: impl CredentialsSupplier + 'static,
    ) -> Result<&mut Self> {
        self.credentials = Arc::new(Mutex::new(value));
        Ok(self)
    }

    /// Checks the channels, and returns them.
    pub(crate) fn conclude(&self) -> Result<Channels> {
        let ingress = channel("ingress_channel", &self.ingress_channel)?;
        let egress = channel("egress_channel", &self.egress_channel)?;
        if let (Media::Ipc, Some(endpoints)) = (ingress.media(), &self.ingress_endpoints) {
            return Err(ClusterError::invalid(format!(
                "ingress_endpoints={endpoints} with ingress_channel={ingress}: IPC has no endpoints"
            )));
        }
        let egress = match egress.media() {
            Media::Udp => egress.to_builder().set(Parameter::Rejoin, "false").build(),
            Media::Ipc => Ok(egress),
        };
        let egress = egress
            .and_then(|egress| egress.check_subscription().map(|()| egress))
            .map_err(|error| {
                ClusterError::invalid(format!("egress_channel={}: {error}", self.egress_channel))
            })?;
        Ok(Channels { ingress, egress })
    }
}

/// The parsed channels of a context.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) ingress: ChannelUri,
    pub(crate) egress: ChannelUri,
}

fn channel(name: &str, text: &str) -> Result<ChannelUri> {
    if text.is_empty() {
        return Err(ClusterError::invalid(format!("{name} is not set")));
    }
    // Java takes a channel without parameters, which gets the members' endpoints.
    let complete = if text == "aeron:udp" { "aeron:udp?" } else { text };
    complete.parse().map_err(|error| ClusterError::invalid(format!("{name}={text}: {error}")))
}

/// An empty text is a channel that is not set.
fn channel_syntax(name: &str, text: &str) -> Result<()> {
    if text.is_empty() { Ok(()) } else { channel(name, text).map(drop) }
}

fn some_member(name: &str, endpoints: &Option<IngressEndpoints>) -> Result<()> {
    match endpoints {
        Some(endpoints) if endpoints.iter().count() == 0 => {
            Err(ClusterError::invalid(format!("{name}: no members")))
        }
        _ => Ok(()),
    }
}

fn name_of_client(name: &str, text: &str) -> Result<()> {
    if text.len() <= MAX_CLIENT_NAME_LENGTH && text.is_ascii() {
        return Ok(());
    }
    Err(ClusterError::invalid(format!(
        "{name}={text:?}: at most {MAX_CLIENT_NAME_LENGTH} bytes of ASCII"
    )))
}

fn timeout(name: &str, value: &Duration) -> Result<()> {
    if !value.is_zero() && *value <= MAX_TIMEOUT {
        return Ok(());
    }
    Err(ClusterError::invalid(format!("{name}={value:?}: from 1 ns to a year")))
}

fn optional_timeout(name: &str, value: &Option<Duration>) -> Result<()> {
    value.as_ref().map_or(Ok(()), |value| timeout(name, value))
}

rusteron_core::impl_debug!(ClusterContext: ingress_channel, ingress_endpoints, egress_channel);

/// Supplies empty credentials.
pub(crate) struct NoCredentials;

impl CredentialsSupplier for NoCredentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn on_challenge(&mut self, _encoded_challenge: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ClusterErrorKind;

    fn valid() -> ClusterContext {
        let mut context = ClusterContext::new();
        context
            .set_ingress_channel("aeron:udp")
            .unwrap()
            .set_ingress_endpoints("0=localhost:9002".parse().unwrap())
            .unwrap()
            .set_egress_channel("aeron:udp?endpoint=localhost:0")
            .unwrap();
        context
    }

    #[test]
    fn variables_change_defaults() {
        let variables = [
            ("AERON_CLUSTER_INGRESS_CHANNEL", "aeron:udp?term-length=64k"),
            ("AERON_CLUSTER_INGRESS_STREAM_ID", "-5"),
            ("AERON_CLUSTER_INGRESS_ENDPOINTS", "0=a:1,1=b:2"),
            ("AERON_CLUSTER_EGRESS_CHANNEL", "aeron:ipc"),
            ("AERON_CLUSTER_EGRESS_STREAM_ID", ""),
            ("AERON_CLUSTER_MESSAGE_TIMEOUT", "250ms"),
            ("AERON_CLUSTER_CLIENT_NAME", "orders"),
        ];
        assert_eq!(variables.map(|x| x.0), ClusterContext::VARIABLES);
        let find = |name: &str| variables.iter().find(|x| x.0 == name).map(|x| x.1.into());
        let context = ClusterContext::from_variables(find).unwrap();
        assert_eq!(context.ingress_channel(), "aeron:udp?term-length=64k");
        assert_eq!((context.ingress_stream_id(), context.egress_stream_id()), (-5, 102));
        assert_eq!(context.ingress_endpoints().unwrap().to_string(), "0=a:1,1=b:2");
        assert_eq!(context.egress_channel(), "aeron:ipc");
        assert_eq!(context.message_timeout(), Duration::from_millis(250));
        assert_eq!(context.client_name(), "orders");
    }

    #[test]
    fn faulty_variables_are_named() {
        for (name, value) in [
            ("AERON_CLUSTER_INGRESS_STREAM_ID", "x"),
            ("AERON_CLUSTER_EGRESS_STREAM_ID", "2147483648"),
            ("AERON_CLUSTER_INGRESS_ENDPOINTS", "localhost:1"),
            ("AERON_CLUSTER_MESSAGE_TIMEOUT", "5m"),
            ("AERON_CLUSTER_MESSAGE_TIMEOUT", "0"),
            ("AERON_CLUSTER_EGRESS_CHANNEL", "udp"),
        ] {
            let variable = |asked: &str| (asked == name).then(|| value.into());
            let error = ClusterContext::from_variables(variable).unwrap_err();
            assert_eq!(error.kind(), ClusterErrorKind::InvalidArgument);
            assert!(error.message().contains(name) && error.message().contains(value), "{error}");
        }
    }

    #[test]
    fn invalid_settings_are_named() {
        type Change = fn(&mut ClusterContext) -> Result<&mut ClusterContext>;
        let cases: [(Change, &str); 9] = [
            (|x| x.set_ingress_channel(""), "ingress_channel is not set"),
            (|x| x.set_egress_channel(""), "egress_channel is not set"),
            (|x| x.set_ingress_channel("udp"), "ingress_channel=udp: "),
            (|x| x.set_ingress_channel("aeron:ipc"), "IPC has no endpoints"),
            (|x| x.set_client_name("é"), "client_name=\"é\": at most 100 bytes"),
            (|x| x.set_client_name("x".repeat(101)), "at most 100 bytes"),
            (|x| x.set_message_timeout(Duration::ZERO), "message_timeout=0ns"),
            (|x| x.set_new_leader_timeout(Some(Duration::MAX)), "new_leader_timeout="),
            (|x| x.set_keep_alive_interval(Some(Duration::ZERO)), "keep_alive_interval=0ns"),
        ];
        assert!(valid().conclude().is_ok());
        for (change, expected) in cases {
            let mut context = valid();
            let changed = change(&mut context).map(drop);
            let error = changed.and_then(|()| context.conclude().map(drop)).unwrap_err();
            assert_eq!(error.kind(), ClusterErrorKind::InvalidArgument);
            assert!(error.message().contains(expected), "{error}");
        }
    }

    #[test]
    fn udp_egress_does_not_rejoin() {
        let channels = valid().conclude().unwrap();
        assert_eq!(channels.egress.get(Parameter::Rejoin), Some("false"));
        let mut context = valid();
        context.set_egress_channel("aeron:udp?endpoint=localhost:0|rejoin=true").unwrap();
        assert_eq!(context.conclude().unwrap().egress.get(Parameter::Rejoin), Some("false"));
        context.set_egress_channel("aeron:ipc").unwrap();
        assert_eq!(context.conclude().unwrap().egress.get(Parameter::Rejoin), None);
    }
}
