//! The configuration of a cluster client.

use std::ffi::OsString;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusteron_client::{ChannelUri, ChannelUriError, IdleStrategyKind, Media, Parameter};
use rusteron_core::CredentialsSupplier;
use rusteron_core::channel::{ChosenStream, clashes};
use rusteron_core::settings::read_variables;

use crate::client::endpoints::IngressEndpoints;
use crate::error::{ClusterError, Result};

/// Maximum length of a client's name in bytes, as in Java.
const MAX_CLIENT_NAME_LENGTH: usize = 100;

/// The one setting that is no plain value.
const INGRESS_ENDPOINTS: &str = "AERON_CLUSTER_INGRESS_ENDPOINTS";

include!(concat!(env!("OUT_DIR"), "/client.rs"));

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
#[derive(Clone)]
pub struct ClusterContext {
    values: Values,
    ingress_endpoints: Option<IngressEndpoints>,
    pub(crate) credentials: Arc<Mutex<dyn CredentialsSupplier>>,
}

impl ClusterContext {
    /// Returns Aeron's defaults. Reads no environment variables.
    pub fn new() -> Self {
        Self {
            values: Values::default(),
            ingress_endpoints: None,
            credentials: Arc::new(Mutex::new(NoCredentials)),
        }
    }

    /// Returns Aeron's defaults, changed by the environment variables that the setters name.
    ///
    /// The names are those of Java's properties. Durations are written `500ms` or `5s`, or in
    /// nanoseconds. An empty variable counts as absent. The media driver's directory comes from
    /// `AERON_DIR`, as always. [`rusteron_client::load_properties`] sets variables from properties in
    /// Java's format.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ClusterErrorKind::InvalidArgument) for variables that cannot be
    /// parsed or are out of range, with name, value, and the accepted values.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let mut context = Self::new();
        read_variables(SETTINGS, &mut context, &variable).map_err(invalid)?;
        if let Some(value) = variable(INGRESS_ENDPOINTS).filter(|value| !value.is_empty()) {
            let text = value.to_string_lossy();
            let faulty =
                |error: &dyn Display| invalid(format!("{INGRESS_ENDPOINTS}={text}: {error}"));
            let endpoints = text.parse().map_err(|error: ClusterError| faulty(&error))?;
            context.set_ingress_endpoints(endpoints).map_err(|error| faulty(&error))?;
        }
        Ok(context)
    }

    /// Sets the ingress endpoints of the members. The default is none: the ingress channel alone
    /// reaches the cluster, by multicast or IPC, or reaches a cluster of one member.
    ///
    /// Endpoints of some members are enough; a follower redirects the client to the leader.
    ///
    /// Environment: `AERON_CLUSTER_INGRESS_ENDPOINTS`.
    ///
    /// # Errors
    /// If there are no members.
    pub fn set_ingress_endpoints(&mut self, value: IngressEndpoints) -> Result<&mut Self> {
        if value.iter().count() == 0 {
            return Err(invalid("ingress_endpoints: no members".to_owned()));
        }
        self.ingress_endpoints = Some(value);
        Ok(self)
    }

    /// Returns the value that [`set_ingress_endpoints`](Self::set_ingress_endpoints) sets.
    pub fn ingress_endpoints(&self) -> Option<&IngressEndpoints> {
        self.ingress_endpoints.as_ref()
    }

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
        let ingress = channel("ingress_channel", self.ingress_channel())?;
        let egress = channel("egress_channel", self.egress_channel())?;
        if let (Media::Ipc, Some(endpoints)) = (ingress.media(), &self.ingress_endpoints) {
            return Err(ClusterError::invalid(format!(
                "ingress_endpoints={endpoints} with ingress_channel={ingress}: IPC has no endpoints"
            )));
        }
        // The client would take its own messages for the cluster's.
        let clashes = clashes(&[
            ChosenStream {
                channel: ("ingress_channel", self.ingress_channel()),
                stream_id: ("ingress_stream_id", self.ingress_stream_id()),
            },
            ChosenStream {
                channel: ("egress_channel", self.egress_channel()),
                stream_id: ("egress_stream_id", self.egress_stream_id()),
            },
        ]);
        if !clashes.is_empty() {
            return Err(ClusterError::invalid(clashes.join("; ")));
        }
        let egress = match egress.media() {
            Media::Udp => egress.to_builder().set(Parameter::Rejoin, "false").build(),
            Media::Ipc => Ok(egress),
        };
        let egress = egress
            .and_then(|egress| egress.check_subscription().map(|()| egress))
            .map_err(|error| {
                ClusterError::invalid(format!("egress_channel={}: {error}", self.egress_channel()))
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

/// As [`new`](ClusterContext::new).
impl Default for ClusterContext {
    fn default() -> Self {
        Self::new()
    }
}

fn invalid(message: String) -> ClusterError {
    ClusterError::invalid(message)
}

fn channel(name: &str, text: &str) -> Result<ChannelUri> {
    if text.is_empty() {
        return Err(ClusterError::invalid(format!("{name} is not set")));
    }
    parse_channel(text).map_err(|error| ClusterError::invalid(format!("{name}={text}: {error}")))
}

fn parse_channel(text: &str) -> std::result::Result<ChannelUri, ChannelUriError> {
    // Java takes a channel without parameters, which gets the members' endpoints.
    let complete = if text == "aeron:udp" { "aeron:udp?" } else { text };
    complete.parse()
}

/// An empty text is a channel that is not set.
fn channel_syntax(text: &str) -> std::result::Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    parse_channel(text).map(drop).map_err(|error| error.to_string())
}

fn name_of_client(text: &str) -> std::result::Result<(), String> {
    if text.len() <= MAX_CLIENT_NAME_LENGTH && text.is_ascii() && !text.contains('\0') {
        return Ok(());
    }
    Err(format!("must be at most {MAX_CLIENT_NAME_LENGTH} bytes of ASCII"))
}

rusteron_core::impl_debug!(
    ClusterContext: ingress_channel(), ingress_endpoints, egress_channel()
);

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
        let mut names: Vec<_> = SETTINGS.iter().map(|setting| setting.variable()).collect();
        names.push(INGRESS_ENDPOINTS);
        assert!(variables.iter().all(|(name, _)| names.contains(name)));
        names.retain(|name| !name.is_empty());
        assert_eq!(names.len(), variables.len());
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
    fn variable_without_unit_is_warned_of() {
        let logged = |value: &str| {
            rusteron_test_support::logged_with("AERON_CLUSTER_MESSAGE_TIMEOUT=", || {
                let timeout =
                    |name: &str| (name == "AERON_CLUSTER_MESSAGE_TIMEOUT").then(|| value.into());
                ClusterContext::from_variables(timeout).unwrap();
            })
        };
        assert!(logged("5s").is_empty());
        let warnings = logged("5");
        assert!(warnings.len() == 1 && warnings[0].contains("=5: nanoseconds"), "{warnings:?}");
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
        let cases: [(Change, &str); 10] = [
            (
                |x| {
                    x.set_egress_channel("aeron:udp?endpoint=localhost:9002")?
                        .set_ingress_channel("aeron:udp?endpoint=localhost:9002")?
                        .set_egress_stream_id(101)
                },
                "ingress_stream_id=101 (ingress_channel=aeron:udp?endpoint=localhost:9002) and egress_stream_id=101 ",
            ),
            (|x| x.set_ingress_channel(""), "ingress_channel is not set"),
            (|x| x.set_egress_channel(""), "egress_channel is not set"),
            (|x| x.set_ingress_channel("udp"), "ingress_channel=udp: "),
            (|x| x.set_ingress_channel("aeron:ipc"), "IPC has no endpoints"),
            (|x| x.set_client_name("é"), "client_name=é: must be at most 100 bytes"),
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
