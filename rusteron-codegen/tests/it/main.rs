//! Tables of settings, and the check of coverage.

mod coverage;
mod table;
