//! Launches that are refused, and their errors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rusteron_media_driver::{DriverContext, ErrorKind, MediaDriver, NameResolver, Result};
use rusteron_test_support::{DriverProcess, connect, driver_context, media_driver, skip};

use crate::MEDIA_DRIVER;

/// The program, run by a user with few rights.
fn as_nobody(command: &mut Command, home: &Path) -> Option<DriverProcess> {
    // The superuser has all rights; and only the superuser can become another user.
    const NOBODY: u32 = 65534;
    let is_superuser = fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.contains("\nUid:\t0\t0\t"));
    if !is_superuser {
        return Some(DriverProcess::run(command));
    }
    // Where it was built may be out of reach.
    let program = home.join("media_driver");
    fs::copy(MEDIA_DRIVER, &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut other = Command::new(program);
    other.args(command.get_args()).uid(NOBODY).gid(NOBODY).current_dir("/");
    let is_possible = Command::new("true").uid(NOBODY).status().is_ok();
    if !is_possible {
        skip("RUSTERON_REQUIRE_MOUNT", "the superuser cannot become another user");
    }
    is_possible.then(|| DriverProcess::run(&mut other))
}

#[test]
fn permission_denied() {
    let home = tempfile::tempdir().expect("a directory");
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    let closed = home.path().join("closed");
    fs::create_dir(&closed).expect("a directory");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).expect("permissions");
    let dir = closed.join("aeron");
    let Some(mut driver) =
        as_nobody(media_driver(MEDIA_DRIVER).arg("--dir").arg(&dir), home.path())
    else {
        return;
    };
    let (code, errors) = driver.end();
    assert_eq!(code, 77, "{errors}");
    assert!(errors.contains("permission denied"), "{errors}");
    assert!(errors.contains(&dir.display().to_string()), "{errors}");

    // A directory that is there already, and may not be deleted.
    fs::create_dir(closed.join("remains"))
        .or_else(|_| {
            fs::set_permissions(&closed, fs::Permissions::from_mode(0o755))?;
            fs::create_dir(closed.join("remains"))?;
            fs::set_permissions(&closed, fs::Permissions::from_mode(0o555))
        })
        .expect("a directory");
    let remains = closed.join("remains");
    let Some(mut driver) =
        as_nobody(media_driver(MEDIA_DRIVER).arg("--dir").arg(&remains), home.path())
    else {
        return;
    };
    let (code, errors) = driver.end();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("permissions");
    assert_eq!(code, 77, "{errors}");
    assert!(errors.contains("permission denied"), "{errors}");
    assert!(errors.contains(&format!("{} cannot be deleted", remains.display())), "{errors}");
}

#[test]
fn cpu_affinity() {
    let launch = |set: fn(&mut DriverContext) -> Result<&mut DriverContext>| {
        let mut context = driver_context();
        set(&mut context).expect("a number");
        MediaDriver::launch_embedded_with(context)
    };
    let out_of_range: [fn(&mut DriverContext) -> Result<&mut DriverContext>; 3] = [
        |context| context.set_conductor_cpu_affinity(256),
        |context| context.set_conductor_cpu_affinity(i32::MAX),
        |context| context.set_conductor_cpu_affinity(0)?.set_sender_cpu_affinity(-2),
    ];
    for set in out_of_range {
        let error = launch(set).expect_err("no such CPU");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        assert!(error.message().contains("_cpu_affinity: "), "{error:?}");
    }
    if !cfg!(target_os = "linux") {
        return;
    }
    // A CPU that this process may use.
    let allowed = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
        line.expect("the line").trim().to_owned()
    };
    let status = fs::read_to_string("/proc/self/status").expect("this process");
    let list = allowed(&status);
    let cpu: i32 = list.split([',', '-']).next().expect("one").parse().expect("a number");
    let (threads, started) = std::sync::mpsc::channel();
    let mut context = driver_context();
    context
        .set_conductor_cpu_affinity(cpu)
        .and_then(|context| {
            context.set_agent_on_start(move |_| {
                let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
                threads.send(status).expect("a test that listens");
            })
        })
        .expect("settings");
    let driver = MediaDriver::launch_embedded_with(context).expect("a driver");
    let status = started.recv_timeout(rusteron_test_support::DEADLINE).expect("a start");
    assert_eq!(allowed(&status), cpu.to_string());
    drop(connect(&driver).add_publication("aeron:ipc", 1).expect("a publication"));
}

#[test]
fn affinity_settings_without_cpu() {
    // Some machines have no set of CPUs to count within: C then refuses, whatever the numbers are.
    let launch = |cpu: i32| {
        let mut context = driver_context();
        context
            .set_thread_affinity_use_cpuset_offsets(true)
            .and_then(|context| context.set_conductor_cpu_affinity(cpu))
            .expect("settings");
        MediaDriver::launch_embedded_with(context).map(drop).map_err(|error| error.kind())
    };
    let without = launch(-1);
    assert_eq!(without, launch(0));
    assert!(matches!(without, Ok(()) | Err(ErrorKind::InvalidArgument)), "{without:?}");
}

#[test]
fn name_resolver_settings() {
    let launch = |name: &str, interface: &str, neighbors: &str| {
        let mut context = driver_context();
        context.set_name_resolver(NameResolver::Driver).expect("one");
        if !name.is_empty() {
            context.set_resolver_name(name).expect("a name");
        }
        if !interface.is_empty() {
            context.set_resolver_interface(interface).expect("an interface");
        }
        if !neighbors.is_empty() {
            context.set_resolver_bootstrap_neighbor(neighbors).expect("neighbors");
        }
        MediaDriver::launch_embedded_with(context)
    };
    for (name, interface, neighbors, setting) in [
        ("", "", "", "resolver_name"),
        ("a", "", "", "resolver_interface"),
        ("a", "127.0.0.1/24:0", "", "resolver_interface"),
        ("a", "127.0.0.1:0", "a:1,b:1,c:1", "resolver_bootstrap_neighbor"),
        ("a", "127.0.0.1:0", "%[::1]:80,localhost:12345", "resolver_bootstrap_neighbor"),
    ] {
        let error = launch(name, interface, neighbors).expect_err(setting);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
        assert!(error.message().starts_with(setting), "{error:?}");
    }
    drop(launch("a", "127.0.0.1:0", "localhost:12345,,localhost:12346").expect("a driver"));
}
