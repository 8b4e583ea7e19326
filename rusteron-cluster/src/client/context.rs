//! The configuration of a cluster client.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusteron_client::{ChannelUri, IdleStrategyKind, Media, Parameter};

use crate::client::endpoints::IngressEndpoints;
use crate::error::{ClusterError, Result};
use crate::variables::{duration, from_env, parsed, stream_id, text};

/// Maximum length of a client's name in bytes, as in Java.
const MAX_CLIENT_NAME_LENGTH: usize = 100;

/// Timeouts beyond this one would overflow the clock.
const MAX_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The configuration of a cluster client: channels, streams, timeouts.
///
/// [`new`](Self::new) returns Aeron's defaults, and [`from_env`](Self::from_env) the defaults with
/// the values of environment variables. Ingress channel and egress channel have no default.
///
/// ```
/// use rusteron_cluster::ClusterContext;
///
/// # fn main() -> rusteron_cluster::Result<()> {
/// let mut context = ClusterContext::new();
/// context
///     .set_ingress_channel("aeron:udp")
///     .set_ingress_endpoints("0=localhost:9002,1=localhost:9102,2=localhost:9202".parse()?)
///     .set_egress_channel("aeron:udp?endpoint=localhost:0");
/// assert_eq!(context.ingress_stream_id(), 101);
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `io.aeron.cluster.client.AeronCluster.Context`.
#[doc(alias("AeronCluster.Context", "AeronCluster.Configuration"))]
#[derive(Clone)]
pub struct ClusterContext {
    ingress_channel: String,
    ingress_stream_id: i32,
    ingress_endpoints: Option<IngressEndpoints>,
    is_ingress_exclusive: bool,
    egress_channel: String,
    egress_stream_id: i32,
    message_timeout: Duration,
    new_leader_timeout: Option<Duration>,
    client_name: String,
    credentials: Arc<Mutex<dyn CredentialsSupplier>>,
    keep_alive_interval: Option<Duration>,
    idle_strategy: IdleStrategyKind,
}

impl ClusterContext {
    /// Returns Aeron's defaults. Reads no environment variables.
    pub fn new() -> Self {
        Self {
            ingress_channel: String::new(),
            ingress_stream_id: 101,
            ingress_endpoints: None,
            is_ingress_exclusive: true,
            egress_channel: String::new(),
            egress_stream_id: 102,
            message_timeout: Duration::from_secs(5),
            new_leader_timeout: None,
            client_name: String::new(),
            credentials: Arc::new(Mutex::new(NoCredentials)),
            keep_alive_interval: None,
            idle_strategy: IdleStrategyKind::Backoff,
        }
    }

    from_env! {
        "AERON_CLUSTER_INGRESS_CHANNEL" => set_ingress_channel, ingress_channel, text;
        "AERON_CLUSTER_INGRESS_STREAM_ID" => set_ingress_stream_id, ingress_stream_id, stream_id;
        "AERON_CLUSTER_INGRESS_ENDPOINTS" => set_ingress_endpoints, ingress_endpoints,
            |value| parsed(value).map(Some);
        "AERON_CLUSTER_EGRESS_CHANNEL" => set_egress_channel, egress_channel, text;
        "AERON_CLUSTER_EGRESS_STREAM_ID" => set_egress_stream_id, egress_stream_id, stream_id;
        "AERON_CLUSTER_MESSAGE_TIMEOUT" => set_message_timeout, message_timeout, duration;
        "AERON_CLUSTER_CLIENT_NAME" => set_client_name, client_name, text;
    }

    /// Sets the channel to the cluster: UDP, multicast or IPC. Has no default.
    ///
    /// With [endpoints](Self::set_ingress_endpoints) of the members, `aeron:udp` is enough: each
    /// member's endpoint is put in. IPC reaches a leader on the same media driver only, if the
    /// cluster allows it.
    pub fn set_ingress_channel(&mut self, value: impl Into<String>) -> &mut Self {
        self.ingress_channel = value.into();
        self
    }

    /// Returns the channel to the cluster; empty if it is not set.
    pub fn ingress_channel(&self) -> &str {
        &self.ingress_channel
    }

    /// Sets the stream id of the ingress. The default is 101.
    pub fn set_ingress_stream_id(&mut self, value: i32) -> &mut Self {
        self.ingress_stream_id = value;
        self
    }

    /// Returns the stream id of the ingress.
    pub fn ingress_stream_id(&self) -> i32 {
        self.ingress_stream_id
    }

    /// Sets the ingress endpoints of the members. The default is none: the ingress channel alone
    /// reaches the cluster, by multicast or IPC, or reaches a cluster of one member.
    ///
    /// Endpoints of some members are enough; a follower redirects the client to the leader.
    pub fn set_ingress_endpoints(&mut self, value: IngressEndpoints) -> &mut Self {
        self.ingress_endpoints = Some(value);
        self
    }

