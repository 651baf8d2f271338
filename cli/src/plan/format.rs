//! The files of `ddbx plan`: JSON in, JSON out.

use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;

use ddbx_central::logic::algorithm_d::{
    ExecutionIndex, Plan, PlannedFragment, Program, ProgramBuilder, ProgramError, TICKS_MAX,
};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::text;

/// Reads a program; the error names the place.
pub fn parse(bytes: &[u8]) -> Result<Program, InputError> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let Object(input): Object<Input> = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| InputError::new(error.inner(), &error))?;
    json.end().map_err(|error| InputError::new(&error, &error))?;

    let mut builder = ProgramBuilder::default();
    for (index, Object(execution)) in input.executions.iter().enumerate() {
        let fragments = execution.fragments.iter().map(|Object(f)| (&f.pid, f.time.0));
        let place = || format!("executions[{index}]");
        builder
            .execution(&execution.name, fragments)
            .map_err(|error| InputError::at(place, error))?;
    }
    for (index, Object(breakpoint)) in input.breakpoints.iter().enumerate() {
        let Breakpoint { execution, fragment, suspend } = breakpoint;
        let place = || format!("breakpoints[{index}]");
        builder
            .breakpoint(execution, fragment.0, suspend.0)
            .map_err(|error| InputError::at(place, error))?;
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
    /// Not JSON at all.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// JSON of another shape.
    #[error("{0}")]
    NotTheFormat(String),
    /// The right shape, but not a program.
    #[error("{place}: {error}")]
    NotAProgram {
        /// Where in the input.
        place: String,
        /// What is wrong there.
        error: ProgramError,
    },
}

impl InputError {
    fn new(cause: &serde_json::Error, message: &dyn fmt::Display) -> Self {
        if cause.is_data() {
            Self::NotTheFormat(text::one_line(&message.to_string()))
        } else {
            Self::NotJson(text::one_line(&cause.to_string()))
        }
    }

    fn at(place: impl FnOnce() -> String, error: ProgramError) -> Self {
        Self::NotAProgram { place: place(), error }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    executions: Vec<Object<Execution>>,
    #[serde(default)]
    breakpoints: Vec<Object<Breakpoint>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Execution {
    name: String,
    fragments: Vec<Object<Fragment>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fragment {
    pid: String,
    time: Whole,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Breakpoint {
    execution: String,
    fragment: Whole,
    suspend: Whole,
}

/// A whole number in the range that the format allows.
struct Whole(u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected;
        impl Visitor<'_> for Expected {
            type Value = Whole;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number from 0 to 2^63-1")
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Whole, E> {
                if number <= TICKS_MAX {
                    return Ok(Whole(number));
                }
                Err(E::invalid_value(de::Unexpected::Unsigned(number), &self))
            }
        }
        deserializer.deserialize_u64(Expected)
    }
}

/// A JSON object. Without it, lists of values in the right order would do, too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Expected<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Expected<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Expected(PhantomData))
    }
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
