//! The media driver.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use rusteron_client::IdleStrategyKind;
use rusteron_media_driver as rust;
use rusteron_media_driver::{Preset, ThreadingMode};

use crate::cnc::CncFile;
use crate::error;
use crate::settings::{each_setting, set_by_name};
use crate::slot::{self, Close, Owner, Slot, py_bool};
use crate::wait;

/// A media driver in this process, on threads of its own.
///
/// Closing the driver ends its threads. Clients that are made with the driver itself, as in `Aeron(driver)`, keep it
/// open until they are closed or collected; `close()` closes it at once.
///
/// >>> import rusteron
/// >>> with rusteron.MediaDriver.launch_embedded() as driver:
/// ...     print((driver.aeron_dir / "cnc.dat").exists())
/// True
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct MediaDriver {
    slot: Arc<Slot<rust::MediaDriver>>,
    aeron_dir: PathBuf,
}

impl MediaDriver {
    /// What a client of the driver keeps open, and the driver's directory.
    pub(crate) fn owner(&self) -> PyResult<(Owner, &PathBuf)> {
        slot::open(&self.slot).map(|owner| (owner, &self.aeron_dir))
    }

    fn open(
        py: Python<'_>,
        context: rust::DriverContext,
        launch: fn(rust::DriverContext) -> rust::Result<rust::MediaDriver>,
    ) -> PyResult<Self> {
        let driver = wait::interruptible(py, move || launch(context))?.map_err(error::client)?;
        let aeron_dir = driver.aeron_dir().to_owned();
        let slot = slot::close_at_exit(Slot::new("media driver", driver));
        Ok(Self { slot, aeron_dir })
    }
}

#[pymethods]
impl MediaDriver {
    /// Launches a driver in a directory of its own, which is deleted when the driver is closed.
    ///
    /// One thread, shared by all agents, with the idle strategy "backoff", unless a preset or settings say otherwise.
    #[classmethod]
    #[pyo3(signature = (preset=None, **settings))]
    fn launch_embedded(
        cls: &Bound<'_, PyType>,
        preset: Option<&str>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = context(preset)?;
        if preset.is_none() {
            context
                .set_threading_mode(ThreadingMode::Shared)
                .and_then(|context| context.set_shared_idle_strategy(IdleStrategyKind::Backoff))
                .map_err(error::client)?;
        }
        apply(&mut context, settings)?;
        Self::open(cls.py(), context, rust::MediaDriver::launch_embedded_with)
    }

    /// Launches a driver in the directory `dir`, or in Aeron's default directory.
    #[classmethod]
    #[pyo3(signature = (dir=None, preset=None, **settings))]
    fn launch(
        cls: &Bound<'_, PyType>,
        dir: Option<PathBuf>,
        preset: Option<&str>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = context(preset)?;
        if let Some(dir) = dir {
            context.set_dir(dir).map_err(error::client)?;
        }
        apply(&mut context, settings)?;
        Self::open(cls.py(), context, rust::MediaDriver::launch)
    }

    /// The driver's directory, a `pathlib.Path`.
    #[getter]
    fn aeron_dir(&self) -> &PathBuf {
        &self.aeron_dir
    }

    /// True if the driver was closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed()
    }

    /// Opens the driver's CnC file.
    fn cnc_file(&self) -> PyResult<CncFile> {
        self.slot.enter()?.cnc_file().map(CncFile::from).map_err(error::client)
    }

    /// Ends the driver's threads. Does nothing if the driver is closed.
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
        format!(
            "MediaDriver(aeron_dir={:?}, is_closed={})",
            self.aeron_dir,
            py_bool(self.is_closed())
        )
    }
}

fn context(preset: Option<&str>) -> PyResult<rust::DriverContext> {
    match preset {
        Some(name) => name.parse::<Preset>().and_then(rust::DriverContext::with_preset),
        None => rust::DriverContext::new(),
    }
    .map_err(error::client)
}

fn apply(context: &mut rust::DriverContext, settings: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    each_setting(settings, |name, value| {
        rust::for_each_setting!(set_by_name!(context, name, value, error::client))
    })
}
