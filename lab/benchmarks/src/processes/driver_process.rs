//! Media drivers that run as processes of their own.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rusteron_client::{CncFile, IdleStrategyKind, request_driver_termination};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_media_driver::Preset;
use rusteron_test_support::networks::Network;
use rusteron_test_support::programs::Process;

use crate::command_line::choice::{Threading, display_in_words};
use crate::processes::java::Java;

/// How long a driver may take to start, and to end.
const DEADLINE: Duration = Duration::from_secs(60);

/// How often a wait for the driver looks whether it is ready.
const TICK: Duration = Duration::from_millis(1);

/// The program that a driver is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Host {
    /// The C driver in the program media_driver
    Rust,
    /// Aeron's own C driver, the program aeronmd
    C,
    /// Aeron's Java driver
    Java,
}

display_in_words!(Host);

/// How a driver spreads its work over threads, and how the threads idle when there is no work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settings {
    /// The threads, and what conductor, sender and receiver do.
    Threads(Threading, IdleStrategyKind),
    /// A preset.
    Preset(Preset),
}

impl Settings {
    /// Properties that Aeron's own drivers take for them.
    fn properties(self) -> Vec<(String, String)> {
        match self {
            Self::Threads(threading, idle) => {
                let mode = threading.name().to_uppercase().replace('-', "_");
                let agents = ["conductor", "sender", "receiver", "sharednetwork", "shared"];
                let idles = agents
                    .map(|agent| (format!("aeron.{agent}.idle.strategy"), idle.name().to_owned()));
                [("aeron.threading.mode".to_owned(), mode)].into_iter().chain(idles).collect()
            }
            Self::Preset(preset) => preset
                .variables()
                .map(|(name, value)| (property(name), value.into_owned()))
                .collect(),
        }
    }
}

/// The property of Aeron's own drivers for an environment variable. Java ignores the properties that it does not know.
fn property(variable: &str) -> String {
    match variable {
        "AERON_SOCKET_SO_SNDBUF" => "aeron.socket.so_sndbuf".to_owned(),
        "AERON_SOCKET_SO_RCVBUF" => "aeron.socket.so_rcvbuf".to_owned(),
        _ => variable.to_lowercase().replace('_', "."),
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(threading, idle) => {
                f.pad(&format!("{}/{}", threading.name(), idle.name()))
            }
            Self::Preset(preset) => preset.fmt(f),
        }
    }
}

impl FromStr for Settings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(threading, idle)| {
            let threading = Threading::from_str(threading, false).ok()?;
            Some(Self::Threads(threading, idle.parse().ok()?))
        });
        parsed.or_else(|| text.parse().ok().map(Self::Preset)).ok_or_else(|| {
            let idles = IdleStrategyKind::ALL.map(IdleStrategyKind::name).join(", ");
            let presets: Vec<_> = Preset::ALL.iter().map(|preset| preset.name()).collect();
            format!(
                "expected dedicated, shared-network or shared, a slash, and one of {idles}, such as \
                 shared/backoff, or a preset: {}",
                presets.join(", ")
            )
        })
    }
}

/// Finds the program `media_driver`: the one at a path, or else the one beside this program.
///
/// # Errors
/// [`Failure::Usage`] if it is another program, or missing.
pub fn media_driver(path: Option<&Path>) -> Result<PathBuf, Failure> {
    find_program("media_driver", "--media-driver", "rusteron-media-driver", path)
}

/// Finds the program `archiving_media_driver` in the same way.
///
/// # Errors
/// As for [`media_driver`].
pub fn archiving_media_driver(path: Option<&Path>) -> Result<PathBuf, Failure> {
    let name = "archiving_media_driver";
    find_program(name, "--archiving-media-driver", "rusteron-archive-server", path)
}

fn find_program(
    name: &str,
    option: &str,
    package: &str,
    path: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => env::current_exe()
            .map_err(|error| Failure::run("cannot tell where this program is", error))?
            .with_file_name(name),
    };
    let unusable = |reason: String| {
        let reason = format!(
            "expected the program of that name, which `cargo build --release -p {package}` \
             builds: {reason}"
        );
        Failure::usage(&format!("{option} <FILE>"), path.display(), reason)
    };
    let version = Command::new(&path).arg("--version").output();
    let version = version.map_err(|error| unusable(error.to_string()))?;
    let is_it =
        [package, name].iter().any(|it| version.stdout.starts_with(format!("{it} ").as_bytes()));
    if version.status.success() && is_it {
        return Ok(path);
    }
    Err(unusable("it prints another version".to_owned()))
}

/// The driver to start.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The program that the driver is a part of.
    pub host: Host,
    /// The settings; they must not contradict each other.
    pub settings: &'a [Settings],
    /// `true` if the C driver passes several datagrams to Linux in one call. Java's driver never does.
    pub segmentation_offload: bool,
    /// The network namespace that the driver runs in, if not this process's own.
    pub namespace: Option<&'a Network>,
    /// Distinguishes the directories of this process's drivers.
    pub number: u32,
}

/// Lets a command run in a network, if there is one.
pub fn in_network(command: Command, network: Option<&Network>) -> Command {
    match network {
        Some(network) => network.within(command),
        None => command,
    }
}

/// Starts drivers.
#[derive(Debug)]
pub struct Launcher<'a> {
    /// The program `media_driver`.
    pub media_driver: &'a Path,
    /// The program `aeronmd`, if it is wanted ([`AeronC`](crate::processes::aeron_c::AeronC)).
    pub aeronmd: Option<&'a Path>,
    /// Java, if it is there and wanted.
    pub java: Option<&'a Java>,
    /// The length of all terms, if it is not the drivers' default.
    pub term_length: Option<usize>,
}

