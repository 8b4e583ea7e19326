//! Credentials of a client.

/// Supplies the credentials that a cluster asks a client for.
///
/// Only the cluster's `Authenticator` interprets the bytes. The default is no credentials. Called
/// while connecting, on the polling thread. A panic goes through to the caller of the poll.
///
/// ```
/// use rusteron_cluster::{ClusterContext, CredentialsSupplier};
///
/// struct Token(Vec<u8>);
///
/// impl CredentialsSupplier for Token {
///     fn encoded_credentials(&mut self) -> Vec<u8> {
///         self.0.clone()
///     }
///
///     fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
///         [&self.0, encoded_challenge].concat()
///     }
/// }
///
/// let mut context = ClusterContext::new();
/// context.set_credentials_supplier(Token(b"admin:admin".to_vec()));
/// ```
///
/// Corresponds to `io.aeron.security.CredentialsSupplier`.
pub trait CredentialsSupplier: Send {
    /// Returns the credentials for a connect request. Called again if the cluster redirects the
    /// client to another member.
    fn encoded_credentials(&mut self) -> Vec<u8>;

    /// Returns the answer to a challenge, if the cluster does not accept the first credentials.
    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8>;
}

/// Supplies empty credentials.
pub(crate) struct NoCredentials;

impl CredentialsSupplier for NoCredentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn on_challenge(&mut self, _encoded_challenge: &[u8]) -> Vec<u8> {
        Vec::new()
    }
}
