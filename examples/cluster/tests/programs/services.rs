//! Services beside Java's consensus module.

use std::process::{Command, Stdio};

use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::{JavaCluster, Options, Service};
use rusteron_test_support::{ChildProcess, Running, command, java_run, run};

use crate::with_cluster;

const AUCTION: &str = env!("CARGO_BIN_EXE_cluster_auction_service");
const ECHO: &str = env!("CARGO_BIN_EXE_cluster_echo_service");
const BOOK: &str = env!("CARGO_BIN_EXE_cluster_order_book");

/// A member whose service is a program of ours.
struct Node {
    // Before the cluster, which kills the media driver.
    service: ChildProcess,
    cluster: JavaCluster,
    path: &'static str,
    task: &'static [&'static str],
}

impl Node {
    /// Starts a member and its service, and waits until it leads. `None` without Java.
    fn launch(path: &'static str, task: &'static [&'static str]) -> Option<Self> {
        let cluster =
            JavaCluster::launch(Options { service: Service::None, ..Options::default() })?;
        let service = start(path, task, &cluster);
        cluster.await_leader();
        Some(Self { service, cluster, path, task })
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
        self.service = start(self.path, self.task, &self.cluster);
        self.cluster.await_leader();
    }
}

fn start(path: &str, task: &[&str], cluster: &JavaCluster) -> ChildProcess {
    let node = cluster.node(0);
    let mut command = command(path, task);
    command.arg("--aeron-dir").arg(node.aeron_dir()).arg("--cluster-dir").arg(node.cluster_dir());
    ChildProcess::spawn(&mut command)
}

#[test]
fn echo_service_answers_and_ends() {
    let Some(mut node) = Node::launch(ECHO, &[]) else { return };
    let program = env!("CARGO_BIN_EXE_cluster_echo");
    let arguments = ["--messages", "300", "--warmup", "20", "--message-length", "5000"];
    let finished = with_cluster(&node.cluster, program, &arguments);
    finished.assert_exit_code(0);
    assert!(finished.stdout.ends_with("Done: 300 round trips measured\n"), "{finished:#?}");
    let output = node.shut_down();
    assert!(output.starts_with("Start at position 0\nMember 0 is Leader\nSession "), "{output}");
}

#[test]
fn killed_node_ends_service_with_cause() {
    let Some(mut node) = Node::launch(ECHO, &[]) else { return };
    node.cluster.node_mut(0).kill();
    let (status, output, errors) = node.service.finish();
    assert_eq!(status.code(), Some(1), "{output}{errors}");
    let (counter, client) =
        ("error: the commit position counter has gone", "error: the Aeron client has closed: the");
    assert!(errors.starts_with(counter) || errors.starts_with(client), "{errors}");
}

#[test]
fn interrupted_service_ends_its_node() {
    let Some(mut node) = Node::launch(ECHO, &[]) else { return };
    node.service.signal("INT");
    let (status, output, _) = node.service.finish();
    assert!(status.success() && output.ends_with("\nEnd: stopped\n"), "{output}");
    node.cluster.node_mut(0).await_end();
}

#[test]
fn auction_answers_java_and_rust() {
    let Some(mut node) = Node::launch(AUCTION, &[]) else { return };
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

    let program = env!("CARGO_BIN_EXE_cluster_auction");
    let arguments = ["--customer", "7", "--bids", "40", "--interval", "1ms"];
    let finished = with_cluster(&node.cluster, program, &arguments);
    finished.assert_exit_code(0);
    let last = finished.stdout.lines().rev().nth(1).expect("a bid");
    let best: i64 = last.rsplit(' ').next().and_then(|it| it.parse().ok()).expect("a price");
    assert!(best > 145 && last.contains("; customer 7 leads with "), "{finished:#?}");

    let output = node.shut_down();
    assert_eq!(output.matches("\nCustomer 3 bids ").count(), 5, "{output}");
    node.restart();
    let restored = node.service.await_line("Snapshot at position ");
    assert!(restored.ends_with(&format!(": customer 7 leads with {best}")), "{restored}");
}

#[test]
fn orders_trade_expire_and_survive_restart() {
    let Some(mut node) = Node::launch(BOOK, &["service"]) else { return };
    let endpoints = node.cluster.ingress_endpoints();
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let trader = |arguments: &[&str]| {
        let mut command = command(BOOK, ["--ingress-endpoints", &endpoints, "--aeron-dir"]);
        command.arg(driver.aeron_dir());
        command.args(arguments).env("AERON_CLUSTER_MESSAGE_TIMEOUT", "60s");
        command
    };
    let ask = |arguments: &[&str]| {
        let finished = run(trader(arguments));
        finished.assert_exit_code(0);
        // The number of a request is a time.
        finished.stdout.lines().map(without_number).collect::<Vec<_>>()
    };

    let mut seller = Running::start(trader(&["sell", "100", "5", "--trader", "1"]));
    let placed = without_number(&seller.line());
    assert_eq!(placed, "Placed { order_id: 1, filled: 0, resting: 5 }");
    let bought = ask(&["buy", "101", "3", "--trader", "2"]);
    assert_eq!(bought, ["Placed { order_id: 2, filled: 3, resting: 0 }"]);
    assert_eq!(seller.line(), "Filled { order_id: 1, price: 100, quantity: 3, resting: 2 }");
    seller.signal("INT");
    seller.finish().assert_exit_code(0);

    let expired = ask(&["buy", "90", "4", "--lifetime", "50ms"]);
    let expected =
        ["Placed { order_id: 3, filled: 0, resting: 4 }", "Expired { order_id: 3, quantity: 4 }"];
    assert_eq!(expired, expected);
    assert_eq!(ask(&["buy", "0", "4"]), ["Rejected { }"]);

    // Sold with a timer that fires after the restart.
    let mut buyer = Running::start(trader(&["buy", "80", "1", "--lifetime", "8s"]));
    assert_eq!(without_number(&buyer.line()), "Placed { order_id: 4, filled: 0, resting: 1 }");
    buyer.signal("INT");
    buyer.finish().assert_exit_code(0);

    let output = node.shut_down();
    assert!(output.contains("\nSnapshot of 2 orders\n"), "{output}");
    node.restart();
    node.service.await_line("Start at position ");
    let cancelled = ask(&["cancel", "1", "--trader", "2"]);
    assert_eq!(cancelled, ["Rejected { }"]);
    rusteron_test_support::await_that("the end of an order's lifetime", || {
        ask(&["status"]) == ["Status { orders: 1, best_bid: 0, best_ask: 100 }"]
    });
    let cancelled = ask(&["cancel", "1", "--trader", "1"]);
    assert_eq!(cancelled, ["Cancelled { order_id: 1, quantity: 2 }"]);

    let loaded = ask(&["load", "--orders", "300", "--warmup", "20", "--window", "16"]);
    assert_eq!(loaded.len(), 6);
    assert!(loaded[5].starts_with("Done: 300 orders, "), "{loaded:#?}");
}

/// Removes the number of a request, which differs in each run.
fn without_number(line: &str) -> String {
    let Some((head, tail)) = line.split_once("number: ") else { return line.to_owned() };
    let tail = tail.trim_start_matches(|it: char| it.is_ascii_digit());
    format!("{head}{}", tail.trim_start_matches(", ").trim_start())
}
