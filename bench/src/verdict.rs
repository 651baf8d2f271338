//! Whether a goal is met, for people and for programs.

use serde::Serialize;

/// A measured value beside its goal.
#[derive(Serialize)]
pub struct Verdict {
    what: &'static str,
    measured: f64,
    goal: f64,
    #[serde(skip)]
    bound: &'static str,
    pass: bool,
}

/// A value that must not be greater than its goal.
pub fn at_most(what: &'static str, measured: f64, goal: f64) -> Verdict {
    Verdict { what, measured, goal, bound: "at most", pass: measured <= goal }
}

/// A value that must not be smaller than its goal.
pub fn at_least(what: &'static str, measured: f64, goal: f64) -> Verdict {
    Verdict { what, measured, goal, bound: "at least", pass: measured >= goal }
}

/// Prints pass or fail for each; true if all goals are met.
pub fn report(verdicts: &[Verdict], json: bool) -> bool {
    for verdict in verdicts {
        if json {
            print_json(verdict);
        } else {
            let mark = if verdict.pass { "pass" } else { "FAIL" };
            let Verdict { what, measured, goal, bound, .. } = verdict;
            println!("{mark}  {what}: {measured:.2} (goal {bound} {goal})");
        }
    }
    verdicts.iter().all(|verdict| verdict.pass)
}

/// One line of JSON.
pub fn print_json(value: &impl Serialize) {
    println!("{}", serde_json::to_string(value).expect("numbers and names are JSON"));
}
