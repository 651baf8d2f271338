//! The plan as a space-time picture: time runs to the right, every process is a
//! lane with one row for each execution that visits it.

use std::collections::BTreeSet;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use ddbx_central::logic::algorithm_d::{ExecutionIndex, Plan, ProcessIndex, Program, Ticks};

use crate::text::{cut, padded, width};

const WIDTH_DEFAULT: usize = 100;
const NAME_WIDTH_MAX: usize = 14;
const ROWS_MAX: usize = 60;
const TICK_EVERY_CELLS: usize = 12;
const CELLS_PER_TICK_MAX: u64 = 4;

/// What one cell shows; where several things share a cell, the greatest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Empty,
    Runs,
    Waits,
    Suspended,
}

impl Cell {
    fn symbol(self) -> char {
        match self {
            Self::Empty => ' ',
            Self::Runs => '█',
            Self::Waits => '░',
            Self::Suspended => '▒',
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Empty | Self::Runs => Style::new(),
            Self::Waits => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Self::Suspended => Style::new().fg_color(Some(AnsiColor::Red.into())),
        }
    }
}

/// One execution in one process.
struct Row {
    process: ProcessIndex,
    execution: ExecutionIndex,
    cells: Vec<Cell>,
}

pub(super) fn write(out: &mut impl Write, program: &Program, plan: &Plan) -> io::Result<()> {
    let longest = |names: &mut dyn Iterator<Item = &str>| {
        names.map(|name| width(&cut(name, NAME_WIDTH_MAX))).max().unwrap_or(0)
    };
    let process_names = (0..program.process_count() as u32).map(ProcessIndex);
    let left = longest(&mut process_names.map(|process| program.process_name(process)));
    let right = longest(&mut program.executions().iter().map(|execution| execution.name.as_str()));
    let columns =
        terminal_size::terminal_size().map_or(WIDTH_DEFAULT, |(columns, _)| columns.0.into());
    let room = columns.saturating_sub(left + right + 4).max(20);
    let scale = Scale::new(last_end(program, plan), room);

    let mut rows = rows(program, plan, &scale);
    let all = rows.len();
    if all > ROWS_MAX {
        // Those that were stopped, or share a process with somebody who was.
        let stands = |row: &Row| row.cells.iter().any(|cell| *cell > Cell::Runs);
        let concerned: BTreeSet<ProcessIndex> =
            rows.iter().filter(|row| stands(row)).map(|row| row.process).collect();
        rows.sort_by_key(|row| (!stands(row), !concerned.contains(&row.process)));
        rows.truncate(ROWS_MAX);
        rows.sort_by_key(|row| (row.process, row.execution));
    }
    writeln!(out, "{:indent$}{}", "", scale.axis(), indent = left + right + 4)?;
    let mut lane = None;
    for row in &rows {
        let process =
            if lane == Some(row.process) { "" } else { program.process_name(row.process) };
        lane = Some(row.process);
        let execution = padded(&program.execution(row.execution).name, right);
        write!(out, "{}  {execution}  ", padded(process, left))?;
        let used =
            row.cells.iter().rposition(|&cell| cell != Cell::Empty).map_or(0, |last| last + 1);
        for run in row.cells[..used].chunk_by(|a, b| a == b) {
            let style = run[0].style();
            let symbols: String = run.iter().map(|cell| cell.symbol()).collect();
            write!(out, "{style}{symbols}{style:#}")?;
        }
        writeln!(out)?;
    }
    if all > rows.len() {
        writeln!(
            out,
            "({} of {all} rows shown: whoever was stopped, and its neighbours)",
            rows.len()
        )?;
    }
    writeln!(out, "\n█ runs   ▒ suspended by a breakpoint   ░ waits so that the order is kept")
}

/// How times become columns.
struct Scale {
    cells: usize,
    last: Ticks,
}

impl Scale {
    /// A short run gets the same whole number of cells for every tick.
    fn new(last: Ticks, room: usize) -> Self {
        let last = last.max(1);
        let cells_per_tick = (room as u64 / last).min(CELLS_PER_TICK_MAX) as usize;
        let cells = if cells_per_tick > 0 { cells_per_tick * last as usize } else { room };
        Self { cells, last }
    }

    fn column(&self, time: Ticks) -> usize {
        (u128::from(time) * self.cells as u128 / u128::from(self.last)) as usize
    }

    fn axis(&self) -> String {
        let mut axis = String::new();
        for column in (0..self.cells).step_by(TICK_EVERY_CELLS) {
            let used = axis.chars().count();
            if used <= column {
                let time = (column as u128 * u128::from(self.last)).div_ceil(self.cells as u128);
                axis += &" ".repeat(column - used);
                axis += &format!("│{time} ");
            }
        }
        axis.trim_end().to_owned()
    }

    /// Marks `from..to`; something that happens fills at least one cell.
    fn mark(&self, cells: &mut [Cell], from: Ticks, to: Ticks, cell: Cell) {
        let first = self.column(from).min(self.cells - 1);
        let end = self.column(to).clamp(first + 1, self.cells);
        for each in &mut cells[first..end] {
            *each = (*each).max(cell);
        }
    }
}

fn last_end(program: &Program, plan: &Plan) -> Ticks {
    let executions = (0..program.executions().len() as u32).map(ExecutionIndex);
    executions
        .filter_map(|execution| plan.fragments(program, execution).last())
        .map(|last| last.end)
        .max()
        .unwrap_or(0)
}

/// The rows by process, in the order in which the input names them.
fn rows(program: &Program, plan: &Plan, scale: &Scale) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for execution in (0..program.executions().len() as u32).map(ExecutionIndex) {
        let first = rows.len();
        let fragments = &program.execution(execution).fragments;
        for (planned, fragment) in plan.fragments(program, execution).zip(fragments) {
            let row = match rows[first..].iter().position(|row| row.process == fragment.process) {
                Some(known) => first + known,
                None => {
                    let cells = vec![Cell::Empty; scale.cells];
                    rows.push(Row { process: fragment.process, execution, cells });
                    rows.len() - 1
                }
            };
            let cells = &mut rows[row].cells;
            let ran = planned.start + fragment.time;
            let stood = ran + fragment.breakpoint;
            for (from, to, cell) in [
                (planned.start, ran, Cell::Runs),
                (ran, stood, Cell::Suspended),
                (stood, planned.end, Cell::Waits),
            ] {
                // What takes no time is drawn all the same.
                if from < to || cell == Cell::Runs {
                    scale.mark(cells, from, to, cell);
                }
            }
        }
    }
    rows.sort_by_key(|row| (row.process, row.execution));
    rows
}
