//! `ddbx holds`, `ddbx bt`, `ddbx continue`, `ddbx release`.

use std::collections::HashMap;

use ddbx_protocol::control::{
    Backtrace, FrameView, HOLDS_MAX, HoldReason, HoldView, ReplayView, Reply, Request,
};
use ddbx_tui::words::{Bt, Continue, Holds, Release};

use super::processes::seconds;
use super::{InSession, SessionArgs, answer, print, print_json, unexpected};
use crate::exit::Failure;
use crate::table::table;
use crate::text::{cut, one_line};

/// Beyond this only the first ones are listed for people.
const ROWS_MAX: usize = 200;

pub(crate) fn list(args: &InSession<Holds>) -> Result<(), Failure> {
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
        let all = if holds.len() < HOLDS_MAX { "all" } else { "the first" };
        print(&format!("({ROWS_MAX} of {} shown; --json has {all})", holds.len()))?;
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

pub(crate) fn backtrace(args: &InSession<Bt>) -> Result<(), Failure> {
    let backtrace = answer!(args.session.ask(args.word.request())?, Reply::Backtrace);
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

pub(crate) fn go_on(args: &InSession<Continue>) -> Result<(), Failure> {
    done(&args.session, args.word.request(), "continued")
}

pub(crate) fn release(args: &InSession<Release>) -> Result<(), Failure> {
    done(&args.session, args.word.request(), "released")
}

fn done(session: &SessionArgs, request: Request, what: &str) -> Result<(), Failure> {
    match session.ask(request)? {
        Reply::Done(n) if session.json => print_json(&serde_json::json!({ what: n })),
        Reply::Done(0) => print("nobody was held"),
        Reply::Done(n) => print(&format!("{n} {what}")),
        other => Err(unexpected(other)),
    }
}
