//! The archive server.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use rusteron_archive_server as rust;
use rusteron_archive_server::{ArchiveServerContext, ArchiveThreadingMode};

use crate::driver::MediaDriver;
use crate::settings::{each_setting, set_by_name};
use crate::slot::{self, Close, Owned, OwnedSlot, Owner, Slot, py_bool};
use crate::{error, exit, wait};

/// An archive in this process, without Java: it records streams to files and replays them, on threads of its own.
///
/// Clients send requests on `control_channel`, through `Archive`. The server refuses to truncate and purge recordings.
/// Closing it ends recordings at the positions that they have; the next server of the directory has them all. Clients that
/// are made with the server itself, as in `Aeron(server)`, keep it open until they are closed or collected; `close()`
/// closes it at once.
///
/// >>> import rusteron
/// >>> with rusteron.ArchiveServer.launch_embedded() as server, rusteron.Aeron(server) as aeron:
/// ...     archive = rusteron.Archive.connect(
/// ...         aeron, control_request_channel=server.control_channel, control_response_channel="aeron:ipc")
/// ...     publication, recording_id = archive.add_recorded_publication("aeron:ipc", 1001)
/// ...     position = publication.offer(b"hello", timeout=10)
/// ...     print(next(archive.replay(recording_id, "aeron:ipc", 1002)))
/// b'hello'
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct ArchiveServer {
    slot: Arc<OwnedSlot<rust::ArchiveServer>>,
    /// The id of the archive in the labels and keys of its counters.
    #[pyo3(get)]
    archive_id: i64,
    /// The channel on which clients send requests: over UDP, or over IPC if `control_channel_enabled` is False. An
    /// endpoint with port 0 has the actual port.
    #[pyo3(get)]
    control_channel: String,
    /// The directory of the recordings, a `pathlib.Path`.
    #[pyo3(get)]
    archive_dir: PathBuf,
    /// The directory of the media driver, a `pathlib.Path`.
    #[pyo3(get)]
    aeron_dir: PathBuf,
}

impl ArchiveServer {
    /// What a client of the server's driver keeps open, and the driver's directory.
    pub(crate) fn owner(&self) -> PyResult<(Owner, &PathBuf)> {
        slot::open(&self.slot).map(|owner| (owner, &self.aeron_dir))
    }

    fn open(
        py: Python<'_>,
        context: ArchiveServerContext,
        driver: Option<Owner>,
        launch: fn(ArchiveServerContext) -> rust::Result<rust::ArchiveServer>,
    ) -> PyResult<Self> {
        if context.threading_mode() == ArchiveThreadingMode::Invoker {
            let text = "threading_mode=INVOKER (AERON_ARCHIVE_THREADING_MODE): must be DEDICATED or SHARED in Python";
            return Err(error::invalid(text));
        }
        let server = wait::interruptible(py, move || launch(context))?.map_err(error::server)?;
        Ok(Self {
            archive_id: server.archive_id().get(),
            control_channel: server.control_channel().to_owned(),
            archive_dir: server.archive_dir().to_owned(),
            aeron_dir: server.aeron_dir().to_owned(),
            slot: slot::close_at_exit(Slot::new(
                "archive server",
                Owned::from_parts(server, driver),
            )),
        })
    }
}

#[pymethods]
impl ArchiveServer {
    /// Launches a server with a media driver of its own, for tests. When the server is closed, its directories are
    /// deleted, and the recordings with them.
    ///
    /// One thread and the idle strategy "backoff", and requests over IPC only, unless settings say otherwise: with
    /// `control_channel`, the server takes requests over UDP as well. Reads no variables `AERON_ARCHIVE_*`.
    #[classmethod]
    #[pyo3(signature = (**settings))]
    fn launch_embedded(
        cls: &Bound<'_, PyType>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = ArchiveServerContext::new();
        context.set_threading_mode(ArchiveThreadingMode::Shared).map_err(error::server)?;
        apply(&mut context, settings)?;
        Self::open(cls.py(), context, None, rust::ArchiveServer::launch_embedded_with)
    }

    /// Launches a server in the directory `archive_dir`, which is made if it is missing, or in Aeron's default directory
    /// `aeron-archive`.
    ///
    /// Its media driver is a `MediaDriver` of this process, or the driver in `aeron_dir`, or that in Aeron's default
    /// directory. `control_channel` is the UDP channel of requests; without one, `control_channel_enabled` must be False.
    /// Environment variables `AERON_ARCHIVE_*` are the defaults of the settings.
    #[classmethod]
    #[pyo3(signature = (archive_dir=None, driver=None, *, aeron_dir=None, **settings))]
    fn launch(
        cls: &Bound<'_, PyType>,
        archive_dir: Option<PathBuf>,
        driver: Option<&Bound<'_, MediaDriver>>,
        aeron_dir: Option<PathBuf>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = ArchiveServerContext::from_env().map_err(error::server)?;
        if let Some(dir) = archive_dir {
            context.set_archive_dir(dir).map_err(error::server)?;
        }
        let mut owner = None;
        match (driver, aeron_dir) {
            (Some(_), Some(_)) => return Err(error::two_drivers("aeron_dir")),
            (Some(driver), None) => {
                let (driver, dir) = driver.get().owner()?;
                context.set_aeron_dir(dir).map_err(error::server)?;
                owner = Some(driver);
            }
            (None, Some(dir)) => _ = context.set_aeron_dir(dir).map_err(error::server)?,
            (None, None) => {}
        }
        apply(&mut context, settings)?;
        Self::open(cls.py(), context, owner, rust::ArchiveServer::launch)
    }

    /// True if the server has ended by itself, because its media driver or one of its threads has ended. `close()` raises
    /// the error.
    #[getter]
    fn has_ended(&self) -> PyResult<bool> {
        Ok(self.slot.enter()?.has_ended())
    }

    /// True if the server was closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed()
    }

    /// Ends recordings at the positions that they have, and the server's threads. Does nothing if the server is closed.
    ///
    /// Raises the error that has ended the server before, such as the end of its media driver.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.slot.is_closed() {
            return Ok(());
        }
        let (server, driver) = self.slot.take()?.into_parts();
        self.slot.close();
        exit::detached(py, move || {
            let closed = server.close();
            drop(driver);
            closed
        })
        .map_err(error::server)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// Closes the server. An exception of the block is more telling than that of the end.
    #[pyo3(signature = (exception, *_more))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exception: &Bound<'_, PyAny>,
        _more: &Bound<'_, PyTuple>,
    ) -> PyResult<()> {
        let closed = self.close(py);
        if exception.is_none() { closed } else { Ok(()) }
    }

    fn __repr__(&self) -> String {
        format!(
            "ArchiveServer(archive_dir={:?}, aeron_dir={:?}, control_channel={:?}, is_closed={})",
            self.archive_dir,
            self.aeron_dir,
            self.control_channel,
            py_bool(self.is_closed())
        )
    }
}

fn apply(context: &mut ArchiveServerContext, settings: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    each_setting(settings, |name, value| {
        rust::for_each_setting!(set_by_name!(context, name, value, error::server))
    })
}