    /// Returns the ingress endpoints of the members, if they are set.
    pub fn ingress_endpoints(&self) -> Option<&IngressEndpoints> {
        self.ingress_endpoints.as_ref()
    }

    /// Sets whether the ingress is an exclusive publication. The default is true. Sessions of one
    /// client with a shared publication use one stream to the cluster.
    pub fn set_is_ingress_exclusive(&mut self, value: bool) -> &mut Self {
        self.is_ingress_exclusive = value;
        self
    }

    /// Returns whether the ingress is an exclusive publication.
    pub fn is_ingress_exclusive(&self) -> bool {
        self.is_ingress_exclusive
    }

    /// Sets the channel on which the client receives. Has no default.
    ///
    /// The cluster publishes to this channel, so its endpoint has to be reachable from all members.
    /// Port 0 lets the operating system choose a port. A UDP channel gets `rejoin=false`: an egress
    /// that was lost must not continue with messages left out.
    pub fn set_egress_channel(&mut self, value: impl Into<String>) -> &mut Self {
        self.egress_channel = value.into();
        self
    }

    /// Returns the channel on which the client receives; empty if it is not set.
    pub fn egress_channel(&self) -> &str {
        &self.egress_channel
    }

    /// Sets the stream id of the egress. The default is 102.
    pub fn set_egress_stream_id(&mut self, value: i32) -> &mut Self {
        self.egress_stream_id = value;
        self
    }

    /// Returns the stream id of the egress.
    pub fn egress_stream_id(&self) -> i32 {
        self.egress_stream_id
    }

    /// Sets the time for connecting, and for the first accepted message to a new leader. The
    /// default is 5 s. From 1 ns to a year.
    pub fn set_message_timeout(&mut self, value: Duration) -> &mut Self {
        self.message_timeout = value;
        self
    }

    /// Returns the time for connecting, and for the first accepted message to a new leader.
    pub fn message_timeout(&self) -> Duration {
        self.message_timeout
    }

    /// Sets the time that a session waits for a new leader after it has lost the connection. From
    /// 1 ns to a year.
    ///
    /// The default, `None`, is twice the leader's heartbeat timeout, as the leader reports it when
    /// the client connects. Leaders before version 13 of the schema do not report it; the default
    /// is then 20 s.
    pub fn set_new_leader_timeout(&mut self, value: Option<Duration>) -> &mut Self {
        self.new_leader_timeout = value;
        self
    }

    /// Returns the time that a session waits for a new leader, if it is set.
    pub fn new_leader_timeout(&self) -> Option<Duration> {
        self.new_leader_timeout
    }

    /// Sets the name that operators of the cluster see, at most 100 bytes of ASCII. The default is
    /// empty.
    pub fn set_client_name(&mut self, value: impl Into<String>) -> &mut Self {
        self.client_name = value.into();
        self
    }

    /// Returns the name that operators of the cluster see.
    pub fn client_name(&self) -> &str {
        &self.client_name
    }

    /// Sets the supplier of the credentials for connecting. The default is no credentials. Clones
    /// of the context share the supplier, which serves one attempt to connect at a time.
    pub fn set_credentials_supplier(
        &mut self,
        value: impl CredentialsSupplier + 'static,
    ) -> &mut Self {
        self.credentials = Arc::new(Mutex::new(value));
        self
    }

    /// Sets how often polls of the egress send a keep-alive. The default, `None`, leaves
    /// keep-alives to the application.
    ///
    /// A session without messages to the cluster closes after the cluster's session timeout, 10 s
    /// by default. With automatic keep-alives, a poll also sends the first message to a new leader.
    /// A poll then reads the clock. A client that does not poll sends no keep-alives. In a
    /// [split](crate::ClusterClient::split) session,
    /// [`Ingress::poll_state_changes`](crate::Ingress::poll_state_changes) sends them instead.
    pub fn set_keep_alive_interval(&mut self, value: Option<Duration>) -> &mut Self {
        self.keep_alive_interval = value;
        self
    }

    /// Returns how often polls of the egress send a keep-alive.
    pub fn keep_alive_interval(&self) -> Option<Duration> {
        self.keep_alive_interval
    }

    /// Sets the idle strategy of [`ClusterClient::connect`](crate::ClusterClient::connect). The
    /// default is to back off: to spin, then to yield, then to sleep up to a millisecond.
    pub fn set_idle_strategy(&mut self, value: IdleStrategyKind) -> &mut Self {
        self.idle_strategy = value;
        self
    }