impl Launcher<'_> {
    /// Starts a driver in a directory of its own and waits until clients can connect to it.
    ///
    /// # Errors
    /// [`Failure::Run`] if it does not start; [`Failure::Interrupted`].
    pub fn start(
        &self,
        launch: &Launch<'_>,
        interrupt: &ShutdownSignal,
    ) -> Result<DriverProcess, Failure> {
        let host = launch.host;
        let dir = DriverDir::new(launch.number);
        let start = Instant::now();
        let mut program = match host {
            Host::Rust => self.start_rust(launch, &dir)?,
            Host::C => self.start_c(launch, &dir)?,
            Host::Java => self.start_java(launch, &dir)?,
        };
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

    fn start_rust(&self, launch: &Launch<'_>, dir: &DriverDir) -> Result<Process, Failure> {
        let mut command = Command::new(self.media_driver);
        remove_driver_variables(&mut command);
        command.env("AERON_DRIVER_TERMINATION_VALIDATOR", "allow").arg("--dir").arg(&dir.0);
        command.args([
            "--segmentation-offload",
            if launch.segmentation_offload { "on" } else { "off" },
        ]);
        for settings in launch.settings {
            match settings {
                Settings::Threads(threading, idle) => {
                    command.args(["--threading-mode", threading.name(), "--idle", idle.name()])
                }
                Settings::Preset(preset) => command.args(["--preset", preset.name()]),
            };
        }
        if let Some(length) = self.term_length {
            for option in ["--term-buffer-length", "--ipc-term-buffer-length"] {
                command.arg(option).arg(length.to_string());
            }
        }
        Process::start("media_driver".to_owned(), in_network(command, launch.namespace), DEADLINE)
    }

    fn start_c(&self, launch: &Launch<'_>, dir: &DriverDir) -> Result<Process, Failure> {
        let aeronmd = self.aeronmd.ok_or_else(|| Failure::Run("there is no aeronmd".to_owned()))?;
        let mut command = Command::new(aeronmd);
        remove_driver_variables(&mut command);
        command.args(self.properties(launch, dir, "allow"));
        Process::start("aeronmd".to_owned(), in_network(command, launch.namespace), DEADLINE)
    }

    fn start_java(&self, launch: &Launch<'_>, dir: &DriverDir) -> Result<Process, Failure> {
        let java = self.java.ok_or_else(|| Failure::Run("there is no Java".to_owned()))?;
        let validator = "io.aeron.driver.DefaultAllowTerminationValidator";
        let main = "io.aeron.driver.MediaDriver";
        let command = java.command(main, &self.properties(launch, dir, validator), &[]);
        Java::start_command(main, in_network(command, launch.namespace), DEADLINE)
    }

    /// The settings as arguments of Aeron's own drivers. Clients may end them by a validator of that name.
    fn properties(&self, launch: &Launch<'_>, dir: &DriverDir, validator: &str) -> Vec<String> {
        let mut options = vec![
            format!("-Daeron.dir={}", dir.0.display()),
            format!("-Daeron.driver.termination.validator={validator}"),
        ];
        let properties = launch.settings.iter().flat_map(|settings| settings.properties());
        options.extend(properties.map(|(name, value)| format!("-D{name}={value}")));
        if let Some(length) = self.term_length {
            for name in ["term.buffer.length", "ipc.term.buffer.length"] {
                options.push(format!("-Daeron.{name}={length}"));
            }
        }
        options
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
    fn settings_are_read_as_they_are_written() {
        for text in
            ["dedicated/backoff", "shared-network/sleep-ns", "shared/spin", "low-latency", "shared"]
        {
            assert_eq!(text.parse::<Settings>().expect("settings").to_string(), text);
        }
        for text in ["", "dedicated", "shared/", "/yield", "shared/lazy", "invoker/yield", "a/b/c"]
        {
            let error = text.parse::<Settings>().expect_err("no settings");
            assert!(error.contains("such as shared/backoff"), "{text}: {error}");
            assert!(error.contains("low-latency"), "{text}: {error}");
        }
    }

    #[test]
    fn aeron_drivers_get_the_settings_as_properties() {
        let properties = |text: &str| text.parse::<Settings>().expect(text).properties();
        for (settings, name, value) in [
            ("shared-network/yield", "aeron.threading.mode", "SHARED_NETWORK"),
            ("shared-network/yield", "aeron.sharednetwork.idle.strategy", "yield"),
            ("low-latency", "aeron.threading.mode", "DEDICATED"),
            ("low-latency", "aeron.sender.idle.strategy", "noop"),
            ("low-latency", "aeron.term.buffer.sparse.file", "false"),
            ("throughput", "aeron.socket.so_rcvbuf", "4194304"),
        ] {
            let property = (name.to_owned(), value.to_owned());
            assert!(properties(settings).contains(&property), "{settings}: {name}");
        }
    }

    #[test]
    fn unstartable_driver_is_a_failure() {
        let settings = "shared/backoff".parse().expect("settings");
        let launcher = Launcher {
            media_driver: Path::new("/no/such"),
            aeronmd: None,
            java: None,
            term_length: None,
        };
        for host in [Host::Rust, Host::C, Host::Java] {
            let launch = Launch {
                host,
                settings: &[settings],
                segmentation_offload: true,
                namespace: None,
                number: 0,
            };
            let failure = launcher.start(&launch, &ShutdownSignal::new());
            assert!(matches!(failure, Err(Failure::Run(_))), "{failure:?}");
        }
    }

    #[test]
    fn another_program_is_no_driver() {
        for path in ["/no/such/program", "/bin/true"] {
            let failure = media_driver(Some(Path::new(path))).expect_err("no driver");
            assert!(matches!(failure, Failure::Usage(text) if text.contains(path)));
        }
    }
}
