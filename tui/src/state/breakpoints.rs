//! Where controls are stopped.

use ddbx_protocol::Scope;
use ddbx_protocol::control::BreakpointView;

use super::State;
use super::table::{Column, Mark, Row, Table};

const COLUMNS: &[Column] = &[
    Column::number("no.", 4),
    Column::short("state", 6),
    Column::text("where", 8),
    Column::short("scope", 7),
    Column::text("if", 3),
    Column::number("hits", 5),
    Column::number("met", 5).from(100),
    Column::text("set in", 3),
    Column::short("once", 4).from(100),
    Column::number("ignore", 6).from(100),
];

/// What the screen shows.
pub fn table(state: &State) -> Table {
    let rows = state.seen.breakpoints.iter().map(row).collect();
    let empty = match state.is_recording() {
        true => "a recording has no breakpoints: `ddbx replay` runs it again, with breakpoints",
        false => "no breakpoints: b sets one",
    };
    Table { columns: COLUMNS, rows, empty: empty.to_owned(), note: "" }
}

fn row(view: &BreakpointView) -> Row {
    let wanted = &view.wanted;
    let where_set = match view.processes.as_slice() {
        [] if view.enabled && !view.spent => "nobody yet".to_owned(),
        processes => processes.join(", "),
    };
    let mark = match word(view) {
        "error" => Mark::Wrong,
        "on" => Mark::Plain,
        _ => Mark::Off,
    };
    Row {
        key: view.id.to_string(),
        cells: vec![
            view.id.into(),
            word(view).into(),
            (&wanted.spec).into(),
            scope(wanted.scope).into(),
            wanted.condition.clone().unwrap_or_default().into(),
            view.hits.into(),
            view.met.into(),
            where_set.into(),
            (if wanted.once { "once" } else { "" }).into(),
            wanted.ignore.into(),
        ],
        mark,
    }
}

/// Its state in one word.
pub fn word(view: &BreakpointView) -> &'static str {
    match view {
        BreakpointView { enabled: false, .. } => "off",
        BreakpointView { spent: true, .. } => "spent",
        BreakpointView { errors: 1.., .. } => "error",
        _ => "on",
    }
}

/// Whom it stops, in one word.
pub fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Process => "process",
        Scope::Call => "call",
    }
}
