//! The container's client of an archive that authenticates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rusteron_archive::CredentialsSupplier;
use rusteron_cluster::ServiceContext;
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::Options;

use super::Node;

/// Supplies credentials, and answers the challenge of the user ann.
struct Credentials(&'static str);

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        self.0.into()
    }

    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
        assert_eq!(encoded_challenge, b"password of ann?");
        b"secret of ann".to_vec()
    }
}

#[test]
fn snapshots_of_an_archive_with_an_authenticator() {
    let property = "aeron.archive.authenticator.supplier=PasswordAuthenticator$Supplier";
    let options = Options { properties: vec![property.to_owned()], ..Options::default() };
    let has_password = Arc::new(AtomicBool::new(true));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let mut context = ServiceContext::new();
    let (with_password, seen) = (Arc::clone(&has_password), Arc::clone(&errors));
    context
        .set_archive_configurator(move |archive| {
            let is_ann = with_password.load(Ordering::Relaxed);
            let credentials = if is_ann { "challenge:ann" } else { "reject me" };
            archive.set_credentials_supplier(Credentials(credentials)).map(drop)
        })
        .set_error_handler(move |error| seen.lock().expect("no panic").push(error.to_owned()));
    let Some(mut node) = Node::launch_with(options, context) else { return };
    node.snapshot();
    node.kill();
    node.restart();
    assert!(node.lifecycle()[0].starts_with("load"), "{:?}", node.lifecycle());
    assert_eq!(*errors.lock().expect("no panic"), [""; 0]);

    has_password.store(false, Ordering::Relaxed);
    node.cluster.node_mut(0).toggle("snapshot");
    await_that("a refused connection to the archive", || {
        let errors = errors.lock().expect("no panic");
        errors.iter().any(|error| error.contains("no snapshot") && error.contains("reject"))
    });
}
