//! Launching and closing a driver.
//!
//! One way into the driver serves `MediaDriver` and `DriverInvoker`. It checks every value that C would trust,
//! and its errors name the owner of a directory.
//!
//! The context owns everything that C points to: strings, hooks and loss rates. They are freed after C has
//! closed the context, which follows the joining of the driver's threads. If the threads cannot be joined,
//! everything is leaked. Closing in a callback, which can run on one of these threads, is left to another
//! thread.
//!
//! A driver that is not embedded locks the parent directory (`flock`) until its files are complete. Aeron's
//! start deletes a directory and makes it anew, so two starts at once would delete each other's.

use std::ffi::{OsStr, c_void};
use std::fs;
use std::io::{self, Read as _};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusteron_core::cnc::CncFile;
use rusteron_core::cnc::refusal::{Access, refused};
use rusteron_core::ffi::{self, Fallible, ForkGuard, PerProcess, Process, last_error};
use rusteron_core::{Error, ErrorKind, Result, files};
use rusteron_sys::driver as sys;

use crate::context::DriverContext;
use crate::own_dir::OwnDir;
use crate::takeover::Takeover;
use crate::{dir_access, embedded_dir, own_dir};

/// The name of the setting in a program, and its environment variable.
const DELETE_ON_START: &str = "dir_delete_on_start (AERON_DIR_DELETE_ON_START=true)";

/// A C driver with its context; stopped and freed when dropped.
pub(crate) struct Running {
    raw: NonNull<sys::aeron_driver_t>,
    process: Process,
    /// For the files by which others know that the driver runs. A forked child neither writes to
    /// them, nor seems to be the driver.
    fork_guards: Vec<ForkGuard>,
    /// `None` once the driver is closed.
    context: Option<DriverContext>,
    /// Absolute, so that it stays the same when the process changes its working directory.
    dir: PathBuf,
    /// Set if no other driver can have a directory of this name.
    is_embedded: bool,
}

// SAFETY: the C structure is shared with the driver's threads by design, and can be closed from any
// thread; the main agent, if it has no thread of its own, is not tied to one either.
unsafe impl Send for Running {}
// SAFETY: through a shared reference only the directory's name is read.
unsafe impl Sync for Running {}

impl Running {
    /// Launches a driver. An embedded driver gets a directory of its own, which is deleted if the launch fails. With a
    /// manual main loop, the main agent gets no thread.
    pub(crate) fn launch(
        mut context: DriverContext,
        is_embedded: bool,
        manual_main_loop: bool,
    ) -> Result<Self> {
        if is_embedded {
            embedded_dir::choose(&mut context)?;
        }
        let dir = context.dir().to_owned();
        let launched = Self::init(context, is_embedded).and_then(|running| {
            // SAFETY: the driver is initialised and not started; if it cannot be started, dropping it
            // stops the threads that have been.
            unsafe { sys::aeron_driver_start(running.as_ptr(), manual_main_loop) }.into_result()?;
            Ok(running)
        });
        launched.inspect_err(|_| {
            if is_embedded {
                embedded_dir::remove(&dir);
            }
        })
    }

    /// Checks the settings and makes the driver's files.
    fn init(mut context: DriverContext, is_embedded: bool) -> Result<Self> {
        let dir = std::path::absolute(context.dir())
            .map_err(|error| Error::new(ErrorKind::Io(error.kind()), format!("dir: {error}")))?;
        context.set_dir(&dir)?;
        context.check()?;
        let datagrams = context.datagrams_per_send();
        context.set_network_publication_max_messages_per_send(datagrams)?;
        // Until the new driver's files are complete. An embedded driver's directory is its own.
        let timeout = context.driver_timeout();
        let _takeover = (!is_embedded).then(|| Takeover::begin(&dir, timeout)).transpose()?;
        if !context.dir_delete_on_start() {
            remove_empty(&dir.join("cnc.dat"), timeout);
            check_replaceable(&dir)?;
        }
        replace_settings(&context);
        context.install_segmentation_offload()?;
        context.apply_storage_checks();
        apply_affinity(&context)?;
        context.install_agent_on_start()?;
        let access = context.dir_access();
        let raw = dir_access::make_files(access, &dir, || init(&context))
            .map_err(|error| explain(error, &dir, context.driver_timeout()))?;
        context.apply_term_cleaning();
        let fork_guards = fork_guards(&context);
        let process = Process::current();
        let running = Self { raw, process, fork_guards, context: Some(context), dir, is_embedded };
        if let Some(context) = &running.context {
            own_dir::watch(context)?;
            context.add_segmentation_offload_counters()?;
        }
        dir_access::set_modes(access, &running.dir)?;
        Ok(running)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_driver_t {
        self.raw.as_ptr()
    }

    pub(crate) fn aeron_dir(&self) -> &Path {
        &self.dir
    }

    /// Returns an error in a process that has inherited this driver in a fork.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.process.check()
    }

