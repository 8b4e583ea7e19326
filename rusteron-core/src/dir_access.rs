//! Who may open the directory of a driver or an archive, and the files in it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::named;

named! {
    /// Access of users to a directory of a media driver or an archive, for the setting
    /// `RUSTERON_DIR_ACCESS` and for the option `--dir-access` of the programs.
    ///
    /// A process that may use a driver's directory can read and forge all messages of the driver's
    /// streams, and can end the driver. A client needs to write to the driver's files, even if the
    /// client only subscribes. A process that may read an archive's directory can read all
    /// recordings; clients of an archive need no access to its directory.
    #[derive(Default)]
    DirAccess, "an access";
    /// The user that the driver or archive runs as, and the superuser. Directories have the mode
    /// 0700, files 0600.
    #[default]
    Private = "private",
    /// The user, and the group of the directory. Directories have the mode 0750, files 0660.
    ///
    /// The group is that of the process. If the directory's parent has the set-group-ID bit (`chmod
    /// g+s`, on Linux), the group is the parent's; the process's user has to be a member. Members
    /// of the group can use the driver, but cannot add or delete files.
    Group = "group",
    /// As with Aeron's own drivers and archive, the users that the umask of the process lets in.
    /// With the usual umask of 022, all users of the machine can read all messages.
    Umask = "umask",
}

impl DirAccess {
    /// Returns the modes of directories and of files, or `None` if the umask decides.
    pub const fn modes(self) -> Option<(u32, u32)> {
        match self {
            Self::Private => Some((0o700, 0o600)),
            Self::Group => Some((0o750, 0o660)),
            Self::Umask => None,
        }
    }

    /// Makes a directory, unless it exists: then it keeps its mode, as somebody else may have made
    /// it for others, too. Missing directories above it get modes by the umask.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub fn create_dir(self, dir: &Path) -> io::Result<()> {
        let Some((mode, _)) = self.modes().filter(|_| !dir.is_dir()) else {
            return fs::create_dir_all(dir);
        };
        if let Some(parent) = dir.parent() {
            fs::create_dir_all(parent)?;
        }
        match new_private_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            made => made.and_then(|()| set_mode(dir, mode)),
        }
    }

    /// Makes an empty file, for reading and writing. At no time do other users have access that
    /// they do not keep.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is one; otherwise as for
    /// [`OpenOptions::open`].
    pub fn create_file(self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let Some((_, mode)) = self.modes() else { return options.open(path) };
        let file = open_private(&mut options, path)?;
        if self == Self::Group {
            // Whatever the umask says.
            set_mode(path, mode)?;
        }
        Ok(file)
    }
}

/// Sets the mode of a file or directory, which keeps the bit that passes the group of a directory
/// on to its files. Does nothing on Windows, where files inherit the rights of the directory's
/// parent.
///
/// # Errors
/// Returns the errors of the operating system.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;

        const SET_GROUP_ID: u32 = 0o2000;

        let set_group_id = fs::metadata(path)?.permissions().mode() & SET_GROUP_ID;
        fs::set_permissions(path, fs::Permissions::from_mode(mode | set_group_id))?;
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

fn new_private_dir(dir: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), allow(unused_mut))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn name_round_trip() {
        for access in DirAccess::ALL {
            assert_eq!(access.to_string().parse::<DirAccess>().expect("a name"), *access);
        }
        let error = "0700".parse::<DirAccess>().expect_err("no such access");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("private, group, umask"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn access_decides_about_modes_of_what_is_made() {
        use std::os::unix::fs::PermissionsExt;

        let root = tempfile::tempdir().expect("a directory");
        let mode = |path: &Path| fs::metadata(path).expect("it").permissions().mode() & 0o777;
        let by_umask = root.path().join("by-umask");
        fs::create_dir(&by_umask).expect("a directory");
        File::create(by_umask.join("file")).expect("a file");
        for access in DirAccess::ALL {
            let parent = root.path().join(access.name());
            let dir = parent.join("dir");
            access.create_dir(&dir).expect("a directory");
            access.create_file(&dir.join("file")).expect("a file");
            let modes = access.modes().unwrap_or((mode(&by_umask), mode(&by_umask.join("file"))));
            assert_eq!((mode(&dir), mode(&dir.join("file"))), modes, "{access}");
            assert_eq!(mode(&parent), mode(&by_umask));
            let again = access.create_file(&dir.join("file")).expect_err("it exists");
            assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
            set_mode(&dir, 0o711).expect("a mode");
            access.create_dir(&dir).expect("it exists");
            assert_eq!(mode(&dir), 0o711);
            access.create_dir(&dir.join("file")).expect_err("a file");
        }
    }
}
