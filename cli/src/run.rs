//! `ddbx run`: all processes of a system at once, as `ddbx.toml` lists them.
//!
//! The file says what to start and in which order ([`config`]); the processes
//! are started, watched and ended ([`supervisor`]), and what they print is shown
//! with their names ([`output`]). Each runs in a process group of its own, so
//! that whatever it starts ends with it.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use ddbx_protocol::control::{ProcessState, Reply, Request};
use ddbx_protocol::{ProcessName, SessionName};
use thiserror::Error;
use tokio::sync::Notify;

use crate::central::{self, Open};

use crate::exit::Failure;
use config::{Config, ConfigError, Process};
use supervisor::Options;

pub mod config;
pub mod output;
pub mod supervisor;

/// Start all processes of a system, in order and under the debugger
///
/// Reads ddbx.toml, starts what it lists, prints what the processes print, and
/// ends all of them when the run is over. Ctrl-C stops the run; a second one
/// kills what is left.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct RunArgs {
    /// What to run
    #[arg(short, long, value_name = "FILE", default_value = "ddbx.toml")]
    file: PathBuf,

    /// For programs and CI: no colours, no questions
    #[arg(long)]
    headless: bool,

    /// How long a process may take to get ready
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "5m")]
    ready_timeout: Duration,

    /// The name of the session, unix:PATH or tcp:IP:PORT, whatever the file says
    #[arg(long, short = 'S', value_name = "SESSION")]
    session: Option<String>,

    /// The secret that all must know, over TCP; made if it is missing
    #[arg(long, value_name = "SECRET")]
    secret_file: Option<PathBuf>,
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

Examples:
  ddbx run                       what ddbx.toml in this directory lists
  ddbx run -f shop/ddbx.toml     another file
  ddbx run --headless            in CI

Exit codes:
  that of the process with ends_run, else the first that is not 0; 128 and the
  number of the signal if one ended it; 1 if a process does not start or does
  not get ready; 2 if the file is wrong"#;

/// Opens the session and runs what the file lists in it.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let config = args.config()?;
    let name = match (&args.session, &config.session) {
        (Some(name), _) | (None, Some(name)) => name.clone(),
        (None, None) => directory_name(&args.file),
    };
    central::runtime()?.block_on(async {
        let mut open = Open::start(&name, args.secret_file.as_deref()).await?;
        anstream::eprintln!("ddbx: session {} is open; try `ddbx ps` elsewhere", open.name);
        let session = open.session.clone();
        let is_attached = move |name: &str| match session.request(Request::Processes) {
            Some(Reply::Processes(views)) => {
                views.iter().any(|view| view.name == name && view.state != ProcessState::Gone)
            }
            _ => false,
        };
        let environment = open.environment.clone();
        let told = Rc::new(Notify::new());
        let stop = || {
            let told = told.clone();
            async move {
                tokio::select! {
                    () = central::interrupted() => {}
                    () = told.notified() => {}
                }
            }
        };
        let options = args.options();
        let mut running =
            pin!(supervisor::supervise(&config, &environment, is_attached, stop, &options));
        let outcome = tokio::select! {
            outcome = &mut running => outcome?,
            () = open.asked_to_end() => {
                told.notify_one();
                running.await?
            }
        };
        Ok(outcome.into())
    })
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

    /// How to supervise.
    pub fn options(&self) -> Options {
        let Self { headless, ready_timeout, .. } = *self;
        Options { headless, ready_timeout, ..Options::default() }
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