    /// Stops the driver and frees it. Deletes its directory if that is configured. In a callback,
    /// returns an error, and another thread does the work.
    pub(crate) fn close(mut self) -> Result<()> {
        self.check_process()?;
        if ffi::callback::is_running() {
            // Dropping `self` hands the driver to another thread.
            let message = "a close waits for the driver's threads, and this may be one of them; \
                           another thread closes the driver";
            return Err(Error::new(ErrorKind::CalledFromConductor, message));
        }
        self.close_once()
    }

    /// Takes the driver out of a handle that is being dropped.
    fn take(&mut self) -> Self {
        Self {
            raw: self.raw,
            process: self.process,
            fork_guards: std::mem::take(&mut self.fork_guards),
            context: self.context.take(),
            dir: self.dir.clone(),
            is_embedded: self.is_embedded,
        }
    }

    fn close_once(&mut self) -> Result<()> {
        let Some(context) = self.context.take() else { return Ok(()) };
        if self.check_process().is_err() {
            // Threads and directory are the parent's.
            std::mem::forget(context);
            return Ok(());
        }
        self.fork_guards.clear();
        // SAFETY: the driver is live, because its context was still there, and not used again; its
        // threads are joined before it is freed.
        let stopped = unsafe { sys::aeron_driver_close(self.as_ptr()) }.into_result();
        if let Err(error) = stopped {
            // A thread that cannot be joined may still use the context.
            std::mem::forget(context);
            return Err(error.with_line("the media driver is not stopped"));
        }
        own_dir::unwatch(&context);
        let own_dir = context.deletes_dir_by_descriptor().then(|| OwnDir::open(&context));
        let closed = context.close().map_err(|error| explain_undeleted(error, &self.dir));
        let deleted = own_dir.map_or(Ok(()), |own_dir| own_dir?.delete(&self.dir));
        // A directory with any other name could belong to a successor by now.
        if self.is_embedded {
            embedded_dir::remove(&self.dir);
        }
        closed.and(deleted)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.context.is_some() && ffi::callback::is_running() && self.check_process().is_ok() {
            // This can be one of the driver's own threads, which the close would wait for. If no
            // thread can be started, leaking the driver is better than a deadlock. Dropping the
            // closure must therefore not drop the driver.
            let running = ManuallyDrop::new(self.take());
            let closing = thread::Builder::new()
                .name("aeron-close".into())
                .spawn(move || drop(ManuallyDrop::into_inner(running)));
            if let Err(error) = closing {
                let dir = self.dir.display();
                log::error!("media driver in {dir}: left open, no thread to close it: {error}");
            }
            return;
        }
        if let Err(error) = self.close_once() {
            log::error!("media driver in {}: {error}", self.dir.display());
        }
    }
}

/// Keeps forked children from the files that an initialised driver has mapped.
fn fork_guards(context: &DriverContext) -> Vec<ForkGuard> {
    let (mut addresses, mut lengths) = ([ptr::null_mut(); 2], [0; 2]);
    // SAFETY: the context is live, and the function fills in two of each.
    unsafe {
        sys::rusteron_driver_context_mappings(
            context.as_ptr(),
            addresses.as_mut_ptr(),
            lengths.as_mut_ptr(),
        );
    }
    // SAFETY: the context unmaps the files after the guards have gone. A forked child has none of the
    // driver's threads, which use them.
    let guard = |(address, length)| unsafe { ForkGuard::of_mapping(address, length) };
    addresses.map(<*mut c_void>::cast).into_iter().zip(lengths).map(guard).collect()
}

