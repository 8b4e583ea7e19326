//! An archive with its media driver, as a process of its own: Aeron's in Java, or ours.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ArchiveContext};
use rusteron_client::{Aeron, CncFile, Context};
use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;
use rusteron_test_support::without_settings;
use tempfile::TempDir;

use crate::measuring::archive_streams::DEADLINE;
use crate::processes::environment::Environment;
use crate::processes::program::{find_program, temporary_dir};

/// The settings of both archives.
const PROPERTIES: [&str; 8] = [
    // Requests come over IPC.
    "archive.control.channel.enabled=false",
    "archive.control.response.channel=aeron:udp?endpoint=localhost:0",
    "archive.replication.channel=aeron:udp?endpoint=localhost:0",
    "archive.recording.events.enabled=false",
    "threading.mode=SHARED",
    "archive.threading.mode=SHARED",
    // A stream that is only recorded has no other subscriber.
    "spies.simulate.connection=true",
    "term.buffer.sparse.file=true",
];

/// Finds our program `archiving_media_driver` beside this one.
///
/// # Errors
/// [`Failure::Run`] if it is not there.
pub fn archiving_media_driver() -> Result<PathBuf, Failure> {
    find_program("archiving_media_driver", "rusteron-archive-server")
}

/// Starts `archiving_media_driver`, which is at a path, with properties.
///
/// # Errors
/// [`Failure::Run`] if it cannot be started.
pub fn start_archiving_media_driver(path: &Path, options: &[String]) -> Result<Process, Failure> {
    let mut command = without_settings(path);
    command.args(options);
    Process::start("archiving_media_driver", command, DEADLINE)
}

/// An archive in directories of its own, which go with it.
#[derive(Debug)]
pub struct ArchiveProcess {
    // Dropped in this order.
    program: Process,
    _archive_dir: TempDir,
    driver_dir: TempDir,
}

impl ArchiveProcess {
    /// Starts an archive whose recordings are below `dir`, and connects to it: our
    /// `archiving_media_driver` at a path, or Java's archive without one. `options` are further
    /// properties, such as `-Daeron.archive.file.sync.level=1`.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not start; [`Failure::Interrupted`].
    pub fn start(
        archiving_media_driver: Option<&Path>,
        dir: &Path,
        options: &[String],
        environment: &Environment,
    ) -> Result<(Self, Archive), Failure> {
        let driver_dir = temporary_dir(None)?;
        let archive_dir = temporary_dir(Some(dir))?;
        let mut all = vec![
            format!("-Daeron.dir={}", driver_dir.path().join("driver").display()),
            format!("-Daeron.archive.dir={}", archive_dir.path().display()),
            format!("-Daeron.archive.mark.file.dir={}", driver_dir.path().display()),
        ];
        all.extend(PROPERTIES.map(|property| format!("-Daeron.{property}")));
        all.extend_from_slice(options);
        let program = match archiving_media_driver {
            Some(path) => start_archiving_media_driver(path, &all)?,
            None => {
                let main = "io.aeron.archive.ArchivingMediaDriver";
                environment.java()?.start(main, &all, &[], DEADLINE)?
            }
        };
        let mut process = Self { program, _archive_dir: archive_dir, driver_dir };
        let archive = process.connect(environment)?;
        Ok((process, archive))
    }

    fn connect(&mut self, environment: &Environment) -> Result<Archive, Failure> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            // A client would sleep until the driver's file is there.
            let connected = match CncFile::open(self.aeron_dir(), Duration::ZERO) {
                Ok(_) => session(&self.aeron_dir()),
                Err(error) => Err(error.into()),
            };
            if connected.is_ok() || Instant::now() >= deadline {
                return connected;
            }
            self.program.check()?;
            environment.sleep(Duration::from_millis(1))?;
        }
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Where its media driver is.
    pub fn aeron_dir(&self) -> PathBuf {
        self.driver_dir.path().join("driver")
    }
}

fn session(aeron_dir: &Path) -> Result<Archive, Failure> {
    let mut context = Context::new()?;
    context.set_dir(aeron_dir)?.set_driver_timeout(Duration::from_secs(10))?;
    let aeron = Aeron::connect(context)?;
    let mut context = ArchiveContext::new()?;
    context
        .set_control_request_channel("aeron:ipc")?
        .set_control_response_channel("aeron:ipc")?
        .set_message_timeout(DEADLINE)?;
    Archive::connect(&aeron, context)
        .map_err(|error| Failure::run("cannot connect to the archive", error))
}
