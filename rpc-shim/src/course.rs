//! What concerns the course of events in a process, as the environment or a test says:
//! they are recorded, they are shaken, or they follow a recording.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ddbx_protocol::{End, EventKind, SessionName};
use ddbx_recording::{
    Entry, Keep, Log, LogReader, Moment, NewProcess, Options, Recording, SessionManifest, Tail,
    join, session_in,
};
use ddbx_satellite::driver::{Course, Handle, Perturbation};
use ddbx_satellite::last_words::LastWords;
use ddbx_satellite::logic::script::Script;
use ddbx_satellite::recorder::{self, Recorder};

use crate::init::set;

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Record into this directory.
    pub(crate) record: Option<PathBuf>,
    /// How much of that to keep.
    pub(crate) keep: Option<NonZeroU32>,
    /// Do again what was recorded there.
    pub(crate) replay: Option<PathBuf>,
    /// Say there how far that has come in the end.
    pub(crate) last_words: Option<PathBuf>,
    pub(crate) perturbation: Option<Perturbation>,
    /// Whether a replay shall repeat also what controls share.
    pub(crate) is_exact: bool,
    /// Whether to record what is said, too.
    pub(crate) keeps_payloads: bool,
}

impl Wanted {
    /// What `DDBX_RECORD`, `DDBX_KEEP`, `DDBX_PAYLOADS`, `DDBX_REPLAY`, `DDBX_LAST_WORDS` and
    /// `DDBX_PERTURB` say. What is wrong is said, and left out.
    pub(crate) fn from_environment() -> Self {
        Self {
            record: set("DDBX_RECORD").map(PathBuf::from),
            keep: read_or_say("DDBX_KEEP", |mib| mib.parse().ok()),
            replay: set("DDBX_REPLAY").map(PathBuf::from),
            last_words: set("DDBX_LAST_WORDS").map(PathBuf::from),
            is_exact: set("DDBX_EXACT").is_some(),
            keeps_payloads: set("DDBX_PAYLOADS").is_some(),
            perturbation: read_or_say("DDBX_PERTURB", perturbation),
        }
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_nothing(&self) -> bool {
        self.record.is_none() && self.replay.is_none() && self.perturbation.is_none()
    }

    /// Prepares a satellite that has its name. What cannot be done is said, and the
    /// program goes on without it.
    pub(crate) fn begin(&self, satellite: &Handle) {
        if self.is_nothing() {
            return;
        }
        let name = satellite.name();
        let say = |what: &str, why: String| eprintln!("ddbx: {name}: not {what}: {why}");
        let recorder = self.record.as_deref().map(|directory| self.recorder(satellite, directory));
        let script = self.replay.as_deref().map(|directory| script(satellite, directory));
        satellite.follow(Course {
            recorder: recorder
                .and_then(|recorder| recorder.map_err(|why| say("recorded", why)).ok()),
            script: script.and_then(|script| script.map_err(|why| say("replayed", why)).ok()),
            last_words: self.last_words.clone().map(|file| LastWords {
                file,
                process: name.to_string(),
                start: satellite.start_number(),
            }),
            perturbation: self.perturbation,
            is_exact: self.is_exact,
            keeps_payloads: self.keeps_payloads,
        });
    }

    fn recorder(&self, satellite: &Handle, directory: &Path) -> Result<Recorder, String> {
        let name = satellite.name();
        let keep = self.keep.map_or(Keep::All, Keep::LastMib);
        let text = |error: &dyn ToString| error.to_string();
        let found = session_in(directory).map_err(|error| text(&error))?;
        let session = found.unwrap_or_else(|| {
            let session = SessionName::new("by-hand").expect("a name");
            let now = humantime::format_rfc3339_seconds(SystemTime::now());
            SessionManifest::new(session, now.to_string(), keep)
        });
        let process = NewProcess {
            name: name.clone(),
            pid: std::process::id(),
            command: Some(std::env::args().collect()),
        };
        let files = join(directory, &session, process).map_err(|error| text(&error))?;
        let options = Options { keep: session.keep, ..Options::default() };
        Recorder::start(files, &name, options, satellite.origin()).map_err(|error| text(&error))
    }
}

/// What this process did, as far as it can be read.
fn script(satellite: &Handle, directory: &Path) -> Result<Script, String> {
    let recording = Recording::open(directory).map_err(|error| error.to_string())?;
    let (name, start) = (satellite.name(), satellite.start_number());
    let is_own = |log: &Log| log.manifest().process == name && log.manifest().start == start;
    let own = recording.logs().iter().find(|log| is_own(log));
    let own = own.ok_or_else(|| format!("{} has no log of it", directory.display()))?;
    let mut reader = own.read().map_err(|error| error.to_string())?;
    let script = Script::new(entries(&mut reader));
    let tail = reader.tail();
    // Less those that arrived elsewhere, they never did.
    let mut lost = script.given_up();
    // Of a call that has an answer it is known that it was handled. Mostly all have one, and
    // then nobody has to read what all the others have done.
    let unanswered = script.unanswered();
    let mut handled = BTreeSet::new();
    let all_known = lost.is_empty() && unanswered.is_empty();
    for log in recording.logs().iter().filter(|log| !all_known && !is_own(log)) {
        let mut reader = log.read().map_err(|error| error.to_string())?;
        for entry in entries(&mut reader) {
            let Entry::Event(Moment { kind, .. }) = entry else { continue };
            match kind.call() {
                Some(call) if is_arrival(&kind) => _ = lost.remove(call),
                Some(call) if is_end(&kind) && unanswered.contains(call) => {
                    handled.insert(call.clone());
                }
                _ => {}
            }
        }
    }
    let script = match tail {
        Tail::Closed => script.to_the_end(handled),
        Tail::Open(_) | Tail::Torn(_) => script,
    };
    Ok(script.without(lost))
}

/// As far as it can be read: whoever began the replay has judged what cannot.
fn entries(reader: &mut LogReader) -> impl Iterator<Item = Entry> {
    std::iter::from_fn(|| Some(reader.read().ok()??.entry))
}

fn is_arrival(kind: &EventKind) -> bool {
    matches!(kind, EventKind::CallArrived { .. })
}

/// Whether a handler has come to an end.
fn is_end(kind: &EventKind) -> bool {
    matches!(kind, EventKind::ReturnSent { .. } | EventKind::Cancelled { end: End::Callee, .. })
}

/// What a variable means, if it is set and means something.
fn read_or_say<T>(variable: &str, meaning: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    let meant = meaning(&set(variable)?);
    if meant.is_none() {
        eprintln!("ddbx: {variable} is not what it should be, and is ignored");
    }
    meant
}

/// `SEED:MICROSECONDS`.
fn perturbation(text: &str) -> Option<Perturbation> {
    let (seed, longest) = text.split_once(':')?;
    let longest = Duration::from_micros(longest.parse().ok()?);
    Some(Perturbation { seed: seed.parse().ok()?, longest })
}

/// Waits until all that has happened so far in this program is on the disk, as far as it
/// is recorded. The error says why it cannot be.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// ddbx::flush().await.expect("the disk takes it");
/// # }
/// ```
pub async fn flush() -> Result<(), NotDurable> {
    recorder::flush_all().await.map_err(NotDurable)
}

/// What has happened is not on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotDurable(String);

impl std::fmt::Display for NotDurable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotDurable {}
