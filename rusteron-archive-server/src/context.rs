//! The configuration of an archive server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusteron_client::IdleStrategyKind;
use rusteron_core::channel::{ChosenStream, clashes};
use rusteron_core::dir_access::DirAccess;
use rusteron_core::named;
use rusteron_core::settings::read_variables;

use crate::authenticators;
use crate::control::authentication::{Authenticator, Authorisation};
use crate::error::{Result, ServerError};
use crate::java_names;
use crate::segment::checksum::Checksum;

include!(concat!(env!("OUT_DIR"), "/settings.rs"));

/// A setting of an archive server as an environment variable, for programs that check or show a configuration.
///
/// ```
/// use rusteron_archive_server::ArchiveServerContext;
///
/// let context = ArchiveServerContext::new();
/// let length = ArchiveServerContext::setting("AERON_ARCHIVE_SEGMENT_FILE_LENGTH").expect("it");
/// assert!(length.check("64m").is_ok());
/// assert_eq!(length.value(&context).as_deref(), Some("134217728"));
/// ```
pub type Setting = rusteron_core::settings::Setting<ArchiveServerContext>;

type Supplier<T> = Arc<dyn Fn() -> Box<T> + Send + Sync>;

/// The configuration of an archive server: its directory, channels, threads, limits.
///
/// [`new`](Self::new) returns Aeron's defaults, and [`from_env`](Self::from_env) the defaults with the values of the
/// `AERON_ARCHIVE_*` environment variables. The control channel has no default.
///
/// A setter refuses a value that is wrong by itself, and changes nothing then. [`check`](Self::check), with which each
/// launch begins, refuses settings that are missing or do not fit each other.
///
/// ```
/// use rusteron_archive_server::{ArchiveServerContext, ArchiveThreadingMode};
///
/// # fn main() -> rusteron_archive_server::Result<()> {
/// let mut context = ArchiveServerContext::new();
/// context
///     .set_archive_dir("/var/lib/archive")?
///     .set_control_channel("aeron:udp?endpoint=localhost:8010")?
///     .set_threading_mode(ArchiveThreadingMode::Shared)?;
/// assert_eq!(context.segment_file_length(), 128 << 20);
/// context.check()?;
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `io.aeron.archive.Archive.Context`.
#[doc(alias("Archive.Context", "Archive.Configuration"))]
#[derive(Clone)]
pub struct ArchiveServerContext {
    values: Values,
    /// What replaces the authenticator that the settings name.
    authenticator: Option<Supplier<dyn Authenticator>>,
    /// What replaces the authorisation that the settings name.
    authorisation: Option<Supplier<dyn Authorisation>>,
}

impl ArchiveServerContext {
    /// Returns Aeron's defaults. Reads no environment variables.
    pub fn new() -> Self {
        Self { values: Values::default(), authenticator: None, authorisation: None }
    }

