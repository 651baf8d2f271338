//! Where a session can run that nobody else knows.

use std::ffi::OsStr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

use tempfile::TempDir;

/// A directory for sockets, addresses and secrets; it is gone when this is.
#[derive(Debug)]
pub struct Place(TempDir);

impl Place {
    /// Nothing runs there yet.
    ///
    /// # Errors
    ///
    /// If it cannot be made.
    pub fn new() -> io::Result<Self> {
        // Short: paths of sockets have a limit.
        let dir = tempfile::Builder::new().prefix("e2e").tempdir()?;
        fs::DirBuilder::new().mode(0o700).create(dir.path().join("run"))?;
        Ok(Self(dir))
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        self.0.path()
    }

    /// A command in these surroundings, in no session.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (variable, _) in env::vars_os() {
            if variable.to_string_lossy().starts_with("DDBX_") {
                command.env_remove(variable);
            }
        }
        command.env("XDG_RUNTIME_DIR", self.dir().join("run")).current_dir(self.dir());
        command
    }
}
