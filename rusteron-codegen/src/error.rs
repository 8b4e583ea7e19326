use std::fmt;

/// Everything that stands in the way of generating, collected so that one build shows all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    problems: Vec<String>,
}

impl Error {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { problems: vec![problem.into()] }
    }

    /// `Ok` when there are no problems.
    pub(crate) fn check(problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { problems }) }
    }

    /// Each problem, as one readable text; there is at least one.
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
