//! Files that other processes use, too.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens an existing regular file, also through a link. Anything else in its place is an error:
/// opening a pipe waits for another process, opening a device can have effects, and some of them
/// have no end.
///
/// Does not block, except for as long as the file system does.
///
/// # Errors
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the path names anything but a regular file,
/// with a text that says what it is; otherwise as for [`OpenOptions::open`].
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    check(fs::metadata(path)?.file_type())?;
    let file = without_waiting(options).open(path)?;
    // Another process may have replaced it meanwhile.
    check(file.metadata()?.file_type())?;
    Ok(file)
}

/// Returns the content of a regular file. Allocates what the file has, up to `max_length` bytes.
///
/// # Errors
/// As for [`open`], and [`FileTooLarge`](io::ErrorKind::FileTooLarge) for a longer file.
pub fn read(path: &Path, max_length: u64) -> io::Result<Vec<u8>> {
    let file = open(path, OpenOptions::new().read(true))?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= max_length {
        // The file may grow meanwhile.
        file.take(max_length + 1).read_to_end(&mut bytes)?;
    }
    let length = length.max(bytes.len() as u64);
    if length > max_length {
        let text = format!("{length} bytes are more than the {max_length} bytes that are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn check(file_type: FileType) -> io::Result<()> {
    if file_type.is_file() {
        return Ok(());
    }
    let text = format!("{} is not a regular file", describe(file_type));
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

#[cfg(unix)]
fn describe(file_type: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;

    match file_type {
        it if it.is_dir() => "a directory",
        it if it.is_fifo() => "a pipe",
        it if it.is_socket() => "a socket",
        it if it.is_char_device() || it.is_block_device() => "a device",
        _ => "this",
    }
}

#[cfg(not(unix))]
fn describe(file_type: FileType) -> &'static str {
    if file_type.is_dir() { "a directory" } else { "this" }
}

/// A pipe that has taken the file's place opens at once.
#[cfg(unix)]
fn without_waiting(options: &OpenOptions) -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;

    let mut options = options.clone();
    options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    options
}

#[cfg(not(unix))]
fn without_waiting(options: &OpenOptions) -> OpenOptions {
    options.clone()
}

/// Makes this process ignore SIGXFSZ, which ends a process at a write beyond its limit of file
/// lengths (`ulimit -f`). The write then fails with [`FileTooLarge`](io::ErrorKind::FileTooLarge).
/// For programs, at their beginning: signals belong to the program, and not to its libraries.
/// Processes that this one starts ignore the signal, too.
pub fn ignore_file_size_signal() {
    #[cfg(unix)]
    // SAFETY: no handler is installed that could run, and ignoring a signal is allowed at any time.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Returns the number of bytes that this user may still write to the file system of a file or directory. Blocks for as
/// long as the file system does.
///
/// # Errors
/// The path does not exist, or contains a zero byte; otherwise as for `statvfs`.
#[cfg(unix)]
pub fn usable_space(path: &Path) -> io::Result<u64> {
    use std::ffi::CString;
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;

    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut space = MaybeUninit::uninit();
    // SAFETY: the path ends in zero, and both arguments outlive the call.
    if unsafe { libc::statvfs(path.as_ptr(), space.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a call that succeeds fills the structure in.
    let space = unsafe { space.assume_init() };
    // The widths differ between platforms.
    #[allow(clippy::unnecessary_cast)]
    let (blocks, length) = (space.f_bavail as u64, space.f_frsize as u64);
    Ok(blocks.saturating_mul(length))
}

/// Returns the number of bytes that this user may still write to the file system of a directory. Blocks for as long as
/// the file system does.
///
/// # Errors
/// The directory does not exist; otherwise as for `GetDiskFreeSpaceExW`.
#[cfg(windows)]
pub fn usable_space(path: &Path) -> io::Result<u64> {
    use std::os::windows::ffi::OsStrExt;
    use std::ptr;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetDiskFreeSpaceExW(
            directory: *const u16,
            free_to_caller: *mut u64,
            total: *mut u64,
            free: *mut u64,
        ) -> i32;
    }

    let path: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    let mut space = 0;
    // SAFETY: the path ends in zero and outlives the call, which writes one number and skips the null pointers.
    let status =
        unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &mut space, ptr::null_mut(), ptr::null_mut()) };
    if status != 0 { Ok(space) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    fn refusal(path: &Path) -> (ErrorKind, String) {
        let error = read(path, 100).expect_err("refused");
        let opened = open(path, OpenOptions::new().read(true));
        assert_eq!(opened.map(drop).map_err(|error| error.to_string()), Err(error.to_string()));
        (error.kind(), error.to_string())
    }

    #[test]
    #[cfg(unix)]
    fn only_regular_files_are_opened() {
        use std::os::unix::fs::symlink;
        use std::os::unix::net::UnixListener;
        use std::process::Command;

        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        let made = Command::new("mkfifo").arg(path("pipe")).status().expect("the command mkfifo");
        assert!(made.success());
        symlink("/dev/zero", path("zero")).expect("a link");
        let _socket = UnixListener::bind(path("socket")).expect("a socket");
        fs::write(path("file"), b"content").expect("a file");
        symlink("file", path("link")).expect("a link");
        for (name, what) in
            [("pipe", "pipe"), ("zero", "device"), ("socket", "socket"), ("", "directory")]
        {
            let text = format!("a {what} is not a regular file");
            assert_eq!(refusal(&path(name)), (ErrorKind::InvalidInput, text));
        }
        assert_eq!(read(&path("link"), 7).expect("a file"), b"content");
    }

    #[test]
    #[cfg(unix)]
    fn pipe_in_place_of_a_checked_file_does_not_wait() {
        let dir = tempfile::tempdir().expect("a directory");
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        // As if the path had been a regular file when it was checked.
        let opened = without_waiting(OpenOptions::new().read(true)).open(&pipe).expect("a pipe");
        let file_type = opened.metadata().expect("a pipe").file_type();
        assert_eq!(check(file_type).map_err(|error| error.kind()), Err(ErrorKind::InvalidInput));
    }

    #[test]
    fn long_file_is_not_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        // Sparse: reading it would take the memory.
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("a file");
        let error = read(&path, 1000).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(
            error.to_string(),
            "1099511627776 bytes are more than the 1000 bytes that are read"
        );
        fs::write(&path, [7; 1000]).expect("a file");
        assert_eq!(read(&path, 1000).expect("a file").len(), 1000);
    }
}
