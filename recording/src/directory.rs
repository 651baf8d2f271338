//! How a recording lies on the disk:
//!
//! ```text
//! session.json             what all have in common; whoever comes first writes it
//! inventory@1/             the first process called inventory
//!     process.json
//!     000001.log
//! inventory@2/             it was started again
//! seal.json                the end: what all of that was when the run was over
//! ```
//!
//! A process makes its directory under another name, manifest included, and then
//! renames it. So a directory with `@` in its name is complete from the start, and
//! two processes that want the same name get different ones. No name of a process
//! contains `@`.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use ddbx_protocol::{ProcessName, SessionName};
use thiserror::Error;

use crate::manifest::{self, ManifestError, ProcessManifest, SessionManifest};
use crate::storage::{Files, Segment};

pub(crate) const SESSION_FILE: &str = "session.json";
pub(crate) const PROCESS_FILE: &str = "process.json";
pub(crate) const SEAL_FILE: &str = "seal.json";

/// How often a process may be started in one recording.
const STARTS_MAX: u32 = 10_000;

/// A process that begins to record.
#[derive(Clone, Debug)]
pub struct NewProcess {
    /// Its name.
    pub name: ProcessName,
    /// What the operating system calls it.
    pub pid: u32,
    /// How it was started, if that is known.
    pub command: Option<Vec<String>>,
}

/// Makes a recording for a session whose processes start later, and [`join`] it.
pub fn create(directory: &Path, session: &SessionManifest) -> Result<(), JoinError> {
    make_private(directory)?;
    if write_session(directory, session)? {
        Ok(())
    } else {
        Err(JoinError::AlreadyThere(directory.to_owned()))
    }
}

/// Adds a process to the recording in `directory`, which is made if need be, and
/// returns where its log goes. Only the user who records can read it.
pub fn join(
    directory: &Path,
    session: &SessionManifest,
    process: NewProcess,
) -> Result<Files, JoinError> {
    let failed = |source| JoinError::Io { path: directory.to_owned(), source };
    make_private(directory)?;
    if directory.join(SEAL_FILE).exists() {
        return Err(JoinError::Finished(directory.to_owned()));
    }
    let found = claim_session(directory, session)?;
    if found.session != session.session || found.keep != session.keep {
        let path = directory.to_owned();
        return Err(JoinError::OtherSession { path, session: found.session });
    }
    let NewProcess { name, pid, command } = process;
    // Not removed on drop once it has its final name: there is nothing left then.
    let fresh = tempfile::Builder::new()
        .prefix(".new-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in(directory)
        .map_err(failed)?;
    for start in 1..=STARTS_MAX {
        let wanted = directory.join(folder(&name, start));
        let command = command.clone();
        let manifest = ProcessManifest { process: name.clone(), start, pid, command };
        let bytes = manifest::to_file(&wanted.join(PROCESS_FILE), &manifest)?;
        write(&fresh.path().join(PROCESS_FILE), &bytes).map_err(failed)?;
        sync(fresh.path()).map_err(failed)?;
        match fs::rename(fresh.path(), &wanted) {
            Ok(()) => {
                let _ = fresh.keep();
                sync(directory).map_err(failed)?;
                return Ok(Files::new(wanted));
            }
            // A directory takes the place of an empty one only, and these are not.
            Err(_) if wanted.exists() => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(io::Error::other(format!("{name} was started {STARTS_MAX} times in it"))))
}

/// What the processes have in common that record into a directory, if any do.
pub fn session_in(directory: &Path) -> Result<Option<SessionManifest>, ManifestError> {
    match manifest::read(&directory.join(SESSION_FILE)) {
        Err(ManifestError::Io { source, .. }) if is_absent(&source) => Ok(None),
        found => found.map(Some),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The name of a process's directory.
pub(crate) fn folder(process: &ProcessName, start: u32) -> String {
    format!("{process}@{start}")
}

/// Whether this is what a process's directory is called.
pub(crate) fn is_folder(name: &str) -> bool {
    name.contains('@')
}

/// The files of a recording, by their paths within it; the seal is not one of them.
pub(crate) fn files(directory: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for (name, path) in entries(directory)? {
        if is_folder(&name) {
            let files = entries(&path)?.into_iter();
            let counts = |file: &str| file == PROCESS_FILE || Segment::of_file_name(file).is_some();
            let ours = files.filter(|(file, _)| counts(file));
            found.extend(ours.map(|(file, path)| (format!("{name}/{file}"), path)));
        } else if name == SESSION_FILE {
            found.insert(name, path);
        }
    }
    Ok(found)
}

/// What is in a directory: names and paths.
pub(crate) fn entries(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let named =
        |entry: fs::DirEntry| (entry.file_name().to_string_lossy().into_owned(), entry.path());
    fs::read_dir(directory)?.map(|entry| entry.map(named)).collect()
}

/// Makes the directory for us alone. One that is there must be ours, and nobody
/// else may put anything into it; what we put into it is closed to others anyway.
fn make_private(directory: &Path) -> Result<(), JoinError> {
    let path = directory.to_owned();
    let made = DirBuilder::new().mode(0o700).recursive(true).create(directory);
    let found = match made.and_then(|()| fs::metadata(directory)) {
        Err(source) => return Err(JoinError::Io { path, source }),
        Ok(found) => found,
    };
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if is_ours && found.mode() & 0o022 == 0 { Ok(()) } else { Err(JoinError::NotPrivate(path)) }
}

/// Writes the session's manifest if nobody has, and returns the one that is there.
fn claim_session(
    directory: &Path,
    session: &SessionManifest,
) -> Result<SessionManifest, JoinError> {
    let path = directory.join(SESSION_FILE);
    if !path.exists() {
        write_session(directory, session)?;
    }
    Ok(manifest::read(&path)?)
}

/// Writes the session's manifest; says whether nobody was faster.
fn write_session(directory: &Path, session: &SessionManifest) -> Result<bool, JoinError> {
    let path = directory.join(SESSION_FILE);
    let bytes = manifest::to_file(&path, session)?;
    write_new(&path, &bytes).map_err(|source| JoinError::Io { path: path.clone(), source })
}

/// Makes a file that is complete from the start; false if there is one already.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let directory = path.parent().unwrap_or(path);
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    match file.persist_noclobber(path) {
        Ok(_) => sync(directory).map(|()| true),
        Err(refused) if refused.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(refused) => Err(refused.error),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Why a process cannot record there.
#[derive(Debug, Error)]
pub enum JoinError {
    /// The disk refuses.
    #[error("cannot record into {path}: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could change the recording.
    #[error("{0} belongs to another user, or others can write to it: record into a new directory")]
    NotPrivate(PathBuf),
    /// It was to be a new one.
    #[error("{0} has a recording already: record into a new directory")]
    AlreadyThere(PathBuf),
    /// Something else was recorded there.
    #[error(
        "{path} has a recording of the session {session}, made in another way: record into a new directory"
    )]
    OtherSession {
        /// Where.
        path: PathBuf,
        /// Which session.
        session: SessionName,
    },
    /// The run that was recorded there is over.
    #[error("{0}: this recording is finished: record into a new directory")]
    Finished(PathBuf),
    /// The session's manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}
