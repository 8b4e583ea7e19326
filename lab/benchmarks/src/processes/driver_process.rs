//! Media drivers that run as processes of their own.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::{Duration, Instant};

use rusteron_client::{CncFile, request_driver_termination};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_media_driver::Preset;
use rusteron_test_support::networks::Network;
use rusteron_test_support::programs::Process;

use crate::command_line::choice::Contender;
use crate::processes::environment::Environment;
use crate::processes::java;

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

/// The path of this program.
///
/// # Errors
/// [`Failure::Run`] if the system does not tell it.
pub fn own_program() -> Result<PathBuf, Failure> {
    env::current_exe().map_err(|error| Failure::run("cannot tell where this program is", error))
}

/// Finds a program of ours beside this one.
///
/// # Errors
/// [`Failure::Run`] if it is another program, or missing.
pub fn find_program(name: &str, package: &str) -> Result<PathBuf, Failure> {
    let path = own_program()?.with_file_name(name);
    let unusable = |reason: &str| {
        Failure::Run(format!(
            "{}, which `cargo build --release -p {package}` builds, cannot be used: {reason}",
            path.display()
        ))
    };
    let version = Command::new(&path).arg("--version").output();
    let version = version.map_err(|error| unusable(&error.to_string()))?;
    let is_it =
        [package, name].iter().any(|it| version.stdout.starts_with(format!("{it} ").as_bytes()));
    if version.status.success() && is_it {
        return Ok(path);
    }
    Err(unusable("it prints another version"))
}

/// Lets a command run in a network, if there is one.
pub fn in_network(command: Command, network: Option<&Network>) -> Command {
    match network {
        Some(network) => network.within(command),
        None => command,
    }
}

/// The driver to start.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The program `media_driver`, Aeron's own C driver `aeronmd` at this path, or Aeron's Java driver.
    pub host: Contender,
    /// The settings; they must not contradict each other.
    pub properties: &'a [String],
    /// `true` if `media_driver` passes several datagrams to Linux in one call.
    pub segmentation_offload: bool,
    /// The network namespace that the driver runs in, if not this process's own.
    pub namespace: Option<&'a Network>,
    /// Distinguishes the directories of this process's drivers.
    pub number: u32,
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

    /// Starts a driver in a directory of its own and waits until clients can connect to it.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not start; [`Failure::Interrupted`].
    pub fn start(&self, launch: &Launch<'_>) -> Result<DriverProcess, Failure> {
        let (host, interrupt) = (launch.host, &self.environment.interrupt);
        let dir = DriverDir::new(launch.number);
        let start = Instant::now();
        let mut program = self.spawn(launch, &dir)?;
        while !interrupt.is_signalled() {
            // An error says that the file is not there yet, or not complete.
            let cnc = CncFile::open(&dir.0, Duration::ZERO).ok();
            if let Some(cnc) = cnc.filter(|cnc| cnc.is_active(DEADLINE)) {
                let start_up = start.elapsed();
                if cnc.pid() != i64::from(program.pid()) {
                    // It would be the wrong process that is watched.
                    return Err(
                        program.failure(format_args!("its pid is said to be {}", cnc.pid()))
                    );
                }
                return Ok(DriverProcess { program, dir, start_up });
            }
            program.check()?;
            if start.elapsed() >= DEADLINE {
                return Err(Failure::Run(format!("the {host} driver does not get ready")));
            }
            interrupt.wait_timeout(TICK);
        }
        Err(Failure::Interrupted)
    }

    fn spawn(&self, launch: &Launch<'_>, dir: &DriverDir) -> Result<Process, Failure> {
        const JAVA: &str = "io.aeron.driver.MediaDriver";
        // Lets clients end the driver.
        let validator = match launch.host {
            Contender::Java => "io.aeron.driver.DefaultAllowTerminationValidator",
            _ => "allow",
        };
        let mut options = vec![
            format!("-Daeron.dir={}", dir.0.display()),
            format!("-Daeron.driver.termination.validator={validator}"),
        ];
        options.extend(launch.properties.iter().map(|property| format!("-D{property}")));
        if launch.host == Contender::Java {
            let command = self.environment.java()?.command(JAVA, &options, &[]);
            return java::start(JAVA, in_network(command, launch.namespace), DEADLINE);
        }
        let path = self.aeronmd.as_ref().filter(|_| launch.host == Contender::C);
        let mut command = Command::new(path.unwrap_or(&self.media_driver));
        remove_driver_variables(&mut command);
        command.args(options);
        if launch.host == Contender::Rust {
            let offload = if launch.segmentation_offload { "on" } else { "off" };
            command.args(["--segmentation-offload", offload]);
        }
        let name = format!("the {} driver", launch.host);
        Process::start(name, in_network(command, launch.namespace), DEADLINE)
    }
}

/// Takes the settings in the environment away from a program in C. Java does not read them, but `lab/java/run` reads its own.
pub(crate) fn remove_driver_variables(command: &mut Command) {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let is_java = text.starts_with("RUSTERON_JAVA_");
        if !is_java && (text.starts_with("AERON_") || text.starts_with("RUSTERON_")) {
            command.env_remove(name);
        }
    }
}

/// A driver that runs; on drop it is killed and its directory deleted.
#[derive(Debug)]
pub struct DriverProcess {
    // Dropped in this order.
    program: Process,
    dir: DriverDir,
    start_up: Duration,
}

impl DriverProcess {
    /// The directory by which clients find it.
    pub fn aeron_dir(&self) -> &Path {
        &self.dir.0
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
        request_driver_termination(&self.dir.0, b"")?;
        self.program.finish(interrupt)?;
        Ok(start.elapsed())
    }
}

/// The directory of a driver in another process; deleted on drop.
#[derive(Debug)]
pub(crate) struct DriverDir(PathBuf);

impl DriverDir {
    /// A name that no embedded driver has. `number` distinguishes the names of this process.
    pub(crate) fn new(number: u32) -> Self {
        let shared_memory = Path::new("/dev/shm");
        let base = if shared_memory.is_dir() { shared_memory.to_owned() } else { env::temp_dir() };
        Self(base.join(format!("rusteron-{}-driver-{number}", process::id())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for DriverDir {
    fn drop(&mut self) {
        // If the driver has not started, there is none.
        let _ = fs::remove_dir_all(&self.0);
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

    #[test]
    fn another_program_is_no_driver() {
        let failure = find_program("no_such_program", "no-package").expect_err("no program");
        assert!(matches!(failure, Failure::Run(text) if text.contains("no_such_program")));
    }
}
