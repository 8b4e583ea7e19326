//! Comparisons, tables, charts and JSON files.

pub mod chart;
pub mod comparison;
pub mod host;
pub mod latencies;
pub mod resource_comparison;
pub mod results;
pub mod udp_comparison;
