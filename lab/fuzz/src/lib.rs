//! Parts that the fuzz targets share.
//!
//! | Target | Input |
//! |---|---|
//! | `archive_control_responses` | calls of an archive client, and the archive's answers |
//! | `archive_server_catalogs` | a catalog and a segment that an archive server opens and edits |
//! | `archive_server_clients` | what a hostile client of an archive server does, while another client is served |
//! | `archive_server_mark_files` | a mark file that an archive server takes over |
//! | `archive_server_requests` | a message to an archive server |
//! | `archive_server_segments` | a segment whose end an archive server finds, and which it replays |
//! | `archive_server_sources` | what a hostile source does whose recording an archive server copies, and its frames |
//! | `archive_server_texts` | a channel that an archive server gets, and a value of each of its settings |
//! | `channel_uris` | a channel: parsed, written, built, and given to a driver in the four roles |
//! | `cluster_messages` | a message between a cluster and its client |
//! | `cnc_files` | changes to the `cnc.dat` of a real driver, read with `CncFile` |
//! | `datagrams` | datagrams of all types to a subscription, a publication and the name resolver of a driver; polls, offers |
//! | `driver_commands` | commands of a client in any language, with texts at the lengths of C's arrays |
//! | `live_memory` | changes to logs, `cnc.dat` and the driver's answers while clients publish, poll, add, close and map |
//! | `log_buffers` | changes to a log buffer that a client polls and `rusteron log` reads |
//! | `loss_reports` | a `loss-report.dat` |
//! | `property_files` | a property file, and the contexts of a client and a driver after it |
//! | `recording_events` | a message of an archive's recording events |
//!
//! Rust and C are instrumented alike, for coverage and with AddressSanitizer. Drivers and clients run on one
//! thread, so that an input has the same effect each time. Seeds are in `lab/fuzz/seeds`; an input that has found a
//! fault becomes a seed, named after the fault. `.ci/fuzz` runs the targets, and `cargo fuzz` does as well.

pub mod archive_messages;
pub mod cnc;
pub mod frames;
pub mod guard;
pub mod input;
pub mod log_buffer;
pub mod loopback;
pub mod polls;
pub mod stage;

pub use rusteron_test_support::archive::fake_archive;
