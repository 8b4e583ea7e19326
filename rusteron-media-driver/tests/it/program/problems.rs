//! Settings that the driver does not know or cannot read.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use rusteron_test_support::{DriverProcess, media_driver};

use super::configuration::{names_in_the_sources, print_config};
use crate::MEDIA_DRIVER;
use crate::settings::quantity;

/// Settings with a problem, and the parts of its description: setting with value, and reason.
const PROBLEMS: &[(&str, &str, &str)] = &[
    ("AERON_TERM_BUFER_LENGTH", "64k", "no such setting; AERON_TERM_BUFFER_LENGTH is one"),
    (
        "AERON_CLIENT_LIVENES_TIMEOUT",
        "10s",
        "no such setting; AERON_CLIENT_LIVENESS_TIMEOUT is one",
    ),
    ("AERON_QWERTY", "1", "no such setting"),
    ("RUSTERON_DIR_ACESS", "group", "no such setting; RUSTERON_DIR_ACCESS is one"),
    ("AERON_THREADING_MODE", "foo", "must be DEDICATED, SHARED_NETWORK, SHARED or INVOKER"),
    ("AERON_TIMER_INTERVAL", "1sec", "must be a duration with ns, us, ms or s, 1us or more"),
    ("AERON_MAX_RESEND", "1000", "must be an integer from 1 to 256"),
    ("AERON_DRIVER_TIMEOUT", "10s", "must be a number of milliseconds, such as 10000"),
    ("AERON_IPC_MTU_LENGTH", "100000", "must be a multiple of 32 from 64 to 65504"),
    ("AERON_RELIABLE_STREAM", "maybe", "must be true or false"),
    ("AERON_RECEIVER_GROUP_CONSIDERATION", "yes", "must be true, false or infer"),
    ("AERON_CUBICCONGESTIONCONTROL_INITIALRTT", "1sec", "must be a duration with ns, us, ms or s"),
    ("AERON_EVENT_LOG_DISABLE", "CMD_OUT_EROR", "must be codes of the event log"),
    ("AERON_DEBUG_SEND_DATA_LOSS_RATE", "0.5", "read by no part of the driver"),
];

/// The program in SHARED mode, unless the problem is the mode.
fn program(dir: &Path) -> Command {
    let mut command = media_driver(MEDIA_DRIVER);
    command.env("AERON_DIR", dir).args(["-D", "aeron.shared.idle.strategy=backoff"]);
    command
}

#[test]
fn problem_is_warning_or_error() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let described =
        |(name, value, reason): &(&str, &str, &str)| format!("{name}={value}: {reason}");
    for problem in PROBLEMS {
        let mut command = program(&dir);
        let (code, errors) =
            DriverProcess::run(command.env(problem.0, problem.1).arg("--strict")).end();
        assert_eq!(code, 78, "{errors}");
        assert!(errors.contains(&format!("media_driver: {}", described(problem))), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(!dir.exists(), "{errors}");
    }

    let all = || {
        let mut command = program(&dir);
        command.envs(PROBLEMS.iter().map(|(name, value, _)| (name, value)));
        command
    };
    let (code, errors) = DriverProcess::run(all().arg("--check-config")).end();
    assert_eq!(code, 78, "{errors}");
    for problem in PROBLEMS {
        assert!(errors.contains(&format!("media_driver: {}", described(problem))), "{errors}");
    }
    assert_eq!(errors.lines().count(), PROBLEMS.len(), "{errors}");
    assert!(!dir.exists());

    let mut driver = DriverProcess::run(&mut all());
    assert!(driver.line().starts_with("media driver ready"));
    let mut warnings: Vec<_> = PROBLEMS.iter().map(|_| driver.line()).collect();
    driver.signal("TERM");
    let (code, errors) = driver.end();
    assert_eq!(code, 0, "{errors}");
    // C's own, as in Aeron's program.
    assert!(errors.lines().all(|line| line.starts_with("WARNING: ")), "{errors}");
    for problem in PROBLEMS {
        let warning = format!("warning: {}", described(problem));
        let index = warnings.iter().position(|line| line.starts_with(&warning));
        warnings.remove(index.unwrap_or_else(|| panic!("{warning} is not in\n{warnings:?}")));
    }
}

