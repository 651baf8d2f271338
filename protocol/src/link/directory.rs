//! The directory of sockets: ours alone, or not used at all.
//!
//! Who can write to a directory can replace what is in it, so the permissions of
//! the socket by themselves would protect nothing.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::address::name_of;
use crate::ids::SessionName;

/// Where the sockets of named sessions are: `$XDG_RUNTIME_DIR/ddbx`, or else a
/// directory for this user among the temporary files.
pub fn session_directory() -> PathBuf {
    choose(std::env::var_os("XDG_RUNTIME_DIR"), std::env::temp_dir(), our_uid())
}

fn choose(runtime: Option<OsString>, temporary: PathBuf, uid: u32) -> PathBuf {
    // The XDG specification: empty means unset, and relative paths are ignored.
    match runtime.map(PathBuf::from).filter(|path| path.is_absolute()) {
        Some(runtime) => runtime.join("ddbx"),
        None => temporary.join(format!("ddbx-{uid}")),
    }
}

/// The sessions that have a socket, dead ones included, by name.
pub fn session_names() -> Result<Vec<SessionName>, DirectoryError> {
    names_in(&session_directory())
}

fn names_in(directory: &Path) -> Result<Vec<SessionName>, DirectoryError> {
    match check(directory, our_uid()) {
        Err(DirectoryError::Missing(_)) => return Ok(Vec::new()),
        checked => checked?,
    }
    let failed = |source| DirectoryError::Io { path: directory.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        names.extend(name_of(&entry.map_err(failed)?.path()));
    }
    names.sort();
    Ok(names)
}

/// The user that we act as: whom files belong to that we make, and whom the
/// other end of a Unix socket sees.
pub(super) fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The directory that a socket is in.
pub(super) fn directory_of(socket: &Path) -> &Path {
    match socket.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    }
}

/// Creates a directory for us alone. One that is there already is for
/// [`check`] to judge.
pub(super) fn create(directory: &Path) -> Result<(), DirectoryError> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(DirectoryError::Io { path: directory.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

/// Makes sure that nobody but the user `uid` can reach into a directory.
pub(super) fn check(directory: &Path, uid: u32) -> Result<(), DirectoryError> {
    let path = directory.to_owned();
    let found = match fs::symlink_metadata(directory) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(DirectoryError::Missing(path));
        }
        Err(source) => return Err(DirectoryError::Io { path, source }),
    };
    if found.is_symlink() {
        Err(DirectoryError::Symlink(path))
    } else if !found.is_dir() {
        Err(DirectoryError::NotADirectory(path))
    } else if found.uid() != uid {
        Err(DirectoryError::NotOurs { path, owner: found.uid() })
    } else if found.mode() & 0o077 != 0 {
        Err(DirectoryError::Open { path, mode: found.mode() & 0o777 })
    } else {
        Ok(())
    }
}

/// Why a directory is not used for sockets.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// It is not there.
    #[error("the directory {0} does not exist: create it with mode 700")]
    Missing(PathBuf),
    /// It, or the socket itself, is a link to somewhere else.
    #[error("{0} is a symbolic link, which could lead anywhere: give the real path")]
    Symlink(PathBuf),
    /// It is something else.
    #[error("{0} is not a directory")]
    NotADirectory(PathBuf),
    /// Somebody else made it.
    #[error("the directory {path} belongs to user {owner}: remove it, or use another one")]
    NotOurs {
        /// Which.
        path: PathBuf,
        /// Whose.
        owner: u32,
    },
    /// Others can reach what is in it.
    #[error(
        "the directory {path} is open to other users (mode {mode:o}): chmod 700 it, or use \
         another one"
    )]
    Open {
        /// Which.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It could not be made or read.
    #[error("the directory {path} cannot be used: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_runtime_directory_comes_first() {
        let choose = |runtime: Option<&str>| choose(runtime.map(Into::into), "/tmp".into(), 7);
        assert_eq!(choose(Some("/run/user/7")), Path::new("/run/user/7/ddbx"));
        for unset in [None, Some(""), Some("relative")] {
            assert_eq!(choose(unset), Path::new("/tmp/ddbx-7"), "{unset:?}");
        }
    }

    #[test]
    fn a_new_directory_is_ours_alone_and_an_old_one_stays_as_it_is() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("ddbx");
        assert!(matches!(check(&directory, our_uid()), Err(DirectoryError::Missing(_))));
        create(&directory).unwrap();
        check(&directory, our_uid()).unwrap();

        fs::set_permissions(&directory, fs::Permissions::from_mode(0o750)).unwrap();
        create(&directory).unwrap();
        let error = check(&directory, our_uid()).unwrap_err();
        assert!(matches!(error, DirectoryError::Open { mode: 0o750, .. }), "{error}");
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let error = check(temporary.path(), our_uid() + 1).unwrap_err();
        assert!(matches!(error, DirectoryError::NotOurs { owner, .. } if owner == our_uid()));
    }

    #[test]
    fn sessions_are_listed_by_name() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("ddbx");
        assert!(names_in(&directory).unwrap().is_empty());
        create(&directory).unwrap();
        for file in ["b.sock", "a.sock", "notes.txt", ".sock", "c d.sock"] {
            fs::write(directory.join(file), "").unwrap();
        }
        let names = names_in(&directory).unwrap();
        assert_eq!(names.iter().map(SessionName::as_str).collect::<Vec<_>>(), ["a", "b"]);
    }
}
