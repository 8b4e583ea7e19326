//! The machine and the versions, which a reader of a result needs.

use std::fs;
use std::thread;

use serde_json::{Value, json};

/// The machine the program runs on.
pub fn describe() -> Value {
    json!({
        "cpu": cpu_model(),
        "cores": thread::available_parallelism().ok().map(usize::from),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
    })
}

/// The versions of the program's parts.
pub fn versions() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        // Behind the plus sign is the version of Aeron.
        "rusteron": version.split_once('+').map_or(version, |(own, _)| own),
        "aeron": rusteron_sys::AERON_VERSION,
        "rustc": env!("RUSTERON_RUSTC_VERSION"),
    })
}

/// The processor's name, where the operating system has a file that says it.
fn cpu_model() -> Option<String> {
    model_name(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

fn model_name(cpuinfo: &str) -> Option<String> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| name.trim() == "model name").map(|(_, model)| model.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_name_is_found() {
        let cpuinfo =
            "processor\t: 0\nvendor_id\t: X\nmodel name\t: Some CPU @ 3.0 GHz\nmodel name\t: B";
        assert_eq!(model_name(cpuinfo).as_deref(), Some("Some CPU @ 3.0 GHz"));
        assert_eq!(model_name("processor\t: 0\n"), None);
    }

    #[test]
    fn versions_are_known() {
        let versions = versions();
        assert_eq!(versions["aeron"], "1.54.0");
        assert!(!versions["rusteron"].as_str().unwrap_or("+").contains('+'), "{versions}");
    }
}
