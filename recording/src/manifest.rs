//! What a recording is of: a small file for the session, and one for each process.
//!
//! They are JSON, for people and for other tools, and have a checksum. A manifest
//! is in order if it is, byte for byte, what this code makes of its content: so
//! nothing in it changes unnoticed.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ddbx_protocol::{ProcessName, SessionName};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::format::{OLDEST_VERSION, VERSION, is_readable};

/// Of what is kept of a log, one segment is this part.
pub(crate) const SEGMENTS_KEPT: u64 = 4;

/// No manifest is longer: one has room for the file that says what was started.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How much of each log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// All of it.
    All,
    /// The end of it, so many MiB: a black box that can be left on.
    LastMib(NonZeroU32),
}

impl Keep {
    /// How long a segment can be.
    pub(crate) fn segment_bytes(self) -> Option<u64> {
        match self {
            Self::All => None,
            Self::LastMib(mib) => Some(u64::from(mib.get()) * 1024 * 1024 / SEGMENTS_KEPT),
        }
    }
}

/// What all processes of a recording have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionManifest {
    /// The session.
    pub session: SessionName,
    /// When the recording began, as its maker writes times.
    pub created: String,
    /// Which ddbx recorded it.
    pub ddbx: String,
    /// How much of each log is kept.
    pub keep: Keep,
    /// What was run, if it was started from a file: so that a replay can start the
    /// same processes without it.
    pub program: Option<Program>,
}

/// The file that says which processes are started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its absolute path. What it names without one lies relative to that.
    pub file: String,
    /// Its content.
    pub text: String,
}

impl SessionManifest {
    /// A recording by this ddbx, of processes that were started one by one.
    pub fn new(session: SessionName, created: impl Into<String>, keep: Keep) -> Self {
        let ddbx = env!("CARGO_PKG_VERSION").to_owned();
        Self { session, created: created.into(), ddbx, keep, program: None }
    }
}

/// One run of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessManifest {
    /// Its name.
    pub process: ProcessName,
    /// How many times a process of this name has been started in this recording.
    pub start: u32,
    /// What the operating system called it.
    pub pid: u32,
    /// How it was started, if that is known.
    pub command: Option<Vec<String>>,
}

/// What stands in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed<T> {
    format: u16,
    crc32: String,
    manifest: T,
}

/// Up to this version sums did not cover the version: no two that could be read differed in
/// one bit.
const UNCOVERED: u16 = 2;

/// All that is read of a manifest before its version is known.
#[derive(Deserialize)]
struct Format {
    format: u16,
}

/// The content of the manifest's file at `path`, if it is not too long to be read.
pub(crate) fn to_file(path: &Path, manifest: &impl Serialize) -> Result<Vec<u8>, ManifestError> {
    let bytes = encode(manifest);
    match bytes.len() as u64 {
        len if len > BYTES_MAX => Err(ManifestError::TooLong { path: path.to_owned(), len }),
        _ => Ok(bytes),
    }
}

/// The other way round.
#[doc(hidden)]
pub fn encode_manifest(manifest: &impl Serialize) -> Vec<u8> {
    encode(manifest)
}

fn encode(manifest: &impl Serialize) -> Vec<u8> {
    encode_as(VERSION, manifest)
}

fn encode_as(format: u16, manifest: &impl Serialize) -> Vec<u8> {
    let mut content = serde_json::to_vec(manifest).expect("names and numbers are JSON");
    if format > UNCOVERED {
        content.extend(format.to_le_bytes());
    }
    let crc32 = format!("{:08x}", crc32fast::hash(&content));
    let sealed = Sealed { format, crc32, manifest };
    let mut bytes = serde_json::to_vec_pretty(&sealed).expect("names and numbers are JSON");
    bytes.push(b'\n');
    bytes
}

/// Reads a manifest's file.
pub(crate) fn read<T: Serialize + DeserializeOwned>(path: &Path) -> Result<T, ManifestError> {
    let failed = |source| ManifestError::Io { path: path.to_owned(), source };
    let len = fs::metadata(path).map_err(failed)?.len();
    if len > BYTES_MAX {
        return Err(ManifestError::Damaged { path: path.to_owned() });
    }
    decode(path, &fs::read(path).map_err(failed)?)
}

/// Whether these bytes are a manifest, as they lie in its file. For fuzzers: all others have
/// a file.
#[doc(hidden)]
pub fn decode_manifest<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, ManifestError> {
    decode(Path::new("manifest"), bytes)
}

fn decode<T: Serialize + DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, ManifestError> {
    let damaged = || ManifestError::Damaged { path: path.to_owned() };
    let Format { format } = serde_json::from_slice(bytes).map_err(|_| damaged())?;
    if !is_readable(format) {
        return Err(ManifestError::Version { path: path.to_owned(), found: format });
    }
    let sealed: Sealed<T> = serde_json::from_slice(bytes).map_err(|_| damaged())?;
    if encode_as(format, &sealed.manifest) != bytes {
        return Err(damaged());
    }
    Ok(sealed.manifest)
}

/// Why a manifest cannot be used.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// It cannot be read.
    #[error("{path} cannot be read: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another version of ddbx made it.
    #[error(
        "{path} is of version {found}, and this ddbx reads versions {OLDEST_VERSION} to {VERSION}: use the ddbx that recorded it"
    )]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: u16,
    },
    /// It would be too long to be read.
    #[error(
        "{path} would have {len} bytes, and {BYTES_MAX} are allowed: start the processes with a shorter ddbx.toml and shorter commands"
    )]
    TooLong {
        /// Which file.
        path: PathBuf,
        /// How long it would be.
        len: u64,
    },
    /// It has changed since it was written.
    #[error("{path} is not as ddbx wrote it: restore it from a copy, or record again")]
    Damaged {
        /// Which file.
        path: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_of_a_manifest_changes_unnoticed() {
        let process = ProcessName::new("inventory#2").unwrap();
        let command = Some(vec!["shop".to_owned(), "inventory".to_owned()]);
        let manifest = ProcessManifest { process, start: 1, pid: 4711, command };
        let bytes = encode(&manifest);
        let path = Path::new("process.json");
        assert_eq!(decode::<ProcessManifest>(path, &bytes).unwrap(), manifest);
        for len in 0..bytes.len() {
            assert!(decode::<ProcessManifest>(path, &bytes[..len]).is_err(), "cut at {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<ProcessManifest>(path, &changed).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_named() {
        let session = SessionName::new("shop").unwrap();
        let text = encode(&SessionManifest::new(session, "today", Keep::All));
        let text = String::from_utf8(text)
            .unwrap()
            .replace(&format!("\"format\": {VERSION}"), "\"format\": 7");
        let error = decode::<SessionManifest>(Path::new("x"), text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("version 7"), "{error}");
    }
}
