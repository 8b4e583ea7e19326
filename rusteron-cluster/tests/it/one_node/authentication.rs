//! Credentials, challenges, and the rights of a principal.

use rusteron_cluster::{
    AdminResponseCode, ClusterClient, ClusterError, ClusterErrorKind, CredentialsSupplier,
};
use rusteron_test_support::cluster::{JavaCluster, Options, Service};

use super::{Host, context, request, request_snapshot};

/// Supplies credentials, and answers challenges with a text.
struct Credentials(&'static str, &'static str);

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        self.0.into()
    }

    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
        let challenge = String::from_utf8_lossy(encoded_challenge);
        assert!(challenge.starts_with("password of "), "{challenge}");
        self.1.into()
    }
}

fn connect(
    host: &Host,
    cluster: &JavaCluster,
    credentials: Credentials,
) -> Result<ClusterClient, ClusterError> {
    let mut settings = context(cluster);
    settings.set_credentials_supplier(credentials);
    ClusterClient::connect(&host.aeron, settings)
}

#[test]
fn credentials_challenge_and_rights() {
    let options = Options { service: Service::Number, ..Options::default() }.with_security();
    let Some(mut cluster) = JavaCluster::launch(options) else { return };
    let host = Host::new();

    // The service sees the principal.
    let mut ann = connect(&host, &cluster, Credentials("ann", "")).expect("a session");
    assert_eq!(request(&mut ann, b"p"), b"ann");

    let bob = Credentials("challenge:bob", "secret of bob");
    let mut bob = connect(&host, &cluster, bob).expect("a session");
    assert_eq!(request(&mut bob, b"p"), b"bob");

    for (credentials, answer) in [("challenge:bob", "wrong"), ("reject me", "")] {
        let error = connect(&host, &cluster, Credentials(credentials, answer)).unwrap_err();
        assert_eq!(error.kind(), ClusterErrorKind::AuthenticationRejected, "{error}");
    }

    let (code, text) = request_snapshot(&mut ann);
    assert_eq!(code, AdminResponseCode::UnauthorisedAccess, "{text}");
    assert!(!text.is_empty());
    assert_eq!(cluster.node(0).snapshot_count(), Some(0));

    let mut operator = connect(&host, &cluster, Credentials("operator", "")).expect("a session");
    let (code, text) = request_snapshot(&mut operator);
    assert_eq!(code, AdminResponseCode::Ok, "{text}");
    cluster.node_mut(0).await_that("the snapshot", |node| node.snapshot_count() == Some(1));
    assert_eq!(request(&mut ann, b"p"), b"ann");
}
