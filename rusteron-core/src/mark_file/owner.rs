//! Who owns a mark file.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::ffi::PerProcess;
use crate::mark_file::{ACTIVITY_OFFSET, LIVENESS_TIMEOUT, MappedFile, PID_OFFSET, STARTING, now};

/// The mark files of this process.
static ACTIVE: PerProcess<Mutex<BTreeSet<PathBuf>>> = PerProcess::new();

/// The right to use a mark file in this process. Dropping it gives the right back.
#[derive(Debug)]
pub struct Reservation(PathBuf);

impl Reservation {
    /// Reserves a canonical path.
    ///
    /// # Errors
    /// [`Owner::ThisProcess`] if another component of this process has reserved it.
    pub fn new(path: &Path) -> Result<Self, Owner> {
        let mut active = ACTIVE.lock().unwrap_or_else(PoisonError::into_inner);
        let is_free = active.insert(path.to_owned());
        is_free.then(|| Self(path.to_owned())).ok_or(Owner::ThisProcess)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        ACTIVE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// The owner of a mark file that cannot be taken over. It is printed as a part of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Another component of this process.
    ThisProcess,
    /// A process that has made the file, and has not written its header yet.
    Making,
    /// A process that has just made the file.
    HasMade,
    /// A process that has just taken over the file.
    HasTakenOver,
    /// A process that holds the lock of the file.
    Locked {
        /// The id of the process.
        pid: i64,
    },
    /// A process that is starting, or was killed meanwhile.
    Starting {
        /// The id of the process.
        pid: i64,
    },
    /// A process that has given a sign of life.
    Alive {
        /// The id of the process.
        pid: i64,
        /// The age of the sign of life in milliseconds.
        age_ms: i64,
    },
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisProcess => f.write_str("in this process"),
            Self::Making => f.write_str("which is making the file"),
            Self::HasMade => f.write_str("which has just made the file"),
            Self::HasTakenOver => f.write_str("which has just taken over the file"),
            Self::Locked { pid } => write!(f, "process {pid}, which is running"),
            Self::Starting { pid } => write!(f, "process {pid}, which is starting"),
            Self::Alive { pid, age_ms } => {
                write!(f, "process {pid}, which was alive {age_ms} ms ago")
            }
        }
    }
}

/// What a mark file tells of its last owner.
#[derive(Debug, Clone, Copy)]
pub struct Former {
    /// The last sign of life in milliseconds since 1970, [`ENDED`](crate::mark_file::ENDED) or [`STARTING`].
    pub activity_timestamp: i64,
    /// The process.
    pub pid: i64,
    /// Whether the owner has not finished its start, so that the timestamp tells nothing.
    pub is_starting: bool,
    /// Whether the file has not been written for the liveness timeout: see [`is_old`].
    pub is_old: bool,
    /// Whether the caller knows that the process has ended, whatever the other fields say.
    pub has_ended: bool,
}

impl Former {
    /// Decides whether the owner is alive.
    ///
    /// It is not if its timestamp is older than the liveness timeout. An owner that was killed while it was starting
    /// leaves "starting" behind, which blocks Java's components for good. Here, it is not alive if the file is old, and
    /// no process has its id. Only Linux tells about processes.
    ///
    /// # Errors
    /// The owner, if it may be alive.
    pub fn check(&self) -> Result<(), Owner> {
        let pid = self.pid;
        let age_ms = now().saturating_sub(self.activity_timestamp);
        if self.has_ended {
            Ok(())
        } else if self.is_starting {
            let is_gone = self.is_old && !is_alive(pid);
            if is_gone { Ok(()) } else { Err(Owner::Starting { pid }) }
        } else if age_ms < LIVENESS_TIMEOUT.as_millis() as i64 {
            Err(Owner::Alive { pid, age_ms })
        } else {
            Ok(())
        }
    }
}

/// Marks the file of a former owner that is not alive as starting.
///
/// The first of several starters to replace the former owner's process id gets the file, whatever
/// step the others have reached. Processes of the same id, as in two containers, need a lock beside
/// it.
///
/// # Errors
/// The owner, if it may be alive, or another process that was faster.
pub fn claim(file: &MappedFile, former: Former, pid: i64) -> Result<(), Owner> {
    former.check()?;
    let activity = file.i64_at(ACTIVITY_OFFSET);
    if !former.is_starting {
        replace(activity, former.activity_timestamp, STARTING)?;
    }
    // "Starting" with the id of a process that is gone looks like a start that was cut short.
    replace(file.i64_at(PID_OFFSET), former.pid, pid)?;
    activity.store(STARTING.to_le(), Ordering::Release);
    Ok(())
}

/// Replaces a number by which processes agree on the owner.
///
/// # Errors
/// [`Owner::HasTakenOver`] if it is another number by now.
pub fn replace(field: &AtomicI64, from: i64, to: i64) -> Result<(), Owner> {
    field
        .compare_exchange(from.to_le(), to.to_le(), Ordering::AcqRel, Ordering::Relaxed)
        .map(|_| ())
        .map_err(|_| Owner::HasTakenOver)
}

/// Returns whether a file has not been written for the liveness timeout. Stores to a mapping count late or never.
///
/// # Errors
/// Those of the operating system.
pub fn is_old(file: &File) -> io::Result<bool> {
    // A clock that was set back makes the age unknown.
    let age = file.metadata()?.modified()?.elapsed();
    Ok(age.is_ok_and(|age| age > LIVENESS_TIMEOUT))
}

/// Returns whether another process of this id may exist. Only Linux tells without C code.
fn is_alive(pid: i64) -> bool {
    // Mark files of this process are reserved, so this one is of a former process of the same id,
    // such as 1 in a container.
    pid > 0
        && pid != i64::from(std::process::id())
        && (cfg!(not(target_os = "linux")) || Path::new("/proc").join(pid.to_string()).exists())
}
