//! The programs of the cross-language service as processes, and inputs for them, right and wrong.

pub mod cases;
pub mod programs;
pub mod wrong_input;
