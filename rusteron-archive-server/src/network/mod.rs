//! The Aeron client of a server: carries out the conductor's orders, and tells it what happens.
//!
//! The client has no thread of its own. The conductor's agent does its work, so images come and go on the conductor's
//! thread, where everything of the client is added and closed. Recorder and replayer get subscriptions, publications and
//! counters by value, and give them back.
//!
//! | file | what |
//! |---|---|
//! | `start.rs`, `client.rs` | everything that a server needs before its first turn |
//! | `conductor_agent.rs` | a turn, and the end |
//! | `network.rs`, `event.rs` | orders and outcomes |
//! | `requests.rs`, `responses.rs` | the streams of control sessions |
//! | `names.rs` | names of hosts that clients choose who are not authenticated |
//! | `sources.rs`, `receivers.rs` | streams to and from other archives |
//! | `adding.rs` | resources that are being added |
//! | `duty_cycle.rs`, `errors.rs` | what operators see |

mod adding;
mod client;
mod conductor_agent;
mod duty_cycle;
mod errors;
mod event;
mod names;
mod network;
mod receivers;
mod requests;
mod responses;
mod sources;
mod start;

use adding::Adding;
pub(crate) use conductor_agent::ConductorAgent;
use conductor_agent::Workers;
pub(crate) use duty_cycle::{AgentOnThread, DutyCycle};
use errors::Errors;
use event::Event;
use network::{Network, SessionCounters, WorkerQueues};
use receivers::Receivers;
use requests::Requests;
use responses::Responses;
use sources::Sources;
pub(crate) use start::{Started, start};
