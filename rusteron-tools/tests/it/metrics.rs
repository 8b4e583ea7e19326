//! `rusteron stat --openmetrics` and `--listen`.

use std::collections::{BTreeMap, BTreeSet};
#[cfg(unix)]
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

use rusteron_client::SystemCounter;
use rusteron_media_driver::Loss;

use crate::recording::recording;
#[cfg(unix)]
use crate::support::send_signal;
use crate::support::{
    Running, STREAM_ID, array, await_some, await_that, connect, connect_as, connected_pair,
    free_port, json, launch, launch_in, launch_with, offer, receive, run, rusteron, text,
    udp_channel,
};

/// The exporter of a directory, on a port of its own.
pub(crate) struct Exporter {
    pub(crate) program: Running,
    /// Host and port.
    pub(crate) address: String,
}

impl Exporter {
    pub(crate) fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[])
    }

    /// Starts the exporter with further options.
    pub(crate) fn start_with(dir: &Path, options: &[&str]) -> Self {
        let arguments = [&["stat", "--listen", "127.0.0.1:0"], options].concat();
        let mut program = Running::start(rusteron(dir, arguments));
        let line = program.line();
        let address = line.strip_prefix("serving http://").and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line}")).to_owned();
        Self { program, address }
    }

    /// The metrics for a scraper that sends no headers.
    fn metrics(&self) -> String {
        let answer = get(&self.address, "/metrics", "");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        body.to_owned()
    }
}

/// The answer to a request, with its head.
pub(crate) fn get(address: &str, path: &str, headers: &str) -> String {
    exchange(address, &format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n{headers}\r\n"))
}

fn exchange(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    // The answer may be there before the request has ended.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// The samples of a metric: the labels, and the value.
pub(crate) fn samples<'a>(metrics: &'a str, name: &str) -> BTreeMap<&'a str, &'a str> {
    let of_metric = |line: &'a str| {
        let (sample, value) = line.rsplit_once(' ')?;
        let labels = sample.strip_prefix(name)?;
        (labels.is_empty() || labels.starts_with('{')).then_some((labels, value))
    };
    metrics.lines().filter_map(of_metric).collect()
}

/// The names of the metrics in a text.
pub(crate) fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("aeron_")).collect()
}

#[test]
fn stream_has_labels_and_positions() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let aeron = connect_as(dir, "a \"name\" \\");
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc?alias=one");
    let first = offer(&mut publication, &[1; 100]);
    let second = offer(&mut publication, &[2; 200]);
    assert_eq!(subscription.poll(|_, _| {}, 1), Ok(1));
    let of = |registration_id: i64| {
        format!(
            "{{client_id=\"{}\",client_name=\"a \\\"name\\\" \\\\\",registration_id=\"{registration_id}\",\
             session_id=\"{}\",stream_id=\"{STREAM_ID}\",channel=\"aeron:ipc?alias=one\"}}",
            aeron.client_id(),
            publication.session_id()
        )
    };
    let (publisher, subscriber) =
        (of(publication.registration_id()), of(subscription.registration_id()));
    await_that("the positions", || {
        let metrics = text(dir, &["stat", "--openmetrics"]);
        let is = |name: &str, labels: &str, value: i64| {
            samples(&metrics, name).get(labels) == Some(&value.to_string().as_str())
        };
        is("aeron_up", "", 1)
            && is("aeron_publisher_position_bytes_total", &publisher, second)
            && is("aeron_subscriber_position_bytes_total", &subscriber, first)
            && is("aeron_subscriber_backlog_bytes", &subscriber, second - first)
            && is("aeron_subscriber_limits_publisher", &subscriber, 0)
            && is("aeron_publisher_back_pressured", &publisher, 0)
    });
}

