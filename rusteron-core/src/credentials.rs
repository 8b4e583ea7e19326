//! Credentials of a client, for an archive or a cluster.

/// Supplies the credentials that an archive or a cluster asks a client for.
///
/// Only the server's `Authenticator` interprets the bytes. Called while connecting, on the connecting thread. The setter
/// of the context says how many bytes are possible, and what follows a panic.
///
/// ```
/// use rusteron_core::CredentialsSupplier;
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
/// ```
///
/// Corresponds to `io.aeron.security.CredentialsSupplier`.
pub trait CredentialsSupplier: Send {
    /// Returns the credentials for a connect request. Can be called several times for one attempt to connect: until the
    /// request has been sent, and again if a cluster redirects the client to another member.
    fn encoded_credentials(&mut self) -> Vec<u8>;

    /// Returns the answer to a challenge, if the server does not accept the first credentials.
    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8>;
}
