//! `rusteron cluster`.

use std::fs;
use std::path::Path;

use rusteron_cluster::codec::mark_file::{ComponentType, MarkFileHeader, STARTING, VERSION};
use serde_json::Value;

use crate::support::{Finished, array, command, json, launch, run, text_of};

/// A node without a driver.
struct Node(tempfile::TempDir);

impl Node {
    /// A node with a consensus module and two services, one of them elsewhere.
    fn new() -> Self {
        let node = Self(tempfile::tempdir().expect("a directory"));
        let module = node.header(ComponentType::ConsensusModule);
        node.write("cluster-mark.dat", &file(&module, &[("leader \x1b[2J is gone", 3)]));
        let service = MarkFileHeader {
            service_name: "orders".to_owned(),
            service_id: 0,
            activity_timestamp: -1,
            ..node.header(ComponentType::Container)
        };
        node.write("cluster-mark-service-0.dat", &file(&service, &[]));
        let marks = node.path().join("marks");
        fs::create_dir(&marks).expect("a directory");
        let service = MarkFileHeader { service_id: 1, activity_timestamp: STARTING, ..service };
        fs::write(marks.join("cluster-mark-service-1.dat"), file(&service, &[])).expect("written");
        node.write("cluster-mark-service-1.lnk", marks.to_string_lossy().as_bytes());
        let term = entry(4, 0, 0, 0);
        node.write("recording.log", &[term, entry(5, 0, 640, 1)].concat());
        node
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn header(&self, component_type: ComponentType) -> MarkFileHeader {
        MarkFileHeader {
            version: VERSION,
            component_type,
            activity_timestamp: 1_700_000_000_000,
            start_timestamp: 1_600_000_000_000,
            pid: 4711,
            candidate_term_id: -1,
            archive_stream_id: 10,
            service_stream_id: 104,
            consensus_module_stream_id: 105,
            ingress_stream_id: 101,
            member_id: 2,
            service_id: -1,
            header_length: 8192,
            error_buffer_length: 1024,
            cluster_id: 7,
            aeron_dir: self.path().join("driver").to_string_lossy().into_owned(),
            control_channel: "aeron:ipc".to_owned(),
            ingress_channel: String::new(),
            service_name: String::new(),
            authenticator: String::new(),
            services_cluster_dir: String::new(),
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).expect("written");
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        run(cluster(self.path(), arguments))
    }
}

fn cluster(dir: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = command(["cluster"]);
    command.arg(dir).args(arguments);
    command
}

/// A mark file with errors of one observation time.
fn file(header: &MarkFileHeader, errors: &[(&str, i32)]) -> Vec<u8> {
    let mut bytes = header.encode().expect("short texts");
    for (text, count) in errors {
        bytes.extend((24 + text.len() as i32).to_ne_bytes());
        bytes.extend(count.to_ne_bytes());
        bytes.extend(1_700_000_000_000_i64.to_ne_bytes());
        bytes.extend(1_600_000_000_000_i64.to_ne_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes.resize(8192 + 1024, 0);
    bytes
}

/// An entry of the recording log.
fn entry(recording_id: i64, term: i64, position: i64, kind: i32) -> Vec<u8> {
    let numbers = [recording_id, term, 0, position, 99];
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend((-1_i32).to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.resize(64, 0);
    bytes
}

fn report(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).expect("JSON")
}

#[test]
fn dead_node_is_described() {
    let node = Node::new();
    let finished = node.run(&["--json"]);
    finished.assert_exit_code(0);
    let cluster = report(&finished);
    assert_eq!(cluster["cluster_dir"], node.path().to_string_lossy().as_ref());
    assert_eq!(cluster["driver"]["state"], "absent");
    assert_eq!(cluster["node"], Value::Null);
    let components = array(&cluster, "components");
    let field = |name: &str| components.iter().map(|one| one[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("kind"), ["consensus-module", "service", "service"]);
    assert_eq!(field("state"), ["dead", "ended", "starting"]);
    assert_eq!(field("service_id"), [Value::Null, 0.into(), 1.into()]);
    let module = &components[0];
    assert_eq!((&module["version"], &module["pid"]), (&"0.3.0".into(), &4711.into()));
    assert_eq!(module["activity_time"], "2023-11-14T22:13:20.000Z");
    assert_eq!(array(module, "errors")[0]["observation_count"], 3);
    assert_eq!(array(&cluster, "terms")[0]["log_position"], 0);
    let snapshot = &array(&cluster, "snapshots")[0];
    assert_eq!((&snapshot["recording_id"], &snapshot["log_position"]), (&5.into(), &640.into()));
    let lines = text_of(node.run(&[]));
    for line in [
        "media driver ",
        "consensus-module: dead, silent for ",
        "service 0 (orders): ended in good order; process 4711; ",
        "service 1 (orders): starting",
        "    observed 3 times from 2020-",
        r"      leader \u{1b}[2J is gone",
        "1 terms:",
        "  consensus module: at 640 in term 0, recording 5, time 99",
    ] {
        assert!(lines.contains(line), "{line} in {lines}");
    }
}

#[test]
fn absent_node_exits_1() {
    let dir = tempfile::tempdir().expect("a directory");
    let finished = run(cluster(dir.path(), &[]));
    assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""));
    assert!(finished.stderr.contains("no cluster in "), "{finished:?}");
    let finished = run(cluster(&dir.path().join("missing"), &["--json"]));
    assert_eq!((finished.status.code(), finished.stdout.as_str()), (Some(1), ""));
    // Another file is where a directory has to be.
    let file = dir.path().join("file");
    fs::write(&file, "").expect("written");
    run(cluster(&file, &[])).assert_exit_code(1);
}

#[test]
fn damaged_files_are_named() {
    let whole = Node::new();
    let read = |name: &str| fs::read(whole.path().join(name)).expect("a file");
    let (mark, log) = (read("cluster-mark.dat"), read("recording.log"));
    let patched = |offset: usize, bytes: &[u8]| {
        let mut patched = mark.clone();
        patched[offset..][..bytes.len()].copy_from_slice(bytes);
        patched
    };
    // How headers and entries can be wrong is told by their codecs' tests.
    let cases: [(&str, Vec<u8>, &str); 4] = [
        ("cluster-mark.dat", mark[..100].to_vec(), "after 100 bytes"),
        ("cluster-mark-service-0.dat", patched(12, &[50]), "unknown component: type 50"),
        ("cluster-mark-service-1.lnk", b"\xff\xfe/nowhere".to_vec(), ""),
        ("recording.log", log[..127].to_vec(), "ends within the entry at byte 64"),
    ];
    for (name, bytes, error) in cases {
        let node = Node::new();
        node.write(name, &bytes);
        let finished = node.run(&["--json"]);
        if error.is_empty() {
            // A link to nowhere hides a component, as in Java.
            finished.assert_exit_code(0);
            continue;
        }
        finished.assert_exit_code(1);
        assert!(finished.stderr.contains(name) && finished.stderr.contains(error), "{finished:#?}");
        let cluster = report(&finished);
        let problem = &array(&cluster, "problems")[0];
        assert!(problem["file"].as_str().is_some_and(|file| file.ends_with(name)), "{problem}");
        // The rest of the node is described.
        assert!(!array(&cluster, "components").is_empty() || name == "cluster-mark.dat");
    }
    // Lengths and errors that lead outside are no errors of the file.
    for (offset, bytes) in
        [(72, [255; 4]), (76, [255, 255, 255, 127]), (8192, [255, 255, 255, 127])]
    {
        let node = Node::new();
        node.write("cluster-mark.dat", &patched(offset, &bytes));
        node.run(&["--json"]).assert_exit_code(0);
    }
}

#[test]
fn given_driver_comes_first() {
    let driver = launch();
    let node = Node::new();
    let cluster = json(driver.aeron_dir(), &["cluster", &node.path().to_string_lossy()]);
    assert_eq!(cluster["driver"]["state"], "alive");
    assert_eq!(cluster["node"], Value::Null);
}

#[cfg(unix)]
mod java {
    use rusteron_cluster::{ClusterClient, ClusterContext};
    use rusteron_test_support::cluster::{JavaCluster, Options};

    use super::*;
    use crate::support::{DEADLINE, text};

    #[test]
    fn java_node_is_described() {
        let Some(mut java) = JavaCluster::launch(Options::default()) else { return };
        let dir = java.node(0).cluster_dir();
        let describe = || report(&run(cluster(&dir, &["--json"])));
        let aeron = java.node(0).aeron();
        let mut context = ClusterContext::new();
        context
            .set_ingress_channel("aeron:ipc")
            .unwrap()
            .set_egress_channel("aeron:udp?endpoint=localhost:0")
            .unwrap()
            .set_message_timeout(DEADLINE)
            .unwrap();
        let client = ClusterClient::connect(&aeron, context).expect("a session");
        java.node_mut(0).toggle("snapshot");
        java.node_mut(0).await_that("a snapshot", |node| node.snapshot_count() == Some(1));
        let node = describe();
        assert_eq!(node["driver"]["state"], "alive");
        let about = &node["node"];
        for (name, value) in [
            ("role", "leader"),
            ("state", "active"),
            ("election_state", "closed"),
            ("control_toggle", "neutral"),
            ("node_control_toggle", "neutral"),
        ] {
            assert_eq!(about[name], value, "{name} in {about:#}");
        }
        for (name, value) in [("cluster_id", 0), ("leadership_term_id", 0), ("snapshots", 1)] {
            assert_eq!(about[name], value, "{name} in {about:#}");
        }
        assert!(about["commit_position"].as_i64().is_some_and(|position| position > 0));
        assert_eq!(about["errors"], 0);
        assert_eq!(array(&node, "services")[0]["service_id"], 0);
        let session = &array(&node, "sessions")[0];
        assert_eq!(session["cluster_session_id"], client.cluster_session_id().get());
        let components = array(&node, "components");
        let states: Vec<_> = components.iter().map(|one| (&one["kind"], &one["state"])).collect();
        let alive = Value::from("alive");
        assert_eq!(states, [(&"consensus-module".into(), &alive), (&"service".into(), &alive)]);
        assert_eq!(
            (&components[0]["member_id"], &components[1]["member_id"]),
            (&0.into(), &0.into())
        );
        assert_eq!(array(&node, "terms").len(), 1);
        let snapshots = array(&node, "snapshots");
        let owners: Vec<_> = snapshots.iter().map(|one| one["service_id"].clone()).collect();
        assert!(owners.contains(&Value::Null) && owners.contains(&0.into()), "{owners:?}");
        assert!(array(&node, "problems").is_empty());
        let lines = text_of(run(cluster(&dir, &[])));
        assert!(lines.contains("cluster 0: leader, term 0, commit position "), "{lines}");

        let roles = text(&java.node(0).aeron_dir(), &["stat", "--type", "cluster-role"]);
        assert!(roles.contains("Cluster node role"), "{roles}");
        let stat = json(&java.node(0).aeron_dir(), &["stat", "--type", "service-errors"]);
        assert_eq!(array(&stat, "counters")[0]["type_name"], "service-errors");

        drop(client);
        drop(aeron);
        java.shut_down();
        let node = describe();
        let components = array(&node, "components");
        assert!(components.iter().all(|one| one["state"] == "ended"), "{components:#?}");
        assert_eq!(array(&node, "terms").len(), 1);
        assert!(array(&node, "snapshots").len() >= 4);
    }
}