#[test]
fn counter_type_decides_name_and_kind() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let aeron = connect(dir);
    let counter = aeron.add_counter(2000, b"", "line\nfeed \x1b\"").expect("a counter");
    counter.set(-7);
    let _subscription = aeron.add_subscription(udp_channel(), 1).expect("a subscription");
    let metrics = text(dir, &["stat", "--openmetrics"]);
    for line in [
        "# TYPE aeron_sent_bytes_total counter",
        "# TYPE aeron_mapped_bytes gauge",
        "# TYPE aeron_conductor_max_cycle_time_seconds gauge",
        "# TYPE aeron_receive_channel_status gauge",
        "# TYPE aeron_client_heartbeat_age_seconds gauge",
        "# TYPE aeron_error_log_observations_total counter",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line} in {metrics}");
    }
    let help = format!("# HELP aeron_errors_total {}.", SystemCounter::Errors);
    assert!(metrics.contains(&help), "{metrics}");
    let other = samples(&metrics, "aeron_other_value");
    let found = other.iter().find(|(labels, _)| labels.contains("type_id=\"2000\""));
    let (labels, value) = found.expect("the counter");
    assert!(labels.ends_with("label=\"line\\\\nfeed \\\\u{1b}\\\"\"}"), "{labels}");
    assert_eq!(*value, "-7");
}

#[test]
fn driver_counters_have_no_client() {
    let driver = launch();
    let dir = driver.aeron_dir();
    let aeron = connect_as(dir, "udp");
    let counter = aeron.add_counter(2000, b"", "mine").expect("a counter");
    let (_publication, _subscription) = connected_pair(&aeron, &udp_channel());
    let metrics = await_some("a local address", || {
        let metrics = text(dir, &["stat", "--openmetrics"]);
        metrics.contains("type_id=\"14\"").then_some(metrics)
    });
    let owners = |name: &str, part: &str| {
        let samples = samples(&metrics, name);
        let of_type = samples.keys().filter(|labels| labels.contains(part));
        of_type.map(|labels| labels.contains("client_id=")).collect::<Vec<_>>()
    };
    for (name, part) in [
        ("aeron_send_channel_status", ""),
        ("aeron_receive_channel_status", ""),
        ("aeron_other_value", "type_id=\"14\""),
    ] {
        let owners = owners(name, part);
        assert!(!owners.is_empty() && owners.iter().all(|is_client| !is_client), "{metrics}");
    }
    assert_eq!(owners("aeron_other_value", "type_id=\"2000\""), [true]);
    let clients = json(dir, &["clients"]);
    let listed: Vec<_> = array(&clients, "clients")
        .iter()
        .flat_map(|client| array(client, "counters"))
        .map(|listed| &listed["id"])
        .collect();
    assert_eq!(listed, [counter.counter_id()]);
}

#[test]
fn driver_info_has_versions() {
    let driver = launch();
    let metrics = text(driver.aeron_dir(), &["stat", "--openmetrics"]);
    let info = samples(&metrics, "aeron_driver_info");
    let labels = info.keys().next().expect("the driver");
    let version = format!(",version=\"{}\",", rusteron_client::AERON_VERSION);
    for label in [version.as_str(), ",cnc_version=\"0.2.", ",control_protocol=\"1."] {
        assert!(labels.contains(label), "{label} in {labels}");
    }
}

#[test]
fn exporter_outlives_drivers() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    // Before the first driver.
    let exporter = Exporter::start(&dir);
    let await_up = |value: &str| {
        await_that(value, || samples(&exporter.metrics(), "aeron_up").get("") == Some(&value));
    };
    await_up("0");
    assert_eq!(names(&exporter.metrics()).len(), 1, "no counters of a driver that is not there");
    for _ in 0..2 {
        let driver = launch_in(&dir);
        await_up("1");
        drop(driver);
        await_up("0");
    }
}

#[cfg(unix)]
#[test]
fn exporter_prints_each_failure_once() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let is_up = |exporter: &Exporter, value: &str| {
        samples(&exporter.metrics(), "aeron_up").get("") == Some(&value)
    };
    fs::write(&dir, "not a directory").expect("a file");
    let exporter = Exporter::start(&dir);
    for _ in 0..3 {
        assert!(is_up(&exporter, "0"));
    }
    fs::remove_file(&dir).expect("no file");
    let driver = launch_in(&dir);
    await_that("the driver", || is_up(&exporter, "1"));
    drop(driver);
    fs::remove_dir_all(&dir).expect("no directory");
    fs::write(&dir, "not a directory").expect("a file");
    assert!(is_up(&exporter, "0"));
    send_signal(exporter.program.id(), "TERM");
    let finished = exporter.program.finish();
    let line = format!("{} is a file", dir.display());
    assert_eq!(finished.stderr.matches(&line).count(), 2, "{finished:?}");
}

