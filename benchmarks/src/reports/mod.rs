//! Results files, and the tables and charts that are rendered from them.

pub mod chart;
pub mod host;
pub mod pages;
pub mod results;
pub mod table;
