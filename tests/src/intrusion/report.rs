//! What became of all attempts.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::Plan;
use super::crowd::Crowd;
use super::kinds::{Case, Door, Kind};
use super::other_user::millis;
use super::raw::Outcome;
use super::target::Use;
use super::watcher::Watched;

/// By how much the memory of a session may differ before and after: an attempt that left
/// only a few KiB behind would come to more.
const GROWTH_MAX_KIB: u64 = 2_048;

/// How many of those who got in are described.
const NOTES_MAX: usize = 5;

/// What became of the attempts of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Who tried.
    pub kind: Kind,
    /// Where.
    pub door: Door,
    /// How often.
    pub attempts: usize,
    /// How often it was refused.
    pub refused: usize,
    /// How many bytes it heard that no stranger may hear.
    pub leaked_bytes: usize,
    /// How long the longest of them took.
    pub slowest_ms: u64,
    /// Why none was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// What happened to those who were not refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Default)]
pub(super) struct Tally(BTreeMap<Case, Row>);

impl Tally {
    fn row(&mut self, case: Case) -> &mut Row {
        self.0.entry(case).or_insert_with(|| Row {
            kind: case.kind,
            door: case.door,
            attempts: 0,
            refused: 0,
            leaked_bytes: 0,
            slowest_ms: 0,
            skipped: None,
            notes: Vec::new(),
        })
    }

    pub(super) fn count(&mut self, case: Case, outcome: Outcome) {
        let row = self.row(case);
        row.attempts += 1;
        row.refused += usize::from(outcome.refused);
        row.leaked_bytes += outcome.leaked;
        row.slowest_ms = row.slowest_ms.max(millis(outcome.took));
        if !outcome.refused && row.notes.len() < NOTES_MAX {
            row.notes.push(outcome.note);
        }
    }

    pub(super) fn skip(&mut self, case: Case, why: &str) {
        self.row(case).skipped = Some(why.to_owned());
    }

    pub(super) fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// What became of everything.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// With which it can be made again.
    pub seed: u64,
    /// How many attempts were made.
    pub attempts: usize,
    /// How many were refused.
    pub refused: usize,
    /// How many bytes strangers heard that they must not hear.
    pub leaked_bytes: usize,
    /// By kind and door.
    pub kinds: Vec<Row>,
    /// Many who came at once.
    pub crowds: Vec<Crowd>,
    /// What somebody who belongs to the sessions saw meanwhile.
    pub watched: Watched,
    /// What each session needed, after a fifth of all attempts and in the end.
    pub used: Vec<(Use, Use)>,
    /// Whether all is as it must be.
    pub is_well: bool,
}

impl Report {
    pub(super) fn new(
        plan: &Plan,
        tally: Tally,
        crowds: Vec<Crowd>,
        watched: Watched,
        (before, after): (Vec<Use>, Vec<Use>),
    ) -> Self {
        let kinds: Vec<Row> = tally.0.into_values().collect();
        let sum = |of: fn(&Row) -> usize| kinds.iter().map(of).sum::<usize>();
        let (attempts, refused) = (sum(|row| row.attempts), sum(|row| row.refused));
        let leaked_bytes = sum(|row| row.leaked_bytes);
        let used: Vec<(Use, Use)> = before.into_iter().zip(after).collect();
        let grew = |(before, after): &(Use, Use)| {
            after.memory_kib > before.memory_kib + GROWTH_MAX_KIB
                || after.descriptors > before.descriptors
        };
        let is_well = attempts > 0
            && refused == attempts
            && leaked_bytes == 0
            && watched.failures.is_empty()
            && crowds.iter().all(|crowd| crowd.is_bounded)
            && !used.iter().any(grew);
        let seed = plan.seed;
        Self { seed, attempts, refused, leaked_bytes, kinds, crowds, watched, used, is_well }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.kinds {
            let (kind, door) = (format!("{:?}", row.kind), format!("{:?}", row.door));
            write!(f, "{kind:<30} {door:<5}")?;
            match &row.skipped {
                Some(why) => writeln!(f, " skipped: {why}")?,
                None => writeln!(
                    f,
                    "{:>6} attempts {:>6} refused {:>4} bytes leaked {:>6} ms at most",
                    row.attempts, row.refused, row.leaked_bytes, row.slowest_ms
                )?,
            }
            for note in &row.notes {
                writeln!(f, "    not refused: {note}")?;
            }
        }
        for crowd in &self.crowds {
            writeln!(
                f,
                "{} at once who say nothing ({:?}): {} descriptors, others answered in {} ms",
                crowd.strangers, crowd.door, crowd.descriptors, crowd.answered_ms
            )?;
        }
        let Watched { answers, slowest_ms, failures } = &self.watched;
        writeln!(f, "others answered {answers} times meanwhile, in {slowest_ms} ms at most")?;
        for failure in failures {
            writeln!(f, "    not answered: {failure}")?;
        }
        for (door, (before, after)) in ["Unix", "Tcp", "Tls"].iter().zip(&self.used) {
            writeln!(
                f,
                "{door}: {} -> {} KiB, {} -> {} descriptors",
                before.memory_kib, after.memory_kib, before.descriptors, after.descriptors
            )?;
        }
        let verdict = if self.is_well { "well" } else { "NOT WELL" };
        let Self { attempts, refused, leaked_bytes, seed, .. } = self;
        write!(
            f,
            "{verdict}: {refused} of {attempts} refused, {leaked_bytes} bytes leaked (seed {seed})"
        )
    }
}
