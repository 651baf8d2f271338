//! `ddbx replay`: what was recorded happens again.
//!
//! The same programs are started ([`crate::run`]), each with the directory of the
//! recording in its environment: its satellite lets every event wait for its turn. Here
//! it is found out whether that can be done ([`check`]), followed how far they have come
//! ([`follow`]), and said how it ended ([`report`]). A process that exits can say nothing any
//! more, so it leaves its last word in a file.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use ddbx_protocol::control::Wanted;
use ddbx_recording::{Entry, Recording};

use tokio::sync::watch;

use crate::central::{self, Mode, Open};
use crate::exit::Failure;
use crate::run::InSession;
use crate::run::config::Config;
use crate::run::output::Sinks;
use crate::run::stops::Stops;
use crate::run::supervisor::{Hooks, INTERRUPTED, Options, supervise};
use crate::text::escaped;
use check::Check;
use follow::Following;
use report::Report;

mod check;
mod follow;
mod report;

/// Do again what was recorded, event by event
///
/// Starts the same programs. Every event waits until it is its turn; what timed out then
/// times out at the same place, and nothing else does; recorded choices are given back.
/// Breakpoints, holds and backtraces work as in any session, and do not disturb it.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "REC")]
    recording: PathBuf,

    /// What to start, if not what was started then
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// Stop there, as with `ddbx break`; can be given several times
    #[arg(long = "break", short = 'b', value_name = "SPEC")]
    breakpoints: Vec<String>,

    /// Replay what is there of a recording that was not finished
    #[arg(long)]
    partial: bool,

    /// For how long nothing may happen before the replay is given up
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "10s")]
    patience: Duration,

    #[command(flatten)]
    in_session: InSession,

    /// Print how it ended as JSON; what the programs print goes to standard error
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ddbx run --record rec          record a run
  ddbx replay rec                do it again
  ddbx replay rec -b 'inventory:Inventory.reserve@arrive'
                                 and stop there; then `ddbx holds`, `ddbx bt` and
                                 `ddbx continue` elsewhere
  ddbx replay rec -f ddbx.toml   with other commands for the same processes

It ends when all recorded events have happened again, with `replayed N events,
identical`; or when a process does something else, with the process, the control,
what was expected and what happened, and the last events that both have in common;
or when nothing happens any more, with what is missing and who waits for it.

Exit codes:
  0 identical; 1 failure; 2 the recording or the file cannot be used; 3 the
  programs did something else, or could not go on; 130 stopped";

pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let recording =
        Recording::open(&args.recording).map_err(|error| Failure::BadInput(error.to_string()))?;
    let check = Check::begin(&recording, args.partial)?;
    if recording.logs().is_empty() {
        let why = "nobody has recorded anything: were the programs wrapped with ddbx?";
        return Err(cannot_use(&recording, &why));
    }
    let config = config(args, &recording)?;
    check_names(args, &config, &recording)?;
    central::runtime()?.block_on(replay(args, &recording, &config, check))
}

fn cannot_use(recording: &Recording, why: &dyn ToString) -> Failure {
    Failure::BadInput(format!("{}: {}", recording.directory().display(), why.to_string()))
}

/// What is started: as the file says that was given, or the one of the recorded run.
fn config(args: &ReplayArgs, recording: &Recording) -> Result<Config, Failure> {
    let read = match (&args.file, &recording.session().program) {
        (Some(file), _) => Config::read(file),
        (None, Some(program)) => Config::parse(&program.text, Path::new(&program.file)),
        (None, None) => {
            return Err(Failure::BadInput(
                "the recording does not say how its processes were started: say what to start \
                 with -f ddbx.toml"
                    .to_owned(),
            ));
        }
    };
    read.map_err(|error| Failure::BadInput(error.to_string()))
}

/// A recording of another program is noticed before anything is started.
fn check_names(args: &ReplayArgs, config: &Config, recording: &Recording) -> Result<(), Failure> {
    let started: BTreeSet<&str> =
        config.processes.iter().flat_map(|p| &p.replicas).map(|name| name.as_str()).collect();
    let recorded: BTreeSet<&str> =
        recording.logs().iter().map(|log| log.manifest().process.as_str()).collect();
    if started.is_disjoint(&recorded) {
        let list = |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
        return Err(Failure::BadInput(format!(
            "{} is a recording of {}, and what is to be started is {}: give the file that starts \
             the recorded processes with -f",
            args.recording.display(),
            list(&recorded),
            list(&started)
        )));
    }
    Ok(())
}

