//! The machine and the versions, which a reader of a result needs.

use std::fs;
use std::thread;
use std::time::SystemTime;

/// The machine in words: `2 cores of Some CPU, linux`.
pub fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cpu = cpu_model().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{cores} cores of {cpu}, {}", std::env::consts::OS)
}

/// The versions in words: `Aeron 1.54.0, rustc 1.95.0`.
pub fn versions_in_words() -> String {
    format!("Aeron {}, {}", rusteron_sys::AERON_VERSION, env!("RUSTERON_RUSTC_VERSION"))
}

/// Today's date in UTC: `2026-11-25`.
pub fn today() -> String {
    let mut now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.truncate("2026-11-25".len());
    now
}

/// The processor's name, where the operating system has a file that says it.
fn cpu_model() -> Option<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok()?;
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| name.trim() == "model name").map(|(_, model)| model.trim().to_owned())
}
