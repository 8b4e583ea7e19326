//! The configuration of a service container.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use rusteron_archive as archive;
use rusteron_client::{Aeron, Context, IdleStrategyKind};
use rusteron_core::panic;

use crate::codec::mark_file::ERROR_BUFFER_LENGTHS;
use crate::error::{ClusterError, Result};
use crate::service::error::ErrorPolicy;
use crate::service::types::AppVersion;
use crate::settings::{duration, length, number, parsed, path, settings, stream_id, text, within};

/// A consensus module has up to 10 services.
const SERVICE_IDS: RangeInclusive<i32> = 0..=9;

/// Clusters have this many stream ids for the archive's answers.
const STREAM_IDS_OF_A_CLUSTER: i32 = 100;
const CLUSTER_IDS: RangeInclusive<i32> =
    0..=i32::MAX / STREAM_IDS_OF_A_CLUSTER - STREAM_IDS_OF_A_CLUSTER;

const LOG_FRAGMENT_LIMITS: RangeInclusive<usize> = 1..=i32::MAX as usize;

/// The handler of recorded errors.
pub(crate) type ErrorHandler = Arc<dyn Fn(&str) + Send + Sync>;

/// Returns whether a service of the first version can run on a log or snapshot of the second.
pub(crate) type AppVersionValidator = Arc<dyn Fn(AppVersion, AppVersion) -> bool + Send + Sync>;

type ArchiveConfigurator =
    Arc<dyn Fn(&mut archive::ArchiveContext) -> rusteron_client::Result<()> + Send + Sync>;

