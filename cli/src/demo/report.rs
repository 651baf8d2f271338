//! What came of the three runs, and whether it is what ddbx promises.

use std::time::Duration;

use ddbx_shop::TrafficReport;
use serde::Serialize;

use super::debugger::{Stop, Waited, WentOn};

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
    waited: Vec<Waited>,
    went_on: Vec<WentOn>,
    /// What is not as it should be; empty as a rule.
    pub(super) wrong: Vec<String>,
}

impl Report {
    pub(super) fn new(
        hold: Duration,
        baseline: Run,
        (with_ddbx, stop): (Run, Stop),
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
        let Stop { waited, went_on, .. } = stop;
        Self { baseline, with_ddbx, without_ddbx, waited, went_on, wrong }
    }
}