/// Aeron's own launcher and system tests set these. They take any text on standard error for a
/// failure.
#[test]
fn accepted_settings_leave_standard_error_empty() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    for (name, value) in [
        ("AERON_PUBLICATION_LINGER_TIMEOUT", "0"),
        ("AERON_NAK_UNICAST_DELAY", "0"),
        ("AERON_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY", "backoff"),
        ("AERON_TERM_BUFER_LENGTH", "64k"),
        ("AERON_DRIVER_TIMEOUT", "10s"),
    ] {
        let mut driver = DriverProcess::run(program(&dir).env(name, value));
        assert!(driver.line().starts_with("media driver ready"));
        assert!(driver.line().starts_with(&format!("warning: {name}={value}: ")));
        driver.signal("TERM");
        assert_eq!(driver.end(), (0, String::new()), "{name}");
        let refused = DriverProcess::run(program(&dir).env(name, value).arg("--strict")).end();
        assert_eq!(refused.0, 78);
        assert!(refused.1.starts_with(&format!("media_driver: {name}={value}: ")), "{}", refused.1);
    }
}

#[test]
fn warning_names_the_value_instead() {
    let home = tempfile::tempdir().expect("a directory");
    for (name, value, instead) in [
        ("AERON_THREADING_MODE", "foo", "DEDICATED"),
        ("AERON_TIMER_INTERVAL", "1sec", "1s"),
        ("AERON_MAX_RESEND", "1000", "256"),
        ("AERON_DRIVER_TIMEOUT", "10s", "10"),
        ("AERON_RECEIVER_GROUP_CONSIDERATION", "yes", "false"),
    ] {
        let mut command = program(&home.path().join("aeron"));
        let output = command.env(name, value).arg("--print-config").output().expect("the program");
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).expect("text");
        let warning = text.lines().last().expect("a warning");
        assert!(warning.starts_with(&format!("# warning: {name}={value}: ")), "{text}");
        assert!(warning.ends_with(&format!("; the driver takes {instead}")), "{text}");
        assert!(text.contains(&format!("\n{name}={instead}\n")), "{text}");
    }
}

