//! Who may use the files of a driver.

#![cfg(unix)]

#[cfg(target_os = "linux")]
mod forbidden_calls;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rusteron_client::{
    Aeron, CncFile, Context, ErrorKind, ExclusivePublication, Subscription,
    request_driver_termination,
};
use rusteron_media_driver::{DirAccess, DriverInvoker, MediaDriver, ThreadingMode};
use rusteron_test_support::{
    DEADLINE, connect, connected_pair, context, driver_context, driver_context_in, free_port,
    ignored_test, logged_with, offer, pass, receive, skip,
};

const MEDIA_DRIVER: &str = env!("CARGO_BIN_EXE_media_driver");

/// The usual umask. Each test sets it, because it is one for all of them.
const UMASK: u32 = 0o022;

fn set_umask() {
    // SAFETY: a number of the process's; all tests of this file set the same.
    unsafe { libc::umask(UMASK as libc::mode_t) };
}

/// The streams that are open while the files are looked at.
type Ends = Vec<(ExclusivePublication, Subscription)>;

/// A stream over IPC and one over UDP, so that there are log buffers of publications and of an image.
fn streams(dir: &Path) -> Ends {
    let aeron = Aeron::connect(context(dir)).expect("a client");
    let udp = format!("aeron:udp?term-length=64k|endpoint=127.0.0.1:{}", free_port());
    let pair = |channel: &str| {
        let (mut publication, mut subscription) = connected_pair(&aeron, channel);
        offer(&mut publication, b"message");
        assert_eq!(receive(&mut subscription, 1), [b"message"]);
        (publication, subscription)
    };
    vec![pair(rusteron_test_support::SHORT_TERMS), pair(&udp)]
}

/// The modes of a directory and of everything in it, by path; with `image` and `publication` for log buffers.
fn modes(dir: &Path) -> BTreeMap<String, u32> {
    fn collect(at: &Path, root: &Path, modes: &mut BTreeMap<String, u32>) {
        let metadata = fs::symlink_metadata(at).expect("a file");
        let mut name = at.strip_prefix(root).expect("below").display().to_string();
        if let (Some((kind, _)), true) = (name.split_once('/'), name.ends_with(".logbuffer")) {
            name = format!("{kind}/log");
        }
        modes.insert(name, metadata.mode() & 0o7777);
        if metadata.is_dir() {
            for entry in fs::read_dir(at).expect("a directory") {
                collect(&entry.expect("an entry").path(), root, modes);
            }
        }
    }
    let mut all = BTreeMap::new();
    collect(dir, dir, &mut all);
    all
}

/// The modes of a driver's files with these of directories and files.
fn all(directory: u32, file: u32) -> BTreeMap<String, u32> {
    let directories = ["", "images", "publications"].map(|name| (name.to_owned(), directory));
    let files = ["cnc.dat", "images/log", "loss-report.dat", "publications/log"];
    directories.into_iter().chain(files.map(|name| (name.to_owned(), file))).collect()
}

/// Checks the mode that this process's umask gives to a file. No driver alters the umask.
fn check_umask() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("file");
    fs::write(&file, b"text").expect("a file");
    assert_eq!(fs::metadata(&file).expect("a file").mode() & 0o777, 0o666 & !UMASK);
}

#[test]
fn files_have_the_modes_of_the_access() {
    set_umask();
    let private = all(0o700, 0o600);
    for (mode, access, expected) in [
        (ThreadingMode::Shared, None, &private),
        (ThreadingMode::SharedNetwork, Some(DirAccess::Private), &private),
        (ThreadingMode::Dedicated, None, &private),
        (ThreadingMode::Shared, Some(DirAccess::Group), &all(0o750, 0o660)),
        (ThreadingMode::Shared, Some(DirAccess::Umask), &all(0o755, 0o644)),
    ] {
        let mut context = driver_context();
        context.set_threading_mode(mode).expect("a mode");
        if let Some(access) = access {
            context.set_dir_access(access).expect("an access");
            assert_eq!(context.dir_access(), access);
        }
        let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
        let _streams = streams(driver.aeron_dir());
        assert_eq!(modes(driver.aeron_dir()), *expected, "{mode:?} {access:?}");
        check_umask();
    }
}