settings! {
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
    ServiceContext {
        aeron: Option<Aeron> = None;
        app_version_validator: AppVersionValidator = Arc::new(AppVersion::is_compatible);
        error_handler: Option<ErrorHandler> = None;
        archive_configurator: Option<ArchiveConfigurator> = None;
    }

    /// Sets the cluster directory of the node, in which the container makes its mark file. Aeron's
    /// `ClusterTool` and `rusteron cluster` find the container there. The default is
    /// `aeron-cluster`, in the working directory, as for the consensus module.
    ///
    /// With a mark file, a second container with the same service id is refused while the first one
    /// lives. The directory is made if it is missing.
    set_cluster_dir, cluster_dir: path = "aeron-cluster".into(), "AERON_CLUSTER_DIR" => path;

    /// Sets whether the container makes a mark file, and the directories for it. The default is
    /// true.
    set_has_mark_file, has_mark_file: value(bool) = true;

    /// Sets another directory for the mark file, such as one in memory. The cluster directory then
    /// gets a link. The default is the cluster directory.
    set_mark_file_dir, mark_file_dir: optional_path = None,
        "AERON_CLUSTER_MARK_FILE_DIR" => |dir| path(dir).map(Some);

    /// Sets the length of the mark file's error log in bytes, at least 1 MiB and below 2 GiB. The
    /// default is 1 MiB.
    set_error_buffer_length, error_buffer_length: value(usize) = 1024 * 1024,
        "AERON_CLUSTER_SERVICE_ERROR_BUFFER_LENGTH" => length(ERROR_BUFFER_LENGTHS),
        check within(ERROR_BUFFER_LENGTHS);

    /// Sets the directory of the node's media driver. The default is the directory of
    /// [`rusteron_client::Context`]: the variable `AERON_DIR`, or Aeron's own default.
    set_aeron_dir, aeron_dir: optional_path = None;

    /// Sets the id of the cluster on its media driver. The default is 0.
    set_cluster_id, cluster_id: value(i32) = 0,
        "AERON_CLUSTER_ID" => number(CLUSTER_IDS), check within(CLUSTER_IDS);

    /// Sets the id of this service on its node, from 0 below the consensus module's number of
    /// services, 9 at most. The default is 0.
    set_service_id, service_id: value(i32) = 0,
        "AERON_CLUSTER_SERVICE_ID" => number(SERVICE_IDS), check within(SERVICE_IDS);

    /// Sets the name of the service: of the container's thread, its Aeron client and its archive
    /// client. The default is `clustered-service`. Aeron's limit for a client's name is 100 bytes.
    ///
    /// A client that [`set_aeron`](Self::set_aeron) sets keeps its own name.
    set_service_name, service_name: text = "clustered-service".to_owned(),
        "AERON_CLUSTER_SERVICE_NAME" => text, check without_nul;

    /// Sets the version of the application. An incompatible log or snapshot ends the container. The
    /// default is 0.0.1, as the consensus module's.
    set_app_version, app_version: value(AppVersion) = AppVersion::new(0, 0, 1);

    /// Sets whether the service answers clients. Without answers, no publications to clients are
    /// added. The default is true.
    set_is_responding_service, is_responding_service: value(bool) = true,
        "AERON_CLUSTER_SERVICE_RESPONDER" => |value| parsed(value).map_err(|_| "true or false".to_owned());

    /// Sets the reaction to an error or panic in a callback. The default is to end the container.
    set_error_policy, error_policy: value(ErrorPolicy) = ErrorPolicy::default();

    /// Sets the idle strategy of the container. The default is to back off: to spin, then to yield,
    /// then to sleep up to a millisecond.
    set_idle_strategy, idle_strategy: reference(IdleStrategyKind) = IdleStrategyKind::Backoff,
        "AERON_CLUSTER_IDLE_STRATEGY" => parsed;

    /// Sets the greatest number of fragments of the log in a duty cycle. The default is 50.
    set_log_fragment_limit, log_fragment_limit: value(usize) = 50,
        "AERON_CLUSTER_LOG_FRAGMENT_LIMIT" => number(LOG_FRAGMENT_LIMITS),
        check within(LOG_FRAGMENT_LIMITS);

    /// Sets the duration of a duty cycle beyond which the cycle is counted as slow. The default is
    /// 100 ms.
    set_cycle_threshold, cycle_threshold: value(Duration) = Duration::from_millis(100),
        "AERON_CLUSTER_SERVICE_CYCLE_THRESHOLD" => duration;

    /// Sets the duration of a snapshot beyond which the snapshot is counted as slow. The default is
    /// 1 s.
    set_snapshot_duration_threshold, snapshot_duration_threshold: value(Duration) = Duration::from_secs(1),
        "AERON_CLUSTER_SERVICE_SNAPSHOT_THRESHOLD" => duration;

    /// Sets the channel between consensus module and services. The text must be equal everywhere.
    /// The default is `aeron:ipc?term-length=128k`.
    set_control_channel, control_channel: text = "aeron:ipc?term-length=128k".to_owned(),
        "AERON_CLUSTER_CONTROL_CHANNEL" => text;

    /// Sets the stream id of messages to services. The default is 104.
    set_service_stream_id, service_stream_id: value(i32) = 104,
        "AERON_CLUSTER_SERVICE_STREAM_ID" => stream_id;

    /// Sets the stream id of messages to the consensus module. The default is 105.
    set_consensus_module_stream_id, consensus_module_stream_id: value(i32) = 105,
        "AERON_CLUSTER_CONSENSUS_MODULE_STREAM_ID" => stream_id;

    /// Sets the channel on which snapshots are recorded. The default is `aeron:ipc?alias=snapshot`.
    set_snapshot_channel, snapshot_channel: text = "aeron:ipc?alias=snapshot".to_owned(),
        "AERON_CLUSTER_SNAPSHOT_CHANNEL" => text;

    /// Sets the stream id of snapshots. The default is 106.
    set_snapshot_stream_id, snapshot_stream_id: value(i32) = 106,
        "AERON_CLUSTER_SNAPSHOT_STREAM_ID" => stream_id;

    /// Sets the channel on which a snapshot is replayed. The default is `aeron:ipc`.
    set_replay_channel, replay_channel: text = "aeron:ipc".to_owned(),
        "AERON_CLUSTER_REPLAY_CHANNEL" => text;

    /// Sets the stream id on which a snapshot is replayed. The default is 103.
    set_replay_stream_id, replay_stream_id: value(i32) = 103,
        "AERON_CLUSTER_REPLAY_STREAM_ID" => stream_id;

    /// Sets the local control channel of the node's archive, in both directions. The default is
    /// `aeron:ipc?term-length=64k`.
    set_archive_channel, archive_channel: text = "aeron:ipc?term-length=64k".to_owned(),
        "AERON_ARCHIVE_LOCAL_CONTROL_CHANNEL" => text, check ipc;

    /// Sets the stream id of requests to the archive. The default is 10.
    set_archive_stream_id, archive_stream_id: value(i32) = 10,
        "AERON_ARCHIVE_LOCAL_CONTROL_STREAM_ID" => stream_id;
}

