//! Options that the benchmarks have in common.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::byte_size;
use super::duration;
use super::failure::Failure;

/// Rounds, times, results and Java: the options of every comparison.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// How many rounds: in each, every contender of every case has one run, one after the other
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub runs: u32,

    /// How long to measure in each run, at least 100ms
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "1s",
          value_parser = duration::parse)]
    pub measure: Duration,

    /// How long each run goes on before that
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "500ms",
          value_parser = duration::parse)]
    pub warmup: Duration,

    /// Directory for the results file; it is created if necessary
    #[arg(long, value_name = "DIR", default_value = "target/benchmarks")]
    pub results: PathBuf,

    /// How long a run with Java goes on before it is measured, for its compiler to get ready
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "3s",
          value_parser = duration::parse)]
    pub java_warmup: Duration,

    /// An option for the Java machine, such as -Dagrona.disable.bounds.checks=true; can be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true, value_parser = parse_java_option)]
    pub java_option: Vec<String>,
}

impl RunOptions {
    /// How long a slice is: a run's rate is the median of its slices.
    pub const SLICE: Duration = Duration::from_millis(100);

    /// Checks the rules that the parsers of the options do not check.
    ///
    /// # Errors
    /// [`Failure::Usage`] if a value cannot be used.
    pub fn check(&self) -> Result<(), Failure> {
        if self.measure < Self::SLICE {
            let value = duration::display(self.measure);
            return Err(Failure::usage("--measure <TIME>", value, "expected at least 100ms"));
        }
        Ok(())
    }

    /// The warm-up of a run, which is longer if Java takes part.
    pub fn warmup_with(&self, java: bool) -> Duration {
        if java { self.warmup.max(self.java_warmup) } else { self.warmup }
    }
}

fn parse_java_option(text: &str) -> Result<String, String> {
    if text.starts_with("-D") || text.starts_with("-X") {
        Ok(text.to_owned())
    } else {
        Err("expected an option that begins with -D or -X".to_owned())
    }
}

/// Each value once, in the order of the first mentions: `--contenders c,c` is one contender.
pub fn distinct<T: PartialEq + Copy>(values: &[T]) -> Vec<T> {
    let mut distinct = Vec::with_capacity(values.len());
    for value in values {
        if !distinct.contains(value) {
            distinct.push(*value);
        }
    }
    distinct
}

/// Checks that messages fit into terms of a length.
///
/// # Errors
/// [`Failure::Usage`] if they do not.
pub fn check_message_length(
    option: &str,
    message_length: usize,
    term_length: usize,
) -> Result<(), Failure> {
    let max = byte_size::max_message_length(term_length);
    if message_length <= max {
        return Ok(());
    }
    let terms = byte_size::display(term_length);
    let reason = format!("expected 1 to {max} bytes, an eighth of the term length ({terms})");
    Err(Failure::usage(option, message_length, reason))
}

/// Fails on other systems than Linux, whose `/proc` some benchmarks read.
///
/// # Errors
/// [`Failure::Run`] on these systems.
pub fn check_linux() -> Result<(), Failure> {
    if cfg!(target_os = "linux") {
        return Ok(());
    }
    Err(Failure::Run("this benchmark reads /proc, which Linux alone has".to_owned()))
}
