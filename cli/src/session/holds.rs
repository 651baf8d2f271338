//! `ddbx holds`, `ddbx bt`, `ddbx continue`, `ddbx release`.

use std::collections::HashMap;

use clap::Args;
use ddbx_protocol::HoldId;
use ddbx_protocol::control::{
    Backtrace, FrameView, HoldReason, HoldView, ReplayView, Reply, Request, Whom,
};

use super::processes::seconds;
use super::{SessionArgs, answer, print, print_json, unexpected};
use crate::exit::Failure;
use crate::table::table;
use crate::text::{cut, one_line};

/// Beyond this only the first ones are listed for people.
const ROWS_MAX: usize = 200;

/// List who stands still, why, and because of whom
#[derive(Args)]
#[command(after_long_help = "\
Why:
  breakpoint 1     it has come to a breakpoint; only you can let it go on
  halt             its process is held, by a breakpoint of scope process or a pause
  for hold 3       going on could change the order of events: it goes on by itself
                   after hold 3 does, or comes to a breakpoint itself
  order            the same, and whom it waits for goes on already
  turn 15, at 12   in a replay: it was event 15 of its process, and 12 comes next

Examples:
  ddbx holds             who stands still now
  ddbx bt 3              how hold 3 came to where it stands, across processes
  ddbx continue 3        let it go on when its turn comes
  ddbx release 3         let it go on anyway; order is not guaranteed from then on")]
