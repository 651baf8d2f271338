//! What became of all schedules.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::crowd::Crowd;
use super::kinds::Kind;
use super::run::{Release, Run, Trouble, differences};
use super::schedule::Schedule;
use super::{CLOSED_MS, HALF_OPEN_MS, Plan, release_limit_ms};

/// What became of a schedule.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) with: Run,
    pub(super) without: Run,
}

/// What became of those that were played so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    verdicts: BTreeMap<u64, Verdict>,
    kinds: BTreeMap<Kind, Row>,
    skipped: u64,
}

impl Tally {
    pub(super) fn skip(&mut self, schedule: &Schedule, why: &str) {
        self.skipped += 1;
        for act in &schedule.acts {
            let row = self.row(act.kind);
            row.skipped += 1;
            row.why_skipped = Some(why.to_owned());
        }
    }

    pub(super) fn count(&mut self, schedule: &Schedule, verdict: Verdict) {
        for act in &schedule.acts {
            self.row(act.kind).played += 1;
        }
        self.verdicts.insert(schedule.number, verdict);
    }

    fn row(&mut self, kind: Kind) -> &mut Row {
        let empty = Row { kind, played: 0, skipped: 0, why_skipped: None };
        self.kinds.entry(kind).or_insert(empty)
    }
}

/// How often something went wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What.
    pub kind: Kind,
    /// How often.
    pub played: u64,
    /// How often it could not be tried.
    pub skipped: u64,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_skipped: Option<String>,
}

/// How soon those who stood still went on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Releases {
    /// How many.
    pub count: usize,
    /// Half of them within this.
    pub p50_ms: f64,
    /// 99 of 100 within this.
    pub p99_ms: f64,
    /// All of them within this.
    pub max_ms: f64,
    /// What 99 of 100 may take.
    pub limit_ms: u64,
}

impl Releases {
    fn new(mut after_ms: Vec<f64>, limit_ms: u64) -> Self {
        after_ms.sort_by(f64::total_cmp);
        let count = after_ms.len();
        // The smallest that so many do not exceed.
        let of = |percent: usize| {
            let nth = (count * percent).div_ceil(100).saturating_sub(1);
            after_ms.get(nth).map_or(0.0, |ms| (ms * 10.0).round() / 10.0)
        };
        Self { count, p50_ms: of(50), p99_ms: of(99), max_ms: of(100), limit_ms }
    }

    fn is_well(&self) -> bool {
        self.p99_ms <= self.limit_ms as f64
    }
}

/// Something that must not be.
#[derive(Clone, Debug, Serialize)]
pub struct Violation {
    /// In which schedule; none if in none of them alone.
    pub schedule: Option<u64>,
    /// What.
    pub what: String,
    /// The command that plays it again.
    pub again: String,
}

/// What became of everything.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What the schedules follow from.
    pub seed: u64,
    /// How many were asked for.
    pub schedules: usize,
    /// How many were played, twice each.
    pub played: usize,
    /// How many could not be.
    pub skipped: u64,
    /// How long all of it took.
    pub seconds: u64,
    /// How many processes were debugged.
    pub programs: u64,
    /// How many of them, or of their calls, came to no end.
    pub hung_programs: usize,
    /// How many calls were compared.
    pub calls: usize,
    /// How many ended in another way than without a debugger.
    pub failed_differently: usize,
    /// How many events were said to be on the disk.
    pub durable_promised: u64,
    /// How many promises of that were not kept.
    pub durable_lost: usize,
    /// After a connection was closed.
    pub release_after_close: Releases,
    /// After nothing was heard any more.
    pub release_after_silence: Releases,
    /// What went wrong, and how often.
    pub faults: Vec<Row>,
    /// Very many satellites at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crowd: Option<Crowd>,
    /// What must not be.
    pub violations: Vec<Violation>,
    /// Whether all is as it must be.
    pub is_well: bool,
}