#[test]
fn values_that_stop_every_launch() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let durations = "must be a duration with ns, us, ms or s";
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("AERON_TERM_BUFFER_LENGTH", "100")],
            "AERON_TERM_BUFFER_LENGTH=100: must be a power of two from 64k to 1g",
        ),
        (
            &[("AERON_MTU_LENGTH", "1400")],
            "AERON_MTU_LENGTH=1400: must be a multiple of 32 from 64",
        ),
        (
            &[("AERON_FILE_PAGE_SIZE", "5k")],
            "AERON_FILE_PAGE_SIZE=5k: must be a power of two from 4k to 1g",
        ),
        (
            &[("AERON_CONDUCTOR_BUFFER_LENGTH", "2m")],
            "AERON_CONDUCTOR_BUFFER_LENGTH=2m: must be a power of two and 768 bytes",
        ),
        (
            &[("AERON_SENDER_IDLE_STRATEGY", "sleepy")],
            "AERON_SENDER_IDLE_STRATEGY=sleepy: must be sleep-ns",
        ),
        (
            &[
                ("AERON_SENDER_IDLE_STRATEGY", "sleep-ns"),
                ("AERON_SENDER_IDLE_STRATEGY_INIT_ARGS", "soon"),
            ],
            &format!("AERON_SENDER_IDLE_STRATEGY_INIT_ARGS=soon: {durations}"),
        ),
        (
            &[("AERON_NAME_RESOLVER_SUPPLIER", "dns")],
            "AERON_NAME_RESOLVER_SUPPLIER=dns: must be default, driver, csv_table",
        ),
        (
            &[("AERON_SENDER_WILDCARD_PORT_RANGE", "20000")],
            "AERON_SENDER_WILDCARD_PORT_RANGE=20000: must be the first and the last port",
        ),
        (
            &[("AERON_DRIVER_RESOLVER_INTERFACE", "localhost:0")],
            "AERON_DRIVER_RESOLVER_INTERFACE=localhost:0: needs AERON_DRIVER_RESOLVER_NAME",
        ),
        // Each value is valid by itself.
        (
            &[("AERON_TIMER_INTERVAL", "10s"), ("AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT", "20s")],
            "(AERON_CLIENT_LIVENESS_TIMEOUT): 10s is not longer than timer_interval \
             (AERON_TIMER_INTERVAL): 10s",
        ),
        (
            &[
                ("AERON_PUBLICATION_RESERVED_SESSION_ID_LOW", "-2147483648"),
                ("AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH", "2147483647"),
            ],
            "(AERON_PUBLICATION_RESERVED_SESSION_ID_LOW): -2147483648 reserves more than half of all session ids, up to \
             publication_reserved_session_id_high (AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH): 2147483647",
        ),
        (
            &[("AERON_PUBLICATION_RESERVED_SESSION_ID_LOW", "2000")],
            "(AERON_PUBLICATION_RESERVED_SESSION_ID_LOW): 2000 is greater than \
             publication_reserved_session_id_high (AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH): 1000",
        ),
        (
            &[("AERON_RCV_INITIAL_WINDOW_LENGTH", "4k"), ("AERON_MTU_LENGTH", "8k")],
            "(AERON_RCV_INITIAL_WINDOW_LENGTH): 4096 is less than mtu_length (AERON_MTU_LENGTH): 8192",
        ),
        (
            &[("AERON_RCV_INITIAL_WINDOW_LENGTH", "2147483647")],
            "(AERON_RCV_INITIAL_WINDOW_LENGTH): 2147483647 is more than the operating system grants for \
             socket_so_rcvbuf (AERON_SOCKET_SO_RCVBUF): ",
        ),
        (
            &[
                ("AERON_SENDER_IO_VECTOR_CAPACITY", "2"),
                ("AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND", "4"),
            ],
            "(AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND): 4 is more than \
             sender_io_vector_capacity (AERON_SENDER_IO_VECTOR_CAPACITY): 2",
        ),
    ];
    for (variables, text) in cases {
        for options in [&[][..], &["--check-config"]] {
            let mut command = program(&dir);
            command.envs(variables.iter().copied()).args(options);
            let (code, errors) = DriverProcess::run(&mut command).end();
            assert_eq!(code, 78, "{variables:?} {options:?}: {errors}");
            assert!(errors.contains(text), "{variables:?} {options:?}: {errors}");
            assert!(!dir.exists(), "{variables:?} {options:?}: {errors}");
        }
    }
}

#[test]
fn properties_are_checked_with_their_place() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let file = home.path().join("driver.properties");
    fs::write(&file, "aeron.term.bufer.length=64k\naeron.mtu.length=8192\nunknown.name=1\n")
        .expect("a file");
    let mut command = program(&dir);
    command
        .args(["--check-config", "-D", "aeron.timer.interval=1sec", "-Daeron.dirr=x"])
        .arg(&file);
    let (code, errors) = DriverProcess::run(&mut command).end();
    assert_eq!(code, 78, "{errors}");
    let place = file.display();
    for line in [
        format!(
            "{place}: aeron.term.bufer.length=64k: no such setting; aeron.term.buffer.length is one"
        ),
        format!("{place}: unknown.name=1: no such setting"),
        "-D aeron.timer.interval=1sec: must be a duration with ns, us, ms or s, 1us or more".into(),
        "-D aeron.dirr=x: no such setting; aeron.dir is one".into(),
    ] {
        let line = format!("media_driver: {line}");
        assert!(errors.lines().any(|other| other == line), "{line} is not in\n{errors}");
    }
    assert_eq!(errors.lines().count(), 4, "{errors}");

    // The properties that cannot be loaded are reported with the others.
    let mut command = program(&dir);
    let missing = home.path().join("missing");
    command.args(["--check-config", "-D", "nonsense", "-D", "aeron.dirr=x"]).arg(&missing);
    let (code, errors) = DriverProcess::run(&mut command).end();
    assert_eq!(code, 78, "{errors}");
    for text in ["-D nonsense", "-D aeron.dirr=x: no such setting", "missing"] {
        assert!(errors.contains(text), "{text} is not in\n{errors}");
    }
    assert!(!dir.exists());
}

