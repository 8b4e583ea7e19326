//! The command line.
//!
//! Options become environment variables, as `-D` and property files do. So all settings enter the
//! driver in the same way as in Aeron's own program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;
use rusteron_core::Error;
use rusteron_core::idle::IdleStrategyKind;
use rusteron_core::program::exit_status;
use rusteron_media_driver::program::{CommonOptions, Origins};
use rusteron_media_driver::{DriverContext, Preset, TermCleaning};

/// Runs Aeron's media driver until it is interrupted or terminated.
///
/// Settings come from a preset, if there is one; then the AERON_* environment variables; then -D; then
/// the files of properties; then the other options below. Each wins over those before.
#[derive(Debug, Parser)]
#[command(
    version,
    disable_version_flag = true,
    after_help = exit_status::help(false)
)]
pub(crate) struct Options {
    /// Settings to start from, which all others win over: low-latency, shared, embedded or
    /// throughput
    #[arg(long, value_name = "PRESET")]
    preset: Option<Preset>,

    /// Pass several UDP datagrams to Linux in one call, and read empty sockets less often. The default is on
    /// [env: RUSTERON_SEGMENTATION_OFFLOAD]
    #[arg(long, value_name = "on|off", value_parser = ["on", "off"])]
    segmentation_offload: Option<String>,

    /// Stores that zero terms: adaptive, cached (ordinary) or streaming (non-temporal). The default is adaptive: the
    /// faster at the moment [env: RUSTERON_TERM_CLEANING]
    #[arg(long, value_name = "STORES")]
    term_cleaning: Option<TermCleaning>,

    /// Threads: one for each of conductor, sender, receiver and native resource agent (dedicated), one for sender and
    /// receiver (shared-network), one for everything (shared), or the main thread for everything (invoker)
    /// [env: AERON_THREADING_MODE]
    #[arg(long, value_name = "MODE", value_parser = ["dedicated", "shared-network", "shared", "invoker"])]
    threading_mode: Option<String>,

    /// Idle strategy of conductor, sender and receiver: spin, yield, sleep-ns, backoff or noop. The
    /// native resource agent, which no message waits for, sleeps, unless
    /// AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY says otherwise
    #[arg(long, value_name = "STRATEGY")]
    idle: Option<IdleStrategyKind>,

    /// Length of the terms of network publications, such as 16m [env: AERON_TERM_BUFFER_LENGTH]
    #[arg(long, value_name = "SIZE", value_parser = value_of("AERON_TERM_BUFFER_LENGTH"))]
    term_buffer_length: Option<String>,

    /// Length of the terms of IPC publications, such as 64m [env: AERON_IPC_TERM_BUFFER_LENGTH]
    #[arg(long, value_name = "SIZE", value_parser = value_of("AERON_IPC_TERM_BUFFER_LENGTH"))]
    ipc_term_buffer_length: Option<String>,

    /// The CPUs of conductor, sender, receiver and resource agent, such as 1,2,3; `-` for none
    #[arg(long, value_name = "CPUS", allow_hyphen_values = true)]
    cpu: Option<Cpus>,

    /// Delete the directory, whatever is in it, before starting [env: AERON_DIR_DELETE_ON_START]
    #[arg(long)]
    delete_on_start: bool,

    /// Print what happened every so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) stats: Option<Duration>,

    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

impl Options {
    /// Sets the environment variables that the command line asks for. Returns the places of
    /// properties, and the errors of properties that cannot be loaded.
    ///
    /// # Safety
    /// There is no other thread.
    pub(crate) unsafe fn apply_to_environment(&self) -> (Origins, Vec<Error>) {
        let set = |name: &str, value: &OsStr| {
            // SAFETY: the caller guarantees that there is no other thread.
            unsafe { env::set_var(name, value) };
        };
        let text = |text: &Option<String>| text.clone().map(OsString::from);
        let threading_mode =
            self.threading_mode.as_ref().map(|mode| mode.to_ascii_uppercase().replace('-', "_"));
        let own = [
            ("RUSTERON_SEGMENTATION_OFFLOAD", text(&self.segmentation_offload)),
            ("RUSTERON_TERM_CLEANING", self.term_cleaning.map(|cleaning| cleaning.name().into())),
            ("AERON_THREADING_MODE", text(&threading_mode)),
            ("AERON_TERM_BUFFER_LENGTH", text(&self.term_buffer_length)),
            ("AERON_IPC_TERM_BUFFER_LENGTH", text(&self.ipc_term_buffer_length)),
            ("AERON_DIR_DELETE_ON_START", self.delete_on_start.then(|| "true".into())),
        ];
        // SAFETY: the caller guarantees that there is no other thread.
        let loaded = unsafe { self.common.apply_to_environment(own) };
        if let Some(idle) = self.idle {
            for agent in ["CONDUCTOR", "SENDER", "RECEIVER", "SHAREDNETWORK", "SHARED"] {
                set(&format!("AERON_{agent}_IDLE_STRATEGY"), idle.name().as_ref());
            }
        }
        if let Some(cpus) = &self.cpu {
            let agents = ["CONDUCTOR", "SENDER", "RECEIVER", "DRIVER_NATIVE_RESOURCE_AGENT"];
            for (agent, cpu) in agents.iter().zip(&cpus.0) {
                set(&format!("AERON_{agent}_CPU_AFFINITY"), cpu.to_string().as_ref());
            }
        }
        for (name, value) in self.preset.iter().flat_map(|preset| preset.variables()) {
            // A variable that is already set overrides the preset.
            if env::var_os(name).is_none() {
                set(name, OsStr::new(&*value));
            }
        }
        loaded
    }
}

/// Checks the text of a variable.
fn value_of(
    variable: &'static str,
) -> impl Fn(&str) -> std::result::Result<String, String> + Clone {
    move |text| {
        DriverContext::setting(variable).map_or(Ok(()), |setting| setting.check(text))?;
        Ok(text.to_owned())
    }
}

/// The CPU of each agent's thread, -1 for none.
#[derive(Debug, Clone)]
struct Cpus(Vec<i16>);

impl FromStr for Cpus {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let cpus = text.split(',').map(|cpu| match cpu.trim() {
            "-" => Ok(-1),
            cpu => cpu
                .parse::<u8>()
                .map(i16::from)
                .map_err(|_| format!("{cpu:?} is neither a number from 0 to 255 nor `-`")),
        });
        let cpus = cpus.collect::<std::result::Result<Vec<_>, _>>()?;
        if cpus.len() > 4 {
            return Err(format!("{} CPUs for four agents", cpus.len()));
        }
        Ok(Self(cpus))
    }
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "not a number of seconds between 0.001 and 86400".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }

    #[test]
    fn term_lengths() {
        let check = value_of("AERON_TERM_BUFFER_LENGTH");
        for text in ["64k", "16M", "1g", "65536"] {
            assert_eq!(check(text).as_deref(), Ok(text));
        }
        for text in ["", "k", "100k", "32k", "2g", "16mb", "-64k", "99999999999999g", "é"] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus() {
        assert_eq!("1,-,3".parse::<Cpus>().expect("three").0, [1, -1, 3]);
        for text in ["", "a", "-1", "256", "1,2,3,4,5", "1,,2"] {
            assert!(text.parse::<Cpus>().is_err(), "{text}");
        }
    }

    #[test]
    fn intervals() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "0", "-1", "inf", "NaN", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
