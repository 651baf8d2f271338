//! What must hold for every run: one checker, one file.

mod bounded;
mod clocks;
mod ends;
mod exclusion;
mod failure;
mod latency;
mod newcomers;
mod offline;
mod order;
mod same;
mod silence;
mod timeouts;

use ddbx_protocol::Mode;

use super::program::Program;
use super::scenario::Scenario;
use super::trace::Trace;
use super::world::run;

/// A promise that was not kept.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which checker found it.
    pub checker: &'static str,
    /// What it found.
    pub what: String,
}

/// A run with the debugger, beside the same run without.
pub struct Pair<'a> {
    /// The program.
    pub program: &'a Program,
    /// What happened to it.
    pub scenario: &'a Scenario,
    /// With the debugger.
    pub debugged: Trace,
    /// Without.
    pub undisturbed: Trace,
}

impl<'a> Pair<'a> {
    /// Runs both. Controls from outside start at the same virtual time in both.
    pub fn run(program: &'a Program, scenario: &'a Scenario) -> Self {
        let debugged = run(program, scenario);
        let mut starts = debugged.outside_starts.clone();
        for (index, root) in program.roots.iter().enumerate() {
            starts.entry(index).or_insert(root.starts_at);
        }
        let undisturbed = run(program, &scenario.undisturbed(starts));
        Self { program, scenario, debugged, undisturbed }
    }

    /// The most that a debugger message can take.
    fn latency_max(&self) -> u64 {
        *self.scenario.latency.end()
    }

    /// Whether the debugger must change nothing at all. Ties are nobody's promise,
    /// except in programs made of ties, in which nothing depends on them.
    fn is_exact(&self) -> bool {
        self.latency_max() == 0
            && self.scenario.faults.is_empty()
            && self.scenario.forces.is_empty()
            && !self.connects_late()
            && (self.scenario.grain > 1 || !self.has_ties())
    }

    /// Whether this control comes from outside.
    fn is_outside(&self, control: &str) -> bool {
        let root = control.strip_prefix("root").and_then(|index| index.parse::<usize>().ok());
        root.is_some_and(|root| self.program.roots[root].is_outside)
    }

    /// Whether a connection is made while something may be held: who comes late
    /// may come too late for the order of events elsewhere.
    fn connects_late(&self) -> bool {
        self.program.connects_late || self.program.processes.iter().any(|p| p.joins_at.is_some())
    }

    /// Whether two strands had an event in one process at the same moment: their
    /// order is nobody's promise, and may decide what happens next.
    fn has_ties(&self) -> bool {
        let gated = self.undisturbed.events.iter().filter(|event| event.what.is_gated());
        let mut moments: Vec<_> = gated.map(|e| (e.process, e.clock(), &e.strand)).collect();
        moments.sort();
        moments.windows(2).any(|w| {
            let same = (w[0].0, w[0].1) == (w[1].0, w[1].1);
            same && !w[1].2.starts_with(&**w[0].2)
        })
    }

    /// Whether two strands had an event at the same moment anywhere. One that is
    /// part of the other (a call, its handler, the handler's calls) does not count.
    fn has_ties_anywhere(&self) -> bool {
        let gated = self.undisturbed.events.iter().filter(|event| event.what.is_gated());
        let mut moments: Vec<_> = gated.map(|e| (e.clock(), &e.strand)).collect();
        moments.sort();
        moments.windows(2).any(|w| w[0].0 == w[1].0 && !w[1].1.starts_with(&**w[0].1))
    }
}

/// The control that an event belongs to, by the names that tasks give: "root3"
/// for "root3.2>.1/arrive".
fn control(event: &str) -> &str {
    event.split(['.', '>', '/']).next().unwrap_or_default()
}

/// All that is wrong with a run.
pub fn check(pair: &Pair<'_>) -> Vec<Violation> {
    type Checker = (&'static str, fn(&Pair<'_>) -> Result<(), String>);
    let always: &[Checker] = &[("ends", ends::check), ("steady state", silence::check_steady)];
    let exact: &[Checker] = &[
        ("clocks", clocks::check),
        ("timeouts", timeouts::check),
        ("order", order::check),
        ("exclusion", exclusion::check),
    ];
    let faultless: &[Checker] = &[
        ("bounded", bounded::check),
        ("silence", silence::check),
        ("newcomers", newcomers::check),
    ];
    let mut checkers = always.to_vec();
    if pair.scenario.faults.is_empty() {
        checkers.extend(faultless);
        if pair.is_exact() {
            checkers.extend(exact);
            // A hold that begins at the moment of another's event elsewhere may
            // come just before it or just after: both are right.
            let definite = !pair.has_ties_anywhere();
            if definite && pair.scenario.mode == Mode::Permit {
                checkers.push(("same in both modes", same::check));
            }
            if definite && pair.program.is_plain() {
                checkers.push(("offline", offline::check));
            }
        } else if pair.latency_max() > 0
            && pair.scenario.mode == Mode::Permit
            && pair.scenario.forces.is_empty()
            && !pair.connects_late()
        {
            checkers.push(("latency", latency::check));
        }
    } else {
        checkers.push(("failure", failure::check));
    }
    let run =
        |(checker, check): &Checker| check(pair).err().map(|what| Violation { checker, what });
    checkers.iter().filter_map(run).collect()
}
