//! The conductor, driven by a fake outside. Messages and orders are compared as lines of text.

mod bad_days;
mod harness;
mod hostile;
mod listing;
mod recordings;
mod replays;
mod requests;
mod sessions;