#[test]
fn private_files_of_invoker() {
    set_umask();
    let mut context = driver_context();
    context.set_threading_mode(ThreadingMode::Invoker).expect("a mode");
    let mut driver = DriverInvoker::launch_embedded(context).expect("a driver");
    let dir = driver.aeron_dir().to_owned();
    thread::scope(|scope| {
        let user = scope.spawn(|| {
            let _streams = streams(&dir);
            assert_eq!(modes(&dir), all(0o700, 0o600));
        });
        while !user.is_finished() {
            let work = driver.do_work().expect("a turn");
            driver.idle(work);
        }
    });
    check_umask();
}

#[test]
fn private_dir_and_parents() {
    set_umask();
    let home = tempfile::tempdir().expect("a directory");
    let above = home.path().join("some/where");
    let dir = above.join("aeron");
    // The second driver replaces the files of the first.
    for _ in 0..2 {
        let driver = MediaDriver::launch(driver_context_in(&dir)).expect("a driver");
        let _streams = streams(&dir);
        assert_eq!(modes(&dir), all(0o700, 0o600));
        assert_eq!(fs::metadata(&above).expect("a directory").mode() & 0o7777, 0o755);
        drop(driver);
    }
}

/// Another user needs only a look at the wrong moment, and can then go on reading `cnc.dat`.
#[test]
#[cfg(target_os = "linux")]
fn never_open_to_others() {
    set_umask();
    // SAFETY: parts what the thread shares with others, and ends with it.
    let can_part = thread::spawn(|| unsafe { libc::unshare(libc::CLONE_FS) } == 0);
    if !can_part.join().expect("an answer") {
        return skip("RUSTERON_REQUIRE_MOUNT", "a thread cannot get a umask of its own");
    }
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut looks = 0;
            while !is_over.load(Ordering::Relaxed) {
                for path in [dir.clone(), dir.join("cnc.dat"), dir.join("publications")] {
                    let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
                    assert_eq!(metadata.mode() & 0o077, 0, "{}", path.display());
                    looks += 1;
                }
            }
            looks
        });
        for _ in 0..30 {
            let mut context = driver_context_in(&dir);
            context.set_dir_delete_on_shutdown(true).expect("a setting");
            drop(MediaDriver::launch(context).expect("a driver"));
        }
        is_over.store(true, Ordering::Relaxed);
        assert_ne!(looking.join().expect("nothing open to others"), 0);
    });
}

/// Returns whether this is the superuser, who can become another user. If not, says so.
fn is_superuser() -> bool {
    // SAFETY: reads a number of the process's.
    let is_superuser = unsafe { libc::geteuid() } == 0;
    if !is_superuser {
        skip("RUSTERON_REQUIRE_MOUNT", "only the superuser can become another user");
    }
    is_superuser
}

/// Some user and group that own nothing.
const OTHER: u32 = 61_234;

#[test]
#[cfg(target_os = "linux")]
fn group_is_inherited() {
    set_umask();
    if !is_superuser() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::chown(home.path(), None, Some(OTHER)).expect("a group");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o2755)).expect("a mode");
    let dir = home.path().join("aeron");
    let mut context = driver_context_in(&dir);
    context.set_dir_access(DirAccess::Group).expect("an access");
    let _driver = MediaDriver::launch(context).expect("a driver");
    let _streams = streams(&dir);
    let found = modes(&dir);
    let mut expected = all(0o2750, 0o660);
    assert_eq!(found, expected.clone());
    expected.retain(|name, _| !name.ends_with("/log"));
    for name in expected.keys() {
        assert_eq!(fs::metadata(dir.join(name)).expect("a file").gid(), OTHER, "{name}");
    }
    let logs = fs::read_dir(dir.join("publications")).expect("a directory");
    for log in logs {
        assert_eq!(log.expect("an entry").metadata().expect("a file").gid(), OTHER);
    }
    let outcome = run_client(&dir, OTHER, OTHER);
    assert!(outcome.contains("exchanged"), "{outcome}");
}

const DIR: &str = "RUSTERON_TEST_DIR";

/// Runs a client as another user, and returns its output.
fn run_client(dir: &Path, user: u32, group: u32) -> String {
    run_as(user, group, "client_for_other_tests", dir)
}