async fn replay(
    args: &ReplayArgs,
    recording: &Recording,
    config: &Config,
    mut check: Check,
) -> Result<ExitCode, Failure> {
    let InSession { headless, session, .. } = &args.in_session;
    let name = session.as_ref().or(config.session.as_ref());
    let name = name.map_or(recording.session().session.as_str(), String::as_str);
    let mut open = Open::start(name, args.in_session.key_files(), Mode::Permits).await?;
    for spec in &args.breakpoints {
        let wanted = Wanted { spec: spec.clone(), ..Wanted::default() };
        let planted = open.session.plant(wanted, None);
        planted.map_err(|refused| Failure::Marked(refused.to_string()))?;
    }
    let last_words = tempfile::NamedTempFile::new()?;
    let environment = environment(&open, recording, last_words.path())?;
    anstream::eprintln!("ddbx: session {} is open; try `ddbx holds` elsewhere", open.name);

    let stops = Stops::listen()?;
    let attached = open.session.clone();
    let hooks = Hooks {
        is_attached: move |name: &str| central::is_attached(&attached, name),
        stop: || stops.clone().told(),
        before_teardown: async {},
    };
    let (outlast, exited) = watch::channel(BTreeSet::new());
    let options = Options { outlast: Some(outlast), is_batch: true, ..args.in_session.options() };
    let shows_progress = std::io::stderr().is_terminal() && !headless;
    let mut following = Following::new(args, recording, config, last_words.path(), shows_progress);
    let sinks = if args.json { Sinks::stderr(*headless) } else { Sinks::stdio(*headless) };
    let mut running = pin!(supervise(sinks, config, &environment, hooks, &options));
    let session = open.session.clone();
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = following.follow(&session, exited) => {
            stops.tell();
            running.await
        }
        () = open.asked_to_end() => {
            stops.tell();
            running.await
        }
        failure = check.failed() => {
            stops.tell();
            running.await;
            following.done();
            return Err(failure);
        }
    };
    following.done();
    let stopped = matches!(&ended.outcome, Ok(outcome) if outcome.stopped);
    if stopped && following.verdict().is_none() {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    // If the recording is at fault, that says more than what came of it.
    check.passed().await?;
    if following.verdict().is_none() {
        ended.outcome?;
    }
    let verdict = following.last_word(&session);
    // Nobody has to read all of it again only to count it.
    let events = following.events().unwrap_or_else(|| count(recording));
    Report::new(verdict, events, recording, &ended.exits).print(args.json)
}

/// What the processes need to know.
fn environment(
    open: &Open,
    recording: &Recording,
    last_words: &Path,
) -> Result<Vec<(String, String)>, Failure> {
    let absolute = |path: &Path| Ok::<_, Failure>(std::path::absolute(path)?.display().to_string());
    let mut environment = open.environment.clone();
    environment.push(("DDBX_REPLAY".to_owned(), absolute(recording.directory())?));
    environment.push(("DDBX_LAST_WORDS".to_owned(), absolute(last_words)?));
    // What the user's shell says of other runs.
    for other in ["DDBX_RECORD", "DDBX_KEEP", "DDBX_PAYLOADS", "DDBX_PERTURB", "DDBX_EXACT"] {
        environment.push((other.to_owned(), String::new()));
    }
    Ok(environment)
}

/// How many events a recording has that happen again: connections come as they come.
fn count(recording: &Recording) -> u64 {
    let readers = recording.logs().iter().filter_map(|log| log.read().ok());
    let entries = readers.flat_map(|reader| reader.map_while(Result::ok));
    let happens_again =
        |entry: &Entry| matches!(entry, Entry::Event(event) if !event.kind.is_of_connection());
    entries.filter(|recorded| happens_again(&recorded.entry)).count() as u64
}

/// A path, as it is shown.
fn shown(path: &Path) -> String {
    escaped(&path.display().to_string())
}
