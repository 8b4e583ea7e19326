//! Clients on a file system that others fill.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

use rusteron_client::Aeron;
use rusteron_media_driver::{Context, MediaDriver, Preset};
use rusteron_test_support::{SmallFileSystem, connect, connected_pair, exchange};

use crate::lock;

const DIR: &str = "RUSTERON_TEST_DIR";

/// A client in a process of its own, with a log buffer in a file system that others fill. Returns the client's
/// output, and the signal that ended it.
fn run_client_while_the_file_system_fills(context: Context) -> (String, Option<i32>) {
    let dir = context.dir().to_owned();
    let driver = MediaDriver::launch(context).expect("a driver");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "clients::client_on_full_file_system", "--ignored", "--nocapture"]);
    command.env(DIR, &dir);
    for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
        // A sanitizer would turn the signal into an exit status.
        let options = std::env::var(name).unwrap_or_default();
        command.env(name, format!("{options}:handle_sigbus=0"));
    }
    let output = command.output().expect("this program starts");
    drop(connect(&driver));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.signal())
}

#[test]
#[ignore = "run by other tests, in a process of its own"]
fn client_on_full_file_system() {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a directory"));
    let aeron = Aeron::connect(rusteron_test_support::context(&dir)).expect("a client");
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let mut filler = fs::File::create(dir.with_file_name("filler")).expect("a file");
    let full = io::copy(&mut io::repeat(1), &mut filler).expect_err("an end of the space");
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    println!("polls");
    assert_eq!(subscription.poll(|_, _| {}, 1).expect("an open subscription"), 0);
    println!("writes");
    // More than the three terms of 1 MiB.
    exchange(&mut publication, &mut subscription, 4000);
    println!("exchanged");
}

#[test]
fn embedded_preset_survives() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("64m") else {
        return;
    };
    let mut context = Context::with_preset(Preset::Embedded).expect("a context");
    context.set_dir(small.path().join("aeron")).expect("a directory");
    let (text, signal) = run_client_while_the_file_system_fills(context);
    assert!(text.contains("exchanged"), "signal {signal:?}: {text}");
}

/// Shows the documented behaviour of sparse log buffers. Without it, the test above would show nothing.
#[test]
fn sparse_log_buffer_raises_sigbus() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("64m") else {
        return;
    };
    let mut context = Context::with_preset(Preset::Embedded).expect("a context");
    context
        .set_dir(small.path().join("aeron"))
        .and_then(|context| context.set_term_buffer_sparse_file(true))
        .expect("settings");
    let (text, signal) = run_client_while_the_file_system_fills(context);
    assert!(text.contains("polls") && !text.contains("writes"), "{text}");
    assert_eq!(signal, Some(libc::SIGBUS), "{text}");
}
