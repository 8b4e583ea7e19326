//! Why a program ends before its task is done.

use std::error::Error;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why a program ends before its task is done. Any error becomes one with `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// An option has a value that cannot be used: exit status 2, as for values that `clap` refuses.
    Usage(String),
    /// Something went wrong while running: exit status 1.
    Run(String),
    /// An answer of the program rather than an error: an exit status, without a message.
    Answer(u8),
    /// The user has asked for the end, or the reader of the output is gone: exit status 0.
    Interrupted,
}

impl Failure {
    /// A failure while running: the action that failed, and its cause.
    pub fn run(doing: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self::Run(format!("{doing}: {cause}"))
    }

    /// A value of an option that cannot be used, and the reason.
    pub fn usage(option: &str, value: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self::Usage(format!("invalid value '{value}' for '{option}': {reason}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Run(text) => f.write_str(text),
            Self::Answer(status) => write!(f, "exit status {status}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let any: &dyn Error = &error;
        match any.downcast_ref().map(io::Error::kind) {
            Some(io::ErrorKind::BrokenPipe) => Self::Interrupted,
            // All other errors of I/O get a context where they occur.
            Some(_) => Self::run("cannot write to standard output", error),
            None => Self::Run(error.to_string()),
        }
    }
}

/// Prints why a program has failed, if it has, by `print`. Returns the exit code.
pub fn exit_code(result: Result<(), Failure>, print: impl FnOnce(&str)) -> ExitCode {
    let (status, text) = match result {
        Ok(()) | Err(Failure::Interrupted) => return ExitCode::SUCCESS,
        Err(Failure::Answer(status)) => return status.into(),
        Err(Failure::Run(text)) => (1, text),
        Err(Failure::Usage(text)) => (2, text),
    };
    print(&text);
    status.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_output_is_no_error() {
        let failure = |kind: io::ErrorKind| Failure::from(io::Error::from(kind));
        assert_eq!(failure(io::ErrorKind::BrokenPipe), Failure::Interrupted);
        let full = failure(io::ErrorKind::StorageFull).to_string();
        assert!(full.starts_with("cannot write to standard output: "), "{full}");
        assert_eq!(Failure::from(fmt::Error).to_string(), fmt::Error.to_string());
    }
}
