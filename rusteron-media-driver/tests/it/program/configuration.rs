//! Every setting of Aeron's C driver reaches the driver by environment, definition and file, and
//! `--print-config` shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use rusteron_media_driver::Preset;
use rusteron_test_support::media_driver;

use crate::MEDIA_DRIVER;

/// The names in the sources of a part of Aeron: every string that is one.
pub(super) fn names_in_the_sources(dir: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source");
            names.extend(text.lines().flat_map(names_in).map(str::to_owned));
        }
    }
    names
}

fn names_in(line: &str) -> impl Iterator<Item = &str> {
    let is_in_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    line.split('"').filter(move |text| text.starts_with("AERON_") && text.chars().all(is_in_name))
}

/// How a setting can get into the program.
#[derive(Debug, Clone, Copy)]
enum Way {
    Environment,
    /// `-D`, by the names of properties: `aeron.dir` for `AERON_DIR`.
    Definition,
    /// A file of properties.
    File,
}

impl Way {
    const ALL: [Self; 3] = [Self::Environment, Self::Definition, Self::File];

    fn give(self, command: &mut Command, variables: &BTreeMap<String, String>, home: &Path) {
        let properties = variables.iter().map(|(name, value)| {
            format!("{}={value}", name.to_ascii_lowercase().replace('_', "."))
        });
        match self {
            Self::Environment => _ = command.envs(variables),
            Self::Definition => {
                properties.for_each(|property| _ = command.arg("-D").arg(property));
            }
            Self::File => {
                let file = home.join("driver.properties");
                let text: String = properties.map(|property| property + "\n").collect();
                fs::write(&file, text).expect("a file");
                command.arg(file);
            }
        }
    }
}

/// Returns the printed text, and its names with their values or with the reason why there is no
/// value.
pub(super) fn print_config(command: &mut Command) -> (BTreeMap<String, String>, String) {
    let output = command.arg("--print-config").output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).expect("text");
    (values(&text), text)
}

fn values(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once('='));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A valid value that differs from the value printed without the variable.
fn another_value(name: &str, value: Option<&String>, home: &Path) -> String {
    let special = match name {
        "AERON_DIR" => home.join("aeron").display().to_string(),
        "AERON_EVENT_LOG_FILENAME" => home.join("events").display().to_string(),
        "AERON_EVENT_LOG" | "AERON_EVENT_LOG_DISABLE" => "CMD_OUT_ERROR".into(),
        "AERON_EVENT_LOG_FILE_MAX_LENGTH" => "1m".into(),
        // A power of two, and the trailer.
        "AERON_CONDUCTOR_BUFFER_LENGTH" => ((2 << 20) + 768).to_string(),
        "AERON_CLIENTS_BUFFER_LENGTH" => ((2 << 20) + 128).to_string(),
        "AERON_THREADING_MODE" => "SHARED_NETWORK".into(),
        "RUSTERON_DIR_ACCESS" => "group".into(),
        "RUSTERON_SEGMENTATION_OFFLOAD" => "off".into(),
        "RUSTERON_TERM_CLEANING" => "streaming".into(),
        "AERON_THREAD_NAMING" => "new".into(),
        "AERON_RECEIVER_GROUP_CONSIDERATION" => "true".into(),
        "AERON_RECEIVER_GROUP_TAG" => "-77".into(),
        "AERON_UNTETHERED_LINGER_TIMEOUT" => "3s".into(),
        "AERON_AGENT_ON_START_FUNCTION" => "aeron_set_thread_affinity_on_start".into(),
        "AERON_UNICAST_FLOWCONTROL_SUPPLIER" => "multicast_min".into(),
        "AERON_MULTICAST_FLOWCONTROL_SUPPLIER" => {
            "aeron_tagged_flow_control_strategy_supplier".into()
        }
        "AERON_CONGESTIONCONTROL_SUPPLIER" => "cubic".into(),
        "AERON_CUBICCONGESTIONCONTROL_MEASURERTT" => "true".into(),
        "AERON_CUBICCONGESTIONCONTROL_TCPMODE" => "true".into(),
        "AERON_CUBICCONGESTIONCONTROL_INITIALRTT" => "200us".into(),
        "AERON_SENDER_WILDCARD_PORT_RANGE" => "20000 20100".into(),
        "AERON_RECEIVER_WILDCARD_PORT_RANGE" => "21000 21100".into(),
        "AERON_NAME_RESOLVER_SUPPLIER" => "csv_table".into(),
        "AERON_NAME_RESOLVER_INIT_ARGS" => "server0,endpoint,localhost:24327".into(),
        "AERON_DRIVER_RESOLVER_NAME" => "first".into(),
        "AERON_DRIVER_RESOLVER_INTERFACE" => "127.0.0.1:8050".into(),
        "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR" => "127.0.0.1:8051".into(),
        "AERON_DRIVER_TERMINATION_VALIDATOR" => "allow".into(),
        "AERON_DRIVER_DYNAMIC_LIBRARIES" => "libc.so.6".into(),
        "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS" => "loss,fixed-loss".into(),
        "AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS" => "multi-gap-loss".into(),
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA"
        | "AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA" => {
            "aeron_udp_channel_transport_bindings_default".into()
        }
        // The default is the most there is.
        "AERON_DRIVER_STREAM_SESSION_LIMIT" => "100".into(),
        name if name.ends_with("IDLE_STRATEGY") => "aeron_idle_strategy_sleeping".into(),
        name if name.ends_with("IDLE_STRATEGY_INIT_ARGS") => "3ms".into(),
        name if name.ends_with("LOSS_ARGS") => "rate=0.5|seed=1".into(),
        _ => String::new(),
    };
    if !special.is_empty() {
        return special;
    }
    let value = value.unwrap_or_else(|| panic!("{name} has no default: give it a value here"));
    let digits = value.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(value.len());
    match (value.as_str(), value[..digits].parse::<i64>()) {
        ("true", _) => "false".into(),
        ("false", _) => "true".into(),
        // Lengths stay powers of two, durations keep their unit.
        (_, Ok(number @ 1..)) => format!("{}{}", number * 2, &value[digits..]),
        (_, Ok(number)) => format!("{}{}", number + 1, &value[digits..]),
        _ => panic!("{name}={value}: give it another value here"),
    }
}