/// Runs an ignored test as another user, and returns its output.
fn run_as(user: u32, group: u32, test: &str, dir: &Path) -> String {
    use std::os::unix::process::CommandExt;
    let home = tempfile::tempdir().expect("a directory");
    // Where the other user can get at it.
    let program = PathBuf::from(home.path()).join("client");
    // A copy of this process's would be busy while another thread's child has it open for writing.
    let copied = Command::new("cp")
        .arg(std::env::current_exe().expect("this program"))
        .arg(&program)
        .status()
        .expect("cp starts");
    assert!(copied.success(), "no copy of this program");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let output = Command::new(&program)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(DIR, dir)
        .current_dir("/")
        .gid(group)
        .uid(user)
        .output()
        .expect("this program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
#[ignore = "run by other tests as another user"]
fn client_for_other_tests() {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a directory"));
    let mut context = context(&dir);
    context.set_driver_timeout(Duration::from_secs(3600)).expect("a timeout");
    let (sender, outcome) = mpsc::channel();
    // Not joined: a call that waits for an hour fails the test below.
    thread::spawn(move || sender.send(Aeron::connect(context)));
    match outcome.recv_timeout(DEADLINE).expect("an outcome before the driver timeout") {
        Ok(_) => {
            drop(streams(&dir));
            println!("exchanged");
        }
        Err(error) => {
            let launch = MediaDriver::launch(driver_context_in(&dir)).expect_err("no rights");
            println!("{:?}: {error}\nlaunch: {launch}", error.kind());
        }
    }
}

#[test]
#[ignore = "run by other tests as another user"]
fn reader_for_other_tests() {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a directory"));
    for outcome in
        [CncFile::open(&dir, Duration::ZERO).map(drop), request_driver_termination(&dir, b"")]
    {
        let refusal = outcome.map_err(|error| format!("{:?}: {error}", error.kind()));
        println!("{}", refusal.err().unwrap_or("accepted".to_owned()));
    }
}

/// Nothing but a change of modes lets the other user in, so no call waits for the driver timeout.
#[test]
fn refused_user_is_told_why() {
    set_umask();
    if !is_superuser() {
        return;
    }
    for (access, refusing, action, mode) in [
        (DirAccess::Private, "", "search this directory", "0700"),
        (DirAccess::Umask, "cnc.dat", "read and write this file", "0644"),
    ] {
        let mut context = driver_context();
        context.set_dir_access(access).expect("an access");
        let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
        let dir = driver.aeron_dir();
        let refusing = if refusing.is_empty() { dir.to_owned() } else { dir.join(refusing) };
        let refusal = format!("{}: user {OTHER} may not {action} of user 0", refusing.display());
        let outcome = run_client(dir, OTHER, OTHER);
        for expected in ["Io(PermissionDenied)", &refusal, mode, "--dir-access group"] {
            assert!(outcome.contains(expected), "{expected}: {outcome}");
        }
        let readers = run_as(OTHER, OTHER, "reader_for_other_tests", dir);
        let refused = readers.matches("Io(PermissionDenied)").count();
        // All users may read the file of the second driver.
        assert_eq!(refused, if access == DirAccess::Private { 2 } else { 1 }, "{readers}");
    }
}

/// A driver that starts lets its group in after all its files have been made.
#[test]
fn group_client_awaits_starting_driver() {
    set_umask();
    if !is_superuser() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let dir = home.path().join("aeron");
    fs::create_dir(&dir).expect("a directory");
    // SAFETY: reads a number of the process's.
    let own_group = unsafe { libc::getegid() };
    thread::scope(|scope| {
        let client = scope.spawn(|| run_client(&dir, OTHER, own_group));
        // Shuts out the client for longer than the client would wait for an unchanged directory.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(2) && !client.is_finished() {
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("a mode");
            thread::sleep(Duration::from_millis(10));
        }
        // A launch may take longer than that, too. The directory changes meanwhile, as its files do.
        let is_launched = AtomicBool::new(false);
        let mut context = driver_context_in(&dir);
        context.set_dir_access(DirAccess::Group).expect("an access");
        let _driver = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_launched.load(Ordering::Relaxed) {
                    // The launch may have deleted the directory.
                    let _ = File::open(&dir).map(|dir| dir.set_modified(SystemTime::now()));
                    thread::sleep(Duration::from_millis(10));
                }
            });
            let launched = MediaDriver::launch(context);
            is_launched.store(true, Ordering::Relaxed);
            launched.expect("a driver")
        });
        let outcome = client.join().expect("a client");
        assert!(outcome.contains("exchanged"), "{outcome}");
    });
}

