//! `ddbx demo`: a shop of real processes, and what a stop does to it with ddbx and
//! without.
//!
//! The shop is started three times (`runs.rs`): the processes are this same program
//! (`shop.rs`), the session lives in the demo (`debugger.rs`). What happens is told
//! (`story.rs`), and what came of it is compared with what ddbx promises (`report.rs`).

use std::io::{self, Read as _, Write as _};
use std::time::Duration;

use clap::Args;
use ddbx_protocol::link::BindError;
use ddbx_shop::{Load, Options};
use thiserror::Error;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;
use report::Report;
use story::Story;

mod debugger;
mod live;
mod report;
mod runs;
mod shop;
mod story;

/// A stop may last this long. Shorter ones break nothing without ddbx, either.
const HOLD_MIN: Duration = Duration::from_secs(2);
const HOLD_MAX: Duration = Duration::from_secs(60);

/// For how long it stops if nobody says.
const HOLD: Duration = Duration::from_secs(3);

/// See ddbx stop a service while nothing times out, and what happens without ddbx
///
/// On a terminal a small shop of services, in processes of their own, is opened on the
/// screen, for you to stop it. With any of the options below, or without a terminal, a story
/// is told: the shop runs three times: nobody stops; a breakpoint stops inventory; SIGSTOP
/// stops inventory for as long. That takes about 20 s. Nothing is left behind.
#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub struct DemoArgs {
    /// For programs and CI: the story as text, no screen
    #[arg(long)]
    headless: bool,

    /// Print the result as JSON; the story goes to standard error
    #[arg(long)]
    json: bool,

    /// The story, with inventory stopped for this long: from 2s to 1m, else 3s
    #[arg(long, value_name = "TIME", value_parser = hold)]
    hold: Option<Duration>,

    /// The story, with what the processes print
    #[arg(long)]
    verbose: bool,
}

const EXAMPLES: &str = r#"Output with --json, for each of baseline, with_ddbx and without_ddbx:
  calls            orders that customers made
  deadline_errors  orders that failed because a deadline passed
  leases_lost      leases that ran out, as the registry says
  held_ms          for how long inventory was stopped
  refused, other_errors, slowest_ms
                   orders that failed otherwise; the longest that an order took
  waited and went_on say which processes had to wait for whom while ddbx held
  inventory and which did not; wrong says what is not as it should be.

Examples:
  ddbx demo                      the screen
  ddbx demo --headless           the story
  ddbx demo --hold 10s           a longer stop
  ddbx demo --headless --json    in CI
  SHOP_SLOWER=3 ddbx demo        on a slow or busy machine: all deadlines and leases
                                 are three times as long

Exit codes:
  0 nothing went wrong with ddbx that does not without a stop, and more did without
  ddbx   1 otherwise, or the shop cannot run   2 bad input"#;

/// One process of the demo's shop.
#[derive(Args, Debug)]
pub struct ShopArgs {
    /// One of the services, traffic or auditor
    role: String,
}