#[test]
fn every_setting_is_printed() {
    let home = tempfile::tempdir().expect("a directory");
    let mut names = names_in_the_sources(Path::new(env!("RUSTERON_DRIVER_SOURCE")));
    assert!(names.len() > 120, "found {} only", names.len());
    // The variables that are not Aeron's.
    names.extend(
        [
            "RUSTERON_DIR_ACCESS",
            "RUSTERON_SEGMENTATION_OFFLOAD",
            "RUSTERON_STORAGE_CHECKS_COUNT_SPARSE",
            "RUSTERON_TERM_CLEANING",
        ]
        .map(str::to_owned),
    );
    let (defaults, text) = print_config(&mut media_driver(MEDIA_DRIVER));
    let shown: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.trim_start_matches("# ").split(['=', ' ']).next())
        .map(str::to_owned)
        .collect();
    assert_eq!(shown, names, "shown on the left, defined by C on the right");

    let unread =
        |name: &str| text.contains(&format!("# {name} is read by no part of the driver\n"));
    for name in names.iter().filter(|name| !unread(name)) {
        let value = another_value(name, defaults.get(name), home.path());
        assert_ne!(Some(&value), defaults.get(name), "{name}");
        let mut variables = required_with(name, home.path());
        variables.insert(name.clone(), value);
        // Only this variable changes, with the variables that it needs.
        let mut expected = defaults.clone();
        expected.extend(variables.clone());
        if name == "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY" {
            // Aeron's default of these arguments is for its default of the strategy.
            expected.remove("AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY_INIT_ARGS");
        }
        if name == "RUSTERON_SEGMENTATION_OFFLOAD" && cfg!(target_os = "linux") {
            // Aeron's defaults, without the offload.
            for vector in [
                "AERON_SENDER_IO_VECTOR_CAPACITY",
                "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND",
            ] {
                expected.insert(vector.to_owned(), "4".to_owned());
            }
        }
        for way in Way::ALL {
            let mut command = media_driver(MEDIA_DRIVER);
            way.give(&mut command, &variables, home.path());
            assert_eq!(print_config(&mut command).0, expected, "{name} by {way:?}");
        }
    }
}

