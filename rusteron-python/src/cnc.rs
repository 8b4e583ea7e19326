//! The file that a driver shares with its clients and with tools.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pyo3::prelude::*;
use rusteron_client as rust;

use crate::counter::CountersReader;
use crate::error;
use crate::exit;
use crate::values::Seconds;

/// The CnC file of a driver, dead or alive: its counters, its errors and its losses.
///
/// >>> import rusteron
/// >>> with rusteron.MediaDriver.launch_embedded() as driver:
/// ...     cnc = rusteron.CncFile(driver.aeron_dir)
/// ...     print(cnc.is_active(10), cnc.errors())
/// True []
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct CncFile(Arc<rust::CncFile>);

impl From<rust::CncFile> for CncFile {
    fn from(file: rust::CncFile) -> Self {
        Self(Arc::new(file))
    }
}

#[pymethods]
impl CncFile {
    /// Opens the file in a driver's directory. Waits for the file, up to the timeout.
    #[new]
    #[pyo3(signature = (dir, timeout=None))]
    fn new(py: Python<'_>, dir: PathBuf, timeout: Option<Seconds>) -> PyResult<Self> {
        let timeout = timeout.map_or(Duration::ZERO, |timeout| timeout.0);
        exit::detached(py, || rust::CncFile::open(dir, timeout))
            .map(Self::from)
            .map_err(error::client)
    }

    /// The file's path.
    #[getter]
    fn filename(&self) -> PathBuf {
        self.0.filename().to_owned()
    }

    /// The version of the file's format, as three numbers.
    #[getter]
    fn version(&self) -> (u8, u8, u8) {
        let version = self.0.version();
        (version.major, version.minor, version.patch)
    }

    /// The process of the driver.
    #[getter]
    fn pid(&self) -> i64 {
        self.0.pid()
    }

    /// The time at which the driver started, a `datetime.datetime`.
    #[getter]
    fn start_time(&self) -> SystemTime {
        self.0.start_time()
    }

    /// Seconds after which the driver takes a silent client for dead.
    #[getter]
    fn client_liveness_timeout(&self) -> f64 {
        self.0.client_liveness_timeout().as_secs_f64()
    }

    /// Seconds since the driver's last sign of life, or `None` if there is no sign.
    #[getter]
    fn heartbeat_age(&self) -> Option<f64> {
        self.0.heartbeat_age().map(|age| age.as_secs_f64())
    }

    /// Returns whether the driver has shown a sign of life within the timeout.
    fn is_active(&self, timeout: Seconds) -> bool {
        self.0.is_active(timeout.0)
    }

    /// The counters of the driver and its clients.
    #[getter]
    fn counters_reader(&self) -> CountersReader {
        CountersReader::of_file(Arc::clone(&self.0))
    }

    /// Returns the errors that the driver has met.
    fn errors(&self) -> Vec<ErrorLogEntry> {
        self.0.errors().into_iter().map(ErrorLogEntry::from).collect()
    }

    /// Returns the losses that the driver has seen.
    fn loss_report(&self) -> PyResult<Vec<LossReportEntry>> {
        let entries = self.0.loss_report().map_err(error::client)?;
        Ok(entries.into_iter().map(LossReportEntry::from).collect())
    }

    fn __repr__(&self) -> String {
        format!("CncFile({:?})", self.filename())
    }
}

/// An error that a driver has met, once or several times.
#[pyclass(frozen, get_all, module = "rusteron")]
pub(crate) struct ErrorLogEntry {
    observation_count: i32,
    first_observation: SystemTime,
    last_observation: SystemTime,
    text: String,
}

impl From<rust::ErrorLogEntry> for ErrorLogEntry {
    fn from(entry: rust::ErrorLogEntry) -> Self {
        Self {
            observation_count: entry.observation_count,
            first_observation: entry.first_observation,
            last_observation: entry.last_observation,
            text: entry.text,
        }
    }
}

#[pymethods]
impl ErrorLogEntry {
    fn __repr__(&self) -> String {
        format!("ErrorLogEntry(observation_count={}, text={:?})", self.observation_count, self.text)
    }
}

/// The losses of a stream that a driver has seen.
#[pyclass(frozen, get_all, module = "rusteron")]
pub(crate) struct LossReportEntry {
    observation_count: i64,
    total_bytes_lost: i64,
    first_observation: SystemTime,
    last_observation: SystemTime,
    session_id: i32,
    stream_id: i32,
    channel: String,
    source: String,
}

impl From<rust::LossReportEntry> for LossReportEntry {
    fn from(entry: rust::LossReportEntry) -> Self {
        Self {
            observation_count: entry.observation_count,
            total_bytes_lost: entry.total_bytes_lost,
            first_observation: entry.first_observation,
            last_observation: entry.last_observation,
            session_id: entry.session_id,
            stream_id: entry.stream_id,
            channel: entry.channel,
            source: entry.source,
        }
    }
}

#[pymethods]
impl LossReportEntry {
    fn __repr__(&self) -> String {
        format!(
            "LossReportEntry(channel={:?}, stream_id={}, total_bytes_lost={})",
            self.channel, self.stream_id, self.total_bytes_lost
        )
    }
}
