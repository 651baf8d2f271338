//! How a replay ended, for people and as JSON.

use std::collections::BTreeMap;
use std::process::ExitCode;

use ddbx_central::logic::replay::{Awaited, Divergence, Missing, Verdict};
use ddbx_protocol::{ControlId, EventKind, ProcessName};
use ddbx_recording::Recording;
use serde::Serialize;

use super::shown;
use crate::exit::Failure;
use crate::run::supervisor::Exit;
use crate::session::{print, print_json};
use crate::text::one_line;

type Exits = BTreeMap<ProcessName, (u8, Option<u8>)>;

/// How a replay ended.
pub(super) struct Report {
    recording: String,
    events: u64,
    verdict: Verdict,
    /// Who exited otherwise than it did, or not at all: then, now.
    exits: Exits,
}

#[derive(Serialize)]
struct Json<'a> {
    recording: &'a str,
    events: u64,
    identical: bool,
    divergence: Option<JsonDivergence<'a>>,
    stalled: Option<Vec<JsonMissing<'a>>>,
    other_exits: &'a Exits,
}

#[derive(Serialize)]
struct JsonDivergence<'a> {
    process: &'a str,
    number: u64,
    control: Option<&'a ControlId>,
    expected: Option<&'a EventKind>,
    actual: &'a EventKind,
    recent: Vec<(u64, &'a EventKind)>,
}

#[derive(Serialize)]
struct JsonMissing<'a> {
    process: &'a str,
    has_ended: bool,
    has_come: bool,
    number: Option<u64>,
    expected: Option<&'a EventKind>,
    waits_for: Option<String>,
    waiting: Vec<&'a EventKind>,
}

impl Report {
    pub(super) fn new(
        verdict: Verdict,
        events: u64,
        recording: &Recording,
        exits: &[(ProcessName, Exit)],
    ) -> Self {
        let then = recording.seal().into_iter().flat_map(|seal| &seal.exits);
        let others = then.filter_map(|(name, &then)| {
            let now = exits.iter().find(|(other, _)| other == name).map(|(_, exit)| exit.code);
            (now != Some(then)).then(|| (name.clone(), (then, now)))
        });
        Self { recording: shown(recording.directory()), events, verdict, exits: others.collect() }
    }

    /// Says it, and gives the exit code.
    pub(super) fn print(&self, json: bool) -> Result<ExitCode, Failure> {
        let identical = self.verdict == Verdict::Over && self.exits.is_empty();
        if json {
            print_json(&self.json(identical))?;
        } else if identical {
            print(&format!("replayed {} events, identical", self.events))?;
        } else {
            print(&self.text())?;
        }
        Ok(if identical { ExitCode::SUCCESS } else { ExitCode::from(3) })
    }

    fn text(&self) -> String {
        if self.verdict != Verdict::Over {
            return self.verdict.to_string().lines().map(one_line).collect::<Vec<_>>().join("\n");
        }
        let mut text = format!("replayed {} events, but", self.events);
        for (name, (then, now)) in &self.exits {
            let now = now
                .map_or_else(|| "did not exit".to_owned(), |now| format!("exited with code {now}"));
            text += &format!(" {name} {now}, and exited with {then} when recorded;");
        }
        text.trim_end_matches(';').to_owned()
    }

    fn json(&self, identical: bool) -> Json<'_> {
        Json {
            recording: &self.recording,
            events: self.events,
            identical,
            divergence: match &self.verdict {
                Verdict::Diverged(divergence) => Some((&**divergence).into()),
                _ => None,
            },
            stalled: match &self.verdict {
                Verdict::Stalled(missing) => Some(missing.iter().map(Into::into).collect()),
                _ => None,
            },
            other_exits: &self.exits,
        }
    }
}

impl<'a> From<&'a Divergence> for JsonDivergence<'a> {
    fn from(divergence: &'a Divergence) -> Self {
        Self {
            process: &divergence.process,
            number: divergence.number.0,
            control: divergence.control(),
            expected: divergence.expected.as_ref(),
            actual: &divergence.actual,
            recent: divergence.recent.iter().map(|(number, kind)| (number.0, kind)).collect(),
        }
    }
}

impl<'a> From<&'a Missing> for JsonMissing<'a> {
    fn from(missing: &'a Missing) -> Self {
        let next = match &missing.next {
            Awaited::Event(number, kind) => Some((number.0, kind)),
            Awaited::Process | Awaited::End => None,
        };
        Self {
            process: &missing.process,
            has_come: missing.next != Awaited::Process,
            has_ended: missing.is_gone,
            number: next.map(|(number, _)| number),
            expected: next.map(|(_, kind)| kind),
            waits_for: missing.waits_for.as_ref().map(ToString::to_string),
            waiting: missing.waiting.iter().map(|at| &at.kind).collect(),
        }
    }
}
