//! Who stands still, and why.

use ddbx_protocol::EventKind;
use ddbx_protocol::control::{HoldReason, HoldView, ProcessView, ReplayView, Whom};
use ddbx_protocol::replay::AtTurn;

use super::table::{Column, Mark, Row, Table};
use super::{Screen, State, calls};
use crate::text::seconds;

const COLUMNS: &[Column] = &[
    Column::number("hold", 5),
    Column::text("process", 2),
    Column::text("at", 4),
    Column::text("why", 4),
    Column::number("for", 8),
    Column::number("still", 9),
    Column::text("control", 3).from(100),
    Column::text("arguments", 4).from(100),
];

/// What the screen shows.
pub fn table(state: &State) -> Table {
    let mut holds: Vec<&HoldView> = state.seen.holds.iter().collect();
    holds.sort_by_key(|hold| (hold.reason == HoldReason::Delay, hold.id));
    let turns = state.seen.replay.iter().flat_map(turns);
    let empty = match state.is_recording() {
        true => "nobody stands still at this time",
        false => "nobody stands still: b sets a breakpoint, p holds a process",
    };
    Table {
        columns: COLUMNS,
        rows: holds.into_iter().map(|hold| row(state, hold)).chain(turns).collect(),
        empty: empty.to_owned(),
        note: "",
    }
}

fn row(state: &State, hold: &HoldView) -> Row {
    let control = hold.control.as_ref().map(ToString::to_string).unwrap_or_default();
    Row {
        key: hold.id.to_string(),
        cells: vec![
            hold.id.into(),
            (&hold.process).into(),
            (&hold.at).into(),
            match state.is_recording() {
                true => "not recorded".into(),
                false => halted_by(state, hold).unwrap_or_else(|| reason(hold)).into(),
            },
            seconds(hold.held_ms).into(),
            still(hold).into(),
            control.into(),
            values(hold).into(),
        ],
        mark: if hold.reason == HoldReason::Delay { Mark::Waiting } else { Mark::Held },
    }
}

/// What holds the process of somebody who is halted with it.
fn halted_by(state: &State, hold: &HoldView) -> Option<String> {
    (hold.reason == HoldReason::Halt).then(|| match whom_to_continue(state, hold) {
        Whom::Hold(id) if id != hold.id => format!("hold {id} halts it"),
        _ => "paused".to_owned(),
    })
}

/// Who must go on so that this one does: whoever is halted with its process goes on with
/// what halted that.
pub fn whom_to_continue(state: &State, hold: &HoldView) -> Whom {
    let is_paused = |view: &ProcessView| view.name == hold.process && view.paused;
    let halts =
        |other: &&HoldView| other.process == hold.process && other.reason == HoldReason::Breakpoint;
    match hold.reason {
        HoldReason::Halt if state.seen.processes.iter().any(is_paused) => {
            Whom::Process(hold.process.clone())
        }
        HoldReason::Halt => {
            let halted = state.seen.holds.iter().find(halts);
            halted.map_or(Whom::Process(hold.process.clone()), |other| Whom::Hold(other.id))
        }
        _ => Whom::Hold(hold.id),
    }
}

/// Why, in a few words.
pub fn reason(hold: &HoldView) -> String {
    match (hold.reason, hold.breakpoint, hold.because_of.as_slice()) {
        (HoldReason::Breakpoint, Some(id), _) => format!("breakpoint {id}"),
        (HoldReason::Breakpoint, None, _) => "breakpoint".to_owned(),
        (HoldReason::Halt, ..) => "its process is held".to_owned(),
        (HoldReason::Delay, _, []) => "order".to_owned(),
        (HoldReason::Delay, _, [of, ..]) => format!("waits for hold {of}"),
    }
}

/// At the least how much longer.
fn still(hold: &HoldView) -> String {
    match (hold.reason, hold.at_least_ms) {
        (HoldReason::Delay, Some(length)) => format!("≥ {}", seconds(length)),
        (HoldReason::Delay, None) => String::new(),
        _ => "press c".to_owned(),
    }
}

/// What it has with it.
pub fn values(hold: &HoldView) -> String {
    let args = hold.args.iter().map(ToString::to_string);
    let result = hold.result.iter().map(|result| format!("→ {result}"));
    args.chain(result).collect::<Vec<_>>().join(" ")
}

