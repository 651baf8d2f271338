//! What is in flight.

use ddbx_protocol::control::CallView;

use super::table::{Column, Mark, Row, Table};
use super::{Screen, State};
use crate::text::seconds;

const COLUMNS: &[Column] = &[
    Column::text("process", 2),
    Column::text("method", 4),
    Column::text("control", 4),
    Column::number("age", 8),
    Column::number("deadline in", 11),
    Column::short("stands", 9),
    Column::number("depth", 5).from(100),
];

/// What the screen shows.
pub fn table(state: &State) -> Table {
    // One control after the other, each from where it began: so rows stay where they are.
    let mut calls: Vec<&CallView> = state.seen.calls.iter().collect();
    calls.sort_by_key(|call| (&call.control, call.depth));
    let rows = calls.into_iter().map(|call| {
        let hold = call.hold.map(|hold| format!("hold {hold}")).unwrap_or_default();
        Row {
            key: key(call),
            cells: vec![
                (&call.process).into(),
                (&call.method).into(),
                (&call.control).into(),
                seconds(call.age_ms).into(),
                call.remaining_ms.map(seconds).unwrap_or_default().into(),
                hold.into(),
                call.depth.into(),
            ],
            mark: if call.hold.is_some() { Mark::Waiting } else { Mark::Plain },
        }
    });
    let empty = match state.is_recording() {
        true => "no call is in flight at this time",
        false => "no call is in flight at this moment",
    };
    Table { columns: COLUMNS, rows: rows.collect(), empty: empty.to_owned(), note: "" }
}

fn key(call: &CallView) -> String {
    format!("{} {} {} {}", call.process, call.control, call.depth, call.method)
}

/// The one that is selected.
pub fn selected(state: &State) -> Option<&CallView> {
    if state.screen != Screen::Calls {
        return None;
    }
    let selected = state.selected()?;
    state.seen.calls.iter().find(|call| key(call) == selected)
}

/// The one of a key.
pub fn of_key<'a>(state: &'a State, of: &str) -> Option<&'a CallView> {
    state.seen.calls.iter().find(|call| key(call) == of)
}
