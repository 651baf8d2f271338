//! Makes a failing case smaller: drops whatever can be dropped while the same
//! checker still complains.

use super::checkers::{Pair, check};
use super::program::{Op, Program};
use super::scenario::Scenario;

/// How many smaller cases are tried.
const TRIES_MAX: usize = 3_000;

/// The smallest case found on which `checker` complains.
pub fn shrink(program: Program, scenario: Scenario, checker: &str) -> (Program, Scenario) {
    let mut best = (program, scenario);
    let mut tries = 0;
    loop {
        let mut smaller = None;
        for candidate in candidates(&best) {
            tries += 1;
            if tries > TRIES_MAX {
                return best;
            }
            let pair = Pair::run(&candidate.0, &candidate.1);
            if check(&pair).iter().any(|violation| violation.checker == checker) {
                smaller = Some(candidate);
                break;
            }
        }
        match smaller {
            Some(candidate) => best = candidate,
            None => return best,
        }
    }
}

type Case = (Program, Scenario);

/// Everything that is one step smaller, large steps first.
fn candidates((program, scenario): &Case) -> Vec<Case> {
    let without = |change: &dyn Fn(&mut Program, &mut Scenario)| {
        let mut case = (program.clone(), scenario.clone());
        change(&mut case.0, &mut case.1);
        case
    };
    let mut all = Vec::new();
    for root in 0..program.roots.len() {
        all.push(without(&|program, _| {
            program.roots.remove(root);
        }));
    }
    for index in 0..scenario.breakpoints.len() {
        all.push(without(&|_, scenario| {
            scenario.breakpoints.remove(index);
        }));
    }
    for index in 0..scenario.pauses.len() {
        all.push(without(&|_, scenario| {
            scenario.pauses.remove(index);
        }));
    }
    for index in 0..scenario.forces.len() {
        all.push(without(&|_, scenario| {
            scenario.forces.remove(index);
        }));
    }
    // The last fault stays: without any, other checkers are in charge.
    for index in 0..scenario.faults.len().saturating_sub(1) {
        all.push(without(&|_, scenario| {
            scenario.faults.remove(index);
        }));
    }
    let ops: usize = program.scripts().map(|(_, script)| count(script)).sum();
    for op in 0..ops {
        all.push(without(&|program, _| remove_op(program, op)));
    }
    all
}

fn count(script: &[Op]) -> usize {
    script.iter().map(|op| 1 + op.bodies().into_iter().map(|body| count(body)).sum::<usize>()).sum()
}

/// Removes the operation with this number, counted through all scripts.
fn remove_op(program: &mut Program, mut number: usize) {
    let methods = program.processes.iter_mut().flat_map(|process| &mut process.methods);
    let bodies = program.roots.iter_mut().map(|root| &mut root.body);
    for script in methods.chain(bodies) {
        if remove_from(script, &mut number, false) {
            return;
        }
    }
}

/// Counts `number` down through a script; true when it has removed something.
/// The last operation of a side of a race stays: it is what ends the race.
fn remove_from(script: &mut Vec<Op>, number: &mut usize, keep_last: bool) -> bool {
    for place in 0..script.len() {
        if *number == 0 {
            if !(keep_last && place + 1 == script.len()) {
                script.remove(place);
            }
            return true;
        }
        *number -= 1;
        let (race, bodies) = match &mut script[place] {
            Op::First(a, b) => (true, vec![a, b]),
            Op::Both(a, b) => (false, vec![a, b]),
            Op::Locked(_, body) | Op::Spawn(body) => (false, vec![body]),
            _ => (false, Vec::new()),
        };
        for body in bodies {
            if remove_from(body, number, race) {
                return true;
            }
        }
    }
    false
}
