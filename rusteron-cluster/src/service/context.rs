//! The configuration of a service container.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusteron_archive as archive;
use rusteron_client::{Aeron, CncFile, Context, IdleStrategyKind};

use crate::error::{ClusterError, Result};
use crate::service::error::ErrorPolicy;
use crate::service::mark_file::{MarkFile, MarkFileSettings};
use crate::service::types::AppVersion;

/// The greatest service id: message ids have seven bits for it.
const MAX_SERVICE_ID: i32 = 127;

/// The stream id of the archive's answers to service 0 of cluster 0.
const ARCHIVE_RESPONSE_STREAM_ID: i32 = 121;
/// Clusters have this many stream ids for the archive's answers.
const STREAM_IDS_OF_A_CLUSTER: i32 = 100;

/// The handler of recorded errors.
pub(crate) type ErrorHandler = Arc<dyn Fn(&str) + Send + Sync>;

/// The configuration of a service container: its node, ids, channels and error policy.
///
/// [`new`](Self::new) returns Aeron's defaults. A container needs the node's media driver, with
/// [`set_aeron_dir`](Self::set_aeron_dir), and a service id if the node has several services. All
/// else must be equal to the consensus module's configuration, and is by default.
///
/// ```
/// use rusteron_cluster::{AppVersion, ErrorPolicy, ServiceContext};
///
/// let mut context = ServiceContext::new();
/// context
///     .set_aeron_dir("/dev/shm/aeron-node-0")
///     .set_app_version(AppVersion::new(1, 4, 0))
///     .set_error_policy(ErrorPolicy::Terminate);
/// assert_eq!(context.service_id(), 0);
/// ```
///
/// Corresponds to `io.aeron.cluster.service.ClusteredServiceContainer.Context`.
#[doc(alias = "ClusteredServiceContainer.Context")]
#[derive(Clone)]
pub struct ServiceContext {
    aeron_dir: Option<PathBuf>,
    aeron: Option<Aeron>,
    cluster_dir: Option<PathBuf>,
    mark_file_dir: Option<PathBuf>,
    error_buffer_length: usize,
    cluster_id: i32,
    service_id: i32,
    service_name: String,
    app_version: AppVersion,
    is_responding_service: bool,
    error_policy: ErrorPolicy,
    error_handler: Option<ErrorHandler>,
    idle_strategy: IdleStrategyKind,
    log_fragment_limit: usize,
    cycle_threshold: Duration,
    snapshot_duration_threshold: Duration,
    control_channel: String,
    service_stream_id: i32,
    consensus_module_stream_id: i32,
    snapshot_channel: String,
    snapshot_stream_id: i32,
    replay_channel: String,
    replay_stream_id: i32,
    archive_channel: String,
    archive_stream_id: i32,
}

/// Makes a setter and a getter of a plain value.
macro_rules! setting {
    ($set:ident, $get:ident: $type:ty, $what:literal, $default:literal) => {
        #[doc = concat!("Sets ", $what, ". The default is ", $default, ".")]
        pub fn $set(&mut self, value: $type) -> &mut Self {
            self.$get = value;
            self
        }

        #[doc = concat!("Returns ", $what, ".")]
        pub fn $get(&self) -> $type {
            self.$get
        }
    };
}

/// Makes a setter and a getter of a channel.
macro_rules! channel {
    ($set:ident, $get:ident, $what:literal, $default:literal) => {
        #[doc = concat!("Sets ", $what, ". The default is `", $default, "`.")]
        pub fn $set(&mut self, value: impl Into<String>) -> &mut Self {
            self.$get = value.into();
            self
        }

        #[doc = concat!("Returns ", $what, ".")]
        pub fn $get(&self) -> &str {
            &self.$get
        }
    };
}

