//! Authenticators and authorisations that settings name by Aeron's names.

use std::collections::HashMap;

use rusteron_core::settings::list;

use crate::control::authentication::{
    AcceptAll, AllowAll, Authentication, Authenticator, Authorisation,
};
use crate::ids::ControlSessionId;

type Named<T> = (&'static str, fn() -> Box<T>);

/// Authenticators by the class names of their suppliers in Java.
const AUTHENTICATORS: &[Named<dyn Authenticator>] = &[
    ("io.aeron.security.DefaultAuthenticatorSupplier", || Box::new(AcceptAll)),
    ("io.aeron.samples.archive.SampleAuthenticatorSupplier", || {
        Box::new(SampleAuthenticator::default())
    }),
];

const AUTHORISATIONS: &[Named<dyn Authorisation>] =
    &[("ALLOW_ALL", || Box::new(AllowAll)), ("DENY_ALL", || Box::new(DenyAll))];

/// Makes an authenticator by the class name of its supplier.
///
/// # Errors
/// The known names.
pub(crate) fn authenticator(supplier: &str) -> Result<Box<dyn Authenticator>, String> {
    make(AUTHENTICATORS, supplier)
}

/// Makes an authorisation by its name.
///
/// # Errors
/// The known names.
pub(crate) fn authorisation(name: &str) -> Result<Box<dyn Authorisation>, String> {
    make(AUTHORISATIONS, name)
}

fn make<T: ?Sized>(known: &[Named<T>], name: &str) -> Result<Box<T>, String> {
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, make)| make());
    found.ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        format!("must be {}", list(&names))
    })
}

/// Refuses every request.
struct DenyAll;

impl Authorisation for DenyAll {
    fn is_authorised(&mut self, _template_id: u16, _encoded_principal: &[u8]) -> bool {
        false
    }
}

/// The authenticator of Aeron's samples, which tests of archives use: `admin:admin` is accepted, and `admin:adminC` is
/// challenged for `admin:CSadmin`.
#[derive(Default)]
struct SampleAuthenticator {
    decisions: HashMap<ControlSessionId, Decision>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Accept,
    Challenge,
    Reject,
}

impl SampleAuthenticator {
    const PRINCIPAL: &[u8] = b"admin";
    const CHALLENGE: &[u8] = b"challenge!";
    const CREDENTIALS: &[u8] = b"admin:admin";
    const CREDENTIALS_TO_CHALLENGE: &[u8] = b"admin:adminC";
    const ANSWER: &[u8] = b"admin:CSadmin";
}

impl Authenticator for SampleAuthenticator {
    fn on_connect_request(
        &mut self,
        session_id: ControlSessionId,
        encoded_credentials: &[u8],
        _: i64,
    ) {
        let decision = match encoded_credentials {
            Self::CREDENTIALS => Decision::Accept,
            Self::CREDENTIALS_TO_CHALLENGE => Decision::Challenge,
            _ => Decision::Reject,
        };
        self.decisions.insert(session_id, decision);
    }

    fn on_challenge_response(
        &mut self,
        session_id: ControlSessionId,
        encoded_credentials: &[u8],
        _: i64,
    ) {
        let is_challenged = self.decisions.get(&session_id) == Some(&Decision::Challenge);
        let decision = match encoded_credentials {
            Self::ANSWER if is_challenged => Decision::Accept,
            Self::ANSWER => return,
            _ => Decision::Reject,
        };
        self.decisions.insert(session_id, decision);
    }

    fn on_connected_session(&mut self, session_id: ControlSessionId, _: i64) -> Authentication {
        match self.decisions.get(&session_id) {
            None => Authentication::Pending,
            Some(Decision::Challenge) => Authentication::Challenge(Self::CHALLENGE.to_vec()),
            Some(Decision::Accept) => Authentication::Accept(Self::PRINCIPAL.to_vec()),
            Some(Decision::Reject) => Authentication::Reject,
        }
    }

    /// A client that was challenged has no identity, as in Aeron's sample.
    fn on_challenged_session(&mut self, session_id: ControlSessionId, _: i64) -> Authentication {
        match self.decisions.get(&session_id) {
            None | Some(Decision::Challenge) => Authentication::Pending,
            Some(Decision::Accept) => Authentication::Accept(Vec::new()),
            Some(Decision::Reject) => Authentication::Reject,
        }
    }

    fn on_session_closed(&mut self, session_id: ControlSessionId) {
        self.decisions.remove(&session_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Box<dyn Authenticator> {
        authenticator("io.aeron.samples.archive.SampleAuthenticatorSupplier").expect("a sample")
    }

    #[test]
    fn sample_accepts_and_rejects() {
        let mut sample = sample();
        assert_eq!(sample.on_connected_session(1.into(), 0), Authentication::Pending);
        sample.on_connect_request(1.into(), b"admin:admin", 0);
        sample.on_connect_request(2.into(), b"", 0);
        assert_eq!(
            sample.on_connected_session(1.into(), 0),
            Authentication::Accept(b"admin".to_vec())
        );
        assert_eq!(sample.on_connected_session(2.into(), 0), Authentication::Reject);
        sample.on_session_closed(2.into());
        assert_eq!(sample.on_connected_session(2.into(), 0), Authentication::Pending);
    }

    #[test]
    fn sample_challenges() {
        for (answer, expected) in [
            (&b"admin:CSadmin"[..], Authentication::Accept(Vec::new())),
            (&b"admin:admin"[..], Authentication::Reject),
        ] {
            let mut sample = sample();
            sample.on_connect_request(1.into(), b"admin:adminC", 0);
            let challenge = Authentication::Challenge(b"challenge!".to_vec());
            assert_eq!(sample.on_connected_session(1.into(), 0), challenge);
            assert_eq!(sample.on_challenged_session(1.into(), 0), Authentication::Pending);
            sample.on_challenge_response(1.into(), answer, 0);
            assert_eq!(sample.on_challenged_session(1.into(), 0), expected);
        }
    }

    #[test]
    fn answer_without_challenge_changes_nothing() {
        let mut sample = sample();
        sample.on_connect_request(1.into(), b"wrong", 0);
        sample.on_challenge_response(1.into(), b"admin:CSadmin", 0);
        assert_eq!(sample.on_challenged_session(1.into(), 0), Authentication::Reject);
    }

    #[test]
    fn authorisations_allow_and_deny() {
        assert!(authorisation("ALLOW_ALL").expect("one").is_authorised(4, b"admin"));
        assert!(!authorisation("DENY_ALL").expect("one").is_authorised(4, b"admin"));
    }

    #[test]
    fn unknown_names_are_refused() {
        let error = authenticator("com.example.Mine").map(drop).expect_err("a class");
        assert_eq!(
            error,
            "must be io.aeron.security.DefaultAuthenticatorSupplier or \
             io.aeron.samples.archive.SampleAuthenticatorSupplier"
        );
        assert_eq!(authorisation("").map(drop), Err("must be ALLOW_ALL or DENY_ALL".to_owned()));
    }
}
