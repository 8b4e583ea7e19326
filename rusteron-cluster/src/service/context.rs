//! The configuration of a service container.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusteron_archive as archive;
use rusteron_client::{Aeron, Context, IdleStrategyKind};
use rusteron_core::channel::{ChannelText, ChosenStream, Media, clashes};
use rusteron_core::panic;
use rusteron_core::settings::read_variables;

use crate::error::{ClusterError, Result};
use crate::ids::ServiceId;
use crate::service::error::ErrorPolicy;
use crate::service::types::AppVersion;

/// Clusters have this many stream ids for the archive's answers.
const STREAM_IDS_OF_A_CLUSTER: i32 = 100;

/// The handler of recorded errors.
pub(crate) type ErrorHandler = Arc<dyn Fn(&str) + Send + Sync>;

/// Returns whether a service of the first version can run on a log or snapshot of the second.
pub(crate) type AppVersionValidator = Arc<dyn Fn(AppVersion, AppVersion) -> bool + Send + Sync>;

type ArchiveConfigurator =
    Arc<dyn Fn(&mut archive::ArchiveContext) -> rusteron_client::Result<()> + Send + Sync>;

include!(concat!(env!("OUT_DIR"), "/service.rs"));

/// The configuration of a service container: its node, ids, channels and error policy.
///
/// [`new`](Self::new) returns Aeron's defaults. A container needs the node's media driver, with
/// [`set_aeron_dir`](Self::set_aeron_dir), and a service id if the node has several services. All
/// else must be equal to the consensus module's configuration, and is by default. A setter
/// refuses a value that is out of range, and changes nothing then.
///
/// ```
/// use rusteron_cluster::{AppVersion, ErrorPolicy, ServiceContext};
///
/// # fn main() -> rusteron_cluster::Result<()> {
/// let mut context = ServiceContext::new();
/// context
///     .set_aeron_dir("/dev/shm/aeron-node-0")?
///     .set_app_version(AppVersion::new(1, 4, 0))?
///     .set_error_policy(ErrorPolicy::Terminate)?;
/// assert_eq!(context.service_id(), 0);
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `io.aeron.cluster.service.ClusteredServiceContainer.Context`.
#[doc(alias = "ClusteredServiceContainer.Context")]
#[derive(Clone)]
pub struct ServiceContext {
    values: Values,
    pub(crate) aeron: Option<Aeron>,
    app_version: AppVersion,
    pub(crate) app_version_validator: AppVersionValidator,
    pub(crate) error_handler: Option<ErrorHandler>,
    archive_configurator: Option<ArchiveConfigurator>,
}

impl ServiceContext {
    /// Returns Aeron's defaults. Reads no environment variables.
    pub fn new() -> Self {
        Self {
            values: Values::default(),
            aeron: None,
            app_version: AppVersion::new(0, 0, 1),
            app_version_validator: Arc::new(AppVersion::is_compatible),
            error_handler: None,
            archive_configurator: None,
        }
    }

