//! The signal that a terminal sends when it is closed.

/// Installs signal handlers, and keeps SIGHUP ignored if the parent process, such as `nohup`,
/// ignores it. Otherwise ctrlc would take SIGHUP as a request to end.
pub(crate) fn stay_ignored<T>(install: impl FnOnce() -> T) -> T {
    // SAFETY: the structure is plain C data, which C fills in; without another action none is changed.
    #[cfg(unix)]
    let is_ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    };
    let installed = install();
    #[cfg(unix)]
    if is_ignored {
        // SAFETY: no handler of ours is called for a signal that is ignored.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
    installed
}
