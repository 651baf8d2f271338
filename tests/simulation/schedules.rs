//! Enough schedules of every kind to notice what breaks.

use std::ops::Range;

use ddbx_protocol::Mode;
use ddbx_tests::simulation::checkers::Violation;
use ddbx_tests::simulation::generate::Options;
use ddbx_tests::simulation::seeds::run;

#[track_caller]
fn no_violations(seeds: Range<u64>, options: &Options) {
    let tally = run(seeds, options, false, |_| ());
    assert!(tally.holds > tally.schedules / 4, "hardly anything was held: {tally:?}");
    if let Some((seed, violation)) = tally.violations.first() {
        let Violation { checker, what } = violation;
        let (all, again) = (tally.violations.len(), options.command(*seed));
        panic!("seed {seed}: {checker}: {what} ({all} in all)\n{again}");
    }
}

#[test]
fn without_faults() {
    no_violations(0..4_000, &Options::default());
}

#[test]
fn with_faults() {
    no_violations(0..3_000, &Options { faults: true, ..Options::default() });
}

#[test]
fn asking_central_at_every_event() {
    no_violations(0..1_000, &Options { mode: Some(Mode::Ask), ..Options::default() });
}

#[test]
fn with_many_processes() {
    no_violations(0..100, &Options { processes: Some(20), ..Options::default() });
}
