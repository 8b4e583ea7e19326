//! Drivers whose system calls the kernel refuses, as in a container with a seccomp filter.

use std::fs;
use std::thread;

use rusteron_client::{Aeron, ErrorKind};
use rusteron_media_driver::{DirAccess, DriverInvoker, MediaDriver, ThreadingMode};
use rusteron_test_support::{connect, driver_context, driver_context_in, ignored_test, pass};

use crate::{all, check_umask, modes, set_umask, streams};

/// Forbids system calls to this thread and to all that it starts.
fn forbid(calls: &[libc::c_long]) {
    const NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut steps = vec![step(NUMBER, 0, 0, 0)];
    for call in calls {
        steps.push(step(IS, *call as u32, 0, 1));
        steps.push(step(RETURN, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0));
    }
    steps.push(step(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0));
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the filter is live during the call, which copies it, and it is for this thread and those it starts.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program), 0);
    }
}

/// As in a container whose seccomp filter has no `unshare`.
#[test]
fn private_without_unshare() {
    pass(&mut ignored_test("forbidden_calls::driver_without_unshare"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn driver_without_unshare() {
    set_umask();
    forbid(&[libc::SYS_unshare]);
    // SAFETY: fails.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_FS) }, -1, "forbidden");
    let driver = MediaDriver::launch_embedded_with(driver_context()).expect("a driver");
    let _streams = streams(driver.aeron_dir());
    assert_eq!(modes(driver.aeron_dir()), all(0o700, 0o600));
    check_umask();
}

/// As on a file system without modes.
#[test]
fn error_without_modes() {
    pass(&mut ignored_test("forbidden_calls::driver_without_modes"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn driver_without_modes() {
    set_umask();
    let mut context = driver_context();
    context.set_threading_mode(ThreadingMode::Invoker).expect("a mode");
    let mut driver = DriverInvoker::launch_embedded(context).expect("a driver");
    let dir = driver.aeron_dir().to_owned();
    thread::scope(|scope| {
        let user = scope.spawn(|| {
            let aeron = Aeron::connect(rusteron_test_support::context(&dir)).expect("a client");
            let error =
                aeron.add_publication(rusteron_test_support::SHORT_TERMS, 1).expect_err("no mode");
            assert!(error.to_string().contains("mode of a log buffer"), "{error}");
            assert_eq!(fs::read_dir(dir.join("publications")).expect("a directory").count(), 0);
        });
        forbid(&[
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod,
            libc::SYS_fchmodat,
            // fchmodat2
            452,
        ]);
        while !user.is_finished() {
            let work = driver.do_work().expect("a turn");
            driver.idle(work);
        }
    });
    drop(driver);

    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    // The second launch replaces the files of the first.
    for _ in 0..2 {
        let error = MediaDriver::launch(driver_context_in(&dir)).expect_err("no modes");
        assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::PermissionDenied), "{error}");
        assert!(error.to_string().contains("mode 0700 cannot be set"), "{error}");
        assert!(error.to_string().contains(&dir.display().to_string()), "{error}");
    }
    let mut context = driver_context_in(&dir);
    context.set_dir_access(DirAccess::Umask).expect("an access");
    drop(connect(&MediaDriver::launch(context).expect("a driver that needs no modes")));
}
