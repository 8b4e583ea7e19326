//! The program `benchmark`, as a user runs it.

mod comparisons;
mod pages;
mod program;
mod values;
