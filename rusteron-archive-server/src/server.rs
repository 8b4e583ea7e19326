//! A running archive server.

use std::fmt;
use std::path::{Path, PathBuf};

use rusteron_client::{Error, ErrorKind};
use rusteron_core::agent::{
    AgentError, AgentInvoker, AgentRunner, ErrorAction, RunnerError, ShutdownSignal,
};
#[cfg(feature = "driver")]
use rusteron_core::{dir_access::DirAccess, ffi::Process, own_dirs};
#[cfg(feature = "driver")]
use rusteron_media_driver::MediaDriver;

use crate::context::{ArchiveServerContext, ArchiveThreadingMode};
use crate::error::{Result, ServerError, ServerErrorKind};
use crate::ids::ArchiveId;
#[cfg(feature = "driver")]
use crate::mark_file::Lock;
use crate::network::{AgentOnThread, ConductorAgent, Started, start};

/// An archive: it records streams to files and replays them, as clients ask for it, until it is dropped.
///
/// Clients of Java, C and Rust use it as they use Aeron's own archive. They send requests on its control channel over
/// UDP, or over IPC if they have the same media driver.
///
/// # Threads
/// By default the server has three threads: conductor, recorder and replayer. With
/// [`Shared`](ArchiveThreadingMode::Shared), one thread runs all of them. With
/// [`Invoker`](ArchiveThreadingMode::Invoker) the server has no thread, and the caller's loop runs it with
/// [`do_work`](Self::do_work). A server can be moved between threads.
///
/// With a [`file_sync_level`](ArchiveServerContext::file_sync_level) above 0, several recordings
/// are synced at once, each on a thread of its own. The name of a host in a client's response
/// channel is resolved on a thread that ends with the answer, of which there are at most 16.
///
/// # End
/// Dropping the server or [`close`](Self::close) ends recordings at the positions that they have, notes these in the
/// catalog, and ends replays and sessions. Blocks until the threads have ended, which takes a turn of each and a sleep of
/// its idle strategy.
///
/// A server also ends when its media driver ends or takes it for dead, and when one of its threads fails. Recordings get
/// their stop positions then, too. [`has_ended`](Self::has_ended) tells it, and `close` returns the error.
///
/// A process that is killed leaves recordings without a stop position. The next server of the directory finds where they
/// end, and starts at once. With an [`archive_id`](ArchiveServerContext::archive_id) of the settings, it first waits until
/// a media driver that lives on has freed the id, which takes up to 1 s by default.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rusteron_archive_server::{ArchiveServer, ArchiveServerContext};
/// use rusteron_media_driver::MediaDriver;
///
/// # let dir = tempfile::tempdir()?;
/// let driver = MediaDriver::launch_embedded()?;
/// let mut context = ArchiveServerContext::new();
/// context
///     .set_aeron_dir(driver.aeron_dir())?
///     .set_archive_dir(dir.path().join("archive"))?
///     .set_control_channel("aeron:udp?endpoint=localhost:0")?;
/// let server = ArchiveServer::launch(context)?;
/// println!("clients connect to {}", server.control_channel());
/// server.close()?;
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `io.aeron.archive.Archive`.
#[doc(alias = "io.aeron.archive.Archive")]
#[must_use = "the server ends when this is dropped"]
pub struct ArchiveServer {
    agents: Agents,
    archive_id: ArchiveId,
    control_channel: String,
    archive_dir: PathBuf,
    aeron_dir: PathBuf,
    /// After the agents: they end in order only while the driver runs.
    #[cfg(feature = "driver")]
    driver: Option<MediaDriver>,
    #[cfg(feature = "driver")]
    _own_dir: Option<OwnDir>,
}

enum Agents {
    Thread(AgentRunner),
    Invoker(Box<AgentInvoker<AgentOnThread<ConductorAgent>>>),
}