#[test]
fn valid_configuration() {
    let home = tempfile::tempdir().expect("a directory");
    let (dir, log) = (home.path().join("aeron"), home.path().join("events"));
    let check = |options: &[&str]| {
        let mut command = program(&dir);
        command
            .args(["--check-config", "--preset", "embedded", "-D", "aeron.timer.interval=50ms"])
            .args(options)
            // Checking does not open the file.
            .envs([("AERON_EVENT_LOG", "admin"), ("AERON_EVENT_LOG_FILE_MAX_LENGTH", "1m")])
            .env("AERON_EVENT_LOG_FILENAME", &log);
        let output = command.output().expect("the program");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(output.status.code(), Some(0));
        assert!(!dir.exists() && !log.exists());
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(check(&[]), "the configuration is valid\n");
    assert_eq!(check(&["--strict"]), "the configuration is valid\n");
    let text = check(&["--print-config"]);
    assert!(text.contains("\nAERON_TIMER_INTERVAL=50ms\n"), "{text}");
    assert!(text.contains("\nAERON_EVENT_LOG=admin\n"), "{text}");
}

#[test]
fn names_of_other_programs_are_accepted() {
    let aeron = Path::new(env!("RUSTERON_DRIVER_SOURCE")).join("../../../..");
    let mut names = names_in_the_sources(&aeron.join("aeron-client/src/main/c"));
    names.extend(names_in_the_sources(&aeron.join("aeron-archive/src/main/c")));
    names.retain(|name| name != "AERON_AGENT_ON_START_FUNCTION");
    assert!(names.len() > 15, "{names:?}");
    let mut command = media_driver(MEDIA_DRIVER);
    command.arg("--check-config").env("AERON_CLUSTER_MEMBERS", "x").env("RUSTERON_REQUIRE_X", "1");
    command.env("AERON_CLIENT_SETTING_OF_LATER", "1");
    // A number is a valid value of those that the driver reads, too.
    command.envs(names.iter().map(|name| (name, "4096")));
    let output = command.output().expect("the program");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

/// Settings that a launch limits more narrowly than the reading of the variable does.
const LIMITED_BY_LAUNCH: &[&str] = &[
    "AERON_CLIENTS_BUFFER_LENGTH",
    "AERON_CONDUCTOR_BUFFER_LENGTH",
    "AERON_FILE_PAGE_SIZE",
    "AERON_IPC_MTU_LENGTH",
    "AERON_IPC_TERM_BUFFER_LENGTH",
    "AERON_MTU_LENGTH",
    "AERON_TERM_BUFFER_LENGTH",
];

/// Aeron limits numbers without a word. The limits in the program's table are the same.
#[test]
fn ranges_are_those_of_the_driver() {
    let (defaults, _) = print_config(&mut media_driver(MEDIA_DRIVER));
    let numbers: BTreeMap<_, _> = defaults
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), quantity(value).ok()?)))
        .filter(|(name, _)| !name.ends_with("_ARGS") && !LIMITED_BY_LAUNCH.contains(name))
        .collect();
    assert!(numbers.len() > 50, "{numbers:?}");
    let run = |value: &dyn Fn(&str) -> Option<i128>, options: &[&str]| {
        let mut command = media_driver(MEDIA_DRIVER);
        command.arg("--print-config").args(options);
        for name in numbers.keys() {
            command.envs(value(name).map(|value| (name, value.to_string())));
        }
        command.output().expect("the program")
    };
    // Aeron refuses this product, if it is too large.
    let is_factor = |name: &str| name.starts_with("AERON_NAK_UNICAST_");
    let (mut least, mut greatest) = (numbers.clone(), numbers.clone());
    let (i32s, i64s) = ([i32::MIN.into(), i32::MAX.into()], [i64::MIN.into(), i64::MAX.into()]);
    for probe in i32s.into_iter().chain(i64s).chain([0]) {
        let output = run(&|name| Some(probe).filter(|probe| *probe <= 0 || !is_factor(name)), &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for line in String::from_utf8(output.stdout).expect("text").lines() {
            let Some((name, value)) = line.split_once('=') else { continue };
            if let (Some(least), Some(greatest)) = (least.get_mut(name), greatest.get_mut(name)) {
                let value = quantity(value).expect("a number");
                *least = value.min(*least);
                *greatest = value.max(*greatest);
            }
        }
    }
    let refused = |value: &dyn Fn(&str) -> Option<i128>| {
        let output = run(value, &["--strict"]);
        let errors = String::from_utf8(output.stderr).expect("text");
        let name =
            |line: &str| Some(line.strip_prefix("media_driver: ")?.split_once('=')?.0.to_owned());
        let is_refusal = |line: &&str| !line.contains("because it has no unit");
        let names: Vec<_> = errors.lines().filter(is_refusal).filter_map(name).collect();
        assert_eq!(output.status.code(), Some(if names.is_empty() { 0 } else { 78 }), "{errors}");
        names
    };
    let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
    assert_eq!(refused(&|name| Some(least[name])), [""; 0]);
    assert_eq!(refused(&|name| Some(greatest[name]).filter(|_| !is_factor(name))), [""; 0]);
    let too_low = |name: &str| Some(least[name] - 1).filter(|low| *low >= min);
    let too_high =
        |name: &str| Some(greatest[name] + 1).filter(|high| *high <= max && !is_factor(name));
    let with_value = |value: &dyn Fn(&str) -> Option<i128>| {
        let names = numbers.keys().filter(|name| value(name).is_some());
        names.map(|name| (*name).to_owned()).collect::<Vec<_>>()
    };
    assert!(with_value(&too_low).len() > 50 && with_value(&too_high).len() > 20);
    assert_eq!(refused(&too_low), with_value(&too_low));
    assert_eq!(refused(&too_high), with_value(&too_high));
}

