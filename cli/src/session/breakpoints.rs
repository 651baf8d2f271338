//! `ddbx break`, `ddbx breaks`, `ddbx enable`, `ddbx disable`, `ddbx delete`, `ddbx wait`.

use std::time::Duration;

use clap::Args;
use ddbx_protocol::control::{BreakpointView, HoldView, Reply, Request, Wanted};
use ddbx_protocol::{BreakpointId, Scope};
use ddbx_tui::words::{Break, Breaks, Delete, Disable, Enable};

use super::holds::describe;
use super::{Client, InSession, SessionArgs, answer, print, print_json, unexpected};
use crate::exit::Failure;
use crate::table::table;
use crate::text::{cut, one_line};

pub(crate) fn set(args: &InSession<Break>) -> Result<(), Failure> {
    let request = args.word.request().map_err(Failure::Marked)?;
    let set = answer!(args.session.ask(request)?, Reply::Breakpoint);
    if args.session.json {
        return print_json(&set);
    }
    let (id, spec_text) = (set.id, one_line(&args.word.spec));
    if set.processes.is_empty() {
        let process = args.word.spec.split(':').next().unwrap_or_default();
        return print(&format!(
            "breakpoint {id} at {spec_text}: no process called {} takes part yet; it will be set \
             when one joins (`ddbx ps` lists who does)",
            one_line(process)
        ));
    }
    print(&format!("breakpoint {id} at {spec_text}, in {}", names(&set.processes)))
}

fn names(processes: &[String]) -> String {
    processes.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn list(args: &InSession<Breaks>) -> Result<(), Failure> {
    let breakpoints = answer!(args.session.ask(Request::Breakpoints)?, Reply::Breakpoints);
    if args.session.json {
        return print_json(&breakpoints);
    }
    if breakpoints.is_empty() {
        return print("no breakpoints: set one with `ddbx break process:Service.method@arrive`");
    }
    let columns = [
        ("id", true),
        ("where", false),
        ("scope", false),
        ("hits", true),
        ("met", true),
        ("in", false),
        ("", false),
    ];
    print(&table(&columns, breakpoints.iter().map(row)).trim_fmt())
}

fn row(view: &BreakpointView) -> Vec<String> {
    let Wanted { spec, scope, ignore, once, condition, hold_for } = &view.wanted;
    let mut more = Vec::new();
    more.extend(condition.as_ref().map(|condition| format!("if {}", one_line(condition))));
    more.extend(hold_for.map(|length| format!("for {length:?}")));
    more.extend((*ignore > 0).then(|| format!("ignores {ignore}")));
    more.extend(once.then(|| "once".to_owned()));
    more.extend(view.spent.then(|| "spent".to_owned()));
    more.extend((!view.enabled).then(|| "disabled".to_owned()));
    if view.errors > 0 {
        let last = one_line(view.last_error.as_deref().unwrap_or_default());
        more.push(format!("{} errors, the last: {last}", view.errors));
    }
    vec![
        view.id.to_string(),
        cut(spec, 60),
        match scope {
            Scope::Process => "process".to_owned(),
            Scope::Call => "call".to_owned(),
        },
        view.hits.to_string(),
        view.met.to_string(),
        cut(&names(&view.processes), 32),
        more.join(", "),
    ]
}

pub(crate) fn disable(args: &InSession<Disable>) -> Result<(), Failure> {
    let Some((view, mut client)) = switch(&args.session, args.word.request())? else {
        return Ok(());
    };
    print(&format!("breakpoint {0} is disabled: `ddbx enable {0}` brings it back", view.id))?;
    print_who_stays(&mut client, Some(view.id))
}

pub(crate) fn enable(args: &InSession<Enable>) -> Result<(), Failure> {
    let Some((view, _)) = switch(&args.session, args.word.request())? else { return Ok(()) };
    print(&match (view.spent, view.processes.is_empty()) {
        (true, _) => format!("breakpoint {} has stopped its one control already", view.id),
        (false, true) => format!("breakpoint {} is enabled, for processes that join", view.id),
        (false, false) => {
            format!("breakpoint {} is enabled, in {}", view.id, names(&view.processes))
        }
    })
}

/// The breakpoint as it is then; none if it has been printed as JSON already.
fn switch(
    session: &SessionArgs,
    request: Request,
) -> Result<Option<(BreakpointView, Client)>, Failure> {
    let mut client = session.connect()?;
    let view = answer!(client.ask(request)?, Reply::Breakpoint);
    if session.json {
        print_json(&view)?;
        return Ok(None);
    }
    Ok(Some((view, client)))
}

pub(crate) fn delete(args: &InSession<Delete>) -> Result<(), Failure> {
    let mut client = args.session.connect()?;
    match client.ask(args.word.request())? {
        Reply::Done(n) if args.session.json => {
            return print_json(&serde_json::json!({ "deleted": n }));
        }
        Reply::Done(1) => print("1 breakpoint removed")?,
        Reply::Done(n) => print(&format!("{n} breakpoints removed"))?,
        other => return Err(unexpected(other)),
    }
    print_who_stays(&mut client, args.word.breakpoint())
}

/// Whoever stands at a breakpoint, or at any, that stops nobody any more.
fn print_who_stays(client: &mut Client, id: Option<BreakpointId>) -> Result<(), Failure> {
    let holds = answer!(client.ask(Request::Holds)?, Reply::Holds);
    let stays = |hold: &&HoldView| hold.breakpoint.is_some_and(|at| id.is_none_or(|id| id == at));
    for hold in holds.iter().filter(stays) {
        print(&format!("hold {0} still stands there: `ddbx continue {0}` lets it go on", hold.id))?;
    }
    Ok(())
}

/// Wait until somebody stands at a breakpoint; for scripts
///
/// Returns at once if somebody does already. Exit code 5 if nobody comes in time.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx break inventory:Inventory.reserve@arrive --json | jq .id
  ddbx wait --hit 1 --timeout 10s && ddbx holds && ddbx continue --all")]
pub(crate) struct WaitArgs {
    /// Which breakpoint, as `ddbx breaks` shows it
    #[arg(long, value_name = "ID")]
    hit: u32,

    /// How long at the most
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "60s")]
    timeout: Duration,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn wait(args: &WaitArgs) -> Result<(), Failure> {
    let breakpoint = BreakpointId(args.hit);
    match args.session.ask(Request::Wait { breakpoint, timeout: args.timeout })? {
        Reply::Hit(hold) if args.session.json => print_json(&hold),
        Reply::Hit(hold) => print(&describe(&hold)),
        Reply::TimedOut => Err(Failure::TimedOut(format!(
            "nobody stood at breakpoint {breakpoint} within {:?}",
            args.timeout
        ))),
        other => Err(unexpected(other)),
    }
}
