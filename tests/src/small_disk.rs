//! A disk that can be filled.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A disk of a few MiB, in memory; it is gone with this.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    const BYTES: usize = 4 * 1024 * 1024;

    /// None where this is not allowed.
    pub fn mount(at: PathBuf) -> Option<Self> {
        fs::create_dir(&at).ok()?;
        let options = format!("size={},mode=700", Self::BYTES);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at);
        mount.output().is_ok_and(|output| output.status.success()).then(|| Self(at))
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.0
    }

    /// Fills it with a file, which is all of it but so much, or until there is no room.
    ///
    /// # Errors
    ///
    /// If there is no file, or it fails for another reason than that.
    pub fn fill(&self, but: usize) -> io::Result<PathBuf> {
        let path = self.0.join("filler");
        let mut file = fs::File::create(&path)?;
        match file.write_all(&vec![1; Self::BYTES.saturating_sub(but)]) {
            Err(error) if error.kind() != io::ErrorKind::StorageFull => Err(error),
            _ => Ok(path),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}