    /// Returns Aeron's defaults, changed by the environment variables that the setters name.
    ///
    /// The names are those of Java's properties: `AERON_ARCHIVE_DIR` is `aeron.archive.dir`. Durations are written
    /// `500ms` or `5s`, or in nanoseconds; lengths in bytes, or `64k` or `1m`. An empty variable counts as absent.
    /// [`rusteron_client::load_properties`] sets variables from properties in Java's format.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ServerErrorKind::InvalidArgument), with name, value and permitted values of each
    /// variable that is wrong.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let or_of_driver = |name: &str| set(name).or_else(|| set(setting_of_driver(name)?));
        let mut context = Self::new();
        read_variables(SETTINGS, &mut context, or_of_driver).map_err(invalid)?;
        Ok(context)
    }

    /// Sets the authenticator of clients, in place of the one that
    /// [`authenticator_supplier`](Self::set_authenticator_supplier) names. The function makes one for each launch. The
    /// authenticator runs on the server's conductor, so it must not block.
    ///
    /// # Errors
    /// None.
    #[doc(alias = "authenticatorSupplier")]
    pub fn set_authenticator<A: Authenticator + 'static>(
        &mut self,
        supplier: impl Fn() -> A + Send + Sync + 'static,
    ) -> Result<&mut Self> {
        self.authenticator = Some(Arc::new(move || Box::new(supplier())));
        Ok(self)
    }

    /// Sets the authorisation of requests, in place of the one that
    /// [`authorisation_service_supplier`](Self::set_authorisation_service_supplier) names. The function makes one for
    /// each launch. The authorisation runs on the server's conductor, so it must not block.
    ///
    /// # Errors
    /// None.
    #[doc(alias = "authorisationServiceSupplier")]
    pub fn set_authorisation<A: Authorisation + 'static>(
        &mut self,
        supplier: impl Fn() -> A + Send + Sync + 'static,
    ) -> Result<&mut Self> {
        self.authorisation = Some(Arc::new(move || Box::new(supplier())));
        Ok(self)
    }

    /// Makes the authenticator of a server.
    pub(crate) fn new_authenticator(&self) -> Result<Box<dyn Authenticator>> {
        match &self.authenticator {
            Some(supplier) => Ok(supplier()),
            None => authenticators::authenticator(self.authenticator_supplier()).map_err(invalid),
        }
    }

    /// Makes the authorisation of a server.
    pub(crate) fn new_authorisation(&self) -> Result<Box<dyn Authorisation>> {
        match &self.authorisation {
            Some(supplier) => Ok(supplier()),
            None => {
                let name = self.authorisation_service_supplier();
                authenticators::authorisation(name).map_err(invalid)
            }
        }
    }

    /// Checks the settings. A launch does the same first.
    ///
    /// A launch can fail for other reasons: no media driver, a directory in use, an address in use.
    ///
    /// ```
    /// use rusteron_archive_server::ArchiveServerContext;
    ///
    /// # fn main() -> rusteron_archive_server::Result<()> {
    /// let mut context = ArchiveServerContext::new();
    /// context.set_control_channel_enabled(false)?.set_file_sync_level(1)?;
    /// let error = context.check().unwrap_err();
    /// assert_eq!(
    ///     error.message(),
    ///     "catalog_file_sync_level=0 (AERON_ARCHIVE_CATALOG_FILE_SYNC_LEVEL): is less than \
    ///      file_sync_level=1 (AERON_ARCHIVE_FILE_SYNC_LEVEL)"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ServerErrorKind::InvalidArgument), with all settings that are missing or do not fit
    /// each other.
    pub fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        let (catalog_level, level) = (self.catalog_file_sync_level(), self.file_sync_level());
        if catalog_level < level {
            problems.push(format!(
                "catalog_file_sync_level={catalog_level} (AERON_ARCHIVE_CATALOG_FILE_SYNC_LEVEL): is less than \
                 file_sync_level={level} (AERON_ARCHIVE_FILE_SYNC_LEVEL)"
            ));
        }
        if self.control_channel_enabled() && self.control_channel().is_empty() {
            problems.push(
                "control_channel (AERON_ARCHIVE_CONTROL_CHANNEL): is not set; set it, such as to \
                 aeron:udp?endpoint=localhost:8010, or set control_channel_enabled \
                 (AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED) to false for requests over IPC only"
                    .to_owned(),
            );
        }
        if self.local_control_channel().is_empty() {
            problems.push(
                "local_control_channel (AERON_ARCHIVE_LOCAL_CONTROL_CHANNEL): is not set"
                    .to_owned(),
            );
        }
        if self.recording_events_enabled() && self.recording_events_channel().is_empty() {
            problems.push(
                "recording_events_channel (AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL): is not set, and \
                 recording_events_enabled is true"
                    .to_owned(),
            );
        }
        // The server would take its own messages, or another archive's answers, for requests.
        problems.extend(clashes(&self.streams()));
        problems.extend(self.unreadable_recordings());
        if problems.is_empty() { Ok(()) } else { Err(invalid(problems.join("; "))) }
    }

    /// Refuses directories one of which is deleted with the other. A media driver deletes its
    /// directory at each start.
    pub(crate) fn check_dirs(&self, aeron_dir: &Path) -> Result<()> {
        let absolute = |dir: &Path| dir.canonicalize().or_else(|_| std::path::absolute(dir));
        let archive_dir = self.archive_dir();
        let (Ok(archive), Ok(aeron)) = (absolute(archive_dir), absolute(aeron_dir)) else {
            return Ok(());
        };
        let dirs = format!(
            "archive_dir={} (AERON_ARCHIVE_DIR) and aeron_dir={} (AERON_DIR)",
            archive_dir.display(),
            aeron_dir.display()
        );
        if archive.starts_with(&aeron) {
            return Err(invalid(format!(
                "{dirs}: the media driver would delete the recordings with its directory; move one of them"
            )));
        }
        match self.archive_dir_delete_on_start() && aeron.starts_with(&archive) {
            true => Err(invalid(format!(
                "{dirs}: archive_dir_delete_on_start would delete the media driver's files; move one of them"
            ))),
            false => Ok(()),
        }
    }

    /// Returns the streams of the server itself.
    fn streams(&self) -> Vec<ChosenStream<'_>> {
        let stream = |channel, stream_id| ChosenStream { channel, stream_id };
        let mut streams = vec![
            stream(
                ("local_control_channel", self.local_control_channel()),
                ("local_control_stream_id", self.local_control_stream_id()),
            ),
            stream(
                ("control_response_channel", self.control_response_channel()),
                ("control_response_stream_id", self.control_response_stream_id()),
            ),
        ];
        if self.control_channel_enabled() {
            streams.push(stream(
                ("control_channel", self.control_channel()),
                ("control_stream_id", self.control_stream_id()),
            ));
        }
        if self.recording_events_enabled() {
            streams.push(stream(
                ("recording_events_channel", self.recording_events_channel()),
                ("recording_events_stream_id", self.recording_events_stream_id()),
            ));
        }
        streams
    }

    /// Checks that a recording that the server makes can be replayed.
    fn unreadable_recordings(&self) -> Option<String> {
        let (recorded, replayed) = (self.record_checksum(), self.replay_checksum());
        let is_checked_wrongly = replayed.is_some() && replayed != recorded;
        (is_checked_wrongly && self.max_concurrent_recordings() > 0).then(|| {
            let [recorded, replayed] = [recorded, replayed]
                .map(|checksum| checksum.map_or_else(|| "none".to_owned(), |it| it.to_string()));
            format!(
                "replay_checksum={replayed} (AERON_ARCHIVE_REPLAY_CHECKSUM): would refuse the replay of each recording \
                 that is made with record_checksum={recorded} (AERON_ARCHIVE_RECORD_CHECKSUM); an archive that only \
                 serves older recordings has max_concurrent_recordings=0"
            )
        })
    }
}