impl ServiceContext {
    /// Returns Aeron's defaults. Reads no environment variables.
    pub fn new() -> Self {
        Self {
            aeron_dir: None,
            aeron: None,
            cluster_dir: None,
            mark_file_dir: None,
            error_buffer_length: 1024 * 1024,
            cluster_id: 0,
            service_id: 0,
            service_name: "clustered-service".to_owned(),
            app_version: AppVersion::new(0, 0, 1),
            is_responding_service: true,
            error_policy: ErrorPolicy::default(),
            error_handler: None,
            idle_strategy: IdleStrategyKind::Backoff,
            log_fragment_limit: 50,
            cycle_threshold: Duration::from_millis(100),
            snapshot_duration_threshold: Duration::from_secs(1),
            control_channel: "aeron:ipc?term-length=128k".to_owned(),
            service_stream_id: 104,
            consensus_module_stream_id: 105,
            snapshot_channel: "aeron:ipc?alias=snapshot".to_owned(),
            snapshot_stream_id: 106,
            replay_channel: "aeron:ipc".to_owned(),
            replay_stream_id: 103,
            archive_channel: "aeron:ipc?term-length=64k".to_owned(),
            archive_stream_id: 10,
        }
    }

    /// Returns Aeron's defaults, changed by the variables `AERON_CLUSTER_ID`,
    /// `AERON_CLUSTER_SERVICE_ID`, `AERON_CLUSTER_SERVICE_NAME`, `AERON_CLUSTER_DIR` and
    /// `AERON_CLUSTER_MARK_FILE_DIR`. An empty variable counts as absent. The media driver's
    /// directory comes from `AERON_DIR`, as always.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ClusterErrorKind::InvalidArgument) for a variable that is not a
    /// number.
    pub fn from_env() -> Result<Self> {
        let read = |name: &str| {
            let value = env::var_os(name).map(|value| value.to_string_lossy().into_owned());
            value.filter(|value| !value.is_empty())
        };
        let number = |name: &str, default: i32| match read(name) {
            Some(value) => value.parse().map_err(|_| {
                ClusterError::invalid(format!("{name}={value}: not a number of 32 bits"))
            }),
            None => Ok(default),
        };
        let mut context = Self::new();
        context.cluster_id = number("AERON_CLUSTER_ID", context.cluster_id)?;
        context.service_id = number("AERON_CLUSTER_SERVICE_ID", context.service_id)?;
        if let Some(name) = read("AERON_CLUSTER_SERVICE_NAME") {
            context.service_name = name;
        }
        let dir = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        context.cluster_dir = dir("AERON_CLUSTER_DIR").map(PathBuf::from);
        context.mark_file_dir = dir("AERON_CLUSTER_MARK_FILE_DIR").map(PathBuf::from);
        Ok(context)
    }

    /// Sets the cluster directory of the node, in which the container makes its mark file. Aeron's
    /// `ClusterTool` and `rusteron cluster` find the container there. The default is no directory,
    /// and no mark file.
    ///
    /// With a mark file, a second container with the same service id is refused while the first one
    /// lives. The directory is made if it is missing.
    pub fn set_cluster_dir(&mut self, value: impl Into<PathBuf>) -> &mut Self {
        self.cluster_dir = Some(value.into());
        self
    }

    /// Returns the cluster directory of the node, if it is set.
    pub fn cluster_dir(&self) -> Option<&Path> {
        self.cluster_dir.as_deref()
    }

    /// Sets another directory for the mark file, such as one in memory. The cluster directory then
    /// gets a link. The default is the cluster directory.
    pub fn set_mark_file_dir(&mut self, value: impl Into<PathBuf>) -> &mut Self {
        self.mark_file_dir = Some(value.into());
        self
    }

    /// Returns the directory of the mark file, if it is set.
    pub fn mark_file_dir(&self) -> Option<&Path> {
        self.mark_file_dir.as_deref()
    }

    setting!(
        set_error_buffer_length, error_buffer_length: usize,
        "the length of the mark file's error log in bytes, at least 1 MiB and below 2 GiB",
        "1 MiB"
    );

    /// Sets the directory of the node's media driver. The default is the directory of
    /// [`rusteron_client::Context`]: the variable `AERON_DIR`, or Aeron's own default.
    pub fn set_aeron_dir(&mut self, value: impl Into<PathBuf>) -> &mut Self {
        self.aeron_dir = Some(value.into());
        self
    }

    /// Returns the directory of the node's media driver, if it is set.
    pub fn aeron_dir(&self) -> Option<&Path> {
        self.aeron_dir.as_deref()
    }

