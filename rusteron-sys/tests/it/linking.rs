//! The functions of each enabled module are in the one static library. The shim reports how far a driver's
//! command-and-control file has come.

use std::ffi::{CStr, CString};
use std::fs;
use std::path::Path;
use std::ptr::null_mut;

use rusteron_sys as sys;

/// `AERON_CNC_VERSION_AND_META_DATA_LENGTH`: what precedes the buffers in `cnc.dat`.
const CNC_METADATA_LENGTH: usize = 256;

#[test]
fn library_version() {
    // SAFETY: these functions take nothing and read constants of the library.
    let (major, minor, patch) = unsafe {
        (sys::aeron_version_major(), sys::aeron_version_minor(), sys::aeron_version_patch())
    };
    assert_eq!(format!("{major}.{minor}.{patch}"), sys::AERON_VERSION);

    // SAFETY: both return NUL-terminated strings that live as long as the process.
    let (text, full) = unsafe {
        (CStr::from_ptr(sys::aeron_version_text()), CStr::from_ptr(sys::aeron_version_full()))
    };
    assert_eq!(text.to_str().unwrap(), sys::AERON_VERSION);
    assert!(full.to_str().unwrap().contains(sys::AERON_VERSION));
}

#[test]
fn client_context_dir() {
    let mut context = null_mut();
    // SAFETY: `context` is a valid place for the pointer that the function stores.
    assert_eq!(unsafe { sys::aeron_context_init(&mut context) }, 0);
    // SAFETY: the context was just initialised, and the string is copied before the call returns;
    // the returned string belongs to the context, which is closed only after it has been compared.
    unsafe {
        assert_eq!(sys::aeron_context_set_dir(context, c"/tmp/a directory".as_ptr()), 0);
        assert_eq!(CStr::from_ptr(sys::aeron_context_get_dir(context)), c"/tmp/a directory");
    }
    // SAFETY: initialised above, closed once, not used afterwards.
    assert_eq!(unsafe { sys::aeron_context_close(context) }, 0);
}

#[cfg(feature = "driver")]
#[test]
fn driver_context_term_length() {
    let mut context = null_mut();
    // SAFETY: `context` is a valid place for the pointer that the function stores.
    assert_eq!(unsafe { sys::driver::aeron_driver_context_init(&mut context) }, 0);
    // SAFETY: the context was just initialised, is used by this thread only, and is closed once, last.
    unsafe {
        assert_eq!(
            sys::driver::aeron_driver_context_set_term_buffer_length(context, 128 * 1024),
            0
        );
        assert_eq!(sys::driver::aeron_driver_context_get_term_buffer_length(context), 128 * 1024);
        assert_eq!(sys::driver::aeron_driver_context_close(context), 0);
    }
}

#[cfg(feature = "archive")]
#[test]
fn archive_context_timeout() {
    let mut context = null_mut();
    // SAFETY: `context` is a valid place for the pointer that the function stores.
    assert_eq!(unsafe { sys::archive::aeron_archive_context_init(&mut context) }, 0);
    // SAFETY: the context was just initialised, is used by this thread only, and is closed once, last.
    unsafe {
        assert_eq!(sys::archive::aeron_archive_context_set_message_timeout_ns(context, 7), 0);
        assert_eq!(sys::archive::aeron_archive_context_get_message_timeout_ns(context), 7);
        assert_eq!(sys::archive::aeron_archive_context_close(context), 0);
    }
}

// These functions need a file of the client that Aeron's CMake leaves out of the driver's library.
#[cfg(feature = "archive")]
#[test]
fn archive_channel_functions() {
    let connect: unsafe extern "C" fn(_, _) -> _ = sys::archive::aeron_archive_async_connect;
    let merge: unsafe extern "C" fn(_, _, _, _, _, _, _, _, _, _) -> _ =
        sys::archive::aeron_archive_replay_merge_init;
    assert_ne!(std::hint::black_box(connect as usize), std::hint::black_box(merge as usize));
}

#[test]
fn cnc_file_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(cnc_state(dir.path()), sys::rusteron_cnc_state_enum_RUSTERON_CNC_ABSENT);
    assert_eq!(
        cnc_state(&dir.path().join("missing")),
        sys::rusteron_cnc_state_enum_RUSTERON_CNC_ABSENT
    );
}

#[test]
fn cnc_file_without_version_is_incomplete() {
    let dir = cnc_file(0, 1024);
    assert_eq!(cnc_state(dir.path()), sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPLETE);
}

#[test]
fn short_cnc_file_is_incomplete() {
    let dir = cnc_file(cnc_version(0), 1024 * 1024);
    assert_eq!(cnc_state(dir.path()), sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPLETE);
}

#[test]
fn complete_cnc_file_is_ready() {
    let dir = cnc_file(cnc_version(0), 1024);
    assert_eq!(cnc_state(dir.path()), sys::rusteron_cnc_state_enum_RUSTERON_CNC_READY);
}

#[test]
fn cnc_file_of_other_major_version() {
    let dir = cnc_file(cnc_version(9), 1024);
    assert_eq!(cnc_state(dir.path()), sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPATIBLE);
    let message = error_message();
    assert!(message.contains("CnC version not compatible"), "{message}");
    assert!(message.contains("file=9.2.0"), "{message}");
}

#[cfg(unix)]
#[test]
fn system_error_message() {
    let dir = cnc_file(cnc_version(9), 1024);
    assert_eq!(cnc_state(dir.path()), sys::rusteron_cnc_state_enum_RUSTERON_CNC_INCOMPATIBLE);
    assert!(error_message().starts_with("(22) Invalid argument"), "{}", error_message());
}

#[test]
fn cnc_path_too_long() {
    let dir = "d".repeat(64 * 1024);
    assert_eq!(cnc_state(Path::new(&dir)), sys::rusteron_cnc_state_enum_RUSTERON_CNC_FAILED);
    assert!(error_message().contains("truncated"), "{}", error_message());
}

/// A directory whose `cnc.dat` holds a metadata block and 1024 further bytes.
fn cnc_file(version: i32, to_driver_buffer_length: i32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = vec![0; CNC_METADATA_LENGTH + 1024];
    // The first two fields of aeron_cnc_metadata_t; the lengths of the other buffers stay 0.
    bytes[0..4].copy_from_slice(&version.to_ne_bytes());
    bytes[4..8].copy_from_slice(&to_driver_buffer_length.to_ne_bytes());
    fs::write(dir.path().join("cnc.dat"), bytes).unwrap();
    dir
}

/// The file format's version, 0.2.0, with another major number.
fn cnc_version(major: u8) -> i32 {
    // SAFETY: computes a number from its arguments.
    unsafe { sys::aeron_semantic_version_compose(major, 2, 0) }
}

fn cnc_state(dir: &Path) -> sys::rusteron_cnc_state_t {
    let dir = CString::new(dir.to_str().unwrap()).unwrap();
    // SAFETY: a NUL-terminated string that outlives the call, which keeps no pointer to it.
    unsafe { sys::rusteron_cnc_state(dir.as_ptr(), std::ptr::null_mut()) }
}

fn error_message() -> String {
    // SAFETY: a NUL-terminated string of this thread, copied before this thread calls Aeron again.
    unsafe { CStr::from_ptr(sys::aeron_errmsg()) }.to_string_lossy().into_owned()
}
