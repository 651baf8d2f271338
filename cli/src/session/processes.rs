//! `ddbx ps`, `ddbx pause`, `ddbx panic`, `ddbx watch`, `ddbx stop`.

use clap::Args;
use ddbx_protocol::control::{ProcessState, ProcessView, Reply, Request, SessionView, WatchView};
use serde::Serialize;

use super::{SessionArgs, answer, print, print_json, unexpected};
use crate::exit::Failure;
use crate::table::table;
use crate::text::{cut, one_line};

const NAME_WIDTH_MAX: usize = 32;

const NOBODY: &str =
    "nobody takes part yet: start your services with DDBX_SESSION set to this session";

/// List the processes of the session: clocks, delays, calls in flight
///
/// A process's virtual clock is real time less its delay: all the time for which it
/// was held or made to wait so far. Deadlines are measured by it.
#[derive(Args)]
#[command(after_long_help = "\
Columns:
  state       running; held by a breakpoint; paused; waiting because of a hold; gone
  clock       virtual time since the session began
  delay       for how long it was held or made to wait so far
  in flight   calls that are in the process now
  held        controls that stand at a breakpoint or are halted with their process
  waiting     controls that wait so that the order of events is kept

Examples:
  ddbx ps            a table
  ddbx ps --json     the same for programs, with whom each one calls")]
pub(crate) struct PsArgs {
    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn ps(args: &PsArgs) -> Result<(), Failure> {
    let mut client = args.session.connect()?;
    let session = answer!(client.ask(Request::Session)?, Reply::Session);
    let processes = answer!(client.ask(Request::Processes)?, Reply::Processes);
    if args.session.json {
        #[derive(Serialize)]
        struct Ps<'a> {
            #[serde(flatten)]
            session: &'a SessionView,
            processes: &'a [ProcessView],
        }
        return print_json(&Ps { session: &session, processes: &processes });
    }
    if processes.is_empty() {
        return print(NOBODY);
    }
    let columns = [
        ("process", false),
        ("pid", true),
        ("state", false),
        ("clock", true),
        ("delay", true),
        ("in flight", true),
        ("held", true),
        ("waiting", true),
        ("calls", false),
    ];
    print(&table(&columns, processes.iter().map(row)).trim_fmt())?;
    if !session.order_guaranteed {
        print("\nsomebody was let go anyway: the order of events is not guaranteed any more")?;
    }
    Ok(())
}

fn row(process: &ProcessView) -> Vec<String> {
    let state = match (process.state, process.paused) {
        (ProcessState::Held, true) => "paused",
        (ProcessState::Held, false) => "held",
        (ProcessState::Waiting, _) => "waiting",
        (ProcessState::Running, _) => "running",
        (ProcessState::Gone, _) => "gone",
    };
    let mut row = vec![cut(&process.name, NAME_WIDTH_MAX), process.pid.to_string(), state.into()];
    if process.state != ProcessState::Gone {
        row.extend([
            u64::try_from(process.clock_ms).map_or_else(|_| "–".to_owned(), seconds),
            seconds(process.delay_ms),
            process.in_flight.to_string(),
            process.held.to_string(),
            process.waiting.to_string(),
            cut(&process.calls.join(" "), NAME_WIDTH_MAX),
        ]);
    }
    row
}

pub(super) fn seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1_000, millis % 1_000)
}

/// Hold a whole process, or all
///
/// Nobody enters a paused process, and whoever is inside stops at its next event.
/// Others go on until going on could change the order of events.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx pause inventory      hold inventory and its replicas
  ddbx continue inventory   let it go on
  ddbx pause --all          hold everything; the same as ddbx panic")]
pub(crate) struct PauseArgs {
    /// Which process; its replicas are meant too
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    process: Option<String>,

    /// All of them
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn pause(args: &PauseArgs) -> Result<(), Failure> {
    hold(&args.session, args.process.clone())
}

/// Hold everything now
///
/// The same as `ddbx pause --all`; `ddbx continue --all` ends it.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx panic             something goes wrong just now: hold all of it
  ddbx continue --all    go on")]
pub(crate) struct PanicArgs {
    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn panic(args: &PanicArgs) -> Result<(), Failure> {
    hold(&args.session, None)
}

fn hold(session: &SessionArgs, process: Option<String>) -> Result<(), Failure> {
    let whom = process.clone().unwrap_or_else(|| "--all".to_owned());
    let done = answer!(session.ask(Request::Pause(process))?, Reply::Done);
    if session.json {
        return print_json(&serde_json::json!({ "paused": done }));
    }
    print(&match done {
        0 => NOBODY.to_owned(),
        1 => format!("1 process is paused; `ddbx continue {whom}` lets it go on"),
        n => format!("{n} processes are paused; `ddbx continue {whom}` lets them go on"),
    })
}

/// List watched values
///
/// A program shows values with `ddbx::watch!(name = value)`. They arrive twice in a
/// second; conditions of breakpoints see them at once, as `watch.name`.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx watch             a table
  ddbx break 'inventory:point(reserve)' --if 'watch.stock_left < 3'
                         stop when a watched value is small")]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn watch(args: &WatchArgs) -> Result<(), Failure> {
    let watched = answer!(args.session.ask(Request::Watched)?, Reply::Watched);
    if args.session.json {
        return print_json(&watched);
    }
    if watched.is_empty() {
        return print("nothing is watched: show values with ddbx::watch!(name = value)");
    }
    let row = |view: &WatchView| {
        let name = cut(&view.name, NAME_WIDTH_MAX);
        vec![cut(&view.process, NAME_WIDTH_MAX), name, one_line(&view.value.to_string())]
    };
    let columns = [("process", false), ("name", false), ("value", false)];
    print(&table(&columns, watched.iter().map(row)).trim_fmt())
}

/// End the session
///
/// What `ddbx run` has started is ended too; what was started by hand goes on
/// without a debugger, and nobody stays held.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx stop                    the session that runs
  ddbx stop --session shop     the one that is called shop")]
pub(crate) struct StopArgs {
    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn stop(args: &StopArgs) -> Result<(), Failure> {
    match args.session.ask(Request::Stop)? {
        Reply::Done(_) if args.session.json => print_json(&serde_json::json!({ "ended": true })),
        Reply::Done(_) => print("the session ends"),
        other => Err(unexpected(other)),
    }
}