/// Returns variables that a driver needs beside this one, or that redirect its output.
fn required_with(name: &str, home: &Path) -> BTreeMap<String, String> {
    let path = |file: &str| home.join(file).display().to_string();
    let required = match name {
        "AERON_DRIVER_RESOLVER_INTERFACE" => ("AERON_DRIVER_RESOLVER_NAME".into(), "me".into()),
        "AERON_EVENT_LOG" => ("AERON_EVENT_LOG_FILENAME".into(), path("log")),
        name => match name.strip_suffix("_INIT_ARGS") {
            Some(strategy) if strategy.ends_with("IDLE_STRATEGY") => {
                (strategy.to_owned(), "sleep-ns".to_owned())
            }
            _ => return BTreeMap::new(),
        },
    };
    BTreeMap::from([required])
}

#[test]
fn unread_variables() {
    let (_, text) = print_config(&mut media_driver(MEDIA_DRIVER));
    let unread: Vec<_> =
        text.lines().filter(|line| line.ends_with("is read by no part of the driver")).collect();
    assert_eq!(unread.len(), 9, "{unread:?}");
    let root = Path::new(env!("RUSTERON_DRIVER_SOURCE"));
    let sources = |file: &str| fs::read_to_string(root.join(file)).expect("a source");
    // The variables of the loss generators are read by a function that nothing calls.
    for file in ["aeron_driver_context.c", "aeron_driver.c", "aeronmd.c"] {
        assert!(!sources(file).contains("debug_channel_endpoint_configuration_install"), "{file}");
    }
    assert!(!sources("aeron_csv_table_name_resolver.c").contains("getenv"));
}

#[test]
fn print_config_round_trip() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("driver.properties");
    let variables = BTreeMap::from([
        ("AERON_TERM_BUFFER_LENGTH".to_owned(), "1m".to_owned()),
        ("AERON_TIMER_INTERVAL".to_owned(), "1500ms".to_owned()),
        ("AERON_RECEIVER_GROUP_TAG".to_owned(), "5".to_owned()),
    ]);
    let (first, text) = print_config(media_driver(MEDIA_DRIVER).envs(&variables));
    assert_eq!(first["AERON_TERM_BUFFER_LENGTH"], "1048576");
    fs::write(&file, text).expect("a file");
    let output =
        media_driver(MEDIA_DRIVER).arg("--print-config").arg(&file).output().expect("the program");
    let again = String::from_utf8(output.stdout).expect("text");
    assert_eq!(again, fs::read_to_string(&file).expect("the file"));
}

#[test]
fn preset_has_lowest_precedence() {
    let (defaults, _) = print_config(&mut media_driver(MEDIA_DRIVER));
    let with_preset = |command: &mut Command, preset: &str| {
        let output =
            command.args(["--preset", preset, "--print-config"]).output().expect("the program");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        values(&String::from_utf8(output.stdout).expect("text"))
    };
    for preset in Preset::ALL {
        let mut expected = defaults.clone();
        let variables = preset.variables();
        expected.extend(variables.map(|(name, value)| (name.to_owned(), value.into_owned())));
        assert_ne!(expected, defaults, "{preset}");
        assert_eq!(
            with_preset(&mut media_driver(MEDIA_DRIVER), preset.name()),
            expected,
            "{preset}"
        );
    }

    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("driver.properties");
    fs::write(&file, "aeron.ipc.term.buffer.length=128k\n").expect("a file");
    let mut command = media_driver(MEDIA_DRIVER);
    command
        .env("AERON_TERM_BUFFER_LENGTH", "64k")
        .args(["--idle", "yield", "-D", "aeron.timer.interval=50ms"])
        .arg(&file);
    let values = with_preset(&mut command, "embedded");
    for (name, value) in [
        ("AERON_THREADING_MODE", "SHARED"),
        ("AERON_TERM_BUFFER_LENGTH", "65536"),
        ("AERON_IPC_TERM_BUFFER_LENGTH", "131072"),
        ("AERON_TIMER_INTERVAL", "50ms"),
        ("AERON_SHARED_IDLE_STRATEGY", "yield"),
    ] {
        assert_eq!(values[name], value, "{name}");
    }

    let output =
        media_driver(MEDIA_DRIVER).args(["--preset", "fast"]).output().expect("the program");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("low-latency"));
}
