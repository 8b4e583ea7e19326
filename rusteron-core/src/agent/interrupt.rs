//! The signals with which a user or an operating system asks a process to end.

pub(super) use platform::install;

#[cfg(unix)]
mod platform {
    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
    use std::{mem, process, ptr, thread};

    use libc::c_int;

    /// Wakes the thread that calls the caller's function. A handler of signals must not take locks.
    struct Waker {
        stream: UnixStream,
        process: u32,
        is_woken: AtomicBool,
    }

    /// Null, or the waker of this process or of the one that forked it. Never freed, as a handler may be using it.
    static WAKER: AtomicPtr<Waker> = AtomicPtr::new(ptr::null_mut());

    /// Calls a function at the first SIGINT, SIGTERM or SIGHUP, on a thread of its own.
    pub(in crate::agent) fn install(
        on_interrupt: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let (stream, mut woken) = UnixStream::pair()?;
        thread::Builder::new().name("shutdown-signal".to_owned()).spawn(move || {
            if woken.read_exact(&mut [0]).is_ok() {
                on_interrupt();
            }
        })?;
        let waker = Waker { stream, process: process::id(), is_woken: AtomicBool::new(false) };
        WAKER.store(Box::into_raw(Box::new(waker)), Ordering::Release);
        // The second Ctrl-C has its default effect, in case the program is stuck.
        handle(libc::SIGINT, libc::SA_RESETHAND)?;
        handle(libc::SIGTERM, 0)?;
        if !is_ignored(libc::SIGHUP)? {
            handle(libc::SIGHUP, 0)?;
        }
        Ok(())
    }

    fn handle(signal: c_int, flags: c_int) -> io::Result<()> {
        let handler: extern "C" fn(c_int) = on_signal;
        // SAFETY: `sigaction` is plain C data, for which zeros are valid: no flags, an empty mask. The handler has the
        // signature of an action without SA_SIGINFO, and does only what a handler may.
        let status = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handler as usize;
            action.sa_flags = flags | libc::SA_RESTART;
            libc::sigaction(signal, &action, ptr::null_mut())
        };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Returns whether the parent process, such as `nohup`, has made this process ignore a signal.
    fn is_ignored(signal: c_int) -> io::Result<bool> {
        // SAFETY: zeros are valid for `sigaction`, and C fills it in. Without a new action, none is changed.
        let (status, action) = unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            (libc::sigaction(signal, ptr::null(), &mut action), action)
        };
        if status == 0 {
            Ok(action.sa_sigaction == libc::SIG_IGN)
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Runs on any thread, between any two instructions: takes no lock and allocates nothing.
    extern "C" fn on_signal(signal: c_int) {
        // SAFETY: `install` stores a box that is never freed, and installs this handler afterwards.
        let Some(waker) = (unsafe { WAKER.load(Ordering::Acquire).as_ref() }) else { return };
        if waker.process != process::id() {
            // A forked child has no thread to wake, and its parent's socket.
            // SAFETY: POSIX allows both functions in handlers. The raised signal waits for the end of this handler,
            // and then has its default effect.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        } else if !waker.is_woken.swap(true, Ordering::Relaxed) {
            // One system call. The socket is empty and its reader alive, so the call neither fails nor waits.
            let _ = (&waker.stream).write(&[0]);
        }
    }
}

#[cfg(windows)]
mod platform {
    use std::io;
    use std::sync::{Mutex, PoisonError};

    static ON_INTERRUPT: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn SetConsoleCtrlHandler(handler: extern "system" fn(u32) -> i32, is_added: i32) -> i32;
    }

    /// Calls a function at the first Ctrl-C, Ctrl-Break, or end of the console.
    pub(in crate::agent) fn install(
        on_interrupt: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        *ON_INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(on_interrupt));
        // SAFETY: the handler has the signature of a `PHANDLER_ROUTINE`.
        let status = unsafe { SetConsoleCtrlHandler(on_event, 1) };
        if status != 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Runs on a thread of its own, which may take locks. Leaves a second event to the default handler.
    extern "system" fn on_event(_event: u32) -> i32 {
        let first = ON_INTERRUPT.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.map_or(0, |on_interrupt| {
            on_interrupt();
            1
        })
    }
}
