//! Clients of Java's services.

use rusteron_test_support::cluster::{JavaCluster, Options, Service};
use rusteron_test_support::{command, free_port, run};

use crate::with_cluster;

#[test]
fn echoes_are_measured() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let program = env!("CARGO_BIN_EXE_cluster_echo");
    for length in ["8", "10000"] {
        let arguments = ["--messages", "300", "--warmup", "20", "--message-length", length];
        let finished = with_cluster(&cluster, program, &arguments);
        finished.assert_exit_code(0);
        let lines: Vec<&str> = finished.stdout.lines().collect();
        assert!(lines[0].ends_with(", leader 0"), "{finished:#?}");
        assert!(lines[3].starts_with("     99% ") && lines[3].ends_with(" µs"), "{finished:#?}");
        assert_eq!(lines[6..], ["Done: 300 round trips measured"], "{finished:#?}");
    }
}

#[test]
fn bids_are_answered() {
    let options = Options { service: Service::Auction, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let program = env!("CARGO_BIN_EXE_cluster_auction");
    let arguments = ["--customer", "7", "--bids", "6", "--interval", "1ms"];
    let finished = with_cluster(&cluster, program, &arguments);
    finished.assert_exit_code(0);
    let lines: Vec<&str> = finished.stdout.lines().collect();
    let expected = [
        "Bid 103: accepted; customer 7 leads with 103",
        "Bid 104: accepted; customer 7 leads with 104",
        "Bid 104: too low; customer 7 leads with 104",
        "Bid 109: accepted; customer 7 leads with 109",
        "Bid 112: accepted; customer 7 leads with 112",
        "Bid 113: accepted; customer 7 leads with 113",
        "Done: 6 bids",
    ];
    assert_eq!(lines[1..], expected, "{finished:#?}");
}

#[test]
fn missing_cluster_is_an_error() {
    let port = free_port();
    for program in [env!("CARGO_BIN_EXE_cluster_echo"), env!("CARGO_BIN_EXE_cluster_auction")] {
        let mut command = command(program, ["--ingress-endpoints", &format!("0=localhost:{port}")]);
        command.env("AERON_CLUSTER_MESSAGE_TIMEOUT", "200ms");
        let finished = run(command);
        finished.assert_exit_code(1);
        assert!(
            finished.stderr.starts_with("error: timeout: no session after 200ms"),
            "{finished:#?}"
        );
    }
}