    /// Sets the Aeron client of the container. The default, `None`, is a client of its own, with a
    /// conductor thread.
    ///
    /// The consensus module ends the node when the container's client closes. With a shared client,
    /// a container that ends is noticed only when the last handle of the client is dropped. A
    /// client without a conductor thread is driven by the container, which then must not block for
    /// longer than the client liveness timeout.
    pub fn set_aeron(&mut self, value: Option<Aeron>) -> &mut Self {
        self.aeron = value;
        self
    }

    setting!(set_cluster_id, cluster_id: i32, "the id of the cluster on its media driver", "0");

    /// Sets the id of this service on its node, from 0 below the consensus module's number of
    /// services, 127 at most. The default is 0.
    pub fn set_service_id(&mut self, value: i32) -> &mut Self {
        self.service_id = value;
        self
    }

    /// Returns the id of this service on its node.
    pub fn service_id(&self) -> i32 {
        self.service_id
    }

    /// Sets the name of the service, which names the container's thread. The default is
    /// `clustered-service`.
    pub fn set_service_name(&mut self, value: impl Into<String>) -> &mut Self {
        self.service_name = value.into();
        self
    }

    /// Returns the name of the service.
    pub fn service_name(&self) -> &str {
        &self.service_name
    }

    setting!(
        set_app_version, app_version: AppVersion,
        "the version of the application. A log or snapshot with another major version ends the container",
        "0.0.1, as the consensus module's"
    );
    setting!(
        set_is_responding_service, is_responding_service: bool,
        "whether the service answers clients. Without answers, no publications to clients are added",
        "true"
    );
    setting!(
        set_error_policy, error_policy: ErrorPolicy,
        "the reaction to an error or panic in a callback",
        "to end the container"
    );

    /// Sets a handler of errors that the container records. The default is none. All errors are
    /// counted, and logged with the crate `log`. Called on the container's thread. A panic in the
    /// handler is logged.
    pub fn set_error_handler(&mut self, value: impl Fn(&str) + Send + Sync + 'static) -> &mut Self {
        self.error_handler = Some(Arc::new(value));
        self
    }

    pub(crate) fn error_handler(&self) -> Option<&ErrorHandler> {
        self.error_handler.as_ref()
    }

    /// Sets the idle strategy of the container. The default is to back off: to spin, then to yield,
    /// then to sleep up to a millisecond.
    pub fn set_idle_strategy(&mut self, value: IdleStrategyKind) -> &mut Self {
        self.idle_strategy = value;
        self
    }

    /// Returns the idle strategy of the container.
    pub fn idle_strategy(&self) -> &IdleStrategyKind {
        &self.idle_strategy
    }

    setting!(
        set_log_fragment_limit, log_fragment_limit: usize,
        "the greatest number of fragments of the log in a duty cycle",
        "50"
    );
    setting!(
        set_cycle_threshold, cycle_threshold: Duration,
        "the duration of a duty cycle beyond which the cycle is counted as slow",
        "100 ms"
    );
    setting!(
        set_snapshot_duration_threshold, snapshot_duration_threshold: Duration,
        "the duration of a snapshot beyond which the snapshot is counted as slow",
        "1 s"
    );
    channel!(
        set_control_channel,
        control_channel,
        "the channel between consensus module and services. The text must be equal everywhere",
        "aeron:ipc?term-length=128k"
    );
    setting!(
        set_service_stream_id, service_stream_id: i32,
        "the stream id of messages to services",
        "104"
    );
    setting!(
        set_consensus_module_stream_id, consensus_module_stream_id: i32,
        "the stream id of messages to the consensus module",
        "105"
    );
    channel!(
        set_snapshot_channel,
        snapshot_channel,
        "the channel on which snapshots are recorded",
        "aeron:ipc?alias=snapshot"
    );
    setting!(
        set_snapshot_stream_id, snapshot_stream_id: i32,
        "the stream id of snapshots",
        "106"
    );
    channel!(
        set_replay_channel,
        replay_channel,
        "the channel on which a snapshot is replayed",
        "aeron:ipc"
    );
    setting!(
        set_replay_stream_id, replay_stream_id: i32,
        "the stream id on which a snapshot is replayed",
        "103"
    );
    channel!(
        set_archive_channel,
        archive_channel,
        "the local control channel of the node's archive, in both directions",
        "aeron:ipc?term-length=64k"
    );
    setting!(
        set_archive_stream_id, archive_stream_id: i32,
        "the stream id of requests to the archive",
        "10"
    );

