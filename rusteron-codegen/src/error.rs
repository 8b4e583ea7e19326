use std::fmt;

/// All reasons why nothing can be generated, collected so that one build shows all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    problems: Vec<String>,
}

impl Error {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()] }
    }

    /// Returns `Ok` if there are no problems.
    pub(crate) fn check(problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Returns each problem as a readable text. There is at least one.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.problems.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        write!(formatter, "rusteron-codegen found {count} {noun}:")?;
        for problem in &self.problems {
            write!(formatter, "\n- {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
