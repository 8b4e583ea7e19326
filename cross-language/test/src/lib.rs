//! Inputs for the callers of the cross-language service, right and wrong.

mod cases;
mod wrong_input;

pub use cases::cases;
pub use wrong_input::wrong_input;
