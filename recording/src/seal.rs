//! The end of a recording: when nobody writes any more, a seal says what is in it, so
//! that nothing can be lost, changed or added afterwards without a word. A log alone
//! cannot say that: one that was cut looks like that of a process that was killed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ddbx_protocol::ProcessName;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::directory::{SEAL_FILE, files, write_new};
use crate::manifest::{self, ManifestError};
use crate::reader::{OpenError, Recording};

/// What a recording held when it was finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// Its files, manifests included, by their paths within it.
    pub files: BTreeMap<String, SealedFile>,
    /// With which code each process exited, as far as that is known.
    pub exits: BTreeMap<ProcessName, u8>,
}

/// A file as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedFile {
    /// How long.
    pub bytes: u64,
    /// The sum of all that was in it.
    pub crc32: u32,
}

/// Finishes a recording. All who wrote to it must be gone; nobody can join it again.
pub fn seal(directory: &Path, exits: BTreeMap<ProcessName, u8>) -> Result<Seal, SealError> {
    let path = directory.join(SEAL_FILE);
    let failed = |source| SealError::Io { path: directory.to_owned(), source };
    let twice = || SealError::Twice(directory.to_owned());
    if Recording::open(directory)?.seal().is_some() {
        return Err(twice());
    }
    let mut sealed = BTreeMap::new();
    for (name, path) in files(directory).map_err(failed)? {
        sealed.insert(name, sum(&path).map_err(|source| SealError::Io { path, source })?);
    }
    let seal = Seal { files: sealed, exits };
    let is_new = write_new(&path, &manifest::to_file(&path, &seal)?).map_err(failed)?;
    if is_new { Ok(seal) } else { Err(twice()) }
}

impl Seal {
    /// In which ways the recording in `directory` is not what it was.
    pub fn check(&self, directory: &Path) -> Vec<Breach> {
        let unreadable = |file, source| Breach::Unreadable { file, source };
        let mut found = match files(directory) {
            Ok(found) => found,
            Err(source) => return vec![unreadable(directory.display().to_string(), source)],
        };
        let mut breaches = Vec::new();
        for (file, sealed) in &self.files {
            let file = file.clone();
            let Some(path) = found.remove(&file) else {
                breaches.push(Breach::Gone { file });
                continue;
            };
            let (had, is) = (sealed.bytes, sum(&path));
            breaches.extend(match is {
                Err(source) => Some(unreadable(file, source)),
                Ok(is) if is.bytes < had => Some(Breach::Shorter { file, is: is.bytes, had }),
                Ok(is) if is.bytes > had => Some(Breach::Longer { file, is: is.bytes, had }),
                Ok(is) => (is != *sealed).then_some(Breach::Changed { file }),
            });
        }
        breaches.extend(found.into_keys().map(|file| Breach::Added { file }));
        breaches
    }
}

fn sum(path: &Path) -> io::Result<SealedFile> {
    let mut file = File::open(path)?;
    let (mut hasher, mut bytes) = (crc32fast::Hasher::new(), 0);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(SealedFile { bytes, crc32: hasher.finalize() }),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A way in which a finished recording is not what it was.
#[derive(Debug, Error)]
pub enum Breach {
    /// A file has lost its end.
    #[error("{file} was cut: it has {is} bytes, and had {had} when the recording was finished")]
    Shorter {
        /// Which file.
        file: String,
        /// How long it is.
        is: u64,
        /// How long it was.
        had: u64,
    },
    /// A file has grown.
    #[error("{file} has grown: it has {is} bytes, and had {had} when the recording was finished")]
    Longer {
        /// Which file.
        file: String,
        /// How long it is.
        is: u64,
        /// How long it was.
        had: u64,
    },
    /// A file is as long as it was, but not the same.
    #[error("{file} has changed since the recording was finished")]
    Changed {
        /// Which file.
        file: String,
    },
    /// A file is not there.
    #[error("{file} is gone: it was there when the recording was finished")]
    Gone {
        /// Which file.
        file: String,
    },
    /// A file is new.
    #[error("{file} was added after the recording was finished")]
    Added {
        /// Which file.
        file: String,
    },
    /// The disk refuses.
    #[error("{file} cannot be compared with what it was: {source}")]
    Unreadable {
        /// Which file.
        file: String,
        /// Why.
        source: io::Error,
    },
}

/// Why a recording cannot be finished.
#[derive(Debug, Error)]
pub enum SealError {
    /// It cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has a seal.
    #[error("{0} is finished already: a recording is sealed once")]
    Twice(PathBuf),
    /// The seal cannot be made.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The disk refuses.
    #[error("{path} cannot be sealed: {source}")]
    Io {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