    /// Checks all settings.
    pub(crate) fn conclude(&self) -> Result<()> {
        if self.service_name.contains('\0') {
            let name = &self.service_name;
            return Err(ClusterError::invalid(format!("service_name={name:?}: has a NUL byte")));
        }
        let in_range = |name: &str, value: i64, min: i64, max: i64| {
            if (min..=max).contains(&value) {
                return Ok(());
            }
            Err(ClusterError::invalid(format!("{name}={value}: from {min} to {max}")))
        };
        in_range("service_id", self.service_id.into(), 0, MAX_SERVICE_ID.into())?;
        let max_cluster_id = i32::MAX / STREAM_IDS_OF_A_CLUSTER - STREAM_IDS_OF_A_CLUSTER;
        in_range("cluster_id", self.cluster_id.into(), 0, max_cluster_id.into())?;
        let fragments = i64::try_from(self.log_fragment_limit).unwrap_or(i64::MAX);
        in_range("log_fragment_limit", fragments, 1, i32::MAX.into())
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
        Ok(Aeron::connect(context)?)
    }

    /// Makes the mark file, if there is a directory for it.
    pub(crate) fn activate_mark_file(&self, aeron: &Aeron) -> Result<Option<MarkFile>> {
        let Some(cluster_dir) = &self.cluster_dir else { return Ok(None) };
        let aeron_dir = aeron.context().dir();
        let cnc = CncFile::open(aeron_dir, Duration::ZERO)?;
        MarkFile::activate(&MarkFileSettings {
            dir: self.mark_file_dir.as_ref().unwrap_or(cluster_dir),
            cluster_dir,
            error_buffer_length: self.error_buffer_length,
            // 0 is refused.
            file_page_size: usize::try_from(cnc.constants().file_page_size).unwrap_or(0),
            cluster_id: self.cluster_id,
            service_id: self.service_id,
            service_name: &self.service_name,
            aeron_dir: &aeron_dir.to_string_lossy(),
            control_channel: &self.control_channel,
            archive_stream_id: self.archive_stream_id,
            service_stream_id: self.service_stream_id,
            consensus_module_stream_id: self.consensus_module_stream_id,
        })
        .map(Some)
    }

    /// Returns a new context of the node's archive: connecting consumes it.
    pub(crate) fn new_archive_context(&self) -> archive::Result<archive::Context> {
        let response_stream_id = STREAM_IDS_OF_A_CLUSTER * self.cluster_id
            + ARCHIVE_RESPONSE_STREAM_ID
            + self.service_id;
        let mut context = archive::Context::new()?;
        context
            .set_control_request_channel(&self.archive_channel)?
            .set_control_request_stream_id(self.archive_stream_id)?
            .set_control_response_channel(&self.archive_channel)?
            .set_control_response_stream_id(response_stream_id)?;
        Ok(context)
    }
}

impl Default for ServiceContext {
    /// As [`new`](Self::new).
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ServiceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceContext")
            .field("aeron_dir", &self.aeron_dir)
            .field("cluster_dir", &self.cluster_dir)
            .field("cluster_id", &self.cluster_id)
            .field("service_id", &self.service_id)
            .field("app_version", &self.app_version)
            .field("error_policy", &self.error_policy)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused() {
        let refused = |change: fn(&mut ServiceContext) -> &mut ServiceContext, text: &str| {
            let mut context = ServiceContext::new();
            context.conclude().expect("the defaults are valid");
            change(&mut context);
            let error = context.conclude().expect_err(text);
            assert!(error.message().starts_with(text), "{error}");
        };
        refused(|x| x.set_service_id(-1), "service_id=-1: from 0 to 127");
        refused(|x| x.set_service_id(128), "service_id=128: ");
        refused(|x| x.set_cluster_id(-1), "cluster_id=-1: ");
        refused(|x| x.set_cluster_id(i32::MAX), "cluster_id=2147483647: ");
        refused(|x| x.set_service_name("a\0b"), "service_name=\"a\\0b\": ");
        refused(|x| x.set_log_fragment_limit(0), "log_fragment_limit=0: ");
    }
}