    /// Returns Aeron's defaults, changed by the environment variables that the setters name.
    ///
    /// The names are those of Java's properties. Durations are written `500ms` or `5s`, or in
    /// nanoseconds; lengths in bytes, or `64k` or `1m`. An empty variable counts as absent. The media
    /// driver's directory comes from `AERON_DIR`, as always. [`rusteron_client::load_properties`] sets
    /// variables from properties in Java's format.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ClusterErrorKind::InvalidArgument) for variables that cannot be
    /// parsed or are out of range, with name, value, and the accepted values.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let mut context = Self::new();
        read_variables(SETTINGS, &mut context, variable).map_err(invalid)?;
        Ok(context)
    }

    /// Sets the version of the application. An incompatible log or snapshot ends the container. The
    /// default is 0.0.1, as the consensus module's.
    ///
    /// # Errors
    /// None.
    pub fn set_app_version(&mut self, value: AppVersion) -> Result<&mut Self> {
        self.app_version = value;
        Ok(self)
    }

    /// Returns the value that [`set_app_version`](Self::set_app_version) sets.
    pub fn app_version(&self) -> AppVersion {
        self.app_version
    }

    /// Sets the Aeron client of the container. The default, `None`, is a client of its own, with a
    /// conductor thread.
    ///
    /// The consensus module ends the node when the container's client closes. With a shared client,
    /// a container that ends is noticed only when the last handle of the client is dropped. A
    /// client without a conductor thread is driven by the container, which then must not block for
    /// longer than the client liveness timeout.
    pub fn set_aeron(&mut self, value: Option<Aeron>) -> Result<&mut Self> {
        self.aeron = value;
        Ok(self)
    }

    /// Sets the check of versions: whether a service of the first version, the own one, can run on a
    /// snapshot or a leader's term of the second. The default is [`AppVersion::is_compatible`].
    ///
    /// Called on the container's thread, for the snapshot that is loaded and for each new term. If
    /// it returns false, the container ends with
    /// [`IncompatibleVersion`](crate::TerminationCause::IncompatibleVersion). A panic also ends the
    /// container. The check must give the same answer on all members.
    #[doc(alias = "appVersionValidator")]
    pub fn set_app_version_validator(
        &mut self,
        value: impl Fn(AppVersion, AppVersion) -> bool + Send + Sync + 'static,
    ) -> Result<&mut Self> {
        self.app_version_validator = Arc::new(value);
        Ok(self)
    }

    /// Sets a handler of errors that the container records. The default is none. All errors are
    /// counted, and logged with the crate `log`. Called on the container's thread. A panic in the
    /// handler is logged.
    pub fn set_error_handler(
        &mut self,
        value: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<&mut Self> {
        self.error_handler = Some(Arc::new(value));
        Ok(self)
    }

    /// Sets a function that configures the container's connections to the archive: credentials,
    /// timeouts, response channel and stream ids. The default is none.
    ///
    /// Called with a context that has the container's settings and the values of the
    /// `AERON_ARCHIVE_*` variables: when the container is made, to check the settings, and then on
    /// the container's thread before each snapshot that it loads or takes. Each service of a node
    /// needs its own response stream id; the default is 100 · cluster id + 100 +
    /// `AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID` (20) + service id + 1. Both channels must be IPC.
    ///
    /// An error or a panic fails the snapshot, as an archive that cannot be reached does.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use rusteron_archive::CredentialsSupplier;
    /// use rusteron_cluster::ServiceContext;
    ///
    /// struct Token;
    ///
    /// impl CredentialsSupplier for Token {
    ///     fn encoded_credentials(&mut self) -> Vec<u8> {
    ///         b"admin:admin".to_vec()
    ///     }
    ///
    ///     fn on_challenge(&mut self, _encoded_challenge: &[u8]) -> Vec<u8> {
    ///         Vec::new()
    ///     }
    /// }
    ///
    /// # fn main() -> rusteron_cluster::Result<()> {
    /// let mut context = ServiceContext::new();
    /// context.set_archive_configurator(|archive| {
    ///     archive.set_credentials_supplier(Token)?.set_message_timeout(Duration::from_secs(30))?;
    ///     Ok(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "archiveContext")]
    pub fn set_archive_configurator(
        &mut self,
        value: impl Fn(&mut archive::ArchiveContext) -> rusteron_client::Result<()>
        + Send
        + Sync
        + 'static,
    ) -> Result<&mut Self> {
        self.archive_configurator = Some(Arc::new(value));
        Ok(self)
    }

    /// Returns the given client, or a new one.
    pub(crate) fn connect(&self) -> Result<Aeron> {
        if let Some(aeron) = &self.aeron {
            return Ok(aeron.clone());
        }
        let mut context = Context::new()?;
        if let Some(dir) = self.aeron_dir() {
            context.set_dir(dir)?;
        }
        context.set_client_name(self.service_name())?;
        Ok(Aeron::connect(context)?)
    }

    /// Returns a new context of the node's archive: connecting consumes it.
    pub(crate) fn new_archive_context(&self) -> Result<archive::ArchiveContext> {
        let mut context = archive::ArchiveContext::new()?;
        let base = context.control_response_stream_id();
        let offset =
            STREAM_IDS_OF_A_CLUSTER * (self.cluster_id() + 1) + self.service_id().get() + 1;
        let response_stream_id = base.checked_add(offset).ok_or_else(|| {
            let max = i32::MAX - offset;
            let name = "AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID";
            ClusterError::invalid(format!("{name}={base}: from {} to {max}", i32::MIN))
        })?;
        context
            .set_control_request_channel(self.archive_channel())?
            .set_control_request_stream_id(self.archive_stream_id())?
            .set_control_response_channel(self.archive_channel())?
            .set_control_response_stream_id(response_stream_id)?
            .set_client_name(self.service_name())?;
        if let Some(configure) = &self.archive_configurator {
            panic::catch(|| configure(&mut context)).map_err(|text| {
                ClusterError::invalid(format!("archive_configurator: panic: {text}"))
            })??;
        }
        for (name, channel) in [
            ("control_request_channel", context.control_request_channel()),
            ("control_response_channel", context.control_response_channel()),
        ] {
            ipc_channel(&channel).map_err(|valid| invalid(format!("{name}={channel}: {valid}")))?;
        }
        self.check_streams(&context)?;
        Ok(context)
    }

    /// Refuses streams on which the container, the consensus module or the archive would take other
    /// messages for theirs. Replays have a session id of their own.
    fn check_streams(&self, archive: &archive::ArchiveContext) -> Result<()> {
        let request_channel = archive.control_request_channel();
        let response_channel = archive.control_response_channel();
        let control_channel = ("control_channel", self.control_channel());
        let stream = |channel, stream_id| ChosenStream { channel, stream_id };
        let clashes = clashes(&[
            stream(control_channel, ("service_stream_id", self.service_stream_id())),
            stream(
                control_channel,
                ("consensus_module_stream_id", self.consensus_module_stream_id()),
            ),
            stream(
                ("snapshot_channel", self.snapshot_channel()),
                ("snapshot_stream_id", self.snapshot_stream_id()),
            ),
            stream(
                ("archive_channel", &request_channel),
                ("archive_stream_id", archive.control_request_stream_id()),
            ),
            stream(
                ("control_response_channel", &response_channel),
                ("control_response_stream_id", archive.control_response_stream_id()),
            ),
        ]);
        match clashes.is_empty() {
            true => Ok(()),
            false => Err(invalid(clashes.join("; "))),
        }
    }
}

