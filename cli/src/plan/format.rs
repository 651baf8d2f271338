//! The files of `ddbx plan`: JSON in, JSON out.

use std::io::{self, Write};

use ddbx_central::logic::algorithm_d::{
    ExecutionIndex, Plan, PlannedFragment, Program, ProgramBuilder, ProgramError,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::text;

/// Reads a program; the error names the place.
pub fn parse(bytes: &[u8]) -> Result<Program, InputError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let input: Input = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| InputError::NotTheFormat(text::one_line(&error.to_string())))?;
    json.end().map_err(|error| InputError::NotTheFormat(error.to_string()))?;

    let mut builder = ProgramBuilder::default();
    for execution in &input.executions {
        let fragments = execution.fragments.iter().map(|f| (&f.pid, f.time));
        builder.execution(&execution.name, fragments)?;
    }
    for breakpoint in &input.breakpoints {
        builder.breakpoint(&breakpoint.execution, breakpoint.fragment, breakpoint.suspend)?;
    }
    Ok(builder.build())
}

/// Writes the delayed execution as one line of JSON.
pub fn write(mut out: impl Write, program: &Program, plan: &Plan) -> io::Result<()> {
    let executions = (0..program.executions().len())
        .map(|index| planned_execution(program, plan, ExecutionIndex(index as u32)))
        .collect();
    serde_json::to_writer(&mut out, &Output { executions }).map_err(io::Error::from)?;
    writeln!(out)
}

/// Why an input cannot be planned.
#[derive(Debug, Error)]
pub enum InputError {
    /// Not JSON, or JSON of another shape.
    #[error("{0}")]
    NotTheFormat(String),
    /// The right shape, but not a program.
    #[error(transparent)]
    NotAProgram(#[from] ProgramError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    executions: Vec<InputExecution>,
    #[serde(default)]
    breakpoints: Vec<InputBreakpoint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputExecution {
    name: String,
    fragments: Vec<InputFragment>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputFragment {
    pid: String,
    time: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputBreakpoint {
    execution: String,
    fragment: u64,
    suspend: u64,
}

#[derive(Serialize)]
struct Output<'a> {
    executions: Vec<OutputExecution<'a>>,
}

#[derive(Serialize)]
struct OutputExecution<'a> {
    name: &'a str,
    end: u64,
    fragments: Vec<OutputFragment<'a>>,
}

#[derive(Serialize)]
struct OutputFragment<'a> {
    index: usize,
    pid: &'a str,
    time: u64,
    start: u64,
    delay: u64,
    breakpoint: u64,
    propagated: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<OutputCause<'a>>,
}

#[derive(Serialize)]
struct OutputCause<'a> {
    execution: &'a str,
    fragment: usize,
    process: &'a str,
}

fn planned_execution<'a>(
    program: &'a Program,
    plan: &Plan,
    index: ExecutionIndex,
) -> OutputExecution<'a> {
    let execution = program.execution(index);
    let mut end = 0;
    let fragments = plan
        .fragments(program, index)
        .zip(&execution.fragments)
        .map(|(planned, fragment)| {
            end = planned.end;
            OutputFragment {
                index: planned.index.number(),
                pid: program.process_name(fragment.process),
                time: fragment.time,
                start: planned.start,
                delay: fragment.breakpoint + planned.propagated,
                breakpoint: fragment.breakpoint,
                propagated: planned.propagated,
                cause: output_cause(program, &planned),
            }
        })
        .collect();
    OutputExecution { name: &execution.name, end, fragments }
}

fn output_cause<'a>(program: &'a Program, planned: &PlannedFragment) -> Option<OutputCause<'a>> {
    planned.cause.map(|cause| OutputCause {
        execution: &program.execution(cause.execution).name,
        fragment: cause.fragment.number(),
        process: program.process_name(cause.process),
    })
}
