//! The programs of this package, and their results.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) use rusteron_test_support::{Finished, Running, command, has_java, number, report, run};

pub(crate) const THROUGHPUT: &str = env!("CARGO_BIN_EXE_benchmark_ipc_throughput");
pub(crate) const LATENCY: &str = env!("CARGO_BIN_EXE_benchmark_ipc_latency");
pub(crate) const IDLE_STRATEGIES: &str = env!("CARGO_BIN_EXE_benchmark_idle_strategies");
#[cfg(target_os = "linux")]
pub(crate) const PRESET_SETTINGS: &str = env!("CARGO_BIN_EXE_benchmark_preset_settings");
pub(crate) const BOUNDS: &str = env!("CARGO_BIN_EXE_benchmark_bounds");
pub(crate) const CLUSTER: &str = env!("CARGO_BIN_EXE_benchmark_cluster");
#[cfg(target_os = "linux")]
pub(crate) const CLUSTER_SERVICE: &str = env!("CARGO_BIN_EXE_benchmark_cluster_service");
pub(crate) const RECORDING: &str = env!("CARGO_BIN_EXE_recording_throughput");
pub(crate) const REGISTRATIONS: &str = env!("CARGO_BIN_EXE_benchmark_registrations");
pub(crate) const DRIVER_RESOURCES: &str = env!("CARGO_BIN_EXE_benchmark_driver_resources");
pub(crate) const DRIVERS: &str = env!("CARGO_BIN_EXE_benchmark_drivers");
#[cfg(target_os = "linux")]
pub(crate) const UDP_ROUND_TRIPS: &str = env!("CARGO_BIN_EXE_benchmark_udp_round_trips");
pub(crate) const UDP_THROUGHPUT: &str = env!("CARGO_BIN_EXE_benchmark_udp_throughput");

/// The program `ipc_throughput`, with some arguments.
pub(crate) fn ipc_throughput<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    command(env!("CARGO_BIN_EXE_ipc_throughput"), arguments)
}

/// A short run that leaves processor time to the tests beside it.
pub(crate) const SHORT: [&str; 6] = ["--runs", "2", "--measure", "200ms", "--warmup", "50ms"];

/// For threads that shall not take other tests their time.
pub(crate) const QUIET: [&str; 2] = ["--idle", "backoff"];
/// The same, with a driver that takes part in the round trips.
pub(crate) const QUIET_DRIVER: [&str; 4] = ["--idle", "backoff", "--driver-idle", "backoff"];

/// Returns the text up to the colon of each line of the output that begins with a prefix, without
/// the prefix.
pub(crate) fn announced<'a>(finished: &'a Finished, prefix: &str) -> Vec<&'a str> {
    let lines = finished.stdout.lines().filter_map(|line| line.strip_prefix(prefix));
    lines.filter_map(|line| line.split_once(": ")).map(|(what, _)| what).collect()
}

/// The results of a program that has ended well.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) finished: Finished,
    dir: TempDir,
}

impl Results {
    /// Runs a program to its end, which must be a good one.
    #[track_caller]
    pub(crate) fn of(path: &str, arguments: &[&str]) -> Self {
        Self::with(command(path, SHORT.iter().chain(arguments)))
    }

    /// The same with a command that only needs to know where the results go.
    #[track_caller]
    pub(crate) fn with(mut command: Command) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        command.arg("--results").arg(dir.path().join("results"));
        let finished = run(command);
        finished.assert_exit_code(0);
        Self { finished, dir }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join("results").join(file)
    }

    /// A report, with what every one has.
    #[track_caller]
    pub(crate) fn report(&self, file: &str) -> Value {
        let report = rusteron_test_support::report(&self.path(file));
        assert_eq!(report["versions"]["aeron"], "1.54.0", "{report:#}");
        for pointer in ["/versions/rustc", "/host/cpu", "/host/cores", "/settings/runs"] {
            assert!(report.pointer(pointer).is_some(), "{pointer} not in {report:#}");
        }
        report
    }

    /// The texts of a chart.
    #[track_caller]
    pub(crate) fn chart(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(file)).expect("a chart");
        let document = roxmltree::Document::parse(&text).expect("well-formed XML");
        assert_eq!(document.root_element().tag_name().name(), "svg");
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        let texts: Vec<String> =
            texts.filter_map(|node| node.text()).map(|text| text.trim().to_owned()).collect();
        // The machine and the versions, which a reader of the chart needs.
        assert!(texts.iter().any(|text| text.contains("Aeron 1.54.0")), "{texts:?}");
        assert!(texts.iter().any(|text| text.contains(" cores, ")), "{texts:?}");
        texts
    }

    /// Asserts that a chart has some texts.
    #[track_caller]
    pub(crate) fn assert_chart(&self, file: &str, expected: &[&str]) {
        let texts = self.chart(file);
        for text in expected {
            assert!(texts.iter().any(|found| found == text), "{text:?} not in {texts:?}");
        }
    }
}

/// The benchmark of drivers' resources, with a program `media_driver` beside it.
#[cfg(target_os = "linux")]
pub(crate) fn driver_resources<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    rusteron_test_support::media_driver_beside(DRIVER_RESOURCES);
    command(DRIVER_RESOURCES, arguments)
}

/// The benchmark of applications on drivers, with a program `media_driver` beside it.
#[cfg(target_os = "linux")]
pub(crate) fn drivers<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    rusteron_test_support::media_driver_beside(DRIVERS);
    command(DRIVERS, arguments)
}

/// The benchmark of UDP throughput, with a program `media_driver` beside it.
#[cfg(target_os = "linux")]
pub(crate) fn udp_throughput<S: AsRef<std::ffi::OsStr>>(
    arguments: impl IntoIterator<Item = S>,
) -> Command {
    rusteron_test_support::media_driver_beside(UDP_THROUGHPUT);
    command(UDP_THROUGHPUT, arguments)
}

/// The list at a path such as `/cases`.
#[track_caller]
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.unwrap_or_else(|| panic!("no list {pointer} in {value:#}"))
}