impl Report {
    pub(super) fn new(
        plan: &Plan,
        tally: Tally,
        crowd: Option<Result<Crowd, Trouble>>,
        took: Duration,
    ) -> Self {
        let verdicts = &tally.verdicts;
        let mut violations = Vec::new();
        for (number, verdict) in verdicts {
            let again = again(plan.seed, *number);
            violations.extend(wrong(verdict).into_iter().map(|what| Violation {
                schedule: Some(*number),
                what,
                again: again.clone(),
            }));
        }
        let mut everywhere = |what: String| {
            let again = format!("faults --seed {}", plan.seed);
            violations.push(Violation { schedule: None, what, again });
        };
        let after = |limit_ms: u64| {
            let of_it = |release: &&Release| release_limit_ms(release.kind) == limit_ms;
            let all = verdicts.values().flat_map(|verdict| &verdict.with.releases);
            Releases::new(all.filter(of_it).map(|release| release.after_ms).collect(), limit_ms)
        };
        let (closed, silent) = (after(CLOSED_MS), after(HALF_OPEN_MS));
        for (releases, what) in [(&closed, "a close"), (&silent, "silence")] {
            if !releases.is_well() {
                let Releases { p99_ms, limit_ms, .. } = releases;
                everywhere(format!("1 of 100 stood for {p99_ms} ms after {what}, not {limit_ms}"));
            }
        }
        let crowd = match crowd {
            Some(Ok(crowd)) => {
                if crowd.release_ms > CLOSED_MS as f64 {
                    everywhere(format!("with many satellites: {crowd:?}"));
                }
                Some(crowd)
            }
            Some(Err(trouble)) => {
                everywhere(format!("with many satellites: {trouble:?}"));
                None
            }
            None => None,
        };
        let runs = || verdicts.values().flat_map(|it| [&it.with, &it.without]);
        let with = || verdicts.values().map(|it| &it.with);
        let is_hung = |run: &&Run| matches!(run.trouble, Some(Trouble::Hung(_)));
        let different = |it: &Verdict| differences(&it.with, &it.without).len();
        Self {
            seed: plan.seed,
            schedules: plan.numbers.len(),
            played: verdicts.len(),
            skipped: tally.skipped,
            seconds: took.as_secs(),
            programs: with().map(|run| run.programs).sum(),
            hung_programs: runs().filter(is_hung).count(),
            calls: with().map(|run| run.outcomes.len()).sum(),
            failed_differently: verdicts.values().map(different).sum(),
            durable_promised: with().map(|run| run.promised).sum(),
            durable_lost: with().map(|run| run.lost.len()).sum(),
            release_after_close: closed,
            release_after_silence: silent,
            faults: tally.kinds.into_values().collect(),
            crowd,
            is_well: violations.is_empty() && !verdicts.is_empty(),
            violations,
        }
    }
}

/// What is wrong with a schedule.
fn wrong(verdict: &Verdict) -> Vec<String> {
    let mut found = Vec::new();
    for (run, which) in [(&verdict.with, "with"), (&verdict.without, "without")] {
        match &run.trouble {
            Some(Trouble::Hung(what)) => found.push(format!("hung {which} the debugger: {what}")),
            Some(Trouble::Stage(what)) => {
                found.push(format!("not played to its end {which} the debugger: {what}"));
            }
            None => {}
        }
    }
    // One that was not played to its end has calls that nobody has asked for.
    if found.is_empty() {
        found.extend(differences(&verdict.with, &verdict.without));
    }
    found.extend(verdict.with.lost.iter().map(|what| format!("durable, and lost: {what}")));
    found
}

/// The command that plays one schedule again.
fn again(seed: u64, number: u64) -> String {
    format!("cargo run --release -p ddbx-tests --bin faults -- --seed {seed} --only {number}")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.faults {
            write!(f, "{:<22}{:>5} played", row.kind.to_string(), row.played)?;
            match &row.why_skipped {
                Some(why) => writeln!(f, "{:>5} skipped: {why}", row.skipped)?,
                None => writeln!(f)?,
            }
        }
        let releases =
            [(&self.release_after_close, "a close"), (&self.release_after_silence, "silence")];
        for (Releases { count, p50_ms, p99_ms, max_ms, limit_ms }, what) in releases {
            writeln!(
                f,
                "{count} went on after {what}: half within {p50_ms} ms, 99 of 100 within \
                 {p99_ms} ms (limit {limit_ms} ms), all within {max_ms} ms"
            )?;
        }
        if let Some(Crowd { satellites, attached_ms, release_ms }) = &self.crowd {
            writeln!(
                f,
                "{satellites} satellites at once: all there after {attached_ms} ms; when central \
                 was killed, a held call went on after {release_ms:.1} ms"
            )?;
        }
        for violation in &self.violations {
            writeln!(f, "VIOLATION: {}\n  again: {}", violation.what, violation.again)?;
        }
        writeln!(
            f,
            "{} programs, {} hung; {} calls, {} ended in another way than without a debugger; {} \
             durable events promised, {} promises broken",
            self.programs,
            self.hung_programs,
            self.calls,
            self.failed_differently,
            self.durable_promised,
            self.durable_lost
        )?;
        let verdict = if self.is_well { "well" } else { "NOT WELL" };
        write!(
            f,
            "{verdict}: {} of {} schedules played in {} s, {} skipped (seed {})",
            self.played, self.schedules, self.seconds, self.skipped, self.seed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let all = Releases::new((1..=200).map(f64::from).collect(), 500);
        assert_eq!((all.p50_ms, all.p99_ms, all.max_ms), (100.0, 198.0, 200.0));
        let one = Releases::new(vec![7.0], 5);
        assert_eq!((one.p50_ms, one.p99_ms, one.is_well()), (7.0, 7.0, false));
        assert!(Releases::new(Vec::new(), 5).is_well());
    }

    #[test]
    fn a_schedule_that_was_not_played_to_its_end_is_wrong() {
        let trouble = Some(Trouble::Hung("a does not end".to_owned()));
        let with = Run { trouble, lost: vec!["event 3".to_owned()], ..Run::default() };
        let found = wrong(&Verdict { with, without: Run::default() });
        assert_eq!(found, ["hung with the debugger: a does not end", "durable, and lost: event 3"]);
    }
}
