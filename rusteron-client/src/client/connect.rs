//! Connecting to a media driver, and the errors without one.
//!
//! `Aeron::connect` looks at the driver's directory every millisecond, until the driver timeout. C waits as
//! well, but reports any obstacle as a missing file. So Rust looks first, and C finds everything at its first
//! attempt.
//!
//! | Finding | Outcome |
//! |---|---|
//! | no directory, no `cnc.dat`, an incomplete `cnc.dat` | waits: a driver may be starting |
//! | the last heartbeat is older than the driver timeout, or the driver's process has ended | waits: another driver may replace it |
//! | permission denied, and the directory has changed within the last second | waits: a driver that starts lets its group in last |
//! | permission denied; a part of the path is a file; any other refusal to open or map the file | error |
//! | `cnc.dat` of another major version | error |
//!
//! On Windows every refusal is waited for, because Windows refuses to open a file that another process is
//! making.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rusteron_core::cnc::refusal::{Access, await_file};
use rusteron_core::cnc::{CncFile, epoch, gone_driver};
use rusteron_core::error::{Error, ErrorKind, Result};
use rusteron_core::ffi::{c_path, last_error};
use rusteron_sys as sys;

use crate::client::Client;
use crate::context::Context;

/// Connects, and blocks meanwhile. Fails soon after the attempt was cancelled.
pub(crate) fn connect(context: Context, is_cancelled: &AtomicBool) -> Result<Client> {
    let dir = context.dir().to_owned();
    await_driver(&context, is_cancelled)?;
    check_keepalives(&context)?;
    let client = Client::start(context).map_err(|error| match error.kind() {
        // The driver has gone since.
        ErrorKind::DriverTimeout => error.with_line(&format!("{}: {ADVICE}", dir.display())),
        _ => error,
    })?;
    warn_of_owner(&dir);
    Ok(client)
}

/// Refuses intervals at which the driver, or the client's own conductor, would time the client out.
/// C sends a keep-alive at the first check after the interval.
fn check_keepalives(context: &Context) -> Result<()> {
    // C reports a driver that has gone since.
    let Ok(cnc) = CncFile::open(context.dir(), Duration::ZERO) else { return Ok(()) };
    let liveness = cnc.client_liveness_timeout();
    let (keepalive, idle) = (context.keepalive_interval(), context.idle_sleep_duration());
    if keepalive.saturating_add(idle) < liveness {
        return Ok(());
    }
    let text = format!(
        "keepalive_interval={keepalive:?} and idle_sleep_duration={idle:?} (AERON_CLIENT_IDLE_SLEEP_DURATION): the media \
         driver in {} would time the client out, because they are not shorter together than its \
         client_liveness_timeout={liveness:?} (AERON_CLIENT_LIVENESS_TIMEOUT)",
        context.dir().display()
    );
    Err(Error::new(ErrorKind::InvalidArgument, text))
}

/// Warns of a default directory that belongs to another user.
///
/// All users may create files in `/dev/shm`. Another user can therefore create this directory
/// before the driver does. A directory that the caller named may belong to any user.
#[cfg(unix)]
fn warn_of_owner(dir: &Path) {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    if dir != Context::default_dir() {
        return;
    }
    // SAFETY: reads a number of the process, and cannot fail.
    let user = unsafe { sys::rusteron_effective_user() };
    // Checks the owner of a link and the owner of the link's target.
    let owners = [fs::symlink_metadata(dir), fs::metadata(dir)];
    let mut owners = owners.into_iter().flatten().map(|metadata| metadata.uid());
    if let Some(owner) = owners.find(|owner| i64::from(*owner) != user) {
        log::warn!(
            "{}: the default directory of this user, {user}, belongs to user {owner}, who can read and forge \
             all messages of this client; a directory that is named in AERON_DIR or the setting dir is not checked",
            dir.display()
        );
    }
}

#[cfg(not(unix))]
fn warn_of_owner(_dir: &Path) {}

/// Help for a user whose program finds no driver.
const ADVICE: &str = "start a media driver with this directory, or name the directory of a running \
                      driver with the setting dir or AERON_DIR";

