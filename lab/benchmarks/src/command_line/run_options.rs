//! Options that the benchmarks have in common.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_core::program::Failure;
use rusteron_core::scan;

/// The longest message that Aeron takes in any term length.
const MAX_MESSAGE_LENGTH: usize = 16 << 20;

/// The term lengths that Aeron's log buffers can have.
const TERM_LENGTHS: RangeInclusive<usize> = 64 << 10..=1 << 30;

/// Rounds, times, results and Java: the options of every comparison.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// How many rounds: in each, every contender of every case has one run, one after the other
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub runs: u32,

    /// How long to measure in each run, at least 100ms
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "1s",
          value_parser = humantime::parse_duration)]
    pub measure: Duration,

    /// How long each run goes on before that
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "500ms",
          value_parser = humantime::parse_duration)]
    pub warmup: Duration,

    /// Directory for the results file; it is created if necessary
    #[arg(long, value_name = "DIR", default_value = "target/benchmarks")]
    pub results: PathBuf,

    /// How long a run with Java goes on before it is measured, for its compiler to get ready
    #[arg(long, allow_hyphen_values = true, value_name = "TIME", default_value = "3s",
          value_parser = humantime::parse_duration)]
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
            let value = scan::format_duration(self.measure);
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

fn parse_size(text: &str) -> Option<usize> {
    usize::try_from(scan::size(text)?).ok()
}

/// How many bytes there are to be of something that may be long, such as a recording.
///
/// # Errors
/// A text that names the range, from 1 byte on, if this is not a length in it.
pub fn parse_length(text: &str) -> Result<usize, String> {
    parse_size(text)
        .filter(|length| *length > 0)
        .ok_or_else(|| "expected a number of bytes from 1 on, such as 64k or 1g".to_owned())
}

/// The length of a message.
///
/// # Errors
/// A text that names the range, from 1 byte to 16 MiB, if this is not a length in it.
pub fn parse_message_length(text: &str) -> Result<usize, String> {
    parse_size(text)
        .filter(|length| (1..=MAX_MESSAGE_LENGTH).contains(length))
        .ok_or_else(|| "expected a number of bytes from 1 to 16m, such as 32 or 1k".to_owned())
}

/// The length of a term buffer.
///
/// # Errors
/// A text that names the range, powers of two from 64 KiB to 1 GiB, if this is not a length in it.
pub fn parse_term_length(text: &str) -> Result<usize, String> {
    parse_size(text)
        .filter(|length| TERM_LENGTHS.contains(length) && length.is_power_of_two())
        .ok_or_else(|| "expected a power of two from 64k to 1g, such as 64k or 1m".to_owned())
}

/// The longest message that can be sent in terms of a length.
///
/// Corresponds to `aeron_compute_max_message_length`.
pub fn max_message_length(term_length: usize) -> usize {
    (term_length / 8).min(MAX_MESSAGE_LENGTH)
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
    let max = max_message_length(term_length);
    if message_length <= max {
        return Ok(());
    }
    let terms = scan::format_size(term_length as u64);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_length_is_a_power_of_two_in_range() {
        for (text, length) in
            [("64k", 1 << 16), ("65536", 1 << 16), ("1m", 1 << 20), ("1g", 1 << 30)]
        {
            assert_eq!(parse_term_length(text), Ok(length), "{text}");
        }
        for text in ["0", "32k", "65k", "3m", "2g", "100", "x"] {
            let error = parse_term_length(text).expect_err(text);
            assert!(error.contains("64k to 1g"), "{text}: {error}");
        }
    }

    #[test]
    fn a_message_length_is_in_range() {
        assert_eq!(parse_message_length("1"), Ok(1));
        assert_eq!(parse_message_length("16m"), Ok(16 << 20));
        for text in ["0", "16777217", "17m", "1g", "x"] {
            let error = parse_message_length(text).expect_err(text);
            assert!(error.contains("1 to 16m"), "{text}: {error}");
        }
    }

    #[test]
    fn the_longest_message_follows_the_term_length() {
        assert_eq!(max_message_length(64 << 10), 8 << 10);
        assert_eq!(max_message_length(128 << 20), 16 << 20);
        assert_eq!(max_message_length(1 << 30), 16 << 20);
    }
}
