//! A cluster of Java consensus modules with ledgers in Rust.

use std::ops::{Deref, DerefMut};
use std::thread;

use super::java_cluster::JavaCluster;
use super::java_node::PAUSE;
use super::ledger::Digests;
use super::options::Options;
use super::service_process::{ServiceProcess, ServiceProgram};
use crate::await_that;

/// A cluster whose members are a [`JavaNode`](super::JavaNode) and a [`Ledger`](super::ledger::Ledger) in a process of its
/// own, unless the service is in Java. Dropping it kills all.
#[derive(Debug)]
pub struct RustCluster {
    // Before the cluster, which kills the media drivers.
    services: Vec<Option<ServiceProcess>>,
    /// Starts of each service.
    starts: Vec<u32>,
    cluster: JavaCluster,
    program: ServiceProgram,
}

impl RustCluster {
    /// Starts a cluster, with a service in Rust for each member that has [`Service::None`](super::Service::None), and
    /// waits for its leader and followers. Without Java, says so: the test is then over.
    pub fn launch(options: Options, program: ServiceProgram) -> Option<Self> {
        let cluster = JavaCluster::launch(options)?;
        let members = cluster.members();
        let services = (0..members).map(|_| None).collect();
        let mut cluster = Self { services, starts: vec![0; members], cluster, program };
        cluster.start_services();
        cluster.await_leader();
        Some(cluster)
    }

    /// Starts the services in Rust that do not run beside members that run.
    pub fn start_services(&mut self) {
        for member in 0..self.cluster.members() {
            let node = self.cluster.node(member);
            if node.has_process() && node.needs_service() && self.services[member].is_none() {
                self.start_service(member);
            }
        }
    }

    fn start_service(&mut self, member: usize) {
        self.starts[member] += 1;
        let node = self.cluster.node(member);
        let log = node.dir().join(format!("service-log-{}", self.starts[member]));
        self.services[member] = Some(ServiceProcess::start(
            self.program,
            &node.aeron_dir(),
            &node.cluster_dir(),
            &node.digests(),
            log,
        ));
    }

    /// The service of a member in Rust, which runs or has ended by itself.
    pub fn service(&mut self, member: usize) -> &mut ServiceProcess {
        self.services[member].as_mut().expect("a service in Rust")
    }

    /// Kills all processes of a member with SIGKILL.
    pub fn kill(&mut self, member: usize) {
        self.cluster.node_mut(member).kill();
        self.kill_service(member);
    }

    /// Kills a member's service with SIGKILL, if it is in Rust.
    pub fn kill_service(&mut self, member: usize) {
        if let Some(mut service) = self.services[member].take() {
            service.kill();
        }
    }

    /// Waits until a member's consensus module and its service in Rust have ended by themselves. Returns the cause of
    /// the service's end.
    pub fn await_end(&mut self, member: usize) -> Option<String> {
        self.cluster.node_mut(member).await_end();
        self.services[member].take().map(|mut service| service.await_end())
    }

    /// Ends all members by a snapshot and an orderly end.
    pub fn shut_down(&mut self) {
        self.cluster.shut_down();
        for member in 0..self.cluster.members() {
            self.await_end(member);
        }
    }

    /// Starts a member that does not run.
    pub fn start(&mut self, member: usize) {
        assert!(self.services[member].is_none(), "a service without its member");
        self.cluster.node_mut(member).restart();
        self.start_services();
    }

    /// Starts all members that do not run, and waits for the leader.
    pub fn restart(&mut self) -> usize {
        for member in 0..self.cluster.members() {
            if !self.cluster.node(member).has_process() {
                self.start(member);
            }
        }
        self.await_leader()
    }

    /// Has the leader take a snapshot, and waits until all running members have taken it.
    pub fn snapshot(&mut self) {
        let leader = self.await_leader();
        let running: Vec<_> =
            (0..self.members()).filter(|&id| self.node(id).has_process()).collect();
        let counts: Vec<_> = running.iter().map(|&id| self.node(id).snapshot_count()).collect();
        self.node_mut(leader).toggle("snapshot");
        for (id, count) in running.into_iter().zip(counts) {
            self.node_mut(id).await_that("a snapshot", |node| node.snapshot_count() > count);
        }
    }

    /// Waits until all running members have the leader's last digest. Returns the digests of all members.
    ///
    /// # Panics
    /// Two digests differ at the same position.
    pub fn await_equal_digests(&self) -> Digests {
        let read = |files: &mut dyn Iterator<Item = usize>| {
            let files = files.map(|member| self.node(member).digests());
            Digests::read(files).unwrap_or_else(|error| panic!("the ledgers differ: {error}"))
        };
        let leader = self.await_leader();
        let last = read(&mut [leader].into_iter()).last_position().expect("a digest");
        for member in (0..self.members()).filter(|&id| self.node(id).has_process()) {
            await_that("the leader's last digest", || {
                thread::sleep(PAUSE);
                read(&mut [member].into_iter()).contains(last)
            });
        }
        read(&mut (0..self.members()))
    }
}

impl Deref for RustCluster {
    type Target = JavaCluster;

    fn deref(&self) -> &JavaCluster {
        &self.cluster
    }
}

impl DerefMut for RustCluster {
    fn deref_mut(&mut self) -> &mut JavaCluster {
        &mut self.cluster
    }
}
