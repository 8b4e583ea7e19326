//! The conductor, driven by a fake outside. Messages and orders are compared as lines of text.

#[cfg(test)]
mod failed_replications;
#[cfg(test)]
mod faults;
#[cfg_attr(fuzzing, allow(dead_code, reason = "most of it is for tests"))]
mod harness;
pub(crate) mod hostile;
pub(crate) mod hostile_source;
#[cfg(test)]
mod listings;
#[cfg(test)]
mod migrations;
#[cfg(test)]
mod recordings;
#[cfg(test)]
mod replays;
#[cfg(test)]
mod replications;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod segments;
#[cfg(test)]
mod sessions;
#[cfg_attr(fuzzing, allow(dead_code, reason = "most of it is for tests"))]
mod source;