/// Who waits in a replay until it is the next: nobody can let them go on.
fn turns(view: &ReplayView) -> impl Iterator<Item = Row> {
    let next = view.progress.next.as_ref().map(|next| next.number.0);
    let length = u64::try_from(view.progress.idle.as_millis()).unwrap_or(u64::MAX);
    view.progress.waiting.iter().map(move |AtTurn { kind, number }| {
        let why = match (number, next) {
            (Some(number), Some(next)) => format!("turn {}, at {next}", number.0),
            _ => "the end of the replay".to_owned(),
        };
        let control = kind.control().map(ToString::to_string).unwrap_or_default();
        let what = kind.to_string();
        let what = what.split("  ").next().unwrap_or_default().to_owned();
        Row {
            key: turn_key(view, kind),
            cells: vec![
                "turn".into(),
                (&view.process).into(),
                what.into(),
                why.into(),
                seconds(length).into(),
                "".into(),
                control.into(),
                "".into(),
            ],
            mark: Mark::Waiting,
        }
    })
}

fn turn_key(view: &ReplayView, kind: &EventKind) -> String {
    format!("{} {kind}", view.process)
}

/// Why something waits for its turn in a replay, sentence by sentence.
pub fn explain_turn(state: &State, key: &str) -> Option<Vec<String>> {
    let waiting = state.seen.replay.iter();
    let waiting = waiting.flat_map(|view| view.progress.waiting.iter().map(move |at| (view, at)));
    let (view, at) = waiting.into_iter().find(|(view, at)| turn_key(view, &at.kind) == key)?;
    let mut said = vec![format!("In {}: {}.", view.process, at.kind)];
    said.push(match at.number {
        Some(number) => {
            format!("It was event {} when it was recorded, and waits for its turn.", number.0)
        }
        None => "It was not recorded: it waits for the end of the replay.".to_owned(),
    });
    if let Some(next) = &view.progress.next {
        said.push(format!("Event {} comes next: {}.", next.number.0, next.kind));
    }
    let progress = &view.progress;
    said.push(format!("{} of {} events have happened again.", progress.done, progress.of));
    Some(said)
}

/// Who is meant by what is selected on the screen that is shown, the first before all.
pub fn meant(state: &State) -> Vec<&HoldView> {
    match state.screen {
        Screen::Holds => {
            let id = state.selected();
            state.seen.holds.iter().filter(|hold| Some(hold.id.to_string()) == id).collect()
        }
        Screen::Calls => {
            let call = calls::selected(state);
            let id = call.and_then(|call| call.hold);
            // One that waits for another call stands where that stands.
            let control = call.map(|call| &call.control);
            let of_call = |hold: &&HoldView| match id {
                Some(id) => hold.id == id,
                None => control.is_some() && hold.control.as_ref() == control,
            };
            state.seen.holds.iter().filter(of_call).collect()
        }
        _ => {
            let process = state.process();
            let of = |hold: &&HoldView| Some(&hold.process) == process.as_ref();
            let mut holds: Vec<_> = state.seen.holds.iter().filter(of).collect();
            holds.sort_by_key(|hold| (hold.reason == HoldReason::Delay, hold.id));
            holds
        }
    }
}

/// Why somebody stands still, sentence by sentence.
pub fn explain(state: &State, hold: &HoldView) -> Vec<String> {
    let who = |hold: &HoldView| format!("hold {} in {}, before {}", hold.id, hold.process, hold.at);
    let mut said = vec![format!("{}, has stood still for {}.", who(hold), seconds(hold.held_ms))];
    if state.is_recording() {
        let length = hold.held_ms + hold.at_least_ms.unwrap_or_default();
        said.push(format!("It was held for {} in all, or made to wait.", seconds(length)));
        said.push("A recording has what happened, but not who held whom.".to_owned());
        return said;
    }
    said.extend(cause(state, hold));
    for id in &hold.because_of {
        let Some(other) = state.hold(*id) else { continue };
        said.push(format!("It waits for {}.", who(other)));
        said.extend(cause(state, other));
    }
    if hold.reason == HoldReason::Delay {
        said.push(
            "Going on now could change the order of events. It goes on by itself.".to_owned(),
        );
        if let Some(length) = hold.at_least_ms {
            let last =
                hold.because_of.last().map_or_else(|| "that".to_owned(), |id| format!("hold {id}"));
            said.push(format!("That is at least {} after {last} goes on.", seconds(length)));
        }
    } else {
        said.push("c lets it go on.".to_owned());
    }
    said
}

fn cause(state: &State, hold: &HoldView) -> Option<String> {
    match (hold.reason, hold.breakpoint) {
        (HoldReason::Breakpoint, Some(id)) => Some(format!("Breakpoint {id} has stopped it.")),
        (HoldReason::Breakpoint, None) => Some("A breakpoint has stopped it.".to_owned()),
        (HoldReason::Halt, _) => Some(match whom_to_continue(state, hold) {
            Whom::Hold(id) => format!("Hold {id} halts its process."),
            _ => "Its process is paused.".to_owned(),
        }),
        (HoldReason::Delay, _) => None,
    }
}
