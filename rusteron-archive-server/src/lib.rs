//! An Aeron archive without a JVM: records streams to files, and replays them.
//!
//! [`ArchiveServer`] speaks the control protocol of Aeron 1.54.0's `Archive` and keeps the same files. Clients in Java, C and
//! Rust use it as they use Java's, and a directory goes back and forth between both. It needs a media driver, in another
//! process or in its own. `rusteron_archive` is the client:
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::{Duration, Instant};
//!
//! use rusteron_archive::{Archive, ArchiveContext};
//! use rusteron_archive_server::ArchiveServer;
//! use rusteron_client::{Aeron, Context};
//!
//! let server = ArchiveServer::launch_embedded()?;
//! let mut context = Context::new()?;
//! context.set_dir(server.aeron_dir())?;
//! let aeron = Aeron::connect(context)?;
//! let mut context = ArchiveContext::new()?;
//! context
//!     .set_control_request_channel(server.control_channel())?
//!     .set_control_response_channel("aeron:ipc")?;
//! let archive = Archive::connect(&aeron, context)?;
//!
//! let timeout = Duration::from_secs(10);
//! let (mut publication, recording_id) =
//!     archive.add_recorded_exclusive_publication("aeron:ipc", 1001)?;
//! let position = publication.offer_until(b"hello", Instant::now() + timeout)?;
//! archive.await_recorded(recording_id, position, timeout)?;
//! assert!(server.archive_dir().join(format!("{recording_id}-0.rec")).exists());
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//! - `binary`, on by default: the programs `archive`, for a media driver that runs already, and `archiving_media_driver`, which
//!   brings one. Includes `driver`.
//! - `driver`: [`launch_embedded`](ArchiveServer::launch_embedded) and
//!   [`launch_with_driver`](ArchiveServer::launch_with_driver), with a media driver in this process.
//!
//! # Replication
//! A request to replicate copies a recording of another archive, ours or Java's: into a new recording, or behind the end of an
//! earlier copy. The copy can follow a recording in progress, end at a position, or merge into the live stream. The position
//! counter of the copy (type 100) shows how far it is. If the other archive vanishes, the replication ends with an error and the
//! signal `REPLICATE_END`, and the copy stops where it is; the next request goes on from there.
//!
//! # Files without a server
//! The module [`offline`] describes, verifies and repairs the files of an archive that is not running; the program `rusteron` of
//! `rusteron-tools` prints what it finds.
//!
//! # Threads
//! [`ArchiveThreadingMode`] chooses three threads, one, or none. Nothing that an application calls waits for a recording or a
//! replay. The [`Authenticator`] and the [`Authorisation`] of an application run on the server's conductor.
//! At [`file_sync_level`](ArchiveServerContext::set_file_sync_level) 1 or 2, up to 19 more threads sync recordings at the same
//! time; they start when they are needed.
//!
//! # Allocation and blocking
//! A recording writes each block from the publisher's log buffer to the file, without a copy unless there is a checksum, and
//! then moves its position. A replay reads each block into the log buffer of its publication. Neither allocates, but for a new
//! segment file and for syncs. Requests of clients do.
//!
//! Reads, writes and syncs of files block the thread that does them: a slow disk holds up all recordings, or all replays, and
//! with one thread both. A recording that is behind holds up its publisher, as a slow subscriber does.
//!
//! # What survives
//! A recorded position that a client has seen survives the end of the process, by whatever signal. It survives a failure of
//! the machine, too, at [`file_sync_level`](ArchiveServerContext::set_file_sync_level) 1 or 2. The next server of the
//! directory finds where recordings end, and clients can extend them. A migration of segments that was interrupted is
//! finished then. A deletion is not: files that no recording has any more stay.
//!
//! After a failure of the machine, the next server refuses to start if files do not tell where a recording ends: its last
//! messages have whole pages of zeros, and either they fill the segment file or the file system does not tell holes. The
//! error names the recording and the command that helps; with
//! [`record_checksum`](ArchiveServerContext::set_record_checksum), files tell more. At level 0, the server also refuses a
//! recording that has a gap before its last segment file, and one that had stopped may lack data, which
//! `rusteron archive verify --all-segments` finds: with checksums all of it, else lost frame headers.
//!
//! # Errors
//! Operations of the server return a [`ServerError`] with its kind. A failed request is an error of the client that sent it.
//! What fails later, such as a recording on a full disk, is a warning of the crate `log`, an entry in the error log of the mark
//! file, and counted by the counter of type 101.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod authenticators;
mod catalog;
mod channel;
mod conductor;
mod context;
mod control;
mod counters;
mod error;
#[cfg(fuzzing)]
#[doc(hidden)]
#[allow(missing_docs, reason = "only the fuzz targets see it")]
pub mod fuzzing;
mod ids;
mod java_names;
mod mark_file;
mod network;
pub mod offline;
#[cfg(feature = "binary")]
#[doc(hidden)]
pub mod program;
mod protocol;
mod recorder;
mod replayer;
mod replication;
mod segment;
mod server;
mod storage;
mod worker_event;

pub use context::{ArchiveServerContext, ArchiveThreadingMode, Setting};
pub use control::authentication::{
    AcceptAll, AllowAll, Authentication, Authenticator, Authorisation,
};
pub use error::{Result, ServerError, ServerErrorKind};
pub use rusteron_core::dir_access::DirAccess;
#[doc(inline)]
pub use rusteron_core::ids::{ArchiveId, ControlSessionId, RecordingId};
pub use segment::checksum::Checksum;
pub use server::ArchiveServer;