pub(crate) struct HoldsArgs {
    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn list(args: &HoldsArgs) -> Result<(), Failure> {
    let holds = answer!(args.session.ask(Request::Holds)?, Reply::Holds);
    if args.session.json {
        return print_json(&holds);
    }
    let replays = answer!(args.session.ask(Request::Replay)?, Reply::Replay);
    let waiting = replays.iter().flat_map(waits_for_its_turn);
    let waiting: Vec<Vec<String>> = waiting.take(ROWS_MAX).collect();
    if holds.is_empty() && waiting.is_empty() {
        return print("nobody stands still");
    }
    let columns = [
        ("hold", true),
        ("process", false),
        ("at", false),
        ("why", false),
        ("for", true),
        ("control", false),
        ("arguments", false),
    ];
    let rows = grouped(&holds).into_iter().take(ROWS_MAX).map(|(hold, alike)| {
        let times = if alike > 1 { format!(" ×{alike}") } else { String::new() };
        vec![
            hold.id.to_string(),
            cut(&hold.process, 24),
            cut(&hold.at, 40) + &times,
            why(hold),
            seconds(hold.held_ms),
            cut(&control(hold), 40),
            values(hold),
        ]
    });
    print(&table(&columns, rows.chain(waiting)).trim_fmt())?;
    if holds.len() > ROWS_MAX {
        print(&format!("({ROWS_MAX} of {} shown; --json has all)", holds.len()))?;
    }
    Ok(())
}

/// Who waits in a replay until it is the next: nobody can let them go on.
fn waits_for_its_turn(view: &ReplayView) -> impl Iterator<Item = Vec<String>> {
    let next = view.progress.next.as_ref();
    view.progress.waiting.iter().map(move |at| {
        let why = match (at.number, next) {
            (Some(number), Some(next)) => format!("turn {}, at {}", number.0, next.number.0),
            _ => "the end of the replay".to_owned(),
        };
        let control = at.kind.control().map(ToString::to_string).unwrap_or_default();
        let what = at.kind.to_string();
        let what = what.split("  ").next().unwrap_or_default().to_owned();
        let length = u64::try_from(view.progress.idle.as_millis()).unwrap_or(u64::MAX);
        let length = seconds(length);
        vec![
            "–".to_owned(),
            cut(&view.process, 24),
            cut(&what, 40),
            why,
            length,
            cut(&control, 40),
            String::new(),
        ]
    })
}

/// Holds that look alike, such as the deadlines of one call at both its ends, as one:
/// the first of them, and how many there are.
fn grouped(holds: &[HoldView]) -> Vec<(&HoldView, usize)> {
    let mut groups: Vec<(&HoldView, usize)> = Vec::new();
    let mut seen = HashMap::new();
    for hold in holds {
        let look = (&hold.process, &hold.at, &hold.control, why(hold), values(hold));
        let group = *seen.entry(look).or_insert(groups.len());
        match groups.get_mut(group) {
            Some((_, alike)) => *alike += 1,
            None => groups.push((hold, 1)),
        }
    }
    groups
}

fn control(hold: &HoldView) -> String {
    hold.control.as_ref().map(ToString::to_string).unwrap_or_default()
}

fn values(hold: &HoldView) -> String {
    let args = hold.args.as_ref().map(|args| cut(&args.to_string(), 60));
    let result = hold.result.as_ref().map(|result| format!("-> {}", cut(&result.to_string(), 60)));
    args.into_iter().chain(result).collect::<Vec<_>>().join(" ")
}

fn why(hold: &HoldView) -> String {
    match (hold.reason, hold.breakpoint, hold.because_of.as_slice()) {
        (HoldReason::Breakpoint, Some(id), _) => format!("breakpoint {id}"),
        (HoldReason::Breakpoint, None, _) => "breakpoint".to_owned(),
        (HoldReason::Halt, ..) => "halt".to_owned(),
        (HoldReason::Delay, _, []) => "order".to_owned(),
        (HoldReason::Delay, _, [of]) => format!("for hold {of}"),
        (HoldReason::Delay, _, [of, .., last]) => format!("for hold {of}, and so for {last}"),
    }
}

/// A hold in one sentence.
pub(super) fn describe(hold: &HoldView) -> String {
    format!(
        "hold {}: {} stands in {} at {} ({}) {}",
        hold.id,
        one_line(&control(hold)),
        one_line(&hold.process),
        one_line(&hold.at),
        why(hold),
        values(hold),
    )
    .trim_end()
    .to_owned()
}

/// Show how a control came to where it stands, across processes
///
/// The innermost call first, down to the process where the control began.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx bt 3              how hold 3 came to where it stands
  #0 inventory  Inventory.reserve  for 2.005 s, deadline in 0.187 s
  #1 orders  Orders.place  for 2.009 s, deadline in 0.187 s
  #2 gateway  began here

Deadlines are measured by the clock of who is held, which stands still.")]
pub(crate) struct BtArgs {
    /// Which hold, as `ddbx holds` shows it
    hold: u64,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn backtrace(args: &BtArgs) -> Result<(), Failure> {
    let backtrace =
        answer!(args.session.ask(Request::Backtrace(HoldId(args.hold)))?, Reply::Backtrace);
    if args.session.json {
        return print_json(&backtrace);
    }
    let Backtrace { hold, frames } = &backtrace;
    print(&describe(hold))?;
    for of in &hold.because_of {
        print(&format!("  because of hold {of}"))?;
    }
    if let Some(length) = hold.at_least_ms {
        let from = hold.because_of.last().map(|last| format!(" once hold {last} goes on"));
        print(&format!("  at least {} more{}", seconds(length), from.unwrap_or_default()))?;
    }
    for (number, frame) in frames.iter().enumerate() {
        print(&line(number, frame))?;
    }
    Ok(())
}

fn line(number: usize, frame: &FrameView) -> String {
    let process = one_line(&frame.process);
    let Some(method) = &frame.method else { return format!("#{number} {process}  began here") };
    let since = frame.age_ms.map(|age| format!("for {}", seconds(age))).unwrap_or_default();
    let left = frame.remaining_ms.map(|left| format!(", deadline in {}", seconds(left)));
    let left = left.unwrap_or_default();
    format!("#{number} {process}  {}  {since}{left}", one_line(method.as_str()))
}

/// Let somebody go on who is held
///
/// It goes on when its turn comes: not before others that are further behind and still
/// held. Without an argument the only one that is held is meant.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx continue              the only one that is held
  ddbx continue 3            hold 3
  ddbx continue inventory    all that is held in inventory, and a pause of it
  ddbx continue --all        everybody; breakpoints stay")]
pub(crate) struct ContinueArgs {
    /// Which hold, as `ddbx holds` shows it; or which process
    #[arg(value_name = "HOLD|PROCESS", conflicts_with = "all")]
    whom: Option<String>,

    /// Everybody
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn go_on(args: &ContinueArgs) -> Result<(), Failure> {
    let whom = match (&args.whom, args.all) {
        (_, true) => Whom::All,
        (None, false) => Whom::TheOnly,
        (Some(text), false) => match text.parse() {
            Ok(number) => Whom::Hold(HoldId(number)),
            Err(_) => Whom::Process(text.clone()),
        },
    };
    done(&args.session, Request::Continue(whom), "continued")
}

/// Let somebody go on anyway
///
/// Now, whatever the rule says, and at all that it does from here. The order of events
/// is not guaranteed from then on, which `ddbx ps` shows.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  ddbx release 3         let hold 3 go on, also if it waits for others")]
pub(crate) struct ReleaseArgs {
    /// Which hold, as `ddbx holds` shows it
    hold: u64,

    #[command(flatten)]
    session: SessionArgs,
}

pub(crate) fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    done(&args.session, Request::Release(HoldId(args.hold)), "released")
}

fn done(session: &SessionArgs, request: Request, what: &str) -> Result<(), Failure> {
    match session.ask(request)? {
        Reply::Done(n) if session.json => print_json(&serde_json::json!({ what: n })),
        Reply::Done(0) => print("nobody was held"),
        Reply::Done(n) => print(&format!("{n} {what}")),
        other => Err(unexpected(other)),
    }
}
