//! Reads recordings, finished or not.
//!
//! A log ends in one of three ways ([`Tail`]): closed, open, or torn in the middle of
//! a block; in each case all that is before is exact. When the writer is still at
//! work, reading on later finds more. Anything else that does not fit is damage,
//! which is an error.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ddbx_protocol::ProcessName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::directory::{PROCESS_FILE, SEAL_FILE, SESSION_FILE, entries, files, folder, is_folder};
use crate::entry::Entry;
use crate::format::FormatError;
use crate::manifest::{self, Keep, ManifestError, ProcessManifest, SessionManifest};
use crate::seal::Seal;
use crate::storage::Segment;

mod segment;

pub use segment::{SegmentReader, Source};

/// A recording: what it is of, and its logs.
#[derive(Clone, Debug)]
pub struct Recording {
    directory: PathBuf,
    session: SessionManifest,
    logs: Vec<Log>,
    seal: Option<Seal>,
}

impl Recording {
    /// Reads the manifests.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Io { path: directory.to_owned(), source };
        let session: SessionManifest = match if_there(&directory.join(SESSION_FILE))? {
            Some(session) => session,
            None => return Err(OpenError::NotARecording(directory.to_owned())),
        };
        let mut logs = Vec::new();
        for (name, path) in entries(directory).map_err(failed)? {
            if !is_folder(&name) {
                continue;
            }
            let manifest: ProcessManifest = manifest::read(&path.join(PROCESS_FILE))?;
            if folder(&manifest.process, manifest.start) != name {
                return Err(OpenError::Misplaced(path));
            }
            logs.push(Log { manifest, directory: path, keep: session.keep });
        }
        logs.sort_by(|a, b| {
            let key = |log: &Log| (log.manifest.process.clone(), log.manifest.start);
            key(a).cmp(&key(b))
        });
        let seal = if_there(&directory.join(SEAL_FILE))?;
        Ok(Self { directory: directory.to_owned(), session, logs, seal })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What it held when it was finished, if it is.
    pub fn seal(&self) -> Option<&Seal> {
        self.seal.as_ref()
    }

    /// How many bytes it has on the disk now.
    pub fn bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for path in files(&self.directory)?.into_values() {
            bytes += fs::metadata(path)?.len();
        }
        Ok(bytes)
    }

    /// What the processes have in common.
    pub fn session(&self) -> &SessionManifest {
        &self.session
    }

    /// The logs, by the names of their processes and then by start.
    pub fn logs(&self) -> &[Log] {
        &self.logs
    }

    /// Whose they are: the name of each process, and the how manieth of that name it was.
    pub fn runs(&self) -> Vec<(ProcessName, u32)> {
        let manifests = self.logs.iter().map(Log::manifest);
        manifests.map(|manifest| (manifest.process.clone(), manifest.start)).collect()
    }
}

fn if_there<T: Serialize + DeserializeOwned>(path: &Path) -> Result<Option<T>, ManifestError> {
    match manifest::read(path) {
        Err(ManifestError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// The log of one process.
#[derive(Clone, Debug)]
pub struct Log {
    manifest: ProcessManifest,
    directory: PathBuf,
    keep: Keep,
}

impl Log {
    /// Whose log it is.
    pub fn manifest(&self) -> &ProcessManifest {
        &self.manifest
    }

    /// How much of it is kept.
    pub fn keep(&self) -> Keep {
        self.keep
    }

    /// Reads it from the first entry that is kept.
    pub fn read(&self) -> Result<LogReader, ReadError> {
        let segment = match (self.segments()?.min(), self.keep) {
            (Some(oldest), Keep::LastMib(_)) => oldest,
            (None, _) | (_, Keep::All) => Segment::FIRST,
        };
        Ok(LogReader { log: self.clone(), segment, reader: None, has_failed: false })
    }

    /// The parts of it that are there.
    fn segments(&self) -> Result<impl Iterator<Item = Segment>, ReadError> {
        let found = entries(&self.directory)
            .map_err(|source| ReadError::Io { path: self.directory.clone(), source })?;
        Ok(found.into_iter().filter_map(|(name, _)| Segment::of_file_name(&name)))
    }
}

/// Where an entry, or the end, is in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// In which of its files.
    pub segment: Segment,
    /// In which block of that file, counted from 0.
    pub block: u64,
    /// At which byte of the file that block begins.
    pub byte: u64,
}

/// An entry, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Where.
    pub position: Position,
    /// What.
    pub entry: Entry,
}

/// How a log ends, as far as it has been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// In good order: nothing more comes.
    Closed,
    /// After a whole block, without a word: the process was killed, or still runs.
    Open(Position),
    /// In the middle of the block that begins here: it was being written when the
    /// process was killed, or is now.
    Torn(Position),
}

