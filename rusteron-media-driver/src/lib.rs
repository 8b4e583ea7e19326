//! Aeron's media driver, embedded in a Rust program or run by the program `media_driver`.
//!
//! The driver moves messages between the clients of a machine and over the network. It is Aeron's C
//! driver, compiled into the program. Any Aeron client, in Rust, C, C++, Java or Python, can use
//! the driver through its directory.
//!
//! # Threads
//! [`MediaDriver::launch`] starts the driver's own threads: four for [`ThreadingMode::Dedicated`],
//! three for [`ThreadingMode::SharedNetwork`], one for [`ThreadingMode::Shared`]. Dropping the
//! [`MediaDriver`] ends and joins them. A [`DriverInvoker`] leaves the main agent to the caller's
//! loop. A driver's callbacks (hooks of a [`DriverContext`]) run on its threads.
//!
//! # Blocking
//! Launching creates the driver's files, of about 50 MB by default, and waits for them. Dropping
//! waits for the threads. Neither waits for a client.
//!
//! # Access
//! A driver's directory is private to the user of its process: directories have the mode 0700, files 0600. Aeron's own
//! drivers leave the modes to the umask; usually all users can then read all messages. Clients and tools of other users
//! need [`set_dir_access`](DriverContext::set_dir_access): [`DirAccess::Group`] lets a group in, and [`DirAccess::Umask`] does
//! as Aeron does.
//!
//! # Shared memory
//! A publication is refused with [`ErrorKind::StorageSpace`] if there is no space for its log buffer
//! at that moment. By default this reserves nothing: log buffers are sparse files. On a file system in
//! memory, such as `/dev/shm`, each page takes its space at the first access, and a read takes space like
//! a write. Several log buffers can be promised the same space, and other processes can take it.
//!
//! If the file system is full at a first access, the signal SIGBUS ends the process. The process
//! can be a publisher, the driver, or a subscriber that polls an empty stream, because a poll reads
//! where the next message will be. Rust code cannot turn the signal into an error.
//! [`set_storage_checks_count_sparse`](DriverContext::set_storage_checks_count_sparse) refuses log
//! buffers early enough.
//!
//! With [`set_term_buffer_sparse_file(false)`](DriverContext::set_term_buffer_sparse_file) each log buffer takes
//! its space when it is added, or is refused. The presets [`Embedded`](Preset::Embedded), whose log buffers
//! are small, and [`LowLatency`](Preset::LowLatency) have this setting. Without a preset it is not the
//! default: an IPC publication would take 192 MiB at once, and adding it 0.1 s. Channels
//! choose for themselves with `sparse=`.
//!
//! A file that would be longer than the process's limit (`ulimit -f`) ends the process by SIGXFSZ.
//! Programs that embed a driver should ignore this signal, as `media_driver` does: the launch or
//! the add then fails with an error of the kind [`FileTooLarge`](std::io::ErrorKind::FileTooLarge).
//!
//! The directory of an embedded driver is deleted when the driver is dropped. A process that ends
//! in another way, such as an unhandled signal, leaves the directory behind, with its 50 MB and all
//! log buffers. On Linux, the next launch of an embedded driver by the same user deletes it,
//! together with the driver's error log, if the kernel proves that no process uses it any more: on
//! tmpfs, ext4, XFS and Btrfs. Elsewhere, long-running programs should handle signals, or
//! [`launch`](MediaDriver::launch) in a directory with a fixed name. There, the next driver
//! replaces the remains of a dead driver.
//!
//! ```
//! use rusteron_media_driver::{DriverContext, MediaDriver, ThreadingMode};
//!
//! # fn main() -> Result<(), rusteron_media_driver::Error> {
//! let mut context = DriverContext::new()?;
//! context.set_threading_mode(ThreadingMode::Shared)?;
//! let driver = MediaDriver::launch_embedded_with(context)?;
//! let dir = driver.aeron_dir().to_owned();
//! assert!(dir.join("cnc.dat").is_file());
//!
//! drop(driver);
//! assert!(!dir.exists());
//! # Ok(())
//! # }
//! ```

mod callbacks;
mod checks;
mod context;
mod dir_access;
mod driver_invoker;
mod embedded_dir;
mod enumerations;
mod environment;
mod launch;
mod loss;
mod media_driver;
mod own_dir;
mod preset;
#[cfg(feature = "binary")]
#[doc(hidden)]
pub mod program;
mod segmentation_offload;
mod settings;
mod storage_checks;
mod strategy;
mod takeover;
mod term_cleaning;

pub use context::DriverContext;
pub use dir_access::DirAccess;
pub use driver_invoker::DriverInvoker;
pub use enumerations::{InferableBoolean, ThreadNaming, ThreadingMode};
pub use environment::load_properties_from;
pub use loss::{Loss, UdpInterceptor};
pub use media_driver::{MediaDriver, is_driver_active};
pub use preset::Preset;
#[doc(inline)]
pub use rusteron_core::{
    Error, ErrorKind, Result, cnc::request_driver_termination, idle::IdleStrategyKind,
};
pub use settings::Setting;
pub use strategy::{CongestionControlStrategy, FlowControlStrategy, NameResolver};
pub use term_cleaning::TermCleaning;