/// Replaces settings that Aeron's own functions would handle wrongly.
fn replace_settings(context: &DriverContext) {
    let lock = ffi::lock_context_init();
    // SAFETY: the context is live and not yet used by a driver; the lock keeps others from making
    // contexts, in which C writes to the static bindings that are copied for the resolver.
    unsafe {
        sys::rusteron_driver_context_part_loss_states(context.as_ptr());
        sys::rusteron_driver_context_guard_resolver(context.as_ptr());
    }
    drop(lock);
}

/// Resolves the CPUs that threads are to be bound to. C does so only in its program.
///
/// Without any of these settings there is nothing to resolve, but C would fail where `/sys` cannot
/// be read.
fn apply_affinity(context: &DriverContext) -> Result<()> {
    let is_of_interest = context.has_cpu_affinity()
        || context.thread_affinity_use_cpuset_offsets()
        || context.thread_affinity_fail_on_validation_errors();
    if !is_of_interest {
        return Ok(());
    }
    // SAFETY: the context is live and not yet used by a driver, and its CPUs exist: they are checked.
    unsafe { sys::aeron_driver_validate_and_apply_affinity_configuration(context.as_ptr()) }
        .into_result()
        .map(drop)
        // C often puts an arbitrary number beside its text.
        .map_err(|error| error.with_kind(ErrorKind::InvalidArgument).with_line("CPU affinity"))
}

