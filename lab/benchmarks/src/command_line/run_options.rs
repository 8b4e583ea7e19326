//! Options that the benchmarks have in common.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rusteron_core::program::Failure;
use rusteron_core::scan;

/// The longest message that Aeron takes in any term length.
const MAX_MESSAGE_LENGTH: usize = 16 << 20;

/// Rounds, times, results and Java: the options of every comparison.
#[derive(Debug, Clone, Args)]
pub struct RunOptions {
    /// How many rounds: in each, every contender of every case has one run, one after the other
    #[arg(long, value_name = "N", default_value = "5",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    pub runs: u32,

    /// How long to measure in each run, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_measure)]
    pub measure: Duration,

    /// How long each run goes on before that
    #[arg(long, value_name = "TIME", default_value = "500ms",
          value_parser = humantime::parse_duration)]
    pub warmup: Duration,

    /// Directory for the results file; it is created if necessary
    #[arg(long, value_name = "DIR", default_value = "target/benchmarks")]
    pub results: PathBuf,

    /// How long a run with Java goes on before it is measured, for its compiler to get ready
    #[arg(long, value_name = "TIME", default_value = "3s",
          value_parser = humantime::parse_duration)]
    pub java_warmup: Duration,

    /// An option for the Java machine, such as -Dagrona.disable.bounds.checks=true; can be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true,
          value_parser = parse_java_option)]
    pub java_option: Vec<String>,
}

/// How long a slice is: a run's rate is the median of its slices.
pub const SLICE: Duration = Duration::from_millis(100);

fn parse_measure(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time < SLICE { Err("expected at least 100ms".to_owned()) } else { Ok(time) }
}

fn parse_java_option(text: &str) -> Result<String, String> {
    if text.starts_with("-D") || text.starts_with("-X") {
        Ok(text.to_owned())
    } else {
        Err("expected an option that begins with -D or -X".to_owned())
    }
}

/// How many bytes there are to be of something that may be long, such as a recording.
///
/// # Errors
/// A text that names the range, from 1 byte on, if this is not a length in it.
pub fn parse_length(text: &str) -> Result<usize, String> {
    scan::size(text)
        .and_then(|length| usize::try_from(length).ok())
        .filter(|length| *length > 0)
        .ok_or_else(|| "expected a number of bytes from 1 on, such as 64k or 1g".to_owned())
}

/// The length of a message.
///
/// # Errors
/// A text that names the range, from 1 byte to 16 MiB, if this is not a length in it.
pub fn parse_message_length(text: &str) -> Result<usize, String> {
    parse_length(text)
        .ok()
        .filter(|length| *length <= MAX_MESSAGE_LENGTH)
        .ok_or_else(|| "expected a number of bytes from 1 to 16m, such as 32 or 1k".to_owned())
}

/// The length of a message that contains its number.
///
/// # Errors
/// A text that names the range, from 8 bytes to 1 MiB, if this is not a length in it.
pub fn parse_numbered_length(text: &str) -> Result<usize, String> {
    parse_length(text)
        .ok()
        .filter(|length| (size_of::<u64>()..=1 << 20).contains(length))
        .ok_or_else(|| "expected a number of bytes from 8 to 1m, such as 32 or 1k".to_owned())
}

/// The length of a term buffer.
///
/// # Errors
/// A text that names the range, powers of two from 64 KiB to 1 GiB, if this is not a length in it.
pub fn parse_term_length(text: &str) -> Result<usize, String> {
    parse_length(text)
        .ok()
        .filter(|length| (64 << 10..=1 << 30).contains(length) && length.is_power_of_two())
        .ok_or_else(|| "expected a power of two from 64k to 1g, such as 64k or 1m".to_owned())
}

/// Checks that messages fit into terms of a length.
///
/// # Errors
/// [`Failure::Usage`] if they do not.
pub fn check_message_length(message_length: usize, term_length: usize) -> Result<(), Failure> {
    let max = (term_length / 8).min(MAX_MESSAGE_LENGTH);
    if message_length <= max {
        return Ok(());
    }
    let terms = scan::format_size(term_length as u64);
    let reason = format!("expected 1 to {max} bytes, an eighth of the term length ({terms})");
    Err(Failure::usage("--message-lengths <BYTES>", message_length, reason))
}

/// The directory of `--archive-dir`, or the one for temporary files.
///
/// # Errors
/// [`Failure::Usage`] if there is none.
pub fn archive_dir(dir: Option<&Path>) -> Result<PathBuf, Failure> {
    let dir = dir.map_or_else(std::env::temp_dir, Path::to_owned);
    if dir.is_dir() {
        return Ok(dir);
    }
    Err(Failure::usage("--archive-dir <DIR>", dir.display(), "expected a directory"))
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
    fn lengths_are_in_range() {
        type Parse = fn(&str) -> Result<usize, String>;
        let cases: [(Parse, &[_], &[_]); 3] = [
            (
                parse_term_length,
                &[("64k", 1 << 16), ("65536", 1 << 16), ("1g", 1 << 30)],
                &["0", "32k", "65k", "3m", "2g", "x"],
            ),
            (parse_message_length, &[("1", 1), ("16m", 16 << 20)], &["0", "16777217", "x"]),
            (parse_numbered_length, &[("8", 8), ("1m", 1 << 20)], &["7", "1048577", "x"]),
        ];
        for (parse, accepted, rejected) in cases {
            for (text, length) in accepted {
                assert_eq!(parse(text), Ok(*length), "{text}");
            }
            for text in rejected {
                parse(text).expect_err(text);
            }
        }
        check_message_length(8 << 10, 64 << 10).expect("an eighth");
        check_message_length((16 << 20) + 1, 1 << 30).expect_err("more than 16 MiB");
    }
}