#[test]
fn scraper_chooses_openmetrics() {
    let driver = launch();
    let exporter = Exporter::start(driver.aeron_dir());
    let answer = get(&exporter.address, "/metrics", "Accept: application/openmetrics-text\r\n");
    assert!(
        answer.contains("Content-Type: application/openmetrics-text; version=1.0.0"),
        "{answer}"
    );
    assert!(answer.contains("# TYPE aeron_errors counter\naeron_errors_total 0\n"), "{answer}");
    assert!(answer.ends_with("\n# EOF\n"), "{answer}");
    let answer = exchange(&exporter.address, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(
        answer.contains("text/plain; version=0.0.4") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
}

#[cfg(unix)]
#[test]
fn signal_ends_exporter() {
    let driver = launch();
    for signal in ["INT", "TERM"] {
        let exporter = Exporter::start(driver.aeron_dir());
        let _idle = TcpStream::connect(&exporter.address).expect("a connection");
        send_signal(exporter.program.id(), signal);
        let finished = exporter.program.finish();
        assert_eq!((finished.status.code(), finished.stderr.as_str()), (Some(0), ""), "{signal}");
    }
}

#[test]
fn address_without_listener_exits_1() {
    let driver = launch();
    let exporter = Exporter::start(driver.aeron_dir());
    for address in [exporter.address.as_str(), "no.such.name.invalid:0"] {
        let finished = run(rusteron(driver.aeron_dir(), ["stat", "--listen", address]));
        assert_eq!(finished.status.code(), Some(1));
        let reason = format!("cannot listen on {address}: ");
        assert!(finished.stderr.contains(&reason), "{finished:?}");
    }
}

#[test]
fn exporter_needs_no_reader_of_its_line() {
    let driver = launch();
    let address = format!("127.0.0.1:{}", free_port());
    let mut exporter = rusteron(driver.aeron_dir(), ["stat", "--listen", &address])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    drop(exporter.stdout.take());
    let answers = || TcpStream::connect(&address).is_ok().then(|| get(&address, "/metrics", ""));
    let ended = await_some("an answer or the end", || match exporter.try_wait() {
        Ok(None) => answers().map(|answer| (None, answer)),
        ended => Some((Some(ended), String::new())),
    });
    // The program may have ended.
    let _ = exporter.kill();
    exporter.wait().expect("the end");
    assert!(ended.0.is_none() && ended.1.contains("aeron_up 1"), "{ended:?}");
}

/// The metrics of a driver with a client, a stream over UDP, losses, and the counters of an archive that records the
/// stream.
pub(crate) fn with_losses<T>(action: impl FnOnce(&Path) -> T) -> T {
    let losses = Loss { data_rate: 0.2, control_rate: 0.0, seed: 1 };
    let driver = launch_with(|context| context.set_receive_loss(Some(losses)));
    let aeron = connect_as(driver.aeron_dir(), "lossy");
    let (mut publication, mut subscription) = connected_pair(&aeron, &udp_channel());
    let _recording = recording(&aeron, publication.session_id(), 0);
    let archive_counter = |type_id| aeron.add_counter(type_id, b"", "archive").expect("a counter");
    let _archive: Vec<_> = (101..=112).map(archive_counter).collect();
    await_that("a loss", || {
        for _ in 0..100 {
            offer(&mut publication, &[7; 1000]);
            receive(&mut subscription, 1);
        }
        text(driver.aeron_dir(), &["stat", "--openmetrics"]).contains("aeron_lost_bytes_total{")
    });
    action(driver.aeron_dir())
}

/// Grafana's dashboard.
pub(crate) const DASHBOARD: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operating/grafana-dashboard.json");

/// The queries of the dashboard's panels.
pub(crate) fn queries() -> Vec<String> {
    let text = std::fs::read_to_string(DASHBOARD).expect("the dashboard");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let panels = array(&dashboard, "panels").iter();
    // The titles of rows are panels without queries.
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect()
}
