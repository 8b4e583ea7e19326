//! Media drivers that run as processes of their own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusteron_client::{CncFile, request_driver_termination};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_media_driver::Preset;
use rusteron_test_support::networks::Network;
use rusteron_test_support::programs::Process;
use rusteron_test_support::without_settings;
use tempfile::TempDir;

use crate::command_line::choice::Contender;
use crate::processes::environment::Environment;
use crate::processes::java;
use crate::processes::program::{find_program, in_network, temporary_dir};

/// How long a driver may take to start, and to end.
const DEADLINE: Duration = Duration::from_secs(60);

/// How often a wait for the driver looks whether it is ready.
const TICK: Duration = Duration::from_millis(1);

/// The properties of a threading mode and an idle strategy of all threads, as in `shared/backoff`.
pub fn threads(settings: &str) -> Vec<String> {
    let (mode, idle) = settings.split_once('/').unwrap_or((settings, "backoff"));
    let mode = mode.to_uppercase().replace('-', "_");
    let agents = ["conductor", "sender", "receiver", "sharednetwork", "shared"];
    let idles = agents.map(|agent| format!("aeron.{agent}.idle.strategy={idle}"));
    [format!("aeron.threading.mode={mode}")].into_iter().chain(idles).collect()
}

/// The properties of a preset. Java ignores those that it does not know.
pub fn of_preset(preset: Preset) -> impl Iterator<Item = String> {
    let name = |variable: &str| match variable {
        "AERON_SOCKET_SO_SNDBUF" => "aeron.socket.so_sndbuf".to_owned(),
        "AERON_SOCKET_SO_RCVBUF" => "aeron.socket.so_rcvbuf".to_owned(),
        _ => variable.to_lowercase().replace('_', "."),
    };
    preset.variables().map(move |(variable, value)| format!("{}={value}", name(variable)))
}

/// Starts drivers.
#[derive(Debug)]
pub struct Launcher<'a> {
    media_driver: PathBuf,
    /// The program `aeronmd`, if it is wanted ([`AeronC`](crate::processes::aeron_c::AeronC)).
    aeronmd: Option<PathBuf>,
    environment: &'a Environment,
}

impl<'a> Launcher<'a> {
    /// Finds `media_driver` beside this program.
    ///
    /// # Errors
    /// [`Failure::Run`] if it is not there.
    pub fn new(aeronmd: Option<PathBuf>, environment: &'a Environment) -> Result<Self, Failure> {
        let media_driver = find_program("media_driver", "rusteron-media-driver")?;
        Ok(Self { media_driver, aeronmd, environment })
    }

    /// Starts a driver in a directory of its own and waits until clients can connect to it: the
    /// program `media_driver`, Aeron's own C driver `aeronmd`, or Aeron's Java driver. The
    /// properties must not contradict each other. It runs in a network namespace, if not in this
    /// process's own.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not start; [`Failure::Interrupted`].
    pub fn start(
        &self,
        host: Contender,
        properties: &[String],
        namespace: Option<&Network>,
    ) -> Result<DriverProcess, Failure> {
        let dir = temporary_dir(None)?;
        let aeron_dir = dir.path().join("driver");
        let start = Instant::now();
        let program = self.spawn(host, properties, namespace, &aeron_dir)?;
        let mut driver = DriverProcess { program, _dir: dir, aeron_dir, start_up: Duration::ZERO };
        loop {
            // An error says that the file is not there yet, or not complete.
            let cnc = CncFile::open(&driver.aeron_dir, Duration::ZERO).ok();
            if let Some(cnc) = cnc.filter(|cnc| cnc.is_active(DEADLINE)) {
                driver.start_up = start.elapsed();
                if cnc.pid() == i64::from(driver.pid()) {
                    return Ok(driver);
                }
                // It would be the wrong process that is watched.
                let pid = cnc.pid();
                return Err(driver.program.failure(format_args!("its pid is said to be {pid}")));
            }
            driver.check()?;
            if start.elapsed() >= DEADLINE {
                return Err(Failure::Run(format!("the {host} driver does not get ready")));
            }
            self.environment.sleep(TICK)?;
        }
    }

    fn spawn(
        &self,
        host: Contender,
        properties: &[String],
        namespace: Option<&Network>,
        aeron_dir: &Path,
    ) -> Result<Process, Failure> {
        const JAVA: &str = "io.aeron.driver.MediaDriver";
        // Lets clients end the driver.
        let validator = match host {
            Contender::Java => "io.aeron.driver.DefaultAllowTerminationValidator",
            _ => "allow",
        };
        let mut options = vec![
            format!("-Daeron.dir={}", aeron_dir.display()),
            format!("-Daeron.driver.termination.validator={validator}"),
        ];
        options.extend(properties.iter().map(|property| format!("-D{property}")));
        if host == Contender::Java {
            let command = self.environment.java()?.command(JAVA, &options, &[]);
            return java::start(JAVA, in_network(command, namespace), DEADLINE);
        }
        let path = match host {
            Contender::C => self.aeronmd.as_ref(),
            _ => Some(&self.media_driver),
        };
        let path = path.ok_or_else(|| Failure::Run("there is no aeronmd".to_owned()))?;
        let mut command = without_settings(path);
        command.args(options);
        Process::start(format!("the {host} driver"), in_network(command, namespace), DEADLINE)
    }
}

/// A driver that runs; on drop it is killed and its directory deleted.
#[derive(Debug)]
pub struct DriverProcess {
    // Dropped in this order.
    program: Process,
    _dir: TempDir,
    aeron_dir: PathBuf,
    start_up: Duration,
}

impl DriverProcess {
    /// The directory by which clients find it.
    pub fn aeron_dir(&self) -> &Path {
        &self.aeron_dir
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// How long it took from the start of its process until clients could connect.
    pub fn start_up(&self) -> Duration {
        self.start_up
    }

    /// Makes sure that it still runs.
    ///
    /// # Errors
    /// [`Failure::Run`] with the text that the driver has written to standard error.
    pub fn check(&mut self) -> Result<(), Failure> {
        self.program.check()
    }

    /// Asks it to end as clients do, and says how long that takes.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not end, or not well.
    pub fn end(self, interrupt: &ShutdownSignal) -> Result<Duration, Failure> {
        let start = Instant::now();
        request_driver_termination(&self.aeron_dir, b"")?;
        self.program.finish(interrupt)?;
        Ok(start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_properties() {
        for (properties, property) in [
            (threads("shared-network/yield"), "aeron.threading.mode=SHARED_NETWORK"),
            (threads("shared-network/yield"), "aeron.sharednetwork.idle.strategy=yield"),
            (of_preset(Preset::LowLatency).collect(), "aeron.sender.idle.strategy=noop"),
            (of_preset(Preset::Throughput).collect(), "aeron.socket.so_rcvbuf=4194304"),
        ] {
            assert!(properties.iter().any(|it| it == property), "{property}: {properties:?}");
        }
    }
}
