//! `ddbx run`: all processes of a system at once, as `ddbx.toml` lists them.
//!
//! The file says what to start and in which order ([`config`]); the processes
//! are started, watched and ended ([`supervisor`]), and what they print is shown
//! with their names ([`output`]). Each runs in a process group of its own, so
//! that whatever it starts ends with it.

use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args};
use ddbx_protocol::link::KeyFiles;
use ddbx_protocol::{ProcessName, SessionName};
use ddbx_recording::Keep;
use regex::Regex;
use thiserror::Error;

use crate::central::Mode;
use crate::exit::Failure;
use crate::text;
use alarm::Alarm;
use config::{Config, ConfigError, Process};
use once::{Runner, Variant};
use output::Sinks;
use screen::Held;
use stops::Stops;
use supervisor::Options;

pub mod alarm;
pub mod config;
mod once;
pub mod output;
mod recording;
mod screen;
mod search;
pub(crate) mod stops;
pub mod supervisor;

/// Start all processes of a system, in order and under the debugger
///
/// Reads ddbx.toml, starts what it lists, prints what the processes print, and
/// ends all of them when the run is over. Ctrl-C stops the run; a second one
/// kills what is left.
#[derive(Args, Debug)]
#[command(
    after_long_help = EXAMPLES,
    group(ArgGroup::new("recorded").args(["record", "until_fails"]).multiple(true)),
    group(ArgGroup::new("perturbed").args(["perturb", "until_fails"]).multiple(true)),
)]
pub struct RunArgs {
    /// What to run
    #[arg(short, long, value_name = "FILE", default_value = "ddbx.toml")]
    file: PathBuf,

    #[command(flatten)]
    in_session: InSession,

    /// Who applies the rule
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,

    /// Record what happens into a new directory, to look at it and to replay it
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// Keep only the end of what each process records, such as 64MiB or 1GiB
    #[arg(long, value_name = "SIZE", value_parser = recording::parse_keep, requires = "recorded")]
    keep: Option<NonZeroU32>,

    /// Record arguments, results and values of points, too; what is redacted stays hidden
    #[arg(long, requires = "recorded")]
    payloads: bool,

    /// Insert small random delays at events; which ones follows from the seed
    #[arg(long, value_name = "SEED")]
    perturb: Option<u64>,

    /// The longest of these delays
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_max_delay,
        default_value = "5ms",
        requires = "perturbed"
    )]
    max_delay: MaxDelay,

    /// Run again and again, perturbed with other seeds, until a run fails; keep its recording
    #[arg(long)]
    until_fails: bool,

    /// How often to run at most
    #[arg(long, value_name = "N", default_value = "200", requires = "until_fails")]
    runs: NonZeroU32,

    /// A line of output that matches is a failure
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    fail_on: Option<Regex>,

    /// Print what --until-fails has found as JSON
    #[arg(long, requires = "until_fails")]
    json: bool,
}

/// How processes are started in a session, by a run and by a replay.
#[derive(Args, Debug)]
pub(crate) struct InSession {
    /// For programs and CI: no screen, no colours, no progress
    #[arg(long)]
    pub(crate) headless: bool,

    /// How long a process may take to get ready
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "5m")]
    pub(crate) ready_timeout: Duration,

    /// The name of the session, unix:PATH or tcp:IP:PORT, whatever the file says
    #[arg(long, short = 'S', value_name = "SESSION")]
    pub(crate) session: Option<String>,

    /// The secret that all must know, over TCP; made if it is missing
    #[arg(long, value_name = "SECRET")]
    pub(crate) secret_file: Option<PathBuf>,

    /// The directory with the certificates that `ddbx certs` has made, for processes elsewhere
    #[arg(long, value_name = "CERTS")]
    pub(crate) tls: Option<PathBuf>,
}

impl InSession {
    /// Where its secret and its certificates are.
    pub(crate) fn key_files(&self) -> KeyFiles<'_> {
        KeyFiles { secret: self.secret_file.as_deref(), tls: self.tls.as_deref() }
    }

    /// How to supervise.
    pub(crate) fn options(&self) -> Options {
        let Self { headless, ready_timeout, .. } = *self;
        Options { headless, ready_timeout, ..Options::default() }
    }
}

/// A length of time in whole microseconds.
#[derive(Clone, Copy, Debug)]
struct MaxDelay {
    micros: NonZeroU64,
}

