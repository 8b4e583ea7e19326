//! Files that other processes use, too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens an existing file. A pipe in its place is an error: opening or reading one waits for a
/// writer.
///
/// # Errors
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the path names anything but a regular file;
/// otherwise as for [`OpenOptions::open`].
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        options.open(path)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}

/// Returns the content of a file.
///
/// # Errors
/// As for [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OpenOptions::new().read(true))?.read_to_end(&mut bytes)?;
    Ok(bytes)
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
