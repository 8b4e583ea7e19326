//! A cluster of Java nodes.

use std::fs::File;
use std::process::Command;

use tempfile::TempDir;

use super::java_node::JavaNode;
use super::options::{AeronVersion, Options};
use super::ports::Ports;
use crate::requirements::is_there;
use crate::{await_some, has_java, java_run, memory_dir};

/// A cluster of one member or more, in directories and at ports of its own. Dropping it kills the processes and removes
/// the directories. The output of the processes is printed if the test fails.
#[derive(Debug)]
pub struct JavaCluster {
    // Before the directory, which is removed afterwards.
    nodes: Vec<JavaNode>,
    root: TempDir,
    options: Options,
    _turn: Option<Turn>,
}

impl JavaCluster {
    /// Starts a cluster and waits for its leader and followers; for members without services, until they wait for
    /// services. Without Java, says so: the test is then over.
    pub fn launch(options: Options) -> Option<Self> {
        if !has_java() {
            return None;
        }
        if options.versions.contains(&AeronVersion::Compiled) && !has_compiled_aeron() {
            return None;
        }
        let turn = (options.members > 1).then(|| Turn::take("cluster-tests"));
        let root = memory_dir("rusteron-cluster-").expect("a directory");
        let mut cluster = Self { nodes: Vec::new(), root, options, _turn: turn };
        // A port that is free now can be taken before the member gets it.
        for attempt in 0..5 {
            cluster.nodes = cluster.new_nodes(attempt);
            cluster.nodes.iter().for_each(JavaNode::prepare);
            cluster.nodes.iter_mut().for_each(JavaNode::start);
            if cluster.is_ready() {
                return Some(cluster);
            }
        }
        panic!("the cluster does not start");
    }

    fn new_nodes(&self, attempt: u32) -> Vec<JavaNode> {
        let ports: Vec<_> = (0..self.options.members).map(|_| Ports::new()).collect();
        let new_node = |id| {
            let root = self.root.path().join(format!("{attempt}-{id}"));
            JavaNode::new(id, root, &self.options, &ports)
        };
        (0..ports.len()).map(new_node).collect()
    }

    /// Waits until all members have elected; `false` if one ended instead.
    fn is_ready(&mut self) -> bool {
        await_some("all members have elected a leader", || {
            std::thread::sleep(super::java_node::PAUSE);
            if let Some(node) =
                self.nodes.iter_mut().find_map(|node| (!node.is_running()).then_some(node))
            {
                eprintln!("{}", node.log());
                return Some(false);
            }
            self.has_elected_or_waits().then_some(true)
        })
    }

    /// Without a service, a consensus module elects nobody before services of other processes are there.
    fn has_elected_or_waits(&self) -> bool {
        let mut waiting = self.nodes.iter().filter(|node| node.needs_service()).peekable();
        if waiting.peek().is_none() {
            return self.has_elected();
        }
        waiting.all(JavaNode::awaits_services)
    }

    /// Returns whether one member leads, and all others that run follow.
    fn has_elected(&self) -> bool {
        let leaders = self.nodes.iter().filter(|node| node.is_leader()).count();
        let followers = self.nodes.iter().filter(|node| node.is_follower()).count();
        leaders == 1 && leaders + followers == self.started()
    }

    fn started(&self) -> usize {
        self.nodes.iter().filter(|node| node.has_process()).count()
    }

    /// Waits until one member leads, and all others that were not killed or stopped follow. Returns the leader's id.
    pub fn await_leader(&self) -> usize {
        await_some("one leader, which all others follow", || {
            std::thread::sleep(super::java_node::PAUSE);
            let leader = self.nodes.iter().position(JavaNode::is_leader);
            leader.filter(|_| self.has_elected())
        })
    }

    /// The ids of all members but the leader.
    pub fn followers(&self) -> Vec<usize> {
        let leader = self.await_leader();
        (0..self.nodes.len()).filter(|&id| id != leader).collect()
    }

    /// Ends all members by a snapshot and an orderly end: the leader's toggle `shutdown`.
    pub fn shut_down(&mut self) {
        let leader = self.await_leader();
        self.nodes[leader].toggle("shutdown");
        for node in &mut self.nodes {
            if let Some(status) = node.await_end() {
                assert!(status.success(), "member {}: {status}", node.member_id());
            }
        }
    }

    /// Starts all members that do not run, and waits for the leader.
    pub fn restart(&mut self) -> usize {
        for node in &mut self.nodes {
            if !node.has_process() {
                node.restart();
            }
        }
        self.await_leader()
    }

    pub fn members(&self) -> usize {
        self.nodes.len()
    }

    pub fn node(&self, member_id: usize) -> &JavaNode {
        &self.nodes[member_id]
    }

    pub fn node_mut(&mut self, member_id: usize) -> &mut JavaNode {
        &mut self.nodes[member_id]
    }

    /// `ID=localhost:PORT,…` of all members.
    pub fn ingress_endpoints(&self) -> String {
        self.ingress_endpoints_of(0..self.nodes.len())
    }

    /// The same of some members.
    pub fn ingress_endpoints_of(&self, member_ids: impl IntoIterator<Item = usize>) -> String {
        let endpoint = |id: usize| format!("{id}={}", self.nodes[id].ingress_endpoint());
        member_ids.into_iter().map(endpoint).collect::<Vec<_>>().join(",")
    }
}

/// Compiles Aeron's Java code, unless that was done before. If that fails, says why, and the test is over.
/// `RUSTERON_REQUIRE_JAVA=1` makes that a failure.
pub fn has_compiled_aeron() -> bool {
    let _turn = Turn::take("compile-aeron");
    let script = java_run().with_file_name("compile-aeron");
    let output = Command::new(script).output().expect("the script starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    is_there(&if output.status.success() { Ok(()) } else { Err(errors.into_owned()) })
}

/// A lock that one process has at a time. Dropping it lets the next process begin.
#[derive(Debug)]
struct Turn {
    _file: File,
}

impl Turn {
    /// Waits for the turn, without a deadline: a queue of tests may be before this one.
    fn take(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rusteron-{name}.lock"));
        let file = File::options().create(true).append(true).open(&path).expect("a lock file");
        #[cfg(unix)]
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        Self { _file: file }
    }
}