/// Calls that are delayed for longer are calls that are held.
const MAX_DELAY_MAX: Duration = Duration::from_secs(10);

fn parse_max_delay(text: &str) -> Result<MaxDelay, String> {
    let length = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let micros = u64::try_from(length.as_micros()).ok().and_then(NonZeroU64::new);
    let micros = micros.filter(|_| length <= MAX_DELAY_MAX);
    micros.map(|micros| MaxDelay { micros }).ok_or_else(|| "at least 1us, at most 10s".to_owned())
}

const EXAMPLES: &str = r#"File:
  [[process]]
  name = "inventory"
  command = ["cargo", "run", "--bin", "inventory"]
  ready = "log:listening on"

  [[process]]
  name = "test"
  command = ["./checkout-test"]
  after = ["inventory"]
  ends_run = true

  name      of the process in the debugger
  command   the program and its arguments; no shell is involved
  env       variables, as in { RUST_LOG = "info" }
  dir       where it runs; relative to the file, whose directory is the default
  ready     when others may start after it: "log:REGEX" when it prints a line
            that matches, "tcp:HOST:PORT" when something accepts connections
            there, "attached" when the debugger has it; at once if left out
  after     names of those that must be ready before it starts
  replicas  how many of it; the second is called inventory#2
  ends_run  whether the run is over when it exits
  A line session = "NAME" before all processes names the session; otherwise it
  has the name of the file's directory. Processes get DDBX_SESSION, DDBX_PROCESS
  and DDBX_REPLICA (1, 2, ...) in their environment.

  The run is over when a process with ends_run exits, when all have exited, or
  when one fails and none has ends_run.

A rare failure:
  --until-fails repeats the run with the seeds SEED, SEED + 1, ... (from 1 without
  --perturb) and records each into DIR/run-SEED. What counts as a failure: an exit
  code of the run that is not 0, a panic on the output of any process, a line that
  matches --fail-on. The recordings of good runs are removed.

Examples:
  ddbx run                       what ddbx.toml in this directory lists
  ddbx run -f shop/ddbx.toml     another file
  ddbx run --headless            in CI
  ddbx run --record rec          and record it
  ddbx run --record rec --keep 64MiB
                                 only the end, for runs that last
  ddbx run --until-fails         look for an order of events that fails
  ddbx run --until-fails --fail-on 'oversold: [1-9]' --runs 1000

Exit codes:
  that of the process with ends_run, else the first that is not 0; 128 and the
  number of the signal if one ended it; 1 if a process does not start or does
  not get ready, or if a line matches --fail-on; 2 if the file is wrong. With
  --until-fails: 1 if a run failed, 0 if none did, 130 if it was stopped before"#;

/// Runs what the file lists: once, or until it fails.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let config = args.config()?;
    let session = match (&args.in_session.session, &config.session) {
        (Some(name), _) | (None, Some(name)) => name.clone(),
        (None, None) => directory_name(&args.file),
    };
    let runner = Runner { args, config, session, stops: Stops::listen()? };
    if args.until_fails { search::run(&runner) } else { run_once(&runner) }
}

fn run_once(runner: &Runner<'_>) -> Result<ExitCode, Failure> {
    let RunArgs { in_session, perturb, record, fail_on, .. } = runner.args;
    let alarm = fail_on.as_ref().map(|pattern| Arc::new(Alarm::on([pattern.clone()])));
    let (shown, sinks) = match !in_session.headless && screen::is_possible() {
        true => {
            let (held, sinks, printed) = Held::new();
            (Some((held, printed)), sinks)
        }
        false => (None, Sinks::stdio(in_session.headless)),
    };
    let ended = runner.once(Variant {
        sinks,
        shown,
        seed: *perturb,
        record: record.as_deref(),
        alarm: alarm.clone(),
        is_announced: true,
    })?;
    if let Some(directory) = record {
        let directory = text::escaped(&directory.display().to_string());
        anstream::eprintln!(
            "ddbx: recorded into {directory}; look at it with `ddbx inspect {directory}`, \
             repeat it with `ddbx replay {directory}`"
        );
    }
    let outcome = ended.outcome?;
    match alarm.and_then(|alarm| alarm.first()) {
        Some(line) => Err(Failure::Failed(format!("{line}, which matches --fail-on"))),
        None => Ok(outcome.into()),
    }
}

