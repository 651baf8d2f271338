//! Files that nobody else may have read, or may have chosen the content of.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::directory::our_uid;

/// Who but its owner may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// Nothing.
    Nothing,
    /// Read it.
    Read,
}

/// Why a file is not used.
#[derive(Debug)]
pub(super) enum Unfit {
    /// It cannot be read.
    Io(io::Error),
    /// This user made it.
    NotOurs(u32),
    /// Others can do more with it than they may: its permissions.
    Open(u32),
}

impl From<io::Error> for Unfit {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The first `bytes_max` bytes of a file of ours.
pub(super) fn read(path: &Path, others: Others, bytes_max: u64) -> Result<Vec<u8>, Unfit> {
    read_as(path, others, bytes_max, our_uid())
}

pub(super) fn read_as(
    path: &Path,
    others: Others,
    bytes_max: u64,
    uid: u32,
) -> Result<Vec<u8>, Unfit> {
    let file = File::open(path)?;
    // Of the file that is open, not of the path: that could change meanwhile.
    let found = file.metadata()?;
    if found.uid() != uid {
        return Err(Unfit::NotOurs(found.uid()));
    }
    let forbidden = match others {
        Others::Nothing => 0o077,
        Others::Read => 0o022,
    };
    if found.mode() & forbidden != 0 {
        return Err(Unfit::Open(found.mode() & 0o777));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}
