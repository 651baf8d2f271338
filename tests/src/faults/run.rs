//! What became of one run of a schedule.

use std::collections::BTreeMap;

use super::kinds::Kind;

/// What became of a run.
#[derive(Debug, Default)]
pub(super) struct Run {
    /// How each call ended.
    pub(super) outcomes: BTreeMap<String, String>,
    /// How long those who stood still went on standing after a loss.
    pub(super) releases: Vec<Release>,
    /// How many events were said to be on the disk.
    pub(super) promised: u64,
    /// Those that are not.
    pub(super) lost: Vec<String>,
    /// How many processes there were to be debugged.
    pub(super) programs: u64,
    /// What went wrong with it.
    pub(super) trouble: Option<Trouble>,
}

/// Somebody who stood still goes on because something is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) kind: Kind,
    pub(super) after_ms: f64,
}

/// Why a run did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Something of the program hangs.
    Hung(String),
    /// Something else than the program is not as it must be.
    Stage(String),
}

/// Calls that did not end as in the run without a debugger.
pub(super) fn differences(with: &Run, without: &Run) -> Vec<String> {
    let mut found = Vec::new();
    for (call, plain) in &without.outcomes {
        let debugged = with.outcomes.get(call).map_or("nothing", String::as_str);
        if debugged != plain {
            found.push(format!("{call}: {debugged} with the debugger, {plain} without"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(outcomes: &[(&str, &str)]) -> Run {
        let outcomes = outcomes.iter().map(|(call, how)| ((*call).into(), (*how).into()));
        Run { outcomes: outcomes.collect(), ..Run::default() }
    }

    #[test]
    fn a_call_must_end_as_without() {
        let without = run(&[("a", "ok"), ("b", "deadline")]);
        assert!(differences(&run(&[("a", "ok"), ("b", "deadline")]), &without).is_empty());
        let found = differences(&run(&[("a", "deadline"), ("b", "deadline")]), &without);
        assert_eq!(found, ["a: deadline with the debugger, ok without"]);
        // One that should fail must fail, too, and none may be missing.
        assert_eq!(differences(&run(&[("a", "ok"), ("b", "ok")]), &without).len(), 1);
        assert_eq!(differences(&run(&[("a", "ok")]), &without).len(), 1);
    }
}
