//! Tables of settings, the files that come from them, and the check of coverage.

mod coverage;
mod files;
mod table;
