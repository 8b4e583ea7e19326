//! The command line of the program `ipc_throughput`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser};
use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::Context as DriverContext;

use crate::command_line::byte_size;
use crate::command_line::driver_options::{DriverOptions, idle_strategy};
use crate::command_line::duration;
use crate::command_line::failure::Failure;
use crate::command_line::json_file::JsonFile;
use crate::measuring::channel::Channel;

/// The options of every program with a publisher's and a subscriber's loop.
///
/// The options with numbers allow hyphens, so that the message for a negative number names the option.
#[derive(Debug, Clone, Args)]
pub struct LoopOptions {
    /// Length of each message in bytes, from 1 to 16m, and at the most an eighth of the term length
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = byte_size::parse_message_length)]
    pub message_length: usize,

    /// How many fragments a poll receives at the most
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=i32::MAX as u64))]
    pub fragment_limit: usize,

    /// Term buffer and threads.
    #[command(flatten)]
    pub driver: DriverOptions,

    /// Idle strategy of publisher and subscriber when they cannot go on
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub idle: IdleStrategyKind,

    /// File to write the result to, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl LoopOptions {
    /// Checks that messages fit into terms of a length.
    ///
    /// # Errors
    /// [`Failure::Usage`] if they do not.
    pub fn check_message_length(&self, term_length: usize) -> Result<(), Failure> {
        let max = byte_size::max_message_length(term_length);
        if self.message_length <= max {
            return Ok(());
        }
        let reason = format!(
            "expected 1 to {max} bytes, an eighth of the term length (--term-length {})",
            byte_size::display(term_length)
        );
        Err(Failure::usage("--message-length <BYTES>", self.message_length, reason))
    }

    /// Opens the file that `--json` names, if it does.
    ///
    /// # Errors
    /// [`Failure::Usage`] if it cannot be written to.
    pub fn open_json(&self) -> Result<Option<JsonFile>, Failure> {
        self.json.as_deref().map(JsonFile::open).transpose()
    }
}

/// Measures how many messages a second an exclusive publication passes to a subscription over IPC.
///
/// A media driver is started in this process, unless --aeron-dir or AERON_DIR names the directory
/// of one that runs already. The rate is printed once a second until Ctrl-C or the end of --duration,
/// and then a summary. A port of Aeron's sample EmbeddedExclusiveIpcThroughput.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
#[command(name = "ipc_throughput", version)]
pub struct IpcThroughputOptions {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    pub aeron_dir: Option<PathBuf>,

    /// Channel to publish on
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    pub channel: Channel,

    /// Stream id within the channel
    #[arg(long, value_name = "ID", default_value = "1001", allow_negative_numbers = true)]
    pub stream_id: i32,

    /// Message, term buffer and loops.
    #[command(flatten)]
    pub common: LoopOptions,

    /// How long to run, warm-up included [default: until Ctrl-C]
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", value_parser = duration::parse)]
    pub duration: Option<Duration>,

    /// How long to run before the measurement begins
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "2s",
          value_parser = duration::parse)]
    pub warmup: Duration,
}

impl IpcThroughputOptions {
    /// Checks what no option can be checked for alone.
    ///
    /// # Errors
    /// [`Failure::Usage`] if options contradict each other.
    pub fn check(&self) -> Result<(), Failure> {
        if let (Some(dir), Some(threading)) = (&self.aeron_dir, self.common.driver.threading_mode) {
            return Err(Failure::usage(
                "--threading-mode <MODE>",
                threading.name(),
                format_args!(
                    "it is for an embedded driver, and --aeron-dir or AERON_DIR names another: {}",
                    dir.display()
                ),
            ));
        }
        if let Some(duration) = self.duration.filter(|duration| self.warmup >= *duration) {
            return Err(Failure::usage(
                "--warmup <TIME>",
                duration::display(self.warmup),
                format_args!("expected less than --duration {}", duration::display(duration)),
            ));
        }
        self.check_term_length()
    }

    fn check_term_length(&self) -> Result<(), Failure> {
        let in_channel = self.channel.parameter("term-length");
        match (self.common.driver.term_length, in_channel.map(byte_size::parse_term_length)) {
            (_, Some(Err(reason))) => Err(Failure::usage(
                "--channel <URI>",
                &self.channel,
                format!("term-length: {reason}"),
            )),
            (Some(length), Some(Ok(other))) if length != other => Err(Failure::usage(
                "--term-length <BYTES>",
                byte_size::display(length),
                format_args!("--channel has another term-length, {}", byte_size::display(other)),
            )),
            (length, other) => match length.or(other.and_then(Result::ok)) {
                Some(length) => self.common.check_message_length(length),
                None => Ok(()),
            },
        }
    }

    /// Checks the message length against a term length that only the settings of an embedded driver
    /// tell.
    ///
    /// # Errors
    /// [`Failure::Usage`] if messages are too long.
    pub fn check_with(&self, context: &DriverContext) -> Result<(), Failure> {
        if self.channel.parameter("term-length").is_some() {
            return Ok(());
        }
        self.common.check_message_length(if self.channel.is_ipc() {
            context.ipc_term_buffer_length()
        } else {
            context.term_buffer_length()
        })
    }

    /// The channel with the term length, which a running driver can be told in no other way.
    pub fn full_channel(&self) -> Channel {
        match self.common.driver.term_length {
            Some(length) if self.aeron_dir.is_some() => {
                self.channel.with_default("term-length", length)
            }
            _ => self.channel.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::command_line::driver_options::Threading;

    fn throughput(arguments: &[&str]) -> IpcThroughputOptions {
        let arguments = [&["program"], arguments].concat();
        IpcThroughputOptions::try_parse_from(arguments).expect("valid arguments")
    }

    #[test]
    fn the_definitions_are_consistent() {
        IpcThroughputOptions::command().debug_assert();
    }

    #[test]
    fn the_defaults_are_those_of_aerons_sample() {
        let options = throughput(&[]);
        assert_eq!((options.channel.as_str(), options.stream_id), ("aeron:ipc", 1001));
        assert_eq!((options.common.message_length, options.common.fragment_limit), (32, 10));
        assert_eq!(options.common.driver.threading(), Threading::Shared);
        assert_eq!(options.common.idle, IdleStrategyKind::Yielding);
        assert_eq!(options.check(), Ok(()));
    }

    #[test]
    fn running_driver_gets_term_length_by_channel() {
        let options = throughput(&["--aeron-dir", "/x", "--term-length", "64k"]);
        assert_eq!(options.full_channel().as_str(), "aeron:ipc?term-length=65536");
        let options = throughput(&["--aeron-dir", "/x", "--channel", "aeron:ipc?term-length=64k"]);
        assert_eq!(options.full_channel(), options.channel);
    }

    #[test]
    fn environment_sets_embedded_term_length() {
        let options = throughput(&["--message-length", "16k"]);
        let mut context = options.common.driver.driver_context().expect("settings");
        context.set_ipc_term_buffer_length(64 << 10).expect("a length");
        assert!(matches!(options.check_with(&context), Err(Failure::Usage(_))));
    }
}