impl ArchiveServer {
    /// Launches a server in the context's directory, on the media driver of the context's
    /// [`aeron_dir`](ArchiveServerContext::aeron_dir).
    ///
    /// Blocks until the media driver has answered, for up to twice the driver timeout, and until the ends of recordings
    /// that a killed server has left are found. That reads the last segment file of each, and without syncs after a failure
    /// of the machine all that was recorded in the last ten minutes. The server takes requests when
    /// this returns. A media driver in the caller's own loop cannot answer meanwhile.
    ///
    /// # Errors
    /// - [`InvalidArgument`](ServerErrorKind::InvalidArgument): settings are missing, or do not fit each other;
    /// - [`ActiveArchive`](ServerErrorKind::ActiveArchive): another archive uses the directory, or has the same id on the
    ///   media driver;
    /// - [`InvalidMarkFile`](ServerErrorKind::InvalidMarkFile), [`InvalidCatalog`](ServerErrorKind::InvalidCatalog) or
    ///   [`InvalidRecording`](ServerErrorKind::InvalidRecording): a file is damaged or of another version. Nothing has
    ///   been changed in it;
    /// - [`StorageSpace`](ServerErrorKind::StorageSpace) or [`Io`](ServerErrorKind::Io): a file cannot be made, read or
    ///   written;
    /// - [`Client`](ServerErrorKind::Client): no media driver runs, an address is in use, or a channel is not valid;
    /// - [`Client`](ServerErrorKind::Client) with [`ErrorKind::Io`](rusteron_client::ErrorKind::Io): the operating system
    ///   refuses another thread.
    pub fn launch(context: ArchiveServerContext) -> Result<Self> {
        let shutdown = ShutdownSignal::new();
        let Started { agent, archive_id, control_channel, archive_dir, aeron_dir } =
            start(&context, &shutdown)?;
        let agents = match context.threading_mode() {
            ArchiveThreadingMode::Invoker => {
                let invoker =
                    AgentInvoker::start(agent).map_err(|error| of_agent(&error, &aeron_dir))?;
                Agents::Invoker(Box::new(invoker))
            }
            ArchiveThreadingMode::Dedicated | ArchiveThreadingMode::Shared => {
                let dir = aeron_dir.clone();
                let builder = AgentRunner::builder(agent)
                    .idle_strategy(context.idle_strategy().new_strategy())
                    .shutdown_signal(shutdown)
                    .on_error(move |error| {
                        log::error!("{}", of_agent(error, &dir));
                        ErrorAction::Stop
                    });
                Agents::Thread(builder.start()?)
            }
        };
        Ok(Self {
            agents,
            archive_id,
            control_channel,
            archive_dir,
            aeron_dir,
            #[cfg(feature = "driver")]
            driver: None,
            #[cfg(feature = "driver")]
            _own_dir: None,
        })
    }

    /// Launches a server with an embedded media driver, in directories of their own, for tests and small services. Both
    /// directories are deleted with the server, and the recordings with them.
    ///
    /// The recordings are among the temporary files. Clients find the driver by
    /// [`aeron_dir`](Self::aeron_dir), and send requests over IPC on
    /// [`control_channel`](Self::control_channel), stream 10. The server has one thread, and so has
    /// the driver; both sleep for up to 1 ms when idle. A process that ends without dropping the
    /// server leaves the directories behind. The next launch by the same user deletes them, on
    /// Linux, if no process can be using them.
    ///
    /// ```
    /// use rusteron_archive_server::ArchiveServer;
    ///
    /// # fn main() -> rusteron_archive_server::Result<()> {
    /// let server = ArchiveServer::launch_embedded()?;
    /// assert_eq!(server.control_channel(), "aeron:ipc?term-length=64k");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`launch`](Self::launch), and as for [`MediaDriver::launch`].
    #[cfg(feature = "driver")]
    #[cfg_attr(docsrs, doc(cfg(feature = "driver")))]
    pub fn launch_embedded() -> Result<Self> {
        let mut context = ArchiveServerContext::new();
        context.set_threading_mode(ArchiveThreadingMode::Shared)?;
        Self::launch_embedded_with(context)
    }