/// The names of functions and events in the program's table are those of Aeron's tables.
#[test]
fn functions_and_events_are_those_of_the_driver() {
    let driver = Path::new(env!("RUSTERON_DRIVER_SOURCE"));
    let agent = "../../../../aeron-client/src/main/c/aeron_agent.c";
    let bindings = "media/aeron_udp_channel_transport_bindings.c";
    let names = |file: &str, table: &str| {
        let source = fs::read_to_string(driver.join(file)).expect(file);
        let (_, table) = source.split_once(table).expect(table);
        let (table, _) = table.split_once("};").expect("an end");
        table.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let tables = [
        ("AERON_SENDER_IDLE_STRATEGY", names(agent, "aeron_idle_strategy_table[]")),
        ("AERON_UNICAST_FLOWCONTROL_SUPPLIER", names("aeron_flow_control.c", "_strategy_table[]")),
        ("AERON_CONGESTIONCONTROL_SUPPLIER", names("aeron_congestion_control.c", "_table[]")),
        ("AERON_NAME_RESOLVER_SUPPLIER", names("aeron_name_resolver.c", "_table[]")),
        ("AERON_DRIVER_TERMINATION_VALIDATOR", names("aeron_termination_validator.c", "_table[]")),
        ("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA", names(bindings, "_bindings_table[]")),
        ("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", names(bindings, "_interceptor_table[]")),
        ("AERON_EVENT_LOG", vec![names("agent/aeron_driver_agent.c", "log_events[]").join(",")]),
    ];
    assert!(tables[7].1[0].split(',').count() > 50, "{tables:?}");
    let longest = tables.iter().map(|(_, names)| names.len()).max().expect("tables");
    assert!(longest >= 12, "{tables:?}");
    for index in 0..longest {
        let mut command = media_driver(MEDIA_DRIVER);
        command.args(["--strict", "--print-config"]);
        command.envs(tables.iter().map(|(name, names)| (name, &names[index % names.len()])));
        let output = command.output().expect("the program");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{index}");
        assert_eq!(output.status.code(), Some(0), "{index}");
    }
}
