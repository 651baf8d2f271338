//! `ddbx ps`, `ddbx pause`, `ddbx panic`, `ddbx watch`, `ddbx stop`.

use ddbx_protocol::control::{ProcessState, ProcessView, Reply, Request, SessionView, WatchView};
use ddbx_tui::words::{Panic, Pause, Ps, Stop, Watch};
use serde::Serialize;

use super::{InSession, SessionArgs, answer, print, print_json, unexpected};
use crate::exit::Failure;
use crate::table::table;
use crate::text::{cut, one_line};

const NAME_WIDTH_MAX: usize = 32;

const NOBODY: &str =
    "nobody takes part yet: start your services with DDBX_SESSION set to this session";

pub(crate) fn ps(args: &InSession<Ps>) -> Result<(), Failure> {
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
    let no_room = processes.iter().map(|process| process.dropped.total()).sum::<u64>();
    if no_room + session.dropped.total() > 0 {
        print("\nthere was not room for everything: `ddbx ps --json` says where, and for what")?;
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

pub(crate) fn pause(args: &InSession<Pause>) -> Result<(), Failure> {
    hold(&args.session, args.word.request())
}

pub(crate) fn panic(args: &InSession<Panic>) -> Result<(), Failure> {
    hold(&args.session, args.word.request())
}

fn hold(session: &SessionArgs, request: Request) -> Result<(), Failure> {
    let whom = match &request {
        Request::Pause(Some(process)) => process.clone(),
        _ => "--all".to_owned(),
    };
    let done = answer!(session.ask(request)?, Reply::Done);
    if session.json {
        return print_json(&serde_json::json!({ "paused": done }));
    }
    print(&match done {
        0 => NOBODY.to_owned(),
        1 => format!("1 process is paused; `ddbx continue {whom}` lets it go on"),
        n => format!("{n} processes are paused; `ddbx continue {whom}` lets them go on"),
    })
}

pub(crate) fn watch(args: &InSession<Watch>) -> Result<(), Failure> {
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

pub(crate) fn stop(args: &InSession<Stop>) -> Result<(), Failure> {
    match args.session.ask(Request::Stop)? {
        Reply::Done(_) if args.session.json => print_json(&serde_json::json!({ "ended": true })),
        Reply::Done(_) => print("the session ends"),
        other => Err(unexpected(other)),
    }
}
