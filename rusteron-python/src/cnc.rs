//! The file that a driver shares with its clients and with tools, and counters.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pyo3::prelude::*;
use rusteron_client as rust;

use crate::settings::Seconds;
use crate::slot::{Close, OwnedSlot, Scope, py_bool};
use crate::{error, wait};

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
        wait::interruptible(py, move || rust::CncFile::open(dir, timeout))?
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

snapshot! {
    /// An error that a driver has met, once or several times.
    ErrorLogEntry of entry: rust::ErrorLogEntry {
        observation_count: i32 = entry.observation_count,
        first_observation: SystemTime = entry.first_observation,
        last_observation: SystemTime = entry.last_observation,
        text: String = entry.text,
    }
}

#[pymethods]
impl ErrorLogEntry {
    fn __repr__(&self) -> String {
        format!("ErrorLogEntry(observation_count={}, text={:?})", self.observation_count, self.text)
    }
}

snapshot! {
    /// The losses of a stream that a driver has seen.
    LossReportEntry of entry: rust::LossReportEntry {
        observation_count: i64 = entry.observation_count,
        total_bytes_lost: i64 = entry.total_bytes_lost,
        first_observation: SystemTime = entry.first_observation,
        last_observation: SystemTime = entry.last_observation,
        session_id: i32 = entry.session_id,
        stream_id: i32 = entry.stream_id,
        channel: String = entry.channel,
        source: String = entry.source,
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

/// A counter that this client owns, and all processes can read.
///
/// Threads can share a counter. The driver frees it when it is closed.
///
/// >>> import rusteron
/// >>> with rusteron.MediaDriver.launch_embedded() as driver, rusteron.Aeron(driver) as aeron:
/// ...     orders = aeron.add_counter(1001, "orders")
/// ...     orders.value = 5
/// ...     _ = orders.increment()
/// ...     print(aeron.counters_reader.value(orders.counter_id))
/// 6
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct Counter {
    slot: Arc<OwnedSlot<rust::Counter>>,
    /// The number of the counter, for a `CountersReader`.
    #[pyo3(get)]
    counter_id: i32,
    /// The id that the driver knows the counter by.
    #[pyo3(get)]
    registration_id: i64,
}

impl Counter {
    pub(crate) fn new(scope: &Scope, counter: rust::Counter) -> Self {
        let (counter_id, registration_id) = (counter.counter_id(), counter.registration_id());
        Self { slot: scope.own("counter", counter), counter_id, registration_id }
    }
}

#[pymethods]
impl Counter {
    /// The value.
    #[getter]
    fn value(&self) -> PyResult<i64> {
        Ok(self.slot.enter()?.get())
    }

    #[setter]
    fn set_value(&self, value: i64) -> PyResult<()> {
        self.slot.enter()?.set(value);
        Ok(())
    }

    /// Adds 1, and returns the value before.
    fn increment(&self) -> PyResult<i64> {
        Ok(self.slot.enter()?.increment())
    }

    /// Subtracts 1, and returns the value before.
    fn decrement(&self) -> PyResult<i64> {
        Ok(self.slot.enter()?.decrement())
    }

    /// Adds an amount, and returns the value before.
    fn get_and_add(&self, amount: i64) -> PyResult<i64> {
        Ok(self.slot.enter()?.get_and_add(amount))
    }

    /// Sets the value, and returns the value before.
    fn get_and_set(&self, value: i64) -> PyResult<i64> {
        Ok(self.slot.enter()?.get_and_set(value))
    }

    /// Sets the value to `new` if it is `current`, and returns whether it was.
    fn compare_and_set(&self, current: i64, new: i64) -> PyResult<bool> {
        Ok(self.slot.enter()?.compare_exchange(current, new).is_ok())
    }

    /// Sets the value if the proposed one is greater, and returns whether it was.
    fn propose_max(&self, proposed: i64) -> PyResult<bool> {
        Ok(self.slot.enter()?.propose_max(proposed))
    }

    /// True if the counter was closed, by `close()` or with its client.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed() || self.slot.enter().is_ok_and(|counter| counter.is_closed())
    }

    /// Gives the counter back to the driver. Does nothing if the counter is closed.
    fn close(&self) {
        self.slot.close();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!("Counter(counter_id={}, is_closed={})", self.counter_id, py_bool(self.is_closed()))
    }
}

snapshot! {
    /// A counter as it was when it was read.
    CounterSnapshot of counter: rust::CounterSnapshot {
        counter_id: i32 = counter.id,
        type_id: i32 = counter.type_id,
        value: i64 = counter.value,
        label: String = counter.label,
        key: Vec<u8> = counter.key.to_vec(),
        registration_id: i64 = counter.registration_id,
        owner_id: i64 = counter.owner_id,
        reference_id: i64 = counter.reference_id,
    }
}

#[pymethods]
impl CounterSnapshot {
    fn __repr__(&self) -> String {
        format!(
            "CounterSnapshot(counter_id={}, type_id={}, value={}, label={:?})",
            self.counter_id, self.type_id, self.value, self.label
        )
    }
}

enum Source {
    Client(Arc<OwnedSlot<rust::Aeron>>),
    File(Arc<rust::CncFile>),
}

/// Reads the counters of a driver and its clients.
///
/// Made by `Aeron.counters_reader` and `CncFile.counters_reader`. Iteration yields a `CounterSnapshot` for each counter.
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct CountersReader(Source);

impl CountersReader {
    pub(crate) fn of_client(client: Arc<OwnedSlot<rust::Aeron>>) -> Self {
        Self(Source::Client(client))
    }

    pub(crate) fn of_file(file: Arc<rust::CncFile>) -> Self {
        Self(Source::File(file))
    }

    fn read<R>(&self, function: impl FnOnce(rust::CountersReader<'_>) -> R) -> PyResult<R> {
        match &self.0 {
            Source::Client(slot) => Ok(function(slot.enter()?.counters_reader())),
            Source::File(file) => Ok(function(file.counters())),
        }
    }
}

#[pymethods]
impl CountersReader {
    /// Returns a counter, or `None` if the driver has no such counter.
    fn counter(&self, counter_id: i32) -> PyResult<Option<CounterSnapshot>> {
        self.read(|reader| reader.counter(counter_id).map(CounterSnapshot::from))
    }

    /// Returns the value of a counter, or `None` if the driver has no such counter.
    fn value(&self, counter_id: i32) -> PyResult<Option<i64>> {
        self.read(|reader| reader.value(counter_id))
    }

    /// Returns the label of a counter, or `None` if the driver has no such counter.
    fn label(&self, counter_id: i32) -> PyResult<Option<String>> {
        self.read(|reader| reader.label(counter_id))
    }

    /// Returns the number of the counter with this type and registration id, or `None`.
    fn find_by_type_id_and_registration_id(
        &self,
        type_id: i32,
        registration_id: i64,
    ) -> PyResult<Option<i32>> {
        self.read(|reader| reader.find_by_type_id_and_registration_id(type_id, registration_id))
    }

    /// Greatest number that a counter can have.
    #[getter]
    fn max_counter_id(&self) -> PyResult<i32> {
        self.read(|reader| reader.max_counter_id())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyIterator>> {
        let counters =
            self.read(|reader| reader.iter().map(CounterSnapshot::from).collect::<Vec<_>>())?;
        counters.into_pyobject(py)?.try_iter()
    }
}