#[test]
fn clients_of_other_user() {
    set_umask();
    if !is_superuser() {
        return;
    }
    // SAFETY: reads a number of the process's.
    let own_group = unsafe { libc::getegid() };
    for (access, group, is_let_in) in [
        (DirAccess::Private, own_group, false),
        (DirAccess::Group, OTHER, false),
        (DirAccess::Group, own_group, true),
    ] {
        let mut context = driver_context();
        context.set_dir_access(access).expect("an access");
        let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
        let outcome = run_client(driver.aeron_dir(), OTHER, group);
        let denied = format!("{:?}", ErrorKind::Io(std::io::ErrorKind::PermissionDenied));
        let expected = if is_let_in { "exchanged" } else { &denied };
        assert!(outcome.contains(expected), "{access} {group}: {outcome}");
        let launch = outcome.split_once("launch: permission denied").map_or("", |(_, it)| it);
        let refusal = format!("user {OTHER} may not search this directory of user 0");
        let names_owner = launch.contains(&refusal) && launch.contains("AERON_DIR");
        assert!(is_let_in || names_owner, "{access} {group}: {outcome}");
        // Those of the same user are none the wiser.
        drop(connect(&driver));
    }
}

#[test]
#[ignore = "run by other tests, in a process of its own"]
fn client_in_default_dir() {
    let dir = Context::default_dir();
    let other = PathBuf::from(std::env::var_os(DIR).expect("a directory"));
    let logged_in = |dir: &Path| {
        let connect = || drop(Aeron::connect(context(dir)).expect("a client"));
        logged_with("", connect)
    };
    println!("{:?}\nof another name: {:?}", logged_in(&dir), logged_in(&other));
}

#[test]
#[cfg(target_os = "linux")]
fn default_dir_of_other_user_is_logged() {
    if !is_superuser() {
        return;
    }
    // A process's default directory has this name if its environment says so.
    let name = format!("rusteron-test-{}", std::process::id());
    let dir = Path::new("/dev/shm").join(format!("aeron-{name}"));
    let mut context = driver_context_in(&dir);
    context.set_dir_delete_on_shutdown(true).expect("a setting");
    let driver = MediaDriver::launch(context).expect("a driver");
    let home = tempfile::tempdir().expect("a directory");
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&dir, &link).expect("a link");
    let say = || {
        let mut test = ignored_test("client_in_default_dir");
        pass(test.env("USER", &name).env_remove("AERON_DIR").env(DIR, &link))
    };
    assert!(!say().contains("WARN"));
    std::os::unix::fs::chown(&dir, Some(OTHER), None).expect("another owner");
    let said = say();
    let (first, second) = said.split_once("of another name:").expect("both");
    assert!(first.contains("WARN") && first.contains(&OTHER.to_string()), "{first}");
    assert!(first.contains(&dir.display().to_string()), "{first}");
    assert!(!second.contains("WARN"), "{second}");
    drop(driver);
}

#[test]
#[cfg(feature = "binary")]
fn program_option() {
    use rusteron_test_support::DriverProcess;
    set_umask();
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let cases: [(&[&str], Option<&str>, _); 6] = [
        (&[], None, all(0o700, 0o600)),
        (&["--dir-access", "group"], None, all(0o750, 0o660)),
        (&["--dir-access", "umask"], None, all(0o755, 0o644)),
        (&[], Some("group"), all(0o750, 0o660)),
        (&["--dir-access", "private"], Some("group"), all(0o700, 0o600)),
        (&["-D", "rusteron.dir.access=group"], None, all(0o750, 0o660)),
    ];
    for (options, variable, expected) in cases {
        let mut command = rusteron_test_support::media_driver(MEDIA_DRIVER);
        command.args(["--threading-mode", "shared", "--dir"]).arg(&dir).args(options);
        command.envs(variable.map(|value| ("RUSTERON_DIR_ACCESS", value)));
        let mut driver = DriverProcess::run(&mut command);
        driver.await_line("media driver ready");
        let streams = streams(&dir);
        assert_eq!(modes(&dir), expected, "{options:?} {variable:?}");
        drop(streams);
        driver.signal("TERM");
        assert_eq!(driver.end().0, 0);
    }
    let output = rusteron_test_support::media_driver(MEDIA_DRIVER)
        .env("RUSTERON_DIR_ACCESS", "everybody")
        .output()
        .expect("the program");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{errors}");
    assert!(errors.contains("everybody") && errors.contains("RUSTERON_DIR_ACCESS"), "{errors}");
}