/// The session of `shop/ddbx.toml` is called shop.
fn directory_name(file: &Path) -> String {
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let directory = file.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let name = directory.filter(|name| SessionName::new(name).is_ok());
    name.unwrap_or("default").to_owned()
}

impl RunArgs {
    /// Reads the file.
    pub fn config(&self) -> Result<Config, RunError> {
        Ok(Config::read(&self.file)?)
    }

    /// How much of a recording is kept.
    fn keep(&self) -> Keep {
        self.keep.map_or(Keep::All, Keep::LastMib)
    }

    /// How to supervise.
    pub fn options(&self) -> Options {
        self.in_session.options()
    }
}

/// Why a run did not come to its end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A process could not be started.
    #[error("cannot start {name}: {why}")]
    CannotStart {
        /// Which.
        name: ProcessName,
        /// And why.
        why: String,
    },
    /// A process took too long.
    #[error("{name} was not ready within {timeout:?}: waited for {awaited}")]
    NotReady {
        /// Which.
        name: ProcessName,
        /// How long it was given.
        timeout: Duration,
        /// What would have made it ready.
        awaited: String,
    },
    /// A process ended too early.
    #[error("{name} {exit} before it was ready: waited for {awaited}")]
    ExitedEarly {
        /// Which.
        name: ProcessName,
        /// How it ended.
        exit: String,
        /// What would have made it ready.
        awaited: String,
    },
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl RunError {
    fn cannot_start(process: &Process, name: &ProcessName, error: io::Error) -> Self {
        let name = name.clone();
        // The system says "not found" of either.
        let why = if process.dir.is_dir() {
            format!("{}: {error}", process.command[0])
        } else {
            format!("{} is not a directory", process.dir.display())
        };
        Self::CannotStart { name, why }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Config(_) => Self::BadInput(error.to_string()),
            RunError::Output(error) => Self::Output(error),
            _ => Self::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        args: RunArgs,
    }

    #[test]
    fn the_command_line_and_its_help() {
        let Alone { args } = Alone::parse_from(["run"]);
        assert_eq!(args.file, PathBuf::from("ddbx.toml"));
        assert!(!args.options().headless);
        let Alone { args } = Alone::parse_from(["run", "-f", "shop.toml", "--headless"]);
        assert_eq!(args.file, PathBuf::from("shop.toml"));
        assert!(args.options().headless);
        let help = Alone::command().render_long_help().to_string();
        assert!(help.contains("ddbx run -f shop/ddbx.toml"), "{help}");
    }

    #[test]
    fn options_that_mean_nothing_alone_are_refused() {
        let is_right = |line: &str| Alone::try_parse_from(line.split(' ')).is_ok();
        assert!(is_right("run --record rec --keep 64MiB"));
        assert!(is_right("run --until-fails --keep 64MiB --max-delay 1ms --runs 3 --json"));
        assert!(is_right("run --perturb 7 --max-delay 250us --fail-on o+ps"));
        for wrong in [
            "run --keep 64MiB",
            "run --record rec --keep 64",
            "run --max-delay 1ms",
            "run --perturb 7 --max-delay 0s",
            "run --perturb 7 --max-delay 1m",
            "run --perturb seven",
            "run --runs 3",
            "run --until-fails --runs 0",
            "run --json",
            "run --fail-on (",
        ] {
            assert!(!is_right(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_file_in_the_help_is_one() {
        let file = EXAMPLES.split("  name      of").next().unwrap_or_default();
        let file = file.strip_prefix("File:\n").unwrap();
        let config = Config::parse(file, "ddbx.toml".as_ref()).unwrap();
        assert_eq!(config.processes.len(), 2);
    }

    #[test]
    fn a_wrong_file_is_bad_input_and_the_rest_is_failure() {
        let args = Alone::parse_from(["run", "-f", "no/such/file"]).args;
        let failure = Failure::from(args.config().unwrap_err());
        assert!(
            matches!(failure, Failure::BadInput(message) if message.starts_with("no/such/file: "))
        );
        let name = ProcessName::new("a").unwrap();
        let failure = Failure::from(RunError::CannotStart { name, why: "why".to_owned() });
        assert!(matches!(failure, Failure::Failed(message) if message == "cannot start a: why"));
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(Failure::from(RunError::from(gone)), Failure::Output(_)));
    }
}
