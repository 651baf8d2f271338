//! The command `ddbx-tui`.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser};
use ddbx_protocol::link::{FindFailure, KeyFiles, Keys, find, reach};
use ddbx_recording::OpenError;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use crate::screen::{Failure, Options, run, run_recording};
use crate::text::one_line;

/// Look at a session: who stands still and why, clocks, calls, breakpoints, what happens
///
/// Every action is one key away, and ? says which. Ends with q, and asks then whether
/// whoever is held shall go on.
#[derive(Parser)]
#[command(name = "ddbx-tui", version, after_long_help = EXAMPLES)]
struct Cli {
    /// Which session: its name, unix:PATH or tcp:IP:PORT; needless if only one runs
    #[arg(long, short = 'S', env = "DDBX_SESSION", hide_env_values = true)]
    session: Option<String>,

    /// The secret of a session over TCP
    #[arg(long, value_name = "FILE", env = "DDBX_SECRET_FILE", hide_env_values = true)]
    secret_file: Option<PathBuf>,

    /// The directory with the certificates of a session on another machine
    #[arg(long, value_name = "DIR", env = "DDBX_TLS", hide_env_values = true)]
    tls: Option<PathBuf>,

    /// Only look: nothing can be changed
    #[arg(long)]
    watch_only: bool,

    /// Look at a recording instead: ] and [ move its time
    #[arg(long, value_name = "REC")]
    recording: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Screens:
  1 Processes     state, virtual clock, delay, calls in flight, rate
  2 Holds         who stands still, why, for whom, for how long
  3 Calls         what is in flight, and what is left of its deadline
  4 Breakpoints   set, change, switch off; hits
  5 Space-time    what happened where and when, and what led to it
  6 Events        the same, one after the other
  7 Log           what the debugger did

Examples:
  ddbx-tui                      the session that runs
  ddbx-tui -S shop              the one called shop
  ddbx-tui --watch-only         for a second pair of eyes
  ddbx-tui --recording rec      what was recorded, at any of its times
  NO_COLOR=1 ddbx-tui           without colours

Exit codes:
  0 well   1 failure   2 bad input   4 no session";

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // In the environment it may be for others.
    let names_session = matches.value_source("session") == Some(ValueSource::CommandLine);
    if names_session && cli.recording.is_some() {
        let text = "either --session or --recording, not both";
        Cli::command().error(ErrorKind::ArgumentConflict, text).exit();
    }
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(1, &error.to_string()),
    };
    runtime.block_on(look(cli))
}

async fn look(cli: Cli) -> ExitCode {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return failed(2, NO_TERMINAL);
    }
    let looks = async {
        match &cli.recording {
            Some(directory) => run_recording(directory).await.map_err(not_shown),
            None => run(options(&cli).await?).await.map_err(not_shown),
        }
    };
    tokio::select! {
        looked = looks => match looked {
            Ok(()) => ExitCode::SUCCESS,
            Err((code, why)) => failed(code, &why),
        },
        // The terminal is given back when the screen is dropped.
        code = told_to_end() => ExitCode::from(code),
    }
}

fn not_shown(failure: Failure) -> (u8, String) {
    match &failure {
        Failure::Recording(OpenError::NotARecording(_)) => {
            (2, format!("{failure}; `ddbx recordings DIR` lists those in a directory"))
        }
        Failure::Recording(_) => (2, failure.to_string()),
        Failure::Terminal(_) => (1, failure.to_string()),
    }
}

const NO_TERMINAL: &str = "the screen needs a terminal; `ddbx ps`, `ddbx holds` and `ddbx events` \
                           print the same for programs, with --json";

/// Where the session is. It must be there now; later it may come and go.
async fn options(cli: &Cli) -> Result<Options, (u8, String)> {
    let not_found = |error: ddbx_protocol::link::FindError| {
        let code = match error.failure() {
            FindFailure::NoSession => 4,
            FindFailure::BadInput => 2,
            FindFailure::Failed => 1,
        };
        (code, error.to_string())
    };
    let address = find(cli.session.as_deref()).await.map_err(not_found)?;
    let files = KeyFiles { secret: cli.secret_file.as_deref(), tls: cli.tls.as_deref() };
    reach(Some(&address.to_string()), files).await.map_err(not_found)?;
    let keys = Keys::read(&address, files).map_err(|error| (2, error.to_string()))?;
    Ok(Options { address, keys, watch_only: cli.watch_only, printed: None })
}

/// Until a signal ends the process, which is what its code then says.
async fn told_to_end() -> u8 {
    let listen = |kind| signal(kind).ok();
    let (mut terminate, mut hangup) =
        (listen(SignalKind::terminate()), listen(SignalKind::hangup()));
    let (Some(terminate), Some(hangup)) = (&mut terminate, &mut hangup) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => 143,
        _ = hangup.recv() => 129,
    }
}

fn failed(code: u8, why: &str) -> ExitCode {
    eprintln!("error: {}", one_line(why));
    ExitCode::from(code)
}
