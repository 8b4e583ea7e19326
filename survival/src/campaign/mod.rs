//! The supervisor: starts the parts, causes faults, and looks at their consequences.

mod campaign;
mod checkpoint;
mod strikes;
mod supervision;

pub(crate) use campaign::run;
