//! How each process is doing.

use ddbx_protocol::control::{ProcessState, ProcessView};

use super::State;
use super::table::{Cell, Column, Mark, Row, Table};
use crate::text::{count, seconds, signed_seconds};

const COLUMNS: &[Column] = &[
    Column::text("process", 3),
    Column::short("state", 7),
    Column::number("clock", 9),
    Column::short("    delay", 14),
    Column::number("calls", 5),
    Column::number("held", 4),
    Column::number("waits", 5),
    Column::number("rate/s", 6),
    Column::number("served", 8).from(100),
    Column::number("made", 8).from(100),
    Column::text("calls whom", 3).from(100),
];

/// What the screen shows.
pub fn table(state: &State) -> Table {
    let processes = &state.seen.processes;
    let most = processes.iter().map(|view| view.delay_ms).max().unwrap_or_default();
    let rows = processes.iter().map(|view| row(state, view, most)).collect();
    let empty = match state.is_recording() {
        true => "no process has done anything yet at this time: ] goes on",
        false => "nobody takes part yet: start services with DDBX_SESSION set to this session",
    };
    Table { columns: COLUMNS, rows, empty: empty.to_owned(), note: "" }
}

fn row(state: &State, view: &ProcessView, most: u64) -> Row {
    let is_gone = view.state == ProcessState::Gone;
    // Of a recording it is known how it was.
    let is_known = !is_gone || state.is_recording();
    let known = |text: String| if is_known { text } else { String::new() };
    let part = if most == 0 { 0.0 } else { view.delay_ms as f64 / most as f64 };
    let delay = Cell::Bar { part, text: known(seconds(view.delay_ms)) };
    Row {
        key: view.name.clone(),
        cells: vec![
            (&view.name).into(),
            (if is_gone && state.is_recording() { "over" } else { word(view) }).into(),
            known(signed_seconds(view.clock_ms)).into(),
            delay,
            known(view.in_flight.to_string()).into(),
            known(view.held.to_string()).into(),
            known(view.waiting.to_string()).into(),
            known(count(state.seen.rate(&view.name))).into(),
            known(view.served.to_string()).into(),
            known(view.made.to_string()).into(),
            view.calls.join(", ").into(),
        ],
        mark: mark(view.state),
    }
}

/// The state in one word.
pub fn word(view: &ProcessView) -> &'static str {
    match view.state {
        _ if view.paused => "paused",
        ProcessState::Running => "running",
        ProcessState::Waiting => "waiting",
        ProcessState::Held => "held",
        ProcessState::Gone => "gone",
    }
}

fn mark(state: ProcessState) -> Mark {
    match state {
        ProcessState::Running => Mark::Plain,
        ProcessState::Waiting => Mark::Waiting,
        ProcessState::Held => Mark::Held,
        ProcessState::Gone => Mark::Off,
    }
}