/// As [`new`](ServiceContext::new).
impl Default for ServiceContext {
    fn default() -> Self {
        Self::new()
    }
}

fn invalid(message: String) -> ClusterError {
    ClusterError::invalid(message)
}

fn ipc_channel(text: &str) -> std::result::Result<(), String> {
    match ChannelText::new(text).media() {
        Some(Media::Ipc) => Ok(()),
        _ => Err("the node's archive is reached by aeron:ipc".to_owned()),
    }
}

rusteron_core::impl_debug!(
    ServiceContext: aeron_dir(), cluster_dir(), cluster_id(), service_id(), app_version, error_policy()
);

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn values_out_of_range_are_refused() {
        type Change = fn(&mut ServiceContext) -> Result<&mut ServiceContext>;
        let refused = |change: Change, text: &str| {
            let mut context = ServiceContext::new();
            context.new_archive_context().expect("the defaults are valid");
            let changed = change(&mut context).map(drop);
            let error =
                changed.and_then(|()| context.new_archive_context().map(drop)).expect_err(text);
            assert!(error.message().starts_with(text), "{error}");
        };
        refused(|x| x.set_service_id(-1), "service_id=-1: must be an integer from 0 to 9");
        refused(|x| x.set_service_id(10), "service_id=10: must be an integer from 0 to 9");
        refused(|x| x.set_cluster_id(-1), "cluster_id=-1: ");
        refused(|x| x.set_cluster_id(i32::MAX), "cluster_id=2147483647: ");
        refused(
            |x| x.set_service_stream_id(105),
            "service_stream_id=105 (control_channel=aeron:ipc?term-length=128k) and \
             consensus_module_stream_id=105 ",
        );
        refused(|x| x.set_snapshot_stream_id(104), "service_stream_id=104 ");
        refused(|x| x.set_archive_stream_id(104), "service_stream_id=104 ");
        refused(|x| x.set_archive_stream_id(121), "archive_stream_id=121 ");
        refused(|x| x.set_service_name("a\0b"), "service_name=a\\0b: ");
        refused(|x| x.set_log_fragment_limit(0), "log_fragment_limit=0: ");
        refused(
            |x| x.set_error_buffer_length(1000),
            "error_buffer_length=1000: must be a size from 1m to ",
        );
        refused(|x| x.set_error_buffer_length(usize::MAX), "error_buffer_length=");
        const UDP: &str = "aeron:udp?endpoint=localhost:1";
        refused(|x| x.set_archive_channel(UDP), "archive_channel=aeron:udp?endpoint");
        refused(
            |x| x.set_archive_configurator(|_| panic!("no token")),
            "archive_configurator: panic: no token",
        );
        refused(
            |x| {
                x.set_archive_configurator(|archive| {
                    archive.set_control_response_channel(UDP).map(drop)
                })
            },
            "control_response_channel=aeron:udp?endpoint",
        );
    }

    #[test]
    fn archive_context_has_settings_and_configuration() {
        let mut context = ServiceContext::new();
        context.set_cluster_id(2).unwrap().set_service_id(3).unwrap();
        context.set_service_name("orders").unwrap();
        context.set_archive_channel("aeron:ipc?term-length=1m").unwrap();
        context.set_archive_stream_id(77).unwrap();
        let archive = context.new_archive_context().expect("valid");
        assert_eq!(archive.control_request_channel(), "aeron:ipc?term-length=1m");
        assert_eq!(archive.control_response_channel(), "aeron:ipc?term-length=1m");
        assert_eq!(archive.control_request_stream_id(), 77);
        assert_eq!(archive.control_response_stream_id(), 324);
        assert_eq!(archive.client_name(), "orders");
        context
            .set_archive_configurator(|archive| {
                archive.set_message_timeout(Duration::from_secs(77))?;
                archive.set_control_response_stream_id(9)?;
                archive.set_control_response_channel("aeron:ipc?term-length=2m")?;
                Ok(())
            })
            .unwrap();
        let archive = context.new_archive_context().expect("valid");
        assert_eq!(archive.message_timeout(), Duration::from_secs(77));
        assert_eq!(archive.control_response_stream_id(), 9);
        assert_eq!(archive.control_response_channel(), "aeron:ipc?term-length=2m");
    }

    type Case = (&'static str, &'static str, Option<(&'static str, &'static str)>);

    /// A value of each variable, and of those that do not take all texts, a faulty value and the
    /// accepted values.
    const CASES: [Case; 20] = [
        ("AERON_CLUSTER_DIR", "node", None),
        ("AERON_CLUSTER_MARK_FILE_DIR", "marks", None),
        ("AERON_CLUSTER_SERVICE_ERROR_BUFFER_LENGTH", "2m", Some(("1k", "from 1m to "))),
        ("AERON_CLUSTER_ID", "1", Some(("-1", "from 0 to 21474736"))),
        ("AERON_CLUSTER_SERVICE_ID", "9", Some(("10", "from 0 to 9"))),
        ("AERON_CLUSTER_SERVICE_NAME", "orders", None),
        ("AERON_CLUSTER_SERVICE_RESPONDER", "false", Some(("no", "true or false"))),
        ("AERON_CLUSTER_IDLE_STRATEGY", "yield", Some(("x", "backoff"))),
        ("AERON_CLUSTER_LOG_FRAGMENT_LIMIT", "7", Some(("0", "from 1 to 2147483647"))),
        ("AERON_CLUSTER_SERVICE_CYCLE_THRESHOLD", "7us", Some(("7m", "ns, us, ms or s"))),
        ("AERON_CLUSTER_SERVICE_SNAPSHOT_THRESHOLD", "3s", Some(("7h", "ns, us, ms or s"))),
        ("AERON_CLUSTER_CONTROL_CHANNEL", "aeron:ipc?a=1", None),
        ("AERON_CLUSTER_SERVICE_STREAM_ID", "1104", Some(("x", "from -2147483648 to "))),
        ("AERON_CLUSTER_CONSENSUS_MODULE_STREAM_ID", "1105", Some(("2147483648", "2147483647"))),
        ("AERON_CLUSTER_SNAPSHOT_CHANNEL", "aeron:ipc?a=2", None),
        ("AERON_CLUSTER_SNAPSHOT_STREAM_ID", "1106", Some(("x", "2147483647"))),
        ("AERON_CLUSTER_REPLAY_CHANNEL", "aeron:ipc?a=3", None),
        ("AERON_CLUSTER_REPLAY_STREAM_ID", "1103", Some(("x", "2147483647"))),
        ("AERON_ARCHIVE_LOCAL_CONTROL_CHANNEL", "aeron:ipc?a=4", None),
        ("AERON_ARCHIVE_LOCAL_CONTROL_STREAM_ID", "1010", Some(("x", "2147483647"))),
    ];

    #[test]
    fn variables_change_defaults() {
        let variables = SETTINGS.iter().map(|setting| setting.variable());
        assert!(variables.filter(|name| !name.is_empty()).eq(CASES.iter().map(|case| case.0)));
        let find = |name: &str| CASES.iter().find(|x| x.0 == name).map(|x| x.1.into());
        let x = ServiceContext::from_variables(find).expect("valid");
        assert_eq!((x.cluster_id(), x.service_id(), x.service_name()), (1, 9.into(), "orders"));
        assert_eq!((x.is_responding_service(), x.cluster_dir()), (false, Path::new("node")));
        assert_eq!(x.mark_file_dir(), Some(Path::new("marks")));
        assert_eq!((x.error_buffer_length(), x.log_fragment_limit()), (2 << 20, 7));
        assert_eq!(x.idle_strategy().name(), "yield");
        assert_eq!(x.cycle_threshold(), Duration::from_micros(7));
        assert_eq!(x.snapshot_duration_threshold(), Duration::from_secs(3));
        assert_eq!((x.service_stream_id(), x.consensus_module_stream_id()), (1104, 1105));
        assert_eq!((x.control_channel(), x.archive_channel()), ("aeron:ipc?a=1", "aeron:ipc?a=4"));
        assert_eq!((x.snapshot_channel(), x.snapshot_stream_id()), ("aeron:ipc?a=2", 1106));
        assert_eq!((x.replay_channel(), x.replay_stream_id()), ("aeron:ipc?a=3", 1103));
        assert_eq!(x.archive_stream_id(), 1010);
    }

    #[test]
    fn faulty_variables_are_named() {
        for (name, _, faulty) in CASES {
            let Some((value, accepted)) = faulty else {
                continue;
            };
            let variable = |asked: &str| (asked == name).then(|| value.into());
            let error = ServiceContext::from_variables(variable).expect_err(name);
            let text = error.message();
            assert!(text.starts_with(&format!("{name}={value}: ")), "{error}");
            assert!(text.contains(accepted), "{error}");
        }
    }
}
