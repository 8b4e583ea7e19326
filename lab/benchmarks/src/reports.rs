//! Results files, and tables and charts of them.

pub mod chart;
pub mod host;
pub mod results;
pub mod table;