/// As [`new`](Self::new).
impl Default for ArchiveServerContext {
    fn default() -> Self {
        Self::new()
    }
}

rusteron_core::impl_debug!(ArchiveServerContext: values);

/// Returns the variable of the media driver from which Aeron takes the default of an archive's.
fn setting_of_driver(variable: &str) -> Option<&'static str> {
    match variable {
        "AERON_ARCHIVE_CONTROL_MTU_LENGTH" => Some("AERON_MTU_LENGTH"),
        "AERON_ARCHIVE_REPLAY_LINGER_TIMEOUT" => Some("AERON_PUBLICATION_LINGER_TIMEOUT"),
        _ => None,
    }
}

fn invalid(message: String) -> ServerError {
    ServerError::invalid(message)
}

/// An empty text is a channel that is not set. What follows the beginning is the media driver's to check: Aeron takes
/// channels that Rusteron's parser refuses.
fn channel(text: &str, beginning: &str) -> std::result::Result<(), String> {
    match text.is_empty() || text.starts_with(beginning) && !text.contains('\0') {
        true => Ok(()),
        false => Err(format!("must begin with {beginning}")),
    }
}

fn udp_channel(text: &str) -> std::result::Result<(), String> {
    channel(text, "aeron:udp")
}

fn ipc_channel(text: &str) -> std::result::Result<(), String> {
    channel(text, "aeron:ipc")
}

fn any_channel(text: &str) -> std::result::Result<(), String> {
    channel(text, "aeron:")
}

named! {
    /// How a server's agents share threads: conductor, recorder and replayer.
    ///
    /// Corresponds to `io.aeron.archive.ArchiveThreadingMode`.
    ArchiveThreadingMode, "a threading mode";
    /// Three threads, one for each agent.
    Dedicated = "DEDICATED",
    /// One thread for all agents.
    Shared = "SHARED",
    /// No thread: the application does all work in a loop of its own.
    Invoker = "INVOKER",
}

#[cfg(test)]
mod tests;
