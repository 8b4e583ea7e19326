//! Options that the benchmarks of a cluster share.

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_client::IdleStrategyKind;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::driver_options::idle_strategy;
use crate::command_line::failure::Failure;
use crate::contenders::latency::Transport;
use crate::contenders::ping_pong::MIN_MESSAGE_LENGTH;
use crate::processes::cores::Cores;
use crate::reports::chart::settings_note;

/// The longest message, which is one fragment with its headers.
const MAX_MESSAGE_LENGTH: usize = 1024;

/// Messages, and the member that answers them.
#[derive(Debug, Clone, Args)]
pub struct MemberOptions {
    /// Transports of ingress and egress, separated by commas
    #[arg(
        long,
        value_name = "TRANSPORTS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "udp,ipc"
    )]
    pub transports: Vec<Transport>,

    /// How many messages wait for their answers at the most, separated by commas
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_delimiter = ',', num_args = 1,
          default_value = "1,256", value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000))]
    pub windows: Vec<u64>,

    /// Length of each message in bytes, from 8 to 1k
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = byte_size::parse_message_length)]
    pub message_length: usize,

    /// Idle strategy of the clients' loops
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub idle: IdleStrategyKind,

    /// Idle strategy of all threads of the member, and of a service in a process of its own
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub node_idle: IdleStrategyKind,

    /// Cores of the member's process, and of all else
    #[arg(long, value_name = "CORES", default_value = "shared")]
    pub cores: Cores,
}

impl MemberOptions {
    /// Checks what the parser cannot.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the option, its value and what is permitted.
    pub fn check(&self) -> Result<(), Failure> {
        let lengths = MIN_MESSAGE_LENGTH..=MAX_MESSAGE_LENGTH;
        if !lengths.contains(&self.message_length) {
            let reason = format!("expected {} to {} bytes", lengths.start(), lengths.end());
            return Err(Failure::usage("--message-length <BYTES>", self.message_length, reason));
        }
        Ok(())
    }

    /// The settings in a line of a chart.
    pub(super) fn note(&self, runs: &impl std::fmt::Display) -> String {
        settings_note(&[
            ("messages", &format_args!("{} B", self.message_length)),
            ("idle", &self.idle.name()),
            ("member's idle", &self.node_idle.name()),
            ("cores", &self.cores.name()),
            ("runs", runs),
        ])
    }

    /// Adds the settings to those of a results file.
    pub(super) fn add_to(&self, settings: &mut Value) {
        settings["message_length"] = json!(self.message_length);
        settings["idle"] = json!(self.idle.name());
        settings["node_idle"] = json!(self.node_idle.name());
        settings["cores"] = json!(self.cores.name());
    }
}
