//! Results files, and tables of them.

pub mod host;
pub mod results;
pub mod table;
