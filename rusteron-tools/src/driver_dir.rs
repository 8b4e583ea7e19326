//! The directory of a media driver, and the state of the driver.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rusteron_client::{CncFile, ErrorKind, SystemCounter};
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::text;

/// The directory of a media driver. The driver may be missing.
#[derive(Debug)]
pub(crate) struct DriverDir {
    pub(crate) path: PathBuf,
    /// The age of the heartbeat after which the driver counts as dead.
    pub(crate) driver_timeout: Duration,
}

/// The state of a driver according to its files.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DriverStatus {
    /// Path, with replacements for bytes that are not UTF-8.
    pub(crate) dir: String,
    pub(crate) state: DriverState,
    /// `None` if no driver has been in the directory.
    #[serde(flatten)]
    pub(crate) about: Option<DriverAbout>,
}

/// The facts about a driver that is or has been in the directory.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DriverAbout {
    pub(crate) pid: i64,
    pub(crate) aeron_version: Option<String>,
    pub(crate) protocol_version: String,
    #[serde(serialize_with = "text::serialize_time")]
    pub(crate) start_time: SystemTime,
    pub(crate) heartbeat_age_ms: Option<u64>,
    pub(crate) client_liveness_timeout_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DriverState {
    /// The heartbeat is not older than the driver timeout.
    Alive,
    /// The process has ended without a word, or the heartbeat is older than the driver timeout.
    Dead,
    /// The driver has ended in good order.
    Ended,
    /// No driver has been in the directory, or a driver is just starting.
    Absent,
}

impl DriverDir {
    /// Copies the driver's file, or returns `None` if there is no complete file. Fails if the file cannot be read.
    pub(crate) fn find(&self) -> Result<Option<CncFile>, Failure> {
        // A driver may still be writing a file that exists.
        const DEADLINE: Duration = Duration::from_secs(1);
        let is_absent = matches!(self.path.join("cnc.dat").try_exists(), Ok(false));
        // A mapping of a file that another process shortens would end this one by SIGBUS.
        match CncFile::read(&self.path, if is_absent { Duration::ZERO } else { DEADLINE }) {
            Ok(cnc) => Ok(Some(cnc)),
            Err(error) if error.kind() == ErrorKind::DriverTimeout => Ok(None),
            Err(error) => Err(Failure::run(self.path.display(), error)),
        }
    }

    /// Returns the driver's file.
    pub(crate) fn open(&self) -> Result<CncFile, Failure> {
        self.find()?.ok_or_else(|| {
            let dir = self.path.display();
            Failure::Run(format!("no media driver in {dir}: there is no complete cnc.dat"))
        })
    }

    /// Returns the driver's status according to its file, if there is a file.
    pub(crate) fn status(&self, cnc: Option<&CncFile>) -> DriverStatus {
        let heartbeat_age = cnc.and_then(CncFile::heartbeat_age);
        let state = match (cnc, heartbeat_age) {
            (None, _) => DriverState::Absent,
            (Some(cnc), _) if cnc.has_died() => DriverState::Dead,
            (_, None) => DriverState::Ended,
            (_, Some(age)) if age <= self.driver_timeout => DriverState::Alive,
            _ => DriverState::Dead,
        };
        let about = cnc.map(|cnc| DriverAbout {
            pid: cnc.pid(),
            aeron_version: SystemCounter::AeronVersion
                .read(&cnc.counters())
                .map(text::semantic_version),
            protocol_version: cnc.version().to_string(),
            start_time: cnc.start_time(),
            heartbeat_age_ms: heartbeat_age.map(text::millis),
            client_liveness_timeout_ms: text::millis(cnc.client_liveness_timeout()),
        });
        DriverStatus { dir: self.path.to_string_lossy().into_owned(), state, about }
    }
}

impl DriverStatus {
    /// Returns the state in a few words.
    pub(crate) fn state_text(&self) -> String {
        let age = self.about.as_ref().and_then(|about| about.heartbeat_age_ms);
        let is_known = age.is_some();
        let age = text::duration(Duration::from_millis(age.unwrap_or(0)));
        match self.state {
            DriverState::Alive => format!("alive, heartbeat {age} ago"),
            DriverState::Dead if is_known => format!("dead, silent for {age}"),
            DriverState::Dead => "dead".to_owned(),
            DriverState::Ended => "ended in good order".to_owned(),
            DriverState::Absent => "no driver".to_owned(),
        }
    }

    /// Returns directory, state and process in one line.
    pub(crate) fn line(&self) -> String {
        let dir = text::printable(&self.dir);
        let state = self.state_text();
        match &self.about {
            Some(about) => format!("{dir}: {state}; process {}", about.pid),
            None => format!("{dir}: {state}"),
        }
    }
}
