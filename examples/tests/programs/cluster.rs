//! Services beside Java's consensus module.

use std::process::{Command, Stdio};

use rusteron_test_support::cluster::{JavaCluster, Options, Service};
use rusteron_test_support::{ChildProcess, Running, command, free_port, java_run, run, succeed};

const AUCTION: &str = env!("CARGO_BIN_EXE_cluster_auction_service");
const ECHO: &str = env!("CARGO_BIN_EXE_cluster_echo_service");
const AUCTION_CLIENT: &str = env!("CARGO_BIN_EXE_cluster_auction");

/// A client of a cluster. Its timeout is long, for loaded machines.
fn client(path: &str, endpoints: &str) -> Command {
    let mut command = command(path, [""; 0]);
    command.env("AERON_CLUSTER_INGRESS_ENDPOINTS", endpoints);
    command.env("AERON_CLUSTER_MESSAGE_TIMEOUT", "60s");
    command
}

/// Exchanges messages with a cluster that echoes them.
pub(crate) fn echo(endpoints: &str) {
    let mut client = Running::start(client(env!("CARGO_BIN_EXE_cluster_echo"), endpoints));
    client.await_line("100 messages echoed; ");
    client.signal("INT");
    let finished = client.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "", "{finished:#?}");
    assert_eq!(finished.count_lines("Done: "), 1, "{finished:#?}");
}

/// A member whose service is a program of ours.
struct Node {
    // Before the cluster, which kills the media driver.
    service: ChildProcess,
    cluster: JavaCluster,
    path: &'static str,
}

impl Node {
    /// Starts a member and its service, and waits until it leads. `None` without Java.
    fn launch(path: &'static str) -> Option<Self> {
        let cluster =
            JavaCluster::launch(Options { service: Service::None, ..Options::default() })?;
        let service = start(path, &cluster);
        cluster.await_leader();
        Some(Self { service, cluster, path })
    }

    /// Ends the member by a snapshot and an orderly end. Returns the output of the service.
    fn shut_down(&mut self) -> String {
        self.cluster.shut_down();
        let (status, output, errors) = self.service.finish();
        assert!(status.success(), "{output}{errors}");
        assert!(output.contains("\nEnd: ended by the consensus module at position "), "{output}");
        output
    }

    /// Starts the member again, from its snapshot.
    fn restart(&mut self) {
        self.cluster.node_mut(0).restart();
        self.service = start(self.path, &self.cluster);
        self.cluster.await_leader();
    }
}

fn start(path: &str, cluster: &JavaCluster) -> ChildProcess {
    let node = cluster.node(0);
    let mut command = command(path, [""; 0]);
    command.env("AERON_DIR", node.aeron_dir()).env("AERON_CLUSTER_DIR", node.cluster_dir());
    ChildProcess::spawn(&mut command)
}

#[test]
fn missing_cluster_is_an_error() {
    for path in [env!("CARGO_BIN_EXE_cluster_echo"), AUCTION_CLIENT] {
        let mut command = client(path, &format!("0=localhost:{}", free_port()));
        command.env("AERON_CLUSTER_MESSAGE_TIMEOUT", "200ms");
        let finished = run(command);
        finished.assert_exit_code(1);
        assert!(finished.stderr.contains("no session after 200ms"), "{finished:#?}");
    }
}

#[test]
fn echo_service_answers_and_ends() {
    let Some(mut node) = Node::launch(ECHO) else { return };
    echo(&node.cluster.ingress_endpoints());
    let output = node.shut_down();
    assert!(output.starts_with("Start at position 0\nMember 0 is Leader\n"), "{output}");
}

#[test]
fn killed_node_ends_service_with_cause() {
    let Some(mut node) = Node::launch(ECHO) else { return };
    node.cluster.node_mut(0).kill();
    let (status, output, errors) = node.service.finish();
    assert_eq!(status.code(), Some(1), "{output}{errors}");
    let causes =
        ["\nEnd: the commit position counter has gone", "\nEnd: the Aeron client has closed: the"];
    assert!(causes.iter().any(|cause| output.contains(cause)), "{output}{errors}");
}

#[test]
fn interrupted_service_ends_its_node() {
    let Some(mut node) = Node::launch(ECHO) else { return };
    node.service.signal("INT");
    let (status, output, _) = node.service.finish();
    assert!(status.success() && output.ends_with("\nEnd: stopped\n"), "{output}");
    node.cluster.node_mut(0).await_end();
}

#[test]
fn auction_answers_java_and_rust() {
    let Some(mut node) = Node::launch(AUCTION) else { return };
    // Java's client appends `:9002` to the host's name, here as a part of an alias.
    let endpoint = node.cluster.node(0).ingress_endpoint();
    let property = |name: &str, value: &str| format!("-Daeron.cluster.tutorial.{name}={value}");
    let mut java = Command::new(java_run());
    java.arg("io.aeron.samples.cluster.tutorial.BasicAuctionClusterClient").args([
        property("customerId", "3"),
        property("numOfBids", "5"),
        property("bidIntervalMs", "20"),
        property("hostnames", &format!("{endpoint}|alias=java")),
    ]);
    // For loaded machines.
    java.args([
        "-Daeron.client.liveness.timeout=60s",
        "-Daeron.publication.unblock.timeout=70s",
        "-Daeron.cluster.message.timeout=60s",
    ]);
    java.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let finished = run(java);
    assert!(finished.status.success(), "{finished:#?}");
    assert_eq!(finished.count_lines("Sent("), 5, "{finished:#?}");
    assert_eq!(finished.count_lines("SessionMessage("), 5, "{finished:#?}");

    let finished = succeed(client(AUCTION_CLIENT, &node.cluster.ingress_endpoints()));
    let last = finished.stdout.lines().last().expect("a bid");
    let (_, leader) = last.split_once(": ").expect("an answer");
    let best: i64 = last.rsplit(' ').next().and_then(|it| it.parse().ok()).expect("a price");
    let first = finished.stdout.lines().next().expect("a customer");
    let (customer, _) = first.split_once(',').expect("a customer");
    assert!(best > 100 && leader.starts_with(&customer.to_lowercase()), "{finished:#?}");

    let output = node.shut_down();
    assert_eq!(output.matches("Customer 3 bids ").count(), 5, "{output}");
    node.restart();
    assert_eq!(node.service.await_line("Restored: "), format!("Restored: {leader}"));
}

#[test]
fn java_answers_bids() {
    let options = Options { service: Service::Auction, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let finished = succeed(client(AUCTION_CLIENT, &cluster.ingress_endpoints()));
    let prices: Vec<_> =
        finished.stdout.lines().skip(1).map(|line| line.rsplit(' ').next()).collect();
    let expected = ["103", "104", "104", "109", "112", "113", "113", "118", "121", "122"];
    assert_eq!(prices, expected.map(Some), "{finished:#?}");
}
