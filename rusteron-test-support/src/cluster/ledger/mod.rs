//! A replicated service that digests its events: the oracle of tests with several members.

mod digests;
mod ledger;
mod state;

pub use digests::{DigestFile, Digests};
pub use ledger::Ledger;
