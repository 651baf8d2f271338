//! What the debugger did, and why.

use std::collections::VecDeque;

use ddbx_protocol::control::What;

use super::State;
use super::holds::reason;
use super::table::{Column, Mark, Row, Table};
use crate::text::seconds;

/// How many lines are kept.
const LINES_MAX: usize = 2_000;

/// The last of it.
#[derive(Clone, Debug, Default)]
pub struct Log {
    lines: VecDeque<Line>,
    first: u64,
}

#[derive(Clone, Debug)]
struct Line {
    at_ms: u64,
    /// Who says it.
    by: By,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Session,
    Screen,
    Program,
}

impl Log {
    /// Something happened in the session.
    pub fn notice(&mut self, at_ms: u64, what: &What) {
        if let Some(text) = sentence(what) {
            self.push(Line { at_ms, by: By::Session, text });
        }
    }

    /// Something happened in a recording.
    pub(super) fn recorded(&mut self, at_ms: u64, text: &str) {
        self.push(Line { at_ms, by: By::Session, text: text.to_owned() });
    }

    /// All that has happened in the session will be told again.
    pub fn forget_session(&mut self) {
        self.lines.retain(|line| line.by != By::Session);
    }

    /// Something happened to the screen.
    pub fn debugger(&mut self, at_ms: u64, text: &str) {
        self.push(Line { at_ms, by: By::Screen, text: text.to_owned() });
    }

    /// A process has printed something.
    pub fn printed(&mut self, at_ms: u64, text: &str) {
        self.push(Line { at_ms, by: By::Program, text: text.to_owned() });
    }

    fn push(&mut self, line: Line) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.first += 1;
        }
        self.lines.push_back(line);
    }

    /// A line, whole.
    pub fn line(&self, number: u64) -> Option<&str> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.lines.get(at).map(|line| line.text.as_str())
    }
}

const COLUMNS: &[Column] =
    &[Column::number("at", 10), Column::short("by", 7), Column::text("what", 1)];

/// What the screen shows, the latest first.
pub fn table(state: &State) -> Table {
    let rows = state.log.lines.iter().enumerate().rev().map(|(at, line)| {
        let number = state.log.first + at as u64;
        let (by, mark) = match line.by {
            By::Session => ("session", Mark::Plain),
            By::Screen => ("screen", Mark::Wrong),
            By::Program => ("program", Mark::Off),
        };
        let text: super::table::Cell = (&line.text).into();
        Row {
            key: number.to_string(),
            cells: vec![seconds(line.at_ms).into(), by.into(), text],
            mark,
        }
    });
    let empty = "the debugger has done nothing yet".to_owned();
    Table { columns: COLUMNS, rows: rows.collect(), empty, note: "" }
}

fn sentence(what: &What) -> Option<String> {
    Some(match what {
        What::Joined(process) => format!("{process} takes part"),
        What::Left(process) => format!("{process} has left"),
        What::Stands(hold) => {
            format!(
                "{} stands before {}: {} (hold {})",
                hold.process,
                hold.at,
                reason(hold),
                hold.id
            )
        }
        What::GoesOn { hold, process, held_ms } => {
            format!("{process} goes on (hold {hold}), after {}", seconds(*held_ms))
        }
        What::BreakpointSet(view) => {
            format!("breakpoint {} is set at {}", view.id, view.wanted.spec)
        }
        What::BreakpointDeleted(id) => format!("breakpoint {id} is removed"),
        What::Changed(view) => {
            let how = if view.enabled { "" } else { ", and is off" };
            format!("breakpoint {} is at {}{how}", view.id, view.wanted.spec)
        }
        What::Paused { process, paused: true } => format!("{process} is paused"),
        What::Paused { process, paused: false } => format!("{process} is not paused any more"),
        What::Released(hold) => {
            format!("hold {hold} goes on whatever the rule says: order is not guaranteed any more")
        }
        What::Event(_) | What::Missed(_) => return None,
    })
}
