//! Drivers and processes that fail, and clients that stop.

mod connect;
mod killed_claimers;
#[cfg(unix)]
mod killed_publishers;
mod stopped_clients;
