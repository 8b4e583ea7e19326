//! The same operations through Rust and through Aeron's C functions, with the same results.

mod comparison;
mod last_term;
mod messages;
pub(crate) mod operations;
mod polls;
mod random_operations;
mod states;
mod term_ends;
