//! Services in Rust beside Java's consensus module.

mod agent;
mod command_service;
mod one_node;
mod stand_in;
mod three_nodes;
mod tools;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use command_service::{CommandService, Seen};
use rusteron_client::{Aeron, CncFile};
use rusteron_cluster::{
    ClusterClient, ClusterContext, Egress, ServiceContainer, ServiceContext, TerminationCause,
};
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::{JavaCluster, Options, Service};

/// A member whose service is in this process.
struct Node {
    // Before the cluster, which kills the media driver.
    container: Option<ServiceContainer>,
    /// Another service of the node.
    second: Option<(ServiceContainer, Arc<Mutex<Seen>>)>,
    seen: Arc<Mutex<Seen>>,
    cluster: JavaCluster,
    context: ServiceContext,
}

impl Node {
    /// Starts a member and waits until it leads. `None` without Java.
    fn launch() -> Option<Self> {
        Self::launch_with(Options::default(), ServiceContext::new())
    }

    fn launch_with(options: Options, context: ServiceContext) -> Option<Self> {
        let mut node = Self::launch_alone(options, context)?;
        node.start_service();
        node.cluster.await_leader();
        Some(node)
    }

    /// Starts a member that waits for its service. `None` without Java.
    fn launch_alone(options: Options, context: ServiceContext) -> Option<Self> {
        let cluster = JavaCluster::launch(Options { service: Service::None, ..options })?;
        Some(Self { container: None, second: None, seen: Arc::default(), cluster, context })
    }

    /// Starts a member with two services, and waits until it leads.
    fn launch_two() -> Option<Self> {
        let properties = vec!["aeron.cluster.service.count=2".to_owned()];
        let options = Options { properties, ..Options::default() };
        let mut node = Self::launch_alone(options, ServiceContext::new())?;
        node.start_service();
        let mut context = node.context.clone();
        context.set_service_id(1).unwrap();
        let (service, seen) = CommandService::new();
        let container = ServiceContainer::launch(context, service).expect("a container");
        node.second = Some((container, seen));
        node.cluster.await_leader();
        Some(node)
    }

    fn start_service(&mut self) {
        let node = self.cluster.node(0);
        self.context
            .set_aeron_dir(node.aeron_dir())
            .unwrap()
            .set_cluster_dir(node.cluster_dir())
            .unwrap();
        let (service, seen) = CommandService::new();
        self.seen = seen;
        let container = ServiceContainer::launch(self.context.clone(), service);
        self.container = Some(container.expect("a container"));
    }

    /// Starts the member again, after its end, and waits until it leads.
    fn restart(&mut self) {
        self.restart_alone();
        self.start_service();
        self.cluster.await_leader();
    }

    /// Starts the member again, after its end, and waits until it waits for its service.
    fn restart_alone(&mut self) {
        assert!(self.container.is_none());
        self.cluster.node_mut(0).restart();
        self.cluster
            .node_mut(0)
            .await_that("a member without its service", |node| node.awaits_services());
    }

    /// Waits for the end of the service.
    fn await_service(&mut self) -> TerminationCause {
        let container = self.container.take().expect("a container");
        await_that("the end of the service", || !container.is_running());
        container.join()
    }

    /// Kills the consensus module with its driver, and waits for the service.
    fn kill(&mut self) -> TerminationCause {
        self.cluster.node_mut(0).kill();
        self.await_service()
    }

    /// Has the leader take a snapshot, and waits for it.
    fn snapshot(&mut self) {
        let node = self.cluster.node_mut(0);
        let count = node.snapshot_count();
        node.toggle("snapshot");
        node.await_that("a snapshot", |node| node.snapshot_count() > count);
    }

    fn client(&self) -> Client {
        Client::new(&self.cluster)
    }

    /// Position and digest after each event that this start of the service has seen.
    fn digests(&self) -> Vec<(i64, u64)> {
        self.seen.lock().expect("no panic").digests.clone()
    }

    fn lifecycle(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").lifecycle.clone()
    }

    /// Waits for the end after the consensus module's request.
    fn await_orderly_end(&mut self) {
        let cause = self.await_service();
        let is_orderly =
            matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
        assert!(is_orderly, "{cause:?}");
        assert!(self.cluster.node_mut(0).await_end().expect("a status").success());
    }

    /// Lets a callback panic when it is called next.
    fn set_trap(&self, callback: &'static str) {
        self.seen.lock().expect("no panic").trap = Some(callback);
    }

    /// The value of the first counter of a type.
    fn counter(&self, type_id: i32) -> Option<i64> {
        let cnc = CncFile::open(self.cluster.node(0).aeron_dir(), Duration::ZERO).ok()?;
        cnc.counters().iter().find(|counter| counter.type_id == type_id).map(|found| found.value)
    }
}

/// A session with the cluster.
struct Client {
    cluster: ClusterClient,
    received: Vec<String>,
    _aeron: Aeron,
}

impl Client {
    fn new(cluster: &JavaCluster) -> Self {
        let mut context = ClusterContext::new();
        context
            .set_ingress_channel("aeron:udp")
            .unwrap()
            .set_ingress_endpoints(cluster.ingress_endpoints().parse().expect("endpoints"))
            .unwrap()
            .set_egress_channel("aeron:udp?endpoint=localhost:0")
            .unwrap()
            .set_message_timeout(Duration::from_secs(30))
            .unwrap()
            .set_keep_alive_interval(Some(Duration::from_secs(1)))
            .unwrap();
        let aeron = cluster.node(0).aeron();
        let cluster = ClusterClient::connect(&aeron, context).expect("a session");
        Self { cluster, received: Vec::new(), _aeron: aeron }
    }

    fn send(&mut self, message: &str) {
        await_that("an accepted message", || {
            self.poll();
            self.cluster.offer(message.as_bytes()).is_ok()
        });
    }

    fn poll(&mut self) {
        let received = &mut self.received;
        let handler = |_: &mut _, event: Egress<'_>| {
            if let Egress::Message { payload, .. } = event {
                received.push(String::from_utf8(payload.to_vec()).expect("text"));
            }
        };
        self.cluster.poll_egress(handler, 10).expect("an open session");
    }

    /// Waits for the next message of the service.
    fn receive(&mut self) -> String {
        await_that("a message of the service", || {
            self.poll();
            !self.received.is_empty()
        });
        self.received.remove(0)
    }

    /// Sends a command, and returns the answer.
    fn ask(&mut self, message: &str) -> String {
        self.send(message);
        self.receive()
    }
}
