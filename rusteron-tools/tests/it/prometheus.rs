//! The metrics, read by a real Prometheus.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rusteron_test_support::skip;
use serde_json::Value;

use crate::metrics::{Exporter, get, queries, with_losses};
use crate::support::{Running, await_some, free_port};

/// Returns whether a program of Prometheus is installed. If not, says so, and the test is over.
/// `RUSTERON_REQUIRE_PROMETHEUS=1` makes that a failure.
fn has(program: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    if version.is_ok_and(|output| output.status.success()) {
        return true;
    }
    skip("RUSTERON_REQUIRE_PROMETHEUS", &format!("{program} does not run"));
    false
}

/// A Prometheus that reads one exporter.
struct Prometheus {
    // Dropping it kills the process.
    _program: Running,
    address: String,
}

impl Prometheus {
    fn start(home: &Path, exporter: &Exporter) -> Self {
        let configuration = format!(
            "scrape_configs:\n- job_name: aeron\n  scrape_interval: 1s\n  scrape_timeout: 1s\n  \
             static_configs:\n  - targets: ['{}']\n",
            exporter.address
        );
        let file = home.join("prometheus.yml");
        fs::write(&file, configuration).expect("a file");
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", home.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        let program = Running::start(command);
        let prometheus = Self { _program: program, address };
        await_some("Prometheus", || std::net::TcpStream::connect(&prometheus.address).ok());
        prometheus
    }

    /// The result of a query. `None` until it has one.
    fn query(&self, query: &str) -> Option<Vec<Value>> {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = get(&self.address, &format!("/api/v1/query?query={escaped}"), "");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
        let value: Value = serde_json::from_str(body).unwrap_or(Value::Null);
        assert_ne!(value["status"], "error", "{query}: {value}");
        let result = value["data"]["result"].as_array()?.clone();
        (!result.is_empty()).then_some(result)
    }
}

#[test]
fn scraped_metrics_answer_dashboard() {
    if !has("prometheus") {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    with_losses(|dir| {
        let archive_dir = dir.to_str().expect("UTF-8");
        let exporter = Exporter::start_with(dir, &["--archive-dir", archive_dir]);
        let prometheus = Prometheus::start(home.path(), &exporter);
        let read = await_some("a position", || {
            prometheus.query("aeron_subscriber_position_bytes_total{client_name=\"lossy\"}")
        });
        let labels = &read[0]["metric"];
        assert_eq!((&labels["stream_id"], &labels["job"]), (&"1001".into(), &"aeron".into()));
        for label in ["client_id", "session_id", "registration_id"] {
            assert!(labels[label].as_str().is_some_and(|id| id.parse::<i64>().is_ok()), "{labels}");
        }
        assert!(labels["channel"].as_str().is_some_and(|text| text.starts_with("aeron:udp?")));
        for query in queries() {
            // Grafana replaces its variables.
            let query = query.replace("$__rate_interval", "1m").replace("$instance", ".*");
            assert!(!query.contains('$'), "{query}");
            await_some(&query, || prometheus.query(&query));
        }
        // Prometheus asks for OpenMetrics, and reads all of it.
        let up = await_some("the scrape", || prometheus.query("up{job=\"aeron\"}"));
        assert_eq!(up[0]["value"][1], "1");
    });
}
