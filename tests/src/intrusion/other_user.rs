//! Another user of the same machine. Only root can become one.

use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ddbx_protocol::link::{Address, VERSION};
use serde::{Deserialize, Serialize};

use super::kinds::{Case, Door, Kind};
use super::raw::{Outcome, hello};
use super::report::Tally;
use super::target::Targets;
use crate::waiting::LIMIT;

/// Nobody, on most systems.
const OTHER: u32 = 65_534;

/// What another user has met.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Knocks {
    /// How often the system did not let it connect.
    pub kept_out: usize,
    /// How often it could connect and was shown the door.
    pub shown_out: usize,
    /// How often it was not.
    pub stayed: usize,
    /// How many bytes it heard.
    pub heard: usize,
}

/// Tries to get in at a socket, so many times, as whoever we are.
///
/// # Errors
///
/// If the socket cannot be reached for other reasons than permission.
pub fn knock(socket: &Path, times: usize) -> io::Result<Knocks> {
    let mut knocks = Knocks::default();
    let mut random = fastrand::Rng::new();
    for _ in 0..times {
        let mut stream = match UnixStream::connect(socket) {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                knocks.kept_out += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        stream.set_read_timeout(Some(LIMIT))?;
        // It may be closed already.
        let _ = stream.write_all(&hello(VERSION, random.u8(1..=2), &mut random));
        let mut heard = Vec::new();
        let ended = stream.read_to_end(&mut heard);
        knocks.heard += heard.len();
        match ended {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => knocks.stayed += 1,
            _ => knocks.shown_out += 1,
        }
    }
    Ok(knocks)
}

/// Makes these attempts as another user, first at the socket as it is and then with all
/// doors open but central's own.
pub(super) async fn attempts(
    targets: &Targets,
    programs: &Path,
    cases: &[Case],
    tally: &mut Tally,
) -> Result<(), String> {
    let Address::Unix(socket) = &targets.at(Door::Unix).address else { return Ok(()) };
    let of = |kind: Kind| cases.iter().filter(move |case| case.kind == kind).count();
    let kinds = [Kind::OtherUser, Kind::OtherUserThroughOpenDirectory];
    if !rustix::process::geteuid().is_root() {
        for kind in kinds {
            tally.skip(Case { kind, door: Door::Unix }, "only root can become another user");
        }
        return Ok(());
    }
    let program = programs.join("intrude");
    for kind in kinds {
        let case = Case { kind, door: Door::Unix };
        let is_open = kind == Kind::OtherUserThroughOpenDirectory;
        let opened =
            if is_open { Some(Opened::all(socket).map_err(|e| e.to_string())?) } else { None };
        let since = Instant::now();
        let knocked = knock_as_other(&program, socket, of(kind)).await;
        drop(opened);
        let knocks = match knocked {
            Ok(knocks) => knocks,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tally.skip(case, "another user cannot run this program where it is");
                continue;
            }
            Err(error) => return Err(format!("another user cannot try: {error}")),
        };
        let expected = if is_open { knocks.shown_out } else { knocks.kept_out };
        let took = since.elapsed() / u32::try_from(of(kind).max(1)).unwrap_or(1);
        for nth in 0..of(kind) {
            let leaked = if nth == 0 { knocks.heard } else { 0 };
            let note = format!("{knocks:?}");
            tally.count(case, Outcome { refused: nth < expected, leaked, took, note });
        }
    }
    Ok(())
}

async fn knock_as_other(program: &Path, socket: &Path, times: usize) -> io::Result<Knocks> {
    let mut command = Command::new(program);
    command.arg("--knock").arg(socket).args(["--attempts", &times.to_string()]);
    command.uid(OTHER).gid(OTHER).current_dir("/").stdin(Stdio::null()).stderr(Stdio::inherit());
    let mut command = tokio::process::Command::from(command);
    let output = tokio::time::timeout(10 * LIMIT, command.kill_on_drop(true).output()).await??;
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// A socket that everybody can reach, until this is dropped.
struct Opened(Vec<(PathBuf, Permissions)>);

impl Opened {
    fn all(socket: &Path) -> io::Result<Self> {
        let mut opened = Self(Vec::new());
        // Up to what belongs to the system.
        for path in socket.ancestors().take(3) {
            let before = fs::metadata(path)?.permissions();
            opened.0.push((path.to_owned(), before));
            fs::set_permissions(path, Permissions::from_mode(0o777))?;
        }
        Ok(opened)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        for (path, before) in self.0.drain(..) {
            let _ = fs::set_permissions(path, before);
        }
    }
}

/// How long one attempt may take on average, to be printed.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