/// Removes the empty file that a driver has left which was killed as it made `cnc.dat`. C fails to map it.
///
/// A driver that is starting gives the file its length within the timeout, or C takes it for dead as well.
fn remove_empty(cnc_file: &Path, timeout: Duration) {
    const PAUSE: Duration = Duration::from_millis(1);
    let start = Instant::now();
    while fs::symlink_metadata(cnc_file).is_ok_and(|file| file.is_file() && file.len() == 0) {
        if start.elapsed() >= timeout {
            // If it cannot be removed, C reports the error.
            let _ = fs::remove_file(cnc_file);
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Refuses a directory with files that no driver has put there, because C deletes the directory.
fn check_replaceable(dir: &Path) -> Result<()> {
    // If it cannot be read, C cannot delete it either. C reports the error.
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    if fs::symlink_metadata(dir.join("cnc.dat")).is_ok() {
        return check_readable(dir);
    }
    if entries.flatten().all(|entry| is_leftover(&entry)) {
        return Ok(());
    }
    let message = format!(
        "{}: has files in it, but no cnc.dat, so it is not a driver's; {DELETE_ON_START} would \
         delete them",
        dir.display()
    );
    Err(Error::new(ErrorKind::Io(io::ErrorKind::DirectoryNotEmpty), message))
}

/// Refuses a file that is not a driver's, or that is of another version: C would trust its lengths.
fn check_readable(dir: &Path) -> Result<()> {
    let Err(error) = CncFile::open(dir, Duration::ZERO) else { return Ok(()) };
    let path = dir.join("cnc.dat");
    // The version is written last. Without a version, there are no lengths yet.
    let mut version = [0; 4];
    let opened = files::open(&path, fs::OpenOptions::new().read(true));
    let is_regular = !matches!(&opened, Err(error) if error.kind() == io::ErrorKind::InvalidInput);
    let read = opened.and_then(|mut file| file.read_exact(&mut version));
    if is_regular && (read.is_err() || version == [0; 4]) {
        return Ok(());
    }
    Err(error
        .with_kind(ErrorKind::IncompatibleDriver)
        .with_line(&format!("{DELETE_ON_START} would delete the directory")))
}

/// Returns whether this is a driver's although there is no `cnc.dat`: a driver makes the directories
/// of log buffers before that file, and one that is killed while it deletes the directory of another
/// leaves files in them.
fn is_leftover(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    if name == "loss-report.dat" {
        return entry.file_type().is_ok_and(|kind| kind.is_file());
    }
    (name == "publications" || name == "images")
        && entry.file_type().is_ok_and(|kind| kind.is_dir())
        && fs::read_dir(entry.path())
            .is_ok_and(|entries| entries.flatten().all(|entry| is_log_buffer(&entry.file_name())))
}

fn is_log_buffer(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_suffix(".logbuffer"));
    number.is_some_and(|number| number.parse::<i64>().is_ok())
}

fn init(context: &DriverContext) -> Result<NonNull<sys::aeron_driver_t>> {
    // Drivers share the state of a random number generator, which the first driver initialises.
    static INITIALISING: PerProcess<Mutex<()>> = PerProcess::new();
    let _one_at_a_time = INITIALISING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut raw = ptr::null_mut();
    // SAFETY: the context is live and no other driver's: the caller owns it.
    let initialised = unsafe { sys::aeron_driver_init(&mut raw, context.as_ptr()) };
    initialised.into_result()?;
    NonNull::new(raw).ok_or_else(last_error)
}

/// Explains why a driver cannot have a directory, in more detail than C.
fn explain(error: Error, dir: &Path, driver_timeout: Duration) -> Error {
    // C replaces the reason for the failed deletion by -1. It is not tried once more: by now, the
    // name can be that of another driver's directory.
    if error.code() == -1 && error.message().contains("Failed to delete directory") {
        return undeletable(dir).unwrap_or_else(|| explain_undeleted(error, dir));
    }
    if error.kind() == ErrorKind::Io(io::ErrorKind::PermissionDenied) {
        return refused(dir, Access::Replace).unwrap_or(error);
    }
    if error.kind() != ErrorKind::Io(io::ErrorKind::ResourceBusy) {
        return error;
    }
    let with_text = |kind, text: String| Error::from_code(error.code(), text).with_kind(kind);
    let Ok(cnc) = CncFile::open(dir, Duration::ZERO) else {
        return error.with_kind(ErrorKind::ActiveDriver);
    };
    let (pid, name) = (cnc.pid(), dir.display());
    let age = cnc.heartbeat_age().unwrap_or_default();
    if is_gone(pid) {
        let left = driver_timeout.saturating_sub(age).as_millis();
        let text = format!(
            "process {pid} is gone, and counts as running in {name} for {left} ms more; \
             {DELETE_ON_START} replaces the directory at once"
        );
        return with_text(ErrorKind::StaleDirectory, text);
    }
    let age = age.as_millis();
    let text = format!(
        "process {pid} runs in {name}, and its last heartbeat is {age} ms old; use another \
         directory, or end that process first"
    );
    with_text(ErrorKind::ActiveDriver, text)
}

/// Finds a better kind than an invalid argument, which C reports if the directory of an ended
/// driver cannot be deleted, for any reason.
fn explain_undeleted(error: Error, dir: &Path) -> Error {
    error.with_kind(match fs::symlink_metadata(dir) {
        Err(cause) => ErrorKind::Io(cause.kind()),
        Ok(_) => ErrorKind::Other,
    })
}

/// Finds the directory whose entries this process may not remove.
#[cfg(unix)]
fn undeletable(dir: &Path) -> Option<Error> {
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parts =
        [parent.unwrap_or(Path::new(".")), dir, &dir.join("publications"), &dir.join("images")]
            .map(Path::to_owned);
    parts.into_iter().find_map(|path| {
        let name = ffi::c_path("dir", &path).ok()?;
        // SAFETY: a terminated string.
        let denied = unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) } != 0;
        let cause = denied.then(io::Error::last_os_error)?;
        let code = cause.raw_os_error().filter(|_| cause.kind() != io::ErrorKind::NotFound)?;
        let (path, dir) = (path.display(), dir.display());
        Some(Error::from_code(code, format!("{path}: {cause}; {dir} cannot be deleted")))
    })
}

#[cfg(not(unix))]
fn undeletable(_dir: &Path) -> Option<Error> {
    None
}

/// Returns whether there is no such process, as far as this process can know.
///
/// A driver in another container that shares the directory has a pid that means nothing here. If
/// the pid is another process's, only the description of the refusal is affected.
fn is_gone(pid: i64) -> bool {
    let processes = Path::new("/proc");
    processes.join("self").exists() && !processes.join(pid.to_string()).exists()
}