/// Why the demo did not come to its end.
#[derive(Debug, Error)]
pub(crate) enum DemoError {
    #[error(transparent)]
    Environment(ddbx_shop::Error),
    #[error("cannot make a temporary directory: {0}; is there room, and is TMPDIR right?")]
    Directory(io::Error),
    #[error("cannot start {name}: {why}")]
    Start { name: String, why: io::Error },
    #[error("cannot signal {name}: {why}")]
    Signal { name: String, why: io::Error },
    #[error("{name} ended too early: {how}; what it printed is above")]
    Died { name: String, how: String },
    #[error("waited for 30 s, and it is still not so that {0}")]
    Late(&'static str),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error("cannot start a session: {0}")]
    Session(io::Error),
    #[error("the session has ended too early")]
    SessionEnded,
    #[error("the session does not do what it should: {0}")]
    Refused(String),
    #[error(
        "the call at the breakpoint was given up before everybody could be held: \
         the machine is too busy for deadlines so short; try SHOP_SLOWER=3"
    )]
    GivenUp,
    #[error("cannot listen to signals: {0}")]
    Signals(io::Error),
    #[error("stopped before its end; nothing is left running")]
    Interrupted,
    #[error(transparent)]
    Screen(ddbx_tui::Failure),
    #[error("{0}")]
    Output(io::Error),
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Output(error) => Self::Output(error),
            DemoError::Environment(_) => Self::BadInput(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl DemoArgs {
    fn hold(&self) -> Duration {
        self.hold.unwrap_or(HOLD)
    }

    /// Whether somebody wants to see for himself.
    fn wants_the_screen(&self) -> bool {
        let wants_the_story = self.headless || self.json || self.verbose || self.hold.is_some();
        !wants_the_story && live::is_possible()
    }
}

pub(crate) fn run(args: &DemoArgs) -> Result<(), Failure> {
    if args.wants_the_screen() {
        return Ok(runtime()?.block_on(async {
            let interrupted = interrupted().map_err(DemoError::Signals)?;
            tokio::select! {
                seen = live::on_the_screen() => seen,
                () = interrupted => Err(DemoError::Interrupted),
            }
        })?);
    }
    let report = runtime()?.block_on(async {
        let interrupted = interrupted().map_err(DemoError::Signals)?;
        tokio::select! {
            // Whoever is dropped half way ends its processes.
            told = tell(args) => told,
            () = interrupted => Err(DemoError::Interrupted),
        }
    })?;
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(io::Error::from)?;
        writeln!(io::stdout(), "{text}")?;
    }
    match report.wrong.is_empty() {
        true => Ok(()),
        // The story has said what.
        false => Err(Failure::Failed("the demo has not shown what it should".to_owned())),
    }
}

async fn tell(args: &DemoArgs) -> Result<Report, DemoError> {
    let shop = Options::in_dir(std::env::temp_dir()).map_err(DemoError::Environment)?;
    let story = Story { result_is_json: args.json, verbose: args.verbose };
    story.opens(&shop, args.hold())?;
    let baseline = runs::baseline(args, &story).await?;
    let with_ddbx = runs::with_ddbx(args, &story).await?;
    let without_ddbx = runs::without_ddbx(args, &story).await?;
    let report = Report::new(args.hold(), baseline, with_ddbx, without_ddbx);
    story.ends(&report)?;
    Ok(report)
}

/// Waits for any of the signals with which people and systems end programs. From this
/// call on they do not end this one: there is something to clean up first.
fn interrupted() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// Runs one process of the shop until standard input ends, which the demo holds.
pub(crate) fn run_shop(args: &ShopArgs) -> Result<(), Failure> {
    let failed = |error: ddbx_shop::Error| Failure::Failed(error.to_string());
    let options = Options::from_env().map_err(|error| Failure::BadInput(error.to_string()))?;
    let customers = match args.role.as_str() {
        "traffic" => Load::default().customers,
        "auditor" => 0,
        service => {
            std::thread::spawn(|| {
                let mut ignored = [0; 64];
                while io::stdin().read(&mut ignored).is_ok_and(|length| length > 0) {}
                std::process::exit(0);
            });
            return runtime()?.block_on(ddbx_shop::run(service, &options)).map_err(failed);
        }
    };
    let load = Load { customers, until_stdin_closes: true, ..Load::default() };
    let traffic = ddbx_shop::traffic(&options, &load, |_| {});
    let report = runtime()?.block_on(traffic).map_err(failed)?;
    Ok(writeln!(io::stdout(), "{report}")?)
}

/// Several threads: a terminal that blocks must not keep the session from answering.
fn runtime() -> Result<runtime::Runtime, Failure> {
    let built = runtime::Builder::new_multi_thread().enable_all().build();
    built.map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))
}

fn hold(text: &str) -> Result<Duration, String> {
    let length = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match (HOLD_MIN..=HOLD_MAX).contains(&length) {
        true => Ok(length),
        false => Err("a stop of the demo lasts from 2s to 1m".to_owned()),
    }
}
