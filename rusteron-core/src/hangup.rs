//! The signal that a terminal sends when it is closed.

/// Installs signal handlers, and keeps SIGHUP ignored if the parent process, such as `nohup`,
/// ignores it. Otherwise handlers for termination would take SIGHUP as a request to end.
pub fn keep_hangup_ignored<T>(install: impl FnOnce() -> T) -> T {
    // SAFETY: the structure is plain C data, for which zeros are valid, and C fills it in. Without
    // another action, no action is changed.
    #[cfg(unix)]
    let is_ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    };
    let installed = install();
    #[cfg(unix)]
    if is_ignored {
        // SAFETY: sets no handler: the process ignores the signal, as before.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    installed
}
