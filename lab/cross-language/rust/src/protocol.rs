//! The messages of `service.proto`.

#![expect(missing_docs, reason = "generated")]

include!(concat!(env!("OUT_DIR"), "/crosslanguage.rs"));

pub use request::Operation;
pub use response::Outcome;

impl Failure {
    /// Returns the failure of a status, with a text for the caller.
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status: status.into(), text: text.into() }
    }
}

impl From<Operation> for Request {
    /// Returns a request without a correlation id.
    fn from(operation: Operation) -> Self {
        Self { correlation_id: 0, operation: Some(operation) }
    }
}

impl Response {
    /// Returns the response to a request.
    pub fn new(correlation_id: i64, result: Result<Outcome, Failure>) -> Self {
        let outcome = result.unwrap_or_else(Outcome::Failure);
        Self { correlation_id, outcome: Some(outcome) }
    }
}
