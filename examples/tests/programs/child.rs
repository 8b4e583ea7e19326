//! Running the programs of this package.

pub(crate) use rusteron_test_support::{Finished, Running, command, run};
