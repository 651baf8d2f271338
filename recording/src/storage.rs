//! Where a log goes: files, or something that fails on purpose in a test.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A part of a log, counted from 1. A log that is kept whole has one; of a log of
/// which only the end is kept, the first ones are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Segment(pub u32);

impl Segment {
    /// The one that every log begins with.
    pub const FIRST: Self = Self(1);

    /// The one after it.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    pub(crate) fn file_name(self) -> String {
        format!("{:06}.log", self.0)
    }

    pub(crate) fn of_file_name(name: &str) -> Option<Self> {
        let segment = Self(name.strip_suffix(".log")?.parse().ok()?);
        (segment.file_name() == name).then_some(segment)
    }
}

/// The segments of one log, as their writer needs them. Any call may fail at any
/// time, and be made again later.
pub trait Storage {
    /// Makes the file of a segment; from now on it is the one that is written.
    fn create(&mut self, segment: Segment) -> io::Result<()>;

    /// Appends some of the bytes and says how many; on an error, none.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Returns when all that was written to this segment would survive a power cut.
    fn sync(&mut self) -> io::Result<()>;

    /// Removes the file of an old segment.
    fn remove(&mut self, segment: Segment) -> io::Result<()>;
}

/// Files in the directory of a process.
#[derive(Debug)]
pub struct Files {
    directory: PathBuf,
    file: Option<File>,
    /// The names in the directory have changed since it was synced.
    is_renamed: bool,
}

impl Files {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, file: None, is_renamed: false }
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn path(&self, segment: Segment) -> PathBuf {
        self.directory.join(segment.file_name())
    }

    fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("no segment was created"))
    }
}

impl Storage for Files {
    fn create(&mut self, segment: Segment) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).mode(0o600);
        self.file = Some(options.open(self.path(segment))?);
        self.is_renamed = true;
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file()?.sync_data()?;
        if self.is_renamed {
            File::open(&self.directory)?.sync_all()?;
            self.is_renamed = false;
        }
        Ok(())
    }

    fn remove(&mut self, segment: Segment) -> io::Result<()> {
        match fs::remove_file(self.path(segment)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
