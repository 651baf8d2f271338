//! What came of the three runs, and whether it is what ddbx promises.

use std::time::Duration;

use ddbx_shop::TrafficReport;
use serde::Serialize;

use super::debugger::Around;

/// What came of one run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Run {
    /// Orders that customers made.
    pub(super) calls: u64,
    /// Orders whose deadline passed.
    pub(super) deadline_errors: u64,
    /// Leases that ran out; nothing if the registry did not say.
    pub(super) leases_lost: Option<u64>,
    /// For how long inventory was stopped.
    pub(super) held_ms: u64,
    /// Orders that the shop refused.
    pub(super) refused: u64,
    /// Orders that failed in another way.
    pub(super) other_errors: u64,
    /// The longest that an order took.
    pub(super) slowest_ms: u64,
}

impl Run {
    pub(super) fn new(report: TrafficReport, held: Duration) -> Self {
        Self {
            calls: report.calls,
            deadline_errors: report.deadline_errors,
            leases_lost: report.leases_lost,
            held_ms: u64::try_from(held.as_millis()).unwrap_or(u64::MAX),
            refused: report.refused,
            other_errors: report.other_errors,
            slowest_ms: report.slowest_ms,
        }
    }

    /// Orders that were not taken.
    pub(super) fn failed(&self) -> u64 {
        self.deadline_errors + self.refused + self.other_errors
    }

    /// All that went wrong.
    pub(super) fn errors(&self) -> u64 {
        self.failed() + self.leases_lost.unwrap_or_default()
    }
}

/// What the demo has found out; `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) baseline: Run,
    pub(super) with_ddbx: Run,
    pub(super) without_ddbx: Run,
    #[serde(flatten)]
    around: Around,
    /// What is not as it should be; empty as a rule.
    pub(super) wrong: Vec<String>,
}

impl Report {
    pub(super) fn new(
        hold: Duration,
        baseline: Run,
        (with_ddbx, around): (Run, Around),
        without_ddbx: Run,
    ) -> Self {
        let mut wrong = Vec::new();
        let mut expect = |is_so: bool, otherwise: String| {
            if !is_so {
                wrong.push(otherwise);
            }
        };
        expect(
            with_ddbx.errors() <= baseline.errors(),
            format!(
                "{} went wrong while ddbx held inventory, and {} when nobody stopped",
                with_ddbx.errors(),
                baseline.errors()
            ),
        );
        expect(
            u128::from(with_ddbx.held_ms) >= hold.as_millis(),
            format!("ddbx held inventory for {} ms only", with_ddbx.held_ms),
        );
        expect(
            without_ddbx.errors() > baseline.errors(),
            "the same stop without ddbx broke nothing".to_owned(),
        );
        for (name, run) in [("1", &baseline), ("2", &with_ddbx), ("3", &without_ddbx)] {
            expect(run.calls > 0, format!("nobody bought anything in run {name}"));
            let told = run.leases_lost.is_some();
            expect(
                told,
                format!("the registry did not say how many leases were lost in run {name}"),
            );
        }
        Self { baseline, with_ddbx, without_ddbx, around, wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_secs(3);

    fn run(deadline_errors: u64, leases_lost: u64, held_ms: u64) -> Run {
        let report = TrafficReport {
            calls: 100,
            deadline_errors,
            leases_lost: Some(leases_lost),
            ..TrafficReport::default()
        };
        Run::new(report, Duration::from_millis(held_ms))
    }

    fn wrong(baseline: Run, with_ddbx: Run, without_ddbx: Run) -> Vec<String> {
        let around = Around { waited: Vec::new(), went_on: Vec::new(), counted_ms: 0 };
        Report::new(HOLD, baseline, (with_ddbx, around), without_ddbx).wrong
    }

    #[test]
    fn only_what_ddbx_promises_is_right() {
        let nothing: Vec<String> = Vec::new();
        assert_eq!(wrong(run(0, 0, 0), run(0, 0, 3_000), run(9, 1, 3_000)), nothing);
        assert_eq!(wrong(run(1, 0, 0), run(1, 0, 3_000), run(9, 1, 3_000)), nothing);
        for (with_ddbx, without_ddbx) in [
            (run(1, 0, 3_000), run(9, 1, 3_000)),
            (run(0, 1, 3_000), run(9, 1, 3_000)),
            (run(0, 0, 2_999), run(9, 1, 3_000)),
            (run(0, 0, 3_000), run(0, 0, 3_000)),
            (Run { refused: 1, ..run(0, 0, 3_000) }, run(9, 1, 3_000)),
            (Run { other_errors: 1, ..run(0, 0, 3_000) }, run(9, 1, 3_000)),
            (Run { calls: 0, ..run(0, 0, 3_000) }, run(9, 1, 3_000)),
            (Run { leases_lost: None, ..run(0, 0, 3_000) }, run(9, 1, 3_000)),
        ] {
            let wrong = wrong(run(0, 0, 0), with_ddbx, without_ddbx);
            assert_eq!(wrong.len(), 1, "{with_ddbx:?} {without_ddbx:?}: {wrong:?}");
        }
    }
}
