//! `ddbx recordings`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ddbx_protocol::ProcessName;
use ddbx_recording::{Recording, Tail, Verification, verify};
use serde::Serialize;

use super::{NAME_WIDTH_MAX, nanos, time};
use crate::exit::Failure;
use crate::session::{print, print_json};
use crate::table::table;
use crate::text::cut;

/// List recordings: size, duration, processes, complete or torn
///
/// Shows a directory if it is a recording, and the recordings directly below it. Each is
/// read as a whole.
#[derive(Args)]
#[command(after_long_help = "\
States:
  sealed     the run is over, and nothing has changed since
  closed     all logs have their end
  open       a process was killed, or still runs
  torn       the same, in the middle of a write
  damaged    something is wrong: ddbx verify says what

Examples:
  ddbx recordings              those in this directory
  ddbx recordings /var/rec     those there
  ddbx recordings --json       for programs")]
pub(crate) struct RecordingsArgs {
    /// Where to look
    #[arg(value_name = "DIR", default_value = ".")]
    directories: Vec<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn list(args: &RecordingsArgs) -> Result<(), Failure> {
    let mut paths = Vec::new();
    for directory in &args.directories {
        let failed =
            |error| Failure::BadInput(format!("{}: cannot read it: {error}", directory.display()));
        paths.extend(recordings_in(directory).map_err(failed)?);
    }
    let found: Vec<_> = paths.iter().map(|path| Listed::new(path)).collect();
    if args.json {
        return print_json(&found);
    }
    if found.is_empty() {
        return print("no recordings here: say in which directory they are");
    }
    let columns = [
        ("recording", false),
        ("session", false),
        ("created", false),
        ("size", true),
        ("lasted", true),
        ("processes", true),
        ("events", true),
        ("state", false),
    ];
    print(&table(&columns, found.iter().map(Listed::row)).trim_fmt())
}

/// The directory itself if it is one, and those directly below it, by name.
fn recordings_in(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let is_recording = |path: &PathBuf| path.join("session.json").exists();
    let mut below = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        // Without "./" before each name.
        let base = if directory == Path::new(".") { Path::new("") } else { directory };
        below.push(base.join(entry?.file_name()));
    }
    below.sort();
    Ok([directory.to_owned()].into_iter().chain(below).filter(is_recording).collect())
}

/// One line of the list.
#[derive(Serialize)]
struct Listed {
    path: String,
    state: State,
    #[serde(flatten)]
    content: Option<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Content {
    session: String,
    created: String,
    bytes: u64,
    lasted_ns: u64,
    #[serde(skip)]
    lasted: Duration,
    processes: Vec<ProcessName>,
    events: u64,
    missing: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Sealed,
    Closed,
    Open,
    Torn,
    Damaged,
}

impl Listed {
    fn new(path: &Path) -> Self {
        let path_text = path.display().to_string();
        match Recording::open(path) {
            Ok(recording) => {
                let found = verify(&recording);
                let (state, content) =
                    (State::of(&recording, &found), Content::of(&recording, &found));
                Self { path: path_text, state, content: Some(content), error: None }
            }
            Err(error) => {
                let error = Some(error.to_string());
                Self { path: path_text, state: State::Damaged, content: None, error }
            }
        }
    }

    fn row(&self) -> Vec<String> {
        let name = cut(&self.path, 2 * NAME_WIDTH_MAX);
        let state = self.state.word().to_owned();
        let Some(content) = &self.content else {
            let nothing = std::iter::repeat_n(String::new(), 6);
            return [name].into_iter().chain(nothing).chain([state]).collect();
        };
        vec![
            name,
            cut(&content.session, NAME_WIDTH_MAX),
            cut(&content.created, NAME_WIDTH_MAX),
            size(content.bytes),
            time(content.lasted),
            content.processes.len().to_string(),
            content.events.to_string(),
            state,
        ]
    }
}

impl Content {
    fn of(recording: &Recording, found: &Verification) -> Self {
        let mut processes: Vec<_> =
            found.logs.iter().map(|log| log.manifest.process.clone()).collect();
        processes.dedup();
        let lasted = found.logs.iter().map(|log| log.lasted).max().unwrap_or_default();
        Self {
            session: recording.session().session.to_string(),
            created: recording.session().created.clone(),
            bytes: recording.bytes().unwrap_or_default(),
            lasted_ns: nanos(lasted),
            lasted,
            processes,
            events: found.logs.iter().map(|log| log.events).sum(),
            missing: found.logs.iter().fold(0, |sum, log| sum.saturating_add(log.missing)),
        }
    }
}

impl State {
    fn of(recording: &Recording, found: &Verification) -> Self {
        let any =
            |is: fn(&Tail) -> bool| found.logs.iter().any(|log| log.tail.as_ref().is_some_and(is));
        if !found.is_sound() {
            Self::Damaged
        } else if recording.seal().is_some() {
            Self::Sealed
        } else if any(|tail| matches!(tail, Tail::Torn(_))) {
            Self::Torn
        } else if any(|tail| matches!(tail, Tail::Open(_))) || found.logs.is_empty() {
            Self::Open
        } else {
            Self::Closed
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Sealed => "sealed",
            Self::Closed => "closed",
            Self::Open => "open",
            Self::Torn => "torn",
            Self::Damaged => "damaged",
        }
    }
}

/// A size for people, in whole units or in tenths.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (bytes.saturating_mul(10) / 1024, 0);
    while tenths >= 10 * 1024 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1024, unit + 1);
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_600_000, "1.5 MiB"),
            (64 << 20, "64.0 MiB"),
            (5 << 40, "5.0 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
