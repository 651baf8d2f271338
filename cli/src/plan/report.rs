//! The plan for people: what was planned, a table with reasons, a picture.

use std::io::{self, Write};

use anstyle::Style;
use comfy_table::Table;
use ddbx_central::logic::algorithm_d::{
    Cause, ExecutionIndex, Mode, Plan, PlannedFragment, Program,
};

use super::picture;
use crate::text::cut;

/// Beyond this only the fragments that wait are listed.
const TABLE_ROWS_MAX: usize = 200;
const NAME_WIDTH_MAX: usize = 24;

pub(super) fn write(
    out: &mut impl Write,
    program: &Program,
    plan: &Plan,
    mode: Mode,
) -> io::Result<()> {
    let bold = Style::new().bold();
    if program.executions().is_empty() {
        return writeln!(out, "nothing to plan: the input has no executions");
    }
    let rows: Vec<Row> = rows(program, plan).collect();
    let suspended = rows.iter().filter(|row| row.breakpoint(program) > 0).count();
    let waits = rows.iter().filter(|row| row.planned.propagated > 0).count();
    let name = match mode {
        Mode::Virtual => "virtual",
        Mode::VirtualStrict => "virtual-strict",
        Mode::Literal => "literal (as published: may reverse clients)",
    };
    let (executions, processes) = (program.executions().len(), program.process_count());
    writeln!(
        out,
        "{bold}Algorithm D, {name}{bold:#}: {} in {}\n{suspended} suspended by a breakpoint, \
         {waits} made to wait so that the order is kept",
        counted(executions, "execution"),
        counted(processes, "process"),
    )?;

    let all = rows.len() <= TABLE_ROWS_MAX;
    let stands = |row: &&Row| row.planned.propagated > 0 || row.breakpoint(program) > 0;
    let shown = rows.iter().filter(|row| all || stands(row));
    let shown: Vec<&Row> = shown.take(TABLE_ROWS_MAX).collect();
    if !shown.is_empty() {
        writeln!(out, "\n{}", table(program, plan, &shown).trim_fmt())?;
    }
    if shown.len() < rows.len() {
        writeln!(
            out,
            "({} of {} shown: those that stand still; --json has all)",
            shown.len(),
            counted(rows.len(), "fragment")
        )?;
    }
    writeln!(out)?;
    picture::write(out, program, plan)
}

/// A fragment of the delayed execution with its place.
struct Row {
    execution: ExecutionIndex,
    planned: PlannedFragment,
}

impl Row {
    fn breakpoint(&self, program: &Program) -> u64 {
        program.execution(self.execution).fragments[self.planned.index.0 as usize].breakpoint
    }
}

fn rows<'a>(program: &'a Program, plan: &'a Plan) -> impl Iterator<Item = Row> + 'a {
    (0..program.executions().len() as u32).map(ExecutionIndex).flat_map(move |execution| {
        plan.fragments(program, execution).map(move |planned| Row { execution, planned })
    })
}

fn table(program: &Program, plan: &Plan, rows: &[&Row]) -> Table {
    let columns = [
        ("execution", false),
        ("#", true),
        ("process", false),
        ("start", true),
        ("time", true),
        ("breakpoint", true),
        ("waits", true),
        ("end", true),
        ("because", false),
    ];
    let rows = rows.iter().map(|row| {
        let execution = program.execution(row.execution);
        let fragment = execution.fragments[row.planned.index.0 as usize];
        let unless_zero = |n: u64| if n == 0 { String::new() } else { n.to_string() };
        vec![
            cut(&execution.name, NAME_WIDTH_MAX),
            row.planned.index.number().to_string(),
            cut(program.process_name(fragment.process), NAME_WIDTH_MAX),
            row.planned.start.to_string(),
            fragment.time.to_string(),
            unless_zero(fragment.breakpoint),
            unless_zero(row.planned.propagated),
            row.planned.end.to_string(),
            row.planned.cause.map_or(String::new(), |c| because(program, plan, row.execution, c)),
        ]
    });
    crate::table::table(&columns, rows)
}

/// Whom the fragment waits for and which process they share; where that delay
/// was itself handed on, also where it began.
fn because(program: &Program, plan: &Plan, waits: ExecutionIndex, cause: Cause) -> String {
    let name = |execution| cut(&program.execution(execution).name, NAME_WIDTH_MAX);
    let (who, after) = (name(cause.execution), cause.fragment.number());
    let process = cut(program.process_name(cause.process), NAME_WIDTH_MAX);
    let mut why = format!("{who} is as far behind after #{after}, and uses {process} too");
    let origin = origin(program, plan, cause);
    if ![waits, cause.execution].contains(&origin.execution) {
        why += &format!(" (from {} #{})", name(origin.execution), origin.fragment.number());
    }
    why
}

/// Follows a delay back to the breakpoint that began it: to the last fragment,
/// at or before the named one, that added something, and on through its cause.
fn origin(program: &Program, plan: &Plan, mut cause: Cause) -> Cause {
    // Causes go strictly back in undelayed time or along a tie; a bound keeps
    // the literal algorithm, which promises nothing, from going in circles.
    for _ in 0..program.fragment_count() {
        let fragments = &program.execution(cause.execution).fragments;
        let added = plan
            .fragments(program, cause.execution)
            .take(cause.fragment.number())
            .filter(|p| p.propagated + fragments[p.index.0 as usize].breakpoint > 0)
            .last();
        let Some(added) = added else { break };
        cause.fragment = added.index;
        let Some(earlier) = added.cause else { break };
        cause = earlier;
    }
    cause
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 {
        ""
    } else if noun.ends_with('s') {
        "es"
    } else {
        "s"
    };
    format!("{count} {noun}{plural}")
}
