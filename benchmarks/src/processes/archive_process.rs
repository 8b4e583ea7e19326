//! Aeron's Java archive with its media driver, as a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_archive::{Archive, Context};
use rusteron_client::Aeron;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::processes::java::Java;
use crate::processes::program::Program;

/// How long an archive may take to start, and to answer.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// An archive in directories of its own, which go with it.
#[derive(Debug)]
pub struct ArchiveProcess {
    // Dropped in this order.
    program: Program,
    archive_dir: TempDir,
    driver_dir: TempDir,
}

impl ArchiveProcess {
    /// Starts an archive whose recordings are below `dir`, and connects to it.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not start; [`Failure::Interrupted`].
    pub fn start(
        java: &Java,
        dir: &Path,
        interrupt: &Interrupt,
    ) -> Result<(Self, Archive), Failure> {
        let create = |dir: &Path| {
            tempfile::Builder::new().prefix("rusteron-recording-").tempdir_in(dir).map_err(
                |error| Failure::run(format_args!("no directory in {}", dir.display()), error),
            )
        };
        let shm = Path::new("/dev/shm");
        let driver_dir = create(if shm.is_dir() { shm } else { dir })?;
        let archive_dir = create(dir)?;
        let options = [
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
        let main = "io.aeron.archive.ArchivingMediaDriver";
        let program = java.start(main, &options, &[], DEADLINE)?;
        let mut process = Self { program, archive_dir, driver_dir };
        let archive = process.connect(interrupt)?;
        Ok((process, archive))
    }

    fn connect(&mut self, interrupt: &Interrupt) -> Result<Archive, Failure> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let failure = match session(&self.aeron_dir()) {
                Ok(archive) => return Ok(archive),
                Err(failure) => failure,
            };
            self.program.check()?;
            if interrupt.is_requested() {
                return Err(Failure::Interrupted);
            }
            if Instant::now() >= deadline {
                return Err(failure);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where its media driver is.
    pub fn aeron_dir(&self) -> PathBuf {
        self.driver_dir.path().join("driver")
    }

    /// How many bytes the files of a recording have on the disk.
    ///
    /// # Errors
    /// [`Failure::Run`] if its directory cannot be read.
    pub fn disk_bytes(&self, recording_id: i64) -> Result<u64, Failure> {
        let unreadable = |error| Failure::run(self.archive_dir.path().display(), error);
        let prefix = format!("{recording_id}-");
        let mut bytes = 0;
        for entry in fs::read_dir(self.archive_dir.path()).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                bytes += allocated(&entry.metadata().map_err(unreadable)?);
            }
        }
        Ok(bytes)
    }

    /// Returns the archive's usage so far; `None` where the system has no `/proc`.
    pub fn usage(&self) -> Option<Usage> {
        let proc = Path::new("/proc").join(self.program.pid().to_string());
        let stat = fs::read_to_string(proc.join("stat")).ok()?;
        let status = fs::read_to_string(proc.join("status")).ok()?;
        Usage::parse(&stat, &status)
    }
}

fn session(aeron_dir: &Path) -> Result<Archive, Failure> {
    let mut context = rusteron_client::Context::new()?;
    context.set_dir(aeron_dir)?.set_driver_timeout(Duration::from_secs(10))?;
    let aeron = Aeron::connect(context)?;
    let mut context = Context::new()?;
    context
        .set_control_request_channel("aeron:ipc")?
        .set_control_response_channel("aeron:ipc")?
        .set_message_timeout(DEADLINE)?;
    Archive::connect(&aeron, context)
        .map_err(|error| Failure::run("cannot connect to the archive", error))
}

#[cfg(unix)]
fn allocated(metadata: &fs::Metadata) -> u64 {
    // Segments are as long as they may become, with holes.
    std::os::unix::fs::MetadataExt::blocks(metadata) * 512
}

#[cfg(not(unix))]
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.len()
}

/// Processor time and memory of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// The time of all its threads, in seconds.
    pub cpu_seconds: f64,
    /// The most memory that it had at a time, in bytes, with the files that it maps.
    pub peak_resident_bytes: u64,
}

impl Usage {
    fn parse(stat: &str, status: &str) -> Option<Self> {
        /// Linux says that it is so, whatever the kernel's own clock.
        const TICKS_PER_SECOND: f64 = 100.0;
        // Behind the name, which can have spaces; the first field is the third.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
        let ticks = times.next()?.ok()? + times.next()?.ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let peak: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
        Some(Self {
            cpu_seconds: ticks as f64 / TICKS_PER_SECOND,
            peak_resident_bytes: peak * 1024,
        })
    }

    /// Returns the usage since an earlier sample. The peak is that of all time.
    pub fn since(self, earlier: Self) -> Self {
        Self { cpu_seconds: self.cpu_seconds - earlier.cpu_seconds, ..self }
    }

    /// As an object.
    pub fn to_json(self) -> Value {
        json!({
            "cpu_seconds": self.cpu_seconds,
            "peak_resident_bytes": self.peak_resident_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_and_memory_are_read() {
        let stat = "42 (a b) c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        let status = "Name:\tjava\nVmPeak:\t  900 kB\nVmHWM:\t     128 kB\nVmRSS:\t 64 kB\n";
        let usage = Usage::parse(stat, status).expect("usage");
        assert_eq!(usage, Usage { cpu_seconds: 3.0, peak_resident_bytes: 131_072 });
        assert_eq!(usage.since(usage).cpu_seconds, 0.0);
        assert_eq!(Usage::parse("42", status), None);
        assert_eq!(Usage::parse(stat, "Name:\tjava"), None);
    }
}
