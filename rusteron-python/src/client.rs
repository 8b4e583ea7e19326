//! The client.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rusteron_client as rust;
use rusteron_client::Resource;

use crate::buffer::Payload;
use crate::channel_uri::Channel;
use crate::cnc::{Counter, CountersReader};
use crate::driver::MediaDriver;
use crate::error;
use crate::publication::{ExclusivePublication, Publication};
use crate::server::ArchiveServer;
use crate::settings::{each_setting, set_by_name};
use crate::slot::{Close, Owned, OwnedSlot, Scope, Slot, py_bool};
use crate::subscription::Subscription;
use crate::wait;

/// Most recent errors that are kept for `Aeron.errors()`.
const MAX_ERRORS: usize = 100;

type Errors = Arc<Mutex<VecDeque<rust::Error>>>;

/// A client of a media driver.
///
/// Connects to the driver in `dir`, to a `MediaDriver` or the driver of an `ArchiveServer` of this process, or to the driver
/// in Aeron's default directory.
/// Threads can share a client. Closing the client closes its publications, subscriptions, counters and archive sessions.
///
/// >>> import rusteron
/// >>> with rusteron.MediaDriver.launch_embedded() as driver, rusteron.Aeron(driver) as aeron:
/// ...     subscription = aeron.add_subscription("aeron:ipc", 1001)
/// ...     publication = aeron.add_publication("aeron:ipc", 1001)
/// ...     position = publication.offer(b"hello", timeout=10)
/// ...     print(next(subscription))
/// b'hello'
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct Aeron {
    slot: Arc<OwnedSlot<rust::Aeron>>,
    scope: Scope,
    errors: Errors,
}

impl Aeron {
    /// The Rust handle. A caller that waits releases this slot by taking the handle only.
    pub(crate) fn handle(&self) -> PyResult<rust::Aeron> {
        Ok((**self.slot.enter()?).clone())
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Waits for a registration without the GIL.
    fn added<R: Resource + Send>(
        py: Python<'_>,
        registration: rust::Result<rust::Registration<R>>,
    ) -> PyResult<R>
    where
        rust::Registration<R>: Send,
    {
        let mut registration = registration.map_err(error::client)?;
        wait::outcome(py, || registration.poll(), error::client)
    }
}

#[pymethods]
impl Aeron {
    /// Connects; waits for the driver, up to the driver timeout.
    #[new]
    #[pyo3(signature = (driver=None, *, dir=None, **settings))]
    fn new(
        py: Python<'_>,
        driver: Option<&Bound<'_, PyAny>>,
        dir: Option<PathBuf>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = rust::Context::new().map_err(error::client)?;
        let mut owner = None;
        match (driver, dir) {
            (Some(_), Some(_)) => {
                return Err(error::two_drivers("dir"));
            }
            (Some(driver), None) => {
                let (open, dir) = if let Ok(driver) = driver.cast::<MediaDriver>() {
                    driver.get().owner()?
                } else if let Ok(server) = driver.cast::<ArchiveServer>() {
                    server.get().owner()?
                } else {
                    return Err(PyTypeError::new_err(
                        "driver: must be a MediaDriver or an ArchiveServer; pass a directory as dir=...",
                    ));
                };
                context.set_dir(dir).map_err(error::client)?;
                owner = Some(open);
            }
            (None, Some(dir)) => {
                context.set_dir(dir).map_err(error::client)?;
            }
            (None, None) => {}
        }
        each_setting(settings, |name, value| {
            let context = &mut context;
            rust::for_each_setting!(set_by_name!(context, name, value, error::client))
        })?;
        let errors = Errors::default();
        let log = Arc::clone(&errors);
        context
            .set_error_handler(move |error| {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                if log.len() == MAX_ERRORS {
                    log.pop_front();
                }
                log.push_back(error.clone());
            })
            .map_err(error::client)?;
        let mut connecting = rust::Aeron::async_connect(context).map_err(error::client)?;
        let aeron = wait::outcome(py, || connecting.poll(), error::client)?;
        let scope = Scope::new(owner.clone());
        let slot = Slot::new("client", Owned::from_parts(aeron, owner));
        Ok(Self { slot, scope, errors })
    }

