//! How a replay ended, for people and as JSON.

use std::collections::BTreeMap;
use std::process::ExitCode;

use ddbx_central::logic::replay::{Divergence, Missing, Verdict};
use ddbx_protocol::{ControlId, EventKind, ProcessName};
use ddbx_recording::Recording;
use serde::Serialize;

use super::{compare, shown};
use crate::exit::Failure;
use crate::run::supervisor::Exit;
use crate::session::{print, print_json};
use crate::text::one_line;

/// How a replay ended.
pub(super) struct Report {
    recording: String,
    events: u64,
    verdict: Verdict,
    /// Who exited otherwise than it did: then, now.
    exits: BTreeMap<ProcessName, (u8, u8)>,
}

#[derive(Serialize)]
struct Json<'a> {
    recording: &'a str,
    events: u64,
    identical: bool,
    divergence: Option<JsonDivergence<'a>>,
    stalled: Option<Vec<JsonMissing<'a>>>,
    other_exits: &'a BTreeMap<ProcessName, (u8, u8)>,
}

#[derive(Serialize)]
struct JsonDivergence<'a> {
    process: &'a str,
    number: u64,
    control: Option<&'a ControlId>,
    expected: &'a EventKind,
    actual: Option<&'a EventKind>,
    recent: Vec<(u64, &'a EventKind)>,
}

#[derive(Serialize)]
struct JsonMissing<'a> {
    process: &'a str,
    has_ended: bool,
    number: Option<u64>,
    expected: Option<&'a EventKind>,
    waits_for: Option<String>,
    waiting: Vec<&'a EventKind>,
}

impl Report {
    pub(super) fn new(
        verdict: Verdict,
        recording: &Recording,
        exits: &[(ProcessName, Exit)],
    ) -> Self {
        let then = recording.seal().map(|seal| &seal.exits);
        let exits = exits.iter().filter_map(|(name, exit)| {
            let then = *then?.get(name)?;
            (then != exit.code).then(|| (name.clone(), (then, exit.code)))
        });
        Self {
            recording: shown(recording.directory()),
            events: compare::count(recording),
            verdict,
            exits: exits.collect(),
        }
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
            text += &format!(" {name} exited with code {now}, and with {then} when recorded;");
        }
        text.trim_end_matches(';').to_owned()
    }

    fn json(&self, identical: bool) -> Json<'_> {
        Json {
            recording: &self.recording,
            events: self.events,
            identical,
            divergence: match &self.verdict {
                Verdict::Diverged(divergence) => Some(divergence.into()),
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
            control: divergence.expected.control(),
            expected: &divergence.expected,
            actual: divergence.actual.as_ref(),
            recent: divergence.recent.iter().map(|(number, kind)| (number.0, kind)).collect(),
        }
    }
}

impl<'a> From<&'a Missing> for JsonMissing<'a> {
    fn from(missing: &'a Missing) -> Self {
        Self {
            process: &missing.process,
            has_ended: missing.is_gone,
            number: missing.next.as_ref().map(|(number, _)| number.0),
            expected: missing.next.as_ref().map(|(_, kind)| kind),
            waits_for: missing.waits_for.as_ref().map(ToString::to_string),
            waiting: missing.waiting.iter().map(|at| &at.kind).collect(),
        }
    }
}