/// The entries of a log, one after the other. At the end, [`tail`](Self::tail) says
/// how the log ends; if it is not closed, later calls may find more.
#[derive(Debug)]
pub struct LogReader {
    log: Log,
    segment: Segment,
    reader: Option<SegmentReader<File>>,
    has_failed: bool,
}

impl LogReader {
    /// The next entry; none at the end of what has been written so far.
    pub fn read(&mut self) -> Result<Option<Recorded>, ReadError> {
        loop {
            if let Some(recorded) = self.read_segment()? {
                return Ok(Some(recorded));
            }
            if self.reader.as_ref().is_some_and(SegmentReader::is_continued) {
                (self.segment, self.reader) = (self.segment.next(), None);
                continue;
            }
            if !self.has_later()? {
                return Ok(None);
            }
            // The writer may have ended this file after we had looked. Now that there
            // is another one, this one must be complete.
            if let Some(recorded) = self.read_segment()? {
                return Ok(Some(recorded));
            }
            match self.tail() {
                _ if self.reader.as_ref().is_some_and(SegmentReader::is_continued) => {}
                Tail::Open(at) | Tail::Torn(at) => {
                    return Err(self.damaged((at, Damage::EndsEarly)));
                }
                Tail::Closed => return Err(self.damaged((self.start(), Damage::AfterEnd))),
            }
        }
    }

    /// How the log ends, as far as it has been read.
    pub fn tail(&self) -> Tail {
        match &self.reader {
            None => Tail::Open(self.start()),
            Some(reader) => reader.tail(),
        }
    }

    /// Whose log it is.
    pub fn manifest(&self) -> &ProcessManifest {
        &self.log.manifest
    }

    fn read_segment(&mut self) -> Result<Option<Recorded>, ReadError> {
        if self.reader.is_none() {
            let path = self.path(self.segment);
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let gone = || ReadError::SegmentGone { path };
                    return if self.has_later()? { Err(gone()) } else { Ok(None) };
                }
                Err(source) => return Err(ReadError::Io { path, source }),
            };
            let process = self.log.manifest.process.clone();
            self.reader = Some(SegmentReader::new(file, process, self.segment));
        }
        let Some(reader) = &mut self.reader else {
            return Ok(None);
        };
        reader.read().map_err(|damage| self.damaged(damage))
    }

    /// Whether there are segments after the one that is to be read.
    fn has_later(&self) -> Result<bool, ReadError> {
        Ok(self.log.segments()?.any(|found| found > self.segment))
    }

    fn path(&self, segment: Segment) -> PathBuf {
        self.log.directory.join(segment.file_name())
    }

    fn start(&self) -> Position {
        Position { segment: self.segment, block: 0, byte: 0 }
    }

    fn damaged(&self, (position, damage): (Position, Damage)) -> ReadError {
        let path = self.path(self.segment);
        match damage {
            Damage::Io(source) => ReadError::Io { path, source },
            damage => ReadError::Damaged { path, position, damage },
        }
    }
}

impl Iterator for LogReader {
    type Item = Result<Recorded, ReadError>;

    /// Ends after an error: what follows damage cannot be trusted.
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let read = self.read();
        self.has_failed = read.is_err();
        read.transpose()
    }
}

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum Damage {
    /// A part of it is not what was written, or was never right.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// It is the log of another process, or another part of it.
    #[error("it belongs elsewhere")]
    Misplaced,
    /// The file ends here, but the log goes on in the next one.
    #[error("the file ends here, but the log goes on in another")]
    EndsEarly,
    /// There is more after the end.
    #[error("there is more after the end of the log")]
    AfterEnd,
    /// The disk refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Why a log cannot be read on.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The disk refuses.
    #[error("{path} cannot be read: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not as it was written.
    #[error(
        "{path} is damaged in block {} at byte {}: {damage}; what is before can be read",
        position.block, position.byte
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// The block.
        position: Position,
        /// What is wrong with it.
        damage: Damage,
    },
    /// A part of the log is not there.
    #[error(
        "{path} is not there, though the log goes on after it: it was removed, or the process has just let go of it; then open the recording again"
    )]
    SegmentGone {
        /// Which file.
        path: PathBuf,
    },
}

/// Why a recording cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The disk refuses.
    #[error("{path} cannot be read: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is none.
    #[error("{0} is not a recording: it has no session.json")]
    NotARecording(PathBuf),
    /// A manifest cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A directory has the manifest of another.
    #[error("{0} has the manifest of another process: restore it from a copy, or record again")]
    Misplaced(PathBuf),
}