    /// Launches a server as [`launch_embedded`](Self::launch_embedded) does, with other settings. The context's
    /// directories [`archive_dir`](ArchiveServerContext::archive_dir) and
    /// [`aeron_dir`](ArchiveServerContext::aeron_dir) have no effect. Requests over the network are enabled if the
    /// context has a [`control_channel`](ArchiveServerContext::control_channel) for them.
    ///
    /// # Errors
    /// As for [`launch_embedded`](Self::launch_embedded).
    #[cfg(feature = "driver")]
    #[cfg_attr(docsrs, doc(cfg(feature = "driver")))]
    pub fn launch_embedded_with(mut context: ArchiveServerContext) -> Result<Self> {
        let own_dir = OwnDir::new()?;
        context.set_archive_dir(&own_dir.dir)?;
        if context.control_channel().is_empty() {
            context.set_control_channel_enabled(false)?;
        }
        let mut server = Self::launch_with_driver(MediaDriver::launch_embedded()?, context)?;
        server._own_dir = Some(own_dir);
        Ok(server)
    }

    /// Launches a server on a media driver of this process, which ends with the server. The context's
    /// [`aeron_dir`](ArchiveServerContext::aeron_dir) has no effect.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch). The driver has ended then.
    #[cfg(feature = "driver")]
    #[cfg_attr(docsrs, doc(cfg(feature = "driver")))]
    pub fn launch_with_driver(
        driver: MediaDriver,
        mut context: ArchiveServerContext,
    ) -> Result<Self> {
        context.set_aeron_dir(driver.aeron_dir())?;
        let mut server = Self::launch(context)?;
        server.driver = Some(driver);
        Ok(server)
    }

    /// Runs one turn of a server without threads, and returns the amount of work: with 0, the caller idles. Does not
    /// block, except for reads and writes of files.
    ///
    /// The interval between calls must stay well below the media driver's client liveness timeout, 10 s by default.
    /// Recordings hold up their publishers meanwhile.
    ///
    /// # Errors
    /// - [`InvalidArgument`](ServerErrorKind::InvalidArgument): the server has threads;
    /// - others: the server cannot go on. [`close`](Self::close) it.
    pub fn do_work(&mut self) -> Result<usize> {
        match &mut self.agents {
            Agents::Invoker(invoker) => {
                invoker.invoke().map_err(|error| of_agent(&error, &self.aeron_dir))
            }
            Agents::Thread(_) => Err(ServerError::invalid(
                "threading_mode: the server has threads; INVOKER makes one for the caller's loop",
            )),
        }
    }

    /// Returns whether the server has ended by itself, because of an error that the log has, and that
    /// [`close`](Self::close) returns. Always false without threads: [`do_work`](Self::do_work) returns the error.
    pub fn has_ended(&self) -> bool {
        match &self.agents {
            Agents::Thread(runner) => runner.is_finished(),
            Agents::Invoker(_) => false,
        }
    }

    /// Returns the id of the archive in the keys and labels of its counters.
    pub fn archive_id(&self) -> ArchiveId {
        self.archive_id
    }

    /// Returns the channel on which clients send requests: over UDP, or over IPC if
    /// [`control_channel_enabled`](ArchiveServerContext::control_channel_enabled) is false. An endpoint with port 0 has
    /// the actual port.
    pub fn control_channel(&self) -> &str {
        &self.control_channel
    }

    /// Returns the directory of the media driver.
    pub fn aeron_dir(&self) -> &Path {
        &self.aeron_dir
    }

    /// Returns the directory of the recordings: an absolute path.
    pub fn archive_dir(&self) -> &Path {
        &self.archive_dir
    }

