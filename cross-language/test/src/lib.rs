//! The programs of the cross-language service as processes, and inputs for the callers, right and wrong.

mod cases;
pub mod grpc;
pub mod in_process;
pub mod programs;
pub mod provenance;
pub mod statistics;
mod wrong_input;

pub use cases::cases;
pub use wrong_input::wrong_input;