/// Waits for a driver with a heartbeat that is no older than the driver timeout.
///
/// C waits for the same heartbeat. But C has no deadline while the file is shorter than the length
/// that the file states, and also waits if nothing can change. After this function C finds
/// everything on its first attempt.
fn await_driver(context: &Context, is_cancelled: &AtomicBool) -> Result<()> {
    let dir = c_path("dir", context.dir())?;
    let timeout = context.driver_timeout();
    let (mut state, mut heartbeat) = (sys::rusteron_cnc_state_enum_RUSTERON_CNC_ABSENT, 0);
    let found = await_file(context.dir(), Access::ReadWrite, timeout, |may_open| {
        if is_cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io(io::ErrorKind::Interrupted), "cancelled"));
        }
        heartbeat = 0;
        // SAFETY: `dir` is a terminated string; the function maps the file and unmaps it again.
        state = unsafe { sys::rusteron_cnc_state(dir.as_ptr(), &mut heartbeat) };
        match state {
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPATIBLE => {
                Err(incompatible(last_error(), context.dir()))
            }
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_FAILED => Err(last_error()),
            sys::rusteron_cnc_state_enum_RUSTERON_CNC_READY => {
                let is_ready =
                    may_open && is_recent(heartbeat, timeout) && gone_driver(&dir).is_none();
                Ok(is_ready.then_some(()))
            }
            _ => Ok(None),
        }
    })?;
    found.ok_or_else(|| driver_timeout(context, state, heartbeat))
}

/// Decides as C does.
fn is_recent(heartbeat: i64, timeout: Duration) -> bool {
    let oldest = SystemTime::now().checked_sub(timeout).map_or(0, epoch::millis);
    heartbeat != 0 && heartbeat >= oldest
}

/// Adds directory and advice to C's text, which names both versions.
fn incompatible(error: Error, dir: &Path) -> Error {
    error.with_kind(ErrorKind::IncompatibleDriver).with_line(&format!(
        "{}: use a driver and a client of the same major version",
        dir.join("cnc.dat").display()
    ))
}

/// Describes the absence of a driver.
fn driver_timeout(context: &Context, state: sys::rusteron_cnc_state_t, heartbeat: i64) -> Error {
    let (dir, timeout) = (context.dir(), context.driver_timeout().as_millis());
    let name = dir.display();
    let message = match state {
        sys::rusteron_cnc_state_enum_RUSTERON_CNC_ABSENT => {
            let finding = if dir.exists() { "has no cnc.dat" } else { "does not exist" };
            format!(
                "no media driver runs in {name}, which {finding} (waited {timeout} ms); {ADVICE}"
            )
        }
        sys::rusteron_cnc_state_enum_RUSTERON_CNC_READY => {
            let driver = silent_driver(dir, heartbeat);
            format!("no driver heartbeat detected after: {timeout}ms\n{name}: {driver}")
        }
        _ => format!(
            "the CnC file in {name} is not complete after {timeout} ms; if its driver is not \
             starting, start a new one with dir_delete_on_start"
        ),
    };
    Error::from_code(-(sys::AERON_CLIENT_ERROR_DRIVER_TIMEOUT as i32), message)
}

/// Describes a driver that has stopped to report.
fn silent_driver(dir: &Path, heartbeat: i64) -> String {
    // A driver that ends in good order writes a negative number.
    let is_gone = || c_path("dir", dir).ok().and_then(|dir| gone_driver(&dir));
    if let Some((_, pid)) = (heartbeat >= 0).then(is_gone).flatten() {
        return format!("the media driver, process {pid}, has died; start a new one");
    }
    let process = match CncFile::open(dir, Duration::ZERO) {
        Ok(cnc) => format!("the media driver, process {},", cnc.pid()),
        // Another driver is about to replace the file.
        Err(_) => "the media driver".to_owned(),
    };
    let advice = "start a new one, with dir_delete_on_start to replace the directory at once";
    match epoch::time(heartbeat).filter(|_| heartbeat > 0) {
        Some(last) => {
            let age = SystemTime::now().duration_since(last).unwrap_or_default();
            format!("{process} gave its last heartbeat {age:.1?} ago; if it has died, {advice}")
        }
        None if heartbeat == 0 => {
            format!("{process} has given no heartbeat yet; if it has died, {advice}")
        }
        None => format!("{process} has ended; {advice}"),
    }
}
