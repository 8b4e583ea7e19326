//! A fault campaign on a cluster with replicated services in Rust.
//!
//! A member is three processes: our media driver and archive, Java's consensus module, and a
//! ledger, which is a replicated service in Rust. The supervisor kills and pauses them at random,
//! as `strikes` chooses. As a supervisor of nodes has to, it starts a member again after the
//! member's processes have ended (`node`). Clients in the supervisor's process (`client`) keep the
//! rules for exactly-once answers.
//!
//! These conditions must hold:
//! - Ledgers have equal digests at equal positions of the log, on all members and across restarts.
//! - A request that was answered keeps its number; no request has two numbers, and no attempt two answers.
//! - After each fault, the cluster goes on to answer, and the member comes back and catches up.
//! - A service whose consensus module or media driver has gone ends by itself, with that cause.
//!
//! Half of the faults strike the leader, and a quarter are followed by another one within six seconds. Clients
//! ask for snapshots now and then, and restarted services load them. At the end, clients send all requests
//! again, one waits for the ledger's timers and messages to itself, and all members must have noted the same
//! last digest. Digests are compared every 100 events, at each snapshot, and with each answer.
//!
//! | Violation | Meaning |
//! |---|---|
//! | diverged | two digests differ at one position |
//! | lost | an answered request has another number now, or a timer or a message of the ledger to itself is missing |
//! | repeated | an attempt was answered twice, or a request was applied twice |
//! | corrupted | an answer to no attempt, or of a wrong length |
//! | stalled | no new answers within the deadline, or a member that did not catch up |
//! | stuck | a service goes on although its consensus module has gone |
//! | crashed | a driver or service has ended without a cause |
//! | unproved | no digests of different members were compared |
//!
//! `just survival cluster --duration 30m` runs it. `--diverge` is the negative control: the ledgers
//! digest the order in which a `HashMap` iterates, and the campaign must fail.

mod campaign;
mod client;
mod node;
mod parts;
mod strikes;

pub(crate) use campaign::{ClusterOptions, NAME, run};
pub(crate) use parts::play;
