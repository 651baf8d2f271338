//! This same program, started once more.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::{env, io};

/// What it is told and what it says goes through pipes. What this one was told about a
/// session is not meant for it.
pub fn again<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> io::Result<Command> {
    let mut command = outside_of_sessions(env::current_exe()?);
    command.args(args);
    Ok(command)
}

/// The same with another program.
pub fn outside_of_sessions(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (variable, _) in env::vars_os() {
        if variable.to_string_lossy().starts_with("DDBX_") {
            command.env_remove(variable);
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}