    /// Returns the idle strategy of connecting.
    pub fn idle_strategy(&self) -> &IdleStrategyKind {
        &self.idle_strategy
    }

    pub(crate) fn credentials(&self) -> &Mutex<dyn CredentialsSupplier> {
        &*self.credentials
    }

    /// Checks all settings, and returns the channels of ingress and egress.
    pub(crate) fn conclude(&self) -> Result<Channels> {
        let ingress = channel("ingress_channel", &self.ingress_channel)?;
        let egress = channel("egress_channel", &self.egress_channel)?;
        if let (Media::Ipc, Some(endpoints)) = (ingress.media(), &self.ingress_endpoints) {
            return Err(ClusterError::invalid(format!(
                "ingress_endpoints={endpoints} with ingress_channel={ingress}: IPC has no endpoints"
            )));
        }
        if self.ingress_endpoints.as_ref().is_some_and(|endpoints| endpoints.iter().count() == 0) {
            return Err(ClusterError::invalid("ingress_endpoints: no members"));
        }
        let name = &self.client_name;
        if name.len() > MAX_CLIENT_NAME_LENGTH || !name.is_ascii() {
            return Err(ClusterError::invalid(format!(
                "client_name={name:?}: at most {MAX_CLIENT_NAME_LENGTH} bytes of ASCII"
            )));
        }
        timeout("message_timeout", Some(self.message_timeout))?;
        timeout("new_leader_timeout", self.new_leader_timeout)?;
        timeout("keep_alive_interval", self.keep_alive_interval)?;
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

fn timeout(name: &str, value: Option<Duration>) -> Result<()> {
    match value {
        Some(value) if value.is_zero() || value > MAX_TIMEOUT => {
            Err(ClusterError::invalid(format!("{name}={value:?}: from 1 ns to a year")))
        }
        _ => Ok(()),
    }
}

impl Default for ClusterContext {
    /// As [`new`](Self::new).
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ClusterContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterContext")
            .field("ingress_channel", &self.ingress_channel)
            .field("ingress_endpoints", &self.ingress_endpoints)
            .field("egress_channel", &self.egress_channel)
            .finish_non_exhaustive()
    }
}

/// Supplies the credentials that a cluster asks a client for.
///
/// Only the cluster's `Authenticator` interprets the bytes. The default is no credentials. Called
/// while connecting, on the polling thread. A panic goes through to the caller of the poll.
///
/// ```
/// use rusteron_cluster::{ClusterContext, CredentialsSupplier};
///
/// struct Token(Vec<u8>);
///
/// impl CredentialsSupplier for Token {
///     fn encoded_credentials(&mut self) -> Vec<u8> {
///         self.0.clone()
///     }
///
///     fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
///         [&self.0, encoded_challenge].concat()
///     }
/// }
///
/// let mut context = ClusterContext::new();
/// context.set_credentials_supplier(Token(b"admin:admin".to_vec()));
/// ```
///
/// Corresponds to `io.aeron.security.CredentialsSupplier`.
pub trait CredentialsSupplier: Send {
    /// Returns the credentials for a connect request. Called again if the cluster redirects the
    /// client to another member.
    fn encoded_credentials(&mut self) -> Vec<u8>;

    /// Returns the answer to a challenge, if the cluster does not accept the first credentials.
    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8>;
}

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
            .set_ingress_endpoints("0=localhost:9002".parse().unwrap())
            .set_egress_channel("aeron:udp?endpoint=localhost:0");
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
        ] {
            let variable = |asked: &str| (asked == name).then(|| value.into());
            let error = ClusterContext::from_variables(variable).unwrap_err();
            assert_eq!(error.kind(), ClusterErrorKind::InvalidArgument);
            assert!(error.message().contains(name) && error.message().contains(value), "{error}");
        }
    }

    #[test]
    fn invalid_settings_are_named() {
        type Change = fn(&mut ClusterContext) -> &mut ClusterContext;
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
            change(&mut context);
            let error = context.conclude().unwrap_err();
            assert_eq!(error.kind(), ClusterErrorKind::InvalidArgument);
            assert!(error.message().contains(expected), "{error}");
        }
    }

    #[test]
    fn udp_egress_does_not_rejoin() {
        let channels = valid().conclude().unwrap();
        assert_eq!(channels.egress.get(Parameter::Rejoin), Some("false"));
        let mut context = valid();
        context.set_egress_channel("aeron:udp?endpoint=localhost:0|rejoin=true");
        assert_eq!(context.conclude().unwrap().egress.get(Parameter::Rejoin), Some("false"));
        context.set_egress_channel("aeron:ipc");
        assert_eq!(context.conclude().unwrap().egress.get(Parameter::Rejoin), None);
    }
}