    /// Connects, as `Aeron(...)` does.
    #[staticmethod]
    #[pyo3(signature = (driver=None, *, dir=None, **settings))]
    fn connect(
        py: Python<'_>,
        driver: Option<&Bound<'_, PyAny>>,
        dir: Option<PathBuf>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::new(py, driver, dir, settings)
    }

    /// Adds a publication, which threads can share. Waits for the driver.
    fn add_publication(
        &self,
        py: Python<'_>,
        channel: Channel,
        stream_id: i32,
    ) -> PyResult<Publication> {
        let added = Self::added(py, self.handle()?.async_add_publication(&*channel, stream_id))?;
        Ok(Publication::new(&self.scope, added))
    }

    /// Adds a publication with a log buffer of its own, for one publisher at a time. Waits for the driver.
    fn add_exclusive_publication(
        &self,
        py: Python<'_>,
        channel: Channel,
        stream_id: i32,
    ) -> PyResult<Py<ExclusivePublication>> {
        let added =
            Self::added(py, self.handle()?.async_add_exclusive_publication(&*channel, stream_id))?;
        ExclusivePublication::new(py, &self.scope, added)
    }

    /// Adds a subscription. Waits for the driver.
    fn add_subscription(
        &self,
        py: Python<'_>,
        channel: Channel,
        stream_id: i32,
    ) -> PyResult<Subscription> {
        let added = Self::added(py, self.handle()?.async_add_subscription(&*channel, stream_id))?;
        Ok(Subscription::new(&self.scope, added))
    }

    /// Adds a counter, which all processes can read. Waits for the driver.
    #[pyo3(signature = (type_id, label, key=None))]
    fn add_counter(
        &self,
        py: Python<'_>,
        type_id: i32,
        label: &str,
        key: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Counter> {
        let key = key.map(Payload::of).transpose()?;
        let key = key.as_ref().map_or(&[][..], Payload::bytes);
        let added = Self::added(py, self.handle()?.async_add_counter(type_id, key, label))?;
        Ok(Counter::new(&self.scope, added))
    }

    /// The counters of the driver and of all its clients.
    #[getter]
    fn counters_reader(&self) -> PyResult<CountersReader> {
        drop(self.slot.enter()?);
        Ok(CountersReader::of_client(Arc::clone(&self.slot)))
    }

    /// Takes the errors that the client met in the background, the oldest first, 100 at most.
    fn errors(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.slot.check_process()?;
        let errors =
            std::mem::take(&mut *self.errors.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(errors.into_iter().map(|error| error::client(error).into_value(py).into_any()).collect())
    }

    /// Asks the driver for a session id that no publication of the stream uses. Waits for the driver.
    fn next_session_id(&self, py: Python<'_>, stream_id: i32) -> PyResult<i32> {
        let aeron = self.handle()?;
        wait::interruptible(py, move || aeron.next_session_id(stream_id))?.map_err(error::client)
    }

    /// Returns a number that is unique among all clients of the driver.
    fn next_correlation_id(&self) -> PyResult<i64> {
        Ok(self.slot.enter()?.next_correlation_id())
    }

    /// The id that the driver knows this client by.
    #[getter]
    fn client_id(&self) -> PyResult<i64> {
        Ok(self.slot.enter()?.client_id())
    }

    /// True if the client was closed, by `close()` or by a fatal error such as a dead driver.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed() || self.slot.enter().is_ok_and(|aeron| aeron.is_closed())
    }

    /// Why the client is closed; ``None`` if it is open.
    #[getter]
    fn close_cause(&self) -> Option<String> {
        if self.slot.is_closed() {
            return Some("close() was called".to_owned());
        }
        self.slot.enter().ok()?.close_cause().map(|cause| cause.to_string())
    }

    /// Closes the client and all its handles. Does nothing if the client is closed.
    fn close(&self) {
        self.scope.close();
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
        format!("Aeron(is_closed={})", py_bool(self.is_closed()))
    }
}