    /// Ends the server as dropping it does, and returns the error; a drop logs the error.
    ///
    /// # Errors
    /// The error that has ended the server, or that of its end:
    /// - [`Client`](ServerErrorKind::Client): the media driver has ended, or has taken the server for dead;
    /// - [`ThreadFailed`](ServerErrorKind::ThreadFailed): a thread has panicked.
    pub fn close(self) -> Result<()> {
        let dir = &self.aeron_dir;
        let closed = match self.agents {
            Agents::Thread(runner) => runner.close().map_err(|error| of_runner(&error, dir)),
            Agents::Invoker(invoker) => invoker.close().map_err(|error| of_agent(&error, dir)),
        };
        #[cfg(feature = "driver")]
        let closed = closed.and(self.driver.map_or(Ok(()), MediaDriver::close).map_err(Into::into));
        closed
    }
}

fn of_runner(error: &RunnerError, aeron_dir: &Path) -> ServerError {
    match error {
        RunnerError::Failed(error) => of_agent(error, aeron_dir),
        _ => ServerError::new(ServerErrorKind::ThreadFailed, error.to_string()),
    }
}

fn of_agent(error: &AgentError, aeron_dir: &Path) -> ServerError {
    let Some(cause) = error.downcast_ref::<Error>() else {
        return ServerError::new(ServerErrorKind::ThreadFailed, error.to_string());
    };
    let mut text = error.to_string();
    if matches!(cause.kind(), ErrorKind::DriverTimeout | ErrorKind::ClientClosed) {
        let dir = aeron_dir.display();
        text += &format!(": start the archive again when a media driver runs in {dir}");
    }
    ServerError::new(ServerErrorKind::Client(cause.kind()), text)
}

impl fmt::Debug for ArchiveServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveServer")
            .field("archive_id", &self.archive_id)
            .field("control_channel", &self.control_channel)
            .field("archive_dir", &self.archive_dir)
            .field("aeron_dir", &self.aeron_dir)
            .field("has_ended", &self.has_ended())
            .finish_non_exhaustive()
    }
}

/// A directory among the temporary files that no other archive has. It is deleted when this is dropped, except in a forked
/// child, whose parent uses it.
///
/// It is locked until then. If its process is killed, the operating system takes the lock away, and
/// the next process of the same user that makes such a directory deletes it.
#[cfg(feature = "driver")]
struct OwnDir {
    dir: PathBuf,
    process: Process,
    /// Dropped after the directory is deleted.
    _lock: Lock,
}

#[cfg(feature = "driver")]
impl OwnDir {
    /// The beginning of the names. Directories of this name have been locked by their process.
    const PREFIX: &str = "rusteron-own-archive-";

    fn new() -> Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(base: &Path) -> Result<Self> {
        own_dirs::remove_leftovers(base, Self::PREFIX, |dir| {
            Lock::of_own_dir(dir).ok().flatten().filter(Lock::is_held)
        });
        loop {
            let dir = base.join(own_dirs::unique_name(Self::PREFIX));
            let failed = |error: std::io::Error| ServerError::file(&dir, &error);
            DirAccess::Private.create_dir(&dir).map_err(failed)?;
            match Lock::of_own_dir(&dir) {
                // Another process may have deleted the directory before it was locked.
                Ok(Some(lock)) if dir.exists() => {
                    return Ok(Self { dir, process: Process::current(), _lock: lock });
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

#[cfg(feature = "driver")]
impl Drop for OwnDir {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return;
        }
        match std::fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                log::warn!("{}: not deleted: {error}", self.dir.display());
            }
            _ => {}
        }
    }
}

#[cfg(all(test, unix, feature = "driver"))]
mod tests {
    use super::*;

    #[test]
    fn own_dirs_without_owner_are_removed() {
        let base = tempfile::tempdir().expect("a directory");
        let live = OwnDir::new_in(base.path()).expect("a directory");
        let left = base.path().join("rusteron-own-archive-1-0-a");
        std::fs::create_dir_all(left.join("files")).expect("a directory");
        std::fs::write(left.join("files/0-0.rec"), b"x").expect("a file");
        let next = OwnDir::new_in(base.path()).expect("a directory");
        assert!(!left.exists());
        assert!(live.dir.is_dir() && next.dir.is_dir() && live.dir != next.dir);
        let dir = live.dir.clone();
        drop(live);
        assert!(!dir.exists());
    }
}