impl ServiceContext {
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
        if let Some(dir) = &self.aeron_dir {
            context.set_dir(dir)?;
        }
        context.set_client_name(&self.service_name)?;
        Ok(Aeron::connect(context)?)
    }

    /// Returns a new context of the node's archive: connecting consumes it.
    pub(crate) fn new_archive_context(&self) -> Result<archive::ArchiveContext> {
        let mut context = archive::ArchiveContext::new()?;
        let base = context.control_response_stream_id();
        let offset = STREAM_IDS_OF_A_CLUSTER * (self.cluster_id + 1) + self.service_id + 1;
        let response_stream_id = base.checked_add(offset).ok_or_else(|| {
            let max = i32::MAX - offset;
            let name = "AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID";
            ClusterError::invalid(format!("{name}={base}: from {} to {max}", i32::MIN))
        })?;
        context
            .set_control_request_channel(&self.archive_channel)?
            .set_control_request_stream_id(self.archive_stream_id)?
            .set_control_response_channel(&self.archive_channel)?
            .set_control_response_stream_id(response_stream_id)?
            .set_client_name(&self.service_name)?;
        if let Some(configure) = &self.archive_configurator {
            panic::catch(|| configure(&mut context)).map_err(|text| {
                ClusterError::invalid(format!("archive_configurator: panic: {text}"))
            })??;
        }
        for (name, channel) in [
            ("control_request_channel", context.control_request_channel()),
            ("control_response_channel", context.control_response_channel()),
        ] {
            ipc(name, &channel)?;
        }
        Ok(context)
    }
}

fn without_nul(name: &str, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err(ClusterError::invalid(format!("{name}={text:?}: has a NUL byte")));
    }
    Ok(())
}

fn ipc(name: &str, channel: &str) -> Result<()> {
    if channel.starts_with("aeron:ipc") {
        return Ok(());
    }
    Err(ClusterError::invalid(format!(
        "{name}={channel}: the node's archive is reached by aeron:ipc"
    )))
}

rusteron_core::impl_debug!(
    ServiceContext: aeron_dir, cluster_dir, cluster_id, service_id, app_version, error_policy
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
        refused(|x| x.set_service_id(-1), "service_id=-1: from 0 to 9");
        refused(|x| x.set_service_id(10), "service_id=10: from 0 to 9");
        refused(|x| x.set_cluster_id(-1), "cluster_id=-1: ");
        refused(|x| x.set_cluster_id(i32::MAX), "cluster_id=2147483647: ");
        refused(|x| x.set_service_name("a\0b"), "service_name=\"a\\0b\": ");
        refused(|x| x.set_log_fragment_limit(0), "log_fragment_limit=0: ");
        refused(|x| x.set_error_buffer_length(1000), "error_buffer_length=1000: from ");
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
        ("AERON_CLUSTER_SERVICE_ERROR_BUFFER_LENGTH", "2m", Some(("1k", "from 1048576 to "))),
        ("AERON_CLUSTER_ID", "1", Some(("-1", "from 0 to 21474736"))),
        ("AERON_CLUSTER_SERVICE_ID", "9", Some(("10", "from 0 to 9"))),
        ("AERON_CLUSTER_SERVICE_NAME", "orders", None),
        ("AERON_CLUSTER_SERVICE_RESPONDER", "false", Some(("no", "true or false"))),
        ("AERON_CLUSTER_IDLE_STRATEGY", "yield", Some(("x", "backoff"))),
        ("AERON_CLUSTER_LOG_FRAGMENT_LIMIT", "7", Some(("0", "from 1 to 2147483647"))),
        ("AERON_CLUSTER_SERVICE_CYCLE_THRESHOLD", "7us", Some(("7m", "500ms"))),
        ("AERON_CLUSTER_SERVICE_SNAPSHOT_THRESHOLD", "3s", Some(("7h", "500ms"))),
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
        assert_eq!(CASES.map(|case| case.0), ServiceContext::VARIABLES);
        let find = |name: &str| CASES.iter().find(|x| x.0 == name).map(|x| x.1.into());
        let x = ServiceContext::from_variables(find).expect("valid");
        assert_eq!((x.cluster_id(), x.service_id(), x.service_name()), (1, 9, "orders"));
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
