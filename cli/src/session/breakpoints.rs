//! `ddbx break`, `ddbx breaks`, `ddbx enable`, `ddbx disable`, `ddbx delete`, `ddbx wait`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use ddbx_protocol::control::{BreakpointView, HoldView, Reply, Request, Wanted};
use ddbx_protocol::{BreakpointId, Condition, Scope, Spec};

use super::holds::describe;
use super::{Client, SessionArgs, answer, print, print_json, unexpected};
use crate::exit::Failure;
use crate::table::table;
use crate::text::{cut, one_line};

/// Stop controls at an RPC or at a point in the code
///
/// Whoever comes there stands still until told to go on. Others go on until going on
/// could change the order of events; no deadline notices. The breakpoint is in force
/// when the command returns, also in replicas and processes that start later.
#[derive(Args)]
#[command(after_long_help = "\
SPEC:
  process:Service.method@event    event is call, arrive, return or resume:
                                  call    before the request leaves the caller
                                  arrive  before the handler starts
                                  return  before the response leaves
                                  resume  before the caller goes on
  process:point(label)            a ddbx::point!(\"label\") in the code
  * stands for anything in each part; inventory means all its replicas,
  inventory#1 the first.

Condition:
  CEL over args (an object of the arguments, or of the values of the point), result
  (at return and resume), watch (watched values), process and control. One that cannot
  be evaluated does not stop anybody; `ddbx breaks` counts and shows that.

Examples:
  ddbx break inventory:Inventory.reserve@arrive
  ddbx break '*:Payments.*@return' --scope call --if 'has(result.Err)'
  ddbx break 'inventory:point(reserve)' --if 'args.item == \"Apples\"' --once
  ddbx break orders:Orders.place@arrive --ignore 10 --for 3s")]
pub(crate) struct BreakArgs {
    /// Where: process:Service.method@event or process:point(label)
    spec: String,

    /// Whom it stops: everybody in the process, or only the call that comes there
    #[arg(long, value_enum, default_value_t = ScopeArg::Process)]
    scope: ScopeArg,

    /// Stop only if this holds, such as 'args.item == "Apples"'
    #[arg(long = "if", value_name = "EXPR")]
    condition: Option<String>,

    /// Stop only the first that comes there
    #[arg(long)]
    once: bool,

    /// Let so many pass first, in each process
    #[arg(long, value_name = "N", default_value_t = 0)]
    ignore: u32,

    /// Let go by itself after this time
    #[arg(long = "for", value_name = "TIME", value_parser = humantime::parse_duration)]
    hold_for: Option<Duration>,

    #[command(flatten)]
    session: SessionArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum ScopeArg {
    /// Everybody in the process
    Process,
    /// Only the call
    Call,
}

pub(crate) fn set(args: &BreakArgs) -> Result<(), Failure> {
    // Refused here already, so that a wrong one needs no session.
    let spec = args.spec.parse::<Spec>().map_err(|e| Failure::Marked(e.to_string()))?;
    if let Some(condition) = &args.condition {
        Condition::check(condition).map_err(|error| Failure::Marked(error.to_string()))?;
    }
    let wanted = Wanted {
        spec: args.spec.clone(),
        scope: match args.scope {
            ScopeArg::Process => Scope::Process,
            ScopeArg::Call => Scope::Call,
        },
        ignore: args.ignore,
        once: args.once,
        condition: args.condition.clone(),
        hold_for: args.hold_for,
    };
    let set = answer!(args.session.ask(Request::Break(wanted))?, Reply::Breakpoint);
    if args.session.json {
        return print_json(&set);
    }
    let (id, spec_text) = (set.id, one_line(&args.spec));
    if set.processes.is_empty() {
        return print(&format!(
            "breakpoint {id} at {spec_text}: no process called {} takes part yet; it will be set \
             when one joins (`ddbx ps` lists who does)",
            one_line(&spec.process.to_string())
        ));
    }
    print(&format!("breakpoint {id} at {spec_text}, in {}", names(&set.processes)))
}

fn names(processes: &[String]) -> String {
    processes.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")
}

/// List breakpoints: where they are, how often they were hit
#[derive(Args)]
#[command(after_long_help = "\
Columns:
  hits   how often it has stopped somebody
  met    how often it was met, those included that it ignored
  in     the processes where it is set now
  then   its condition and limits; spent if it has stopped its one control; disabled

Examples:
  ddbx breaks            a table; also which conditions could not be evaluated, and why
  ddbx breaks --json     the same for programs")]
pub(crate) struct BreaksArgs {
    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn list(args: &BreaksArgs) -> Result<(), Failure> {
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

/// Let a breakpoint stop nobody for now
///
/// It keeps its number and its hits; `ddbx enable` brings it back. Whoever stands at it
/// stays there: `ddbx continue` lets them go on.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx disable 1         breakpoint 1 is planted nowhere
  ddbx breaks            shows which are disabled
  ddbx enable 1          it stops whoever comes there again")]
pub(crate) struct DisableArgs {
    #[command(flatten)]
    which: WhichArgs,
}

/// Let a breakpoint that was disabled stop again
///
/// It is in force when the command returns. What it ignores is counted anew.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx enable 1          breakpoint 1 stops whoever comes there
  ddbx disable 1         and nobody any more")]
pub(crate) struct EnableArgs {
    #[command(flatten)]
    which: WhichArgs,
}

#[derive(Args)]
struct WhichArgs {
    /// Which, as `ddbx breaks` shows it
    id: u32,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn disable(args: &DisableArgs) -> Result<(), Failure> {
    let Some((view, mut client)) = switch(&args.which, false)? else { return Ok(()) };
    print(&format!("breakpoint {0} is disabled: `ddbx enable {0}` brings it back", view.id))?;
    print_who_stays(&mut client, Some(view.id))
}

pub(crate) fn enable(args: &EnableArgs) -> Result<(), Failure> {
    let Some((view, _)) = switch(&args.which, true)? else { return Ok(()) };
    print(&match (view.spent, view.processes.is_empty()) {
        (true, _) => format!("breakpoint {} has stopped its one control already", view.id),
        (false, true) => format!("breakpoint {} is enabled, for processes that join", view.id),
        (false, false) => {
            format!("breakpoint {} is enabled, in {}", view.id, names(&view.processes))
        }
    })
}

/// The breakpoint as it is then; none if it has been printed as JSON already.
fn switch(args: &WhichArgs, enabled: bool) -> Result<Option<(BreakpointView, Client)>, Failure> {
    let mut client = args.session.connect()?;
    let request = Request::Enable { breakpoint: BreakpointId(args.id), enabled };
    let view = answer!(client.ask(request)?, Reply::Breakpoint);
    if args.session.json {
        print_json(&view)?;
        return Ok(None);
    }
    Ok(Some((view, client)))
}

/// Remove a breakpoint, or all
///
/// Whoever stands at it stays there: `ddbx continue` lets them go on.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx delete 1          breakpoint 1
  ddbx delete --all      all of them")]
pub(crate) struct DeleteArgs {
    /// Which, as `ddbx breaks` shows it
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    id: Option<u32>,

    /// All of them
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn delete(args: &DeleteArgs) -> Result<(), Failure> {
    let id = args.id.map(BreakpointId);
    let mut client = args.session.connect()?;
    match client.ask(Request::Delete(id))? {
        Reply::Done(n) if args.session.json => {
            return print_json(&serde_json::json!({ "deleted": n }));
        }
        Reply::Done(1) => print("1 breakpoint removed")?,
        Reply::Done(n) => print(&format!("{n} breakpoints removed"))?,
        other => return Err(unexpected(other)),
    }
    print_who_stays(&mut client, id)
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
