//! An archive with its media driver, as a process of its own: Aeron's in Java, or ours.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, ArchiveContext};
use rusteron_client::{Aeron, CncFile};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;
use tempfile::TempDir;

use crate::measuring::archive_streams::DEADLINE;
use crate::processes::driver_process::remove_driver_variables;
use crate::processes::java::Java;

/// The program that an archive is.
#[derive(Debug, Clone, Copy)]
pub enum ArchiveProgram<'a> {
    /// Our `archiving_media_driver`, at this path.
    Rust(&'a Path),
    /// Aeron's.
    Java(&'a Java),
}

impl ArchiveProgram<'_> {
    fn start(self, options: &[String]) -> Result<Process, Failure> {
        match self {
            Self::Rust(path) => {
                let mut command = Command::new(path);
                remove_driver_variables(&mut command);
                command.args(options);
                Process::start("archiving_media_driver".to_owned(), command, DEADLINE)
            }
            Self::Java(java) => {
                java.start("io.aeron.archive.ArchivingMediaDriver", options, &[], DEADLINE)
            }
        }
    }
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
    /// Starts an archive whose recordings are below `dir`, and connects to it. `options` are further properties,
    /// such as `-Daeron.archive.file.sync.level=1`.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not start; [`Failure::Interrupted`].
    pub fn start(
        program: ArchiveProgram<'_>,
        dir: &Path,
        options: &[String],
        interrupt: &ShutdownSignal,
    ) -> Result<(Self, Archive), Failure> {
        let create = |dir: &Path| {
            tempfile::Builder::new().prefix("rusteron-recording-").tempdir_in(dir).map_err(
                |error| Failure::run(format_args!("no directory in {}", dir.display()), error),
            )
        };
        let shm = Path::new("/dev/shm");
        let driver_dir = create(if shm.is_dir() { shm } else { dir })?;
        let archive_dir = create(dir)?;
        let mut all = vec![
            format!("-Daeron.dir={}", driver_dir.path().join("driver").display()),
            format!("-Daeron.archive.dir={}", archive_dir.path().display()),
            format!("-Daeron.archive.mark.file.dir={}", driver_dir.path().display()),
            // Requests come over IPC.
            "-Daeron.archive.control.channel.enabled=false".to_owned(),
            "-Daeron.archive.control.response.channel=aeron:udp?endpoint=localhost:0".to_owned(),
            "-Daeron.archive.replication.channel=aeron:udp?endpoint=localhost:0".to_owned(),
            "-Daeron.archive.recording.events.enabled=false".to_owned(),
            "-Daeron.threading.mode=SHARED".to_owned(),
            "-Daeron.archive.threading.mode=SHARED".to_owned(),
            // A stream that is only recorded has no other subscriber.
            "-Daeron.spies.simulate.connection=true".to_owned(),
            "-Daeron.term.buffer.sparse.file=true".to_owned(),
        ];
        all.extend_from_slice(options);
        let program = program.start(&all)?;
        let mut process = Self { program, _archive_dir: archive_dir, driver_dir };
        let archive = process.connect(interrupt)?;
        Ok((process, archive))
    }

    fn connect(&mut self, interrupt: &ShutdownSignal) -> Result<Archive, Failure> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            // A client would sleep until the driver's file is there.
            let failure = match CncFile::open(self.aeron_dir(), Duration::ZERO) {
                Ok(_) => match session(&self.aeron_dir()) {
                    Ok(archive) => return Ok(archive),
                    Err(failure) => failure,
                },
                Err(error) => error.into(),
            };
            self.program.check()?;
            if interrupt.is_signalled() {
                return Err(Failure::Interrupted);
            }
            if Instant::now() >= deadline {
                return Err(failure);
            }
            thread::sleep(Duration::from_millis(1));
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
    let mut context = rusteron_client::Context::new()?;
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
