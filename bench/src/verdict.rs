//! Whether a goal is met, for people and for programs.
//!
//! A value is a *ratio* to something that was measured in the same run, or *absolute*: then
//! it says something of this machine too, unless it is a count. Ratios end with `×`.

use serde::Serialize;

/// A measured value beside its goal.
#[derive(Serialize)]
pub struct Verdict {
    what: String,
    kind: Kind,
    measured: f64,
    /// How much of it may be chance, as the null row says.
    chance: f64,
    goal: Option<f64>,
    #[serde(skip)]
    bound: &'static str,
    pass: bool,
}

/// What a value means elsewhere.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Absolute,
    Ratio,
}

/// A value that must not be greater than its goal.
pub fn at_most(what: impl Into<String>, measured: f64, goal: f64) -> Verdict {
    Verdict { goal: Some(goal), bound: "at most", ..known(what, measured) }.judged()
}

/// A value that must not be smaller than its goal.
pub fn at_least(what: impl Into<String>, measured: f64, goal: f64) -> Verdict {
    Verdict { goal: Some(goal), bound: "at least", ..known(what, measured) }.judged()
}

/// A value that has no goal.
pub fn known(what: impl Into<String>, measured: f64) -> Verdict {
    let (what, kind) = (what.into(), Kind::Absolute);
    Verdict { what, kind, measured, chance: 0.0, goal: None, bound: "", pass: true }
}

impl Verdict {
    /// It passes if so much more would have been within its goal.
    pub fn give_or_take(self, chance: f64) -> Self {
        Self { chance, ..self }.judged()
    }

    /// It is a ratio to something that was measured in the same run.
    pub fn ratio(self) -> Self {
        Self { kind: Kind::Ratio, ..self }
    }

    fn judged(self) -> Self {
        let pass = match (self.goal, self.bound) {
            (None, _) => true,
            (Some(goal), "at least") => self.measured + self.chance >= goal,
            (Some(goal), _) => self.measured - self.chance <= goal,
        };
        Self { pass, ..self }
    }
}

/// Prints pass or fail for each; true if all goals are met.
pub fn report(verdicts: &[Verdict], json: bool) -> bool {
    for verdict in verdicts {
        if json {
            print_json(verdict);
            continue;
        }
        let Verdict { what, kind, measured, chance, goal, bound, pass } = verdict;
        let times = if matches!(kind, Kind::Ratio) { "×" } else { "" };
        let digits = if measured.abs() < 10.0 { 3 } else { 1 };
        let chance = if *chance > 0.0 { format!(" ± {chance:.digits$}") } else { String::new() };
        match goal {
            None => println!("      {what}: {measured:.digits$}{chance}{times}"),
            Some(goal) => {
                let mark = if *pass { "pass" } else { "FAIL" };
                println!(
                    "{mark}  {what}: {measured:.digits$}{chance}{times} (goal {bound} {goal})"
                );
            }
        }
    }
    verdicts.iter().all(|verdict| verdict.pass)
}

/// Says why a goal was not looked at: that is no failure, but nobody shall overlook it.
pub fn skipped(what: &str, why: &str, json: bool) {
    if json {
        print_json(&serde_json::json!({ "what": what, "skipped": why }));
    } else {
        println!("skipped  {what}: {why}");
    }
}

/// One line of JSON.
pub fn print_json(value: &impl Serialize) {
    println!("{}", serde_json::to_string(value).expect("numbers and names are JSON"));
}

#[cfg(test)]
mod tests {
    use super::{at_least, at_most, known};

    #[test]
    fn a_goal_is_met_within_chance() {
        assert!(at_most("µs", 0.5, 0.5).pass && !at_most("µs", 0.6, 0.5).pass);
        assert!(at_least("ratio", 0.97, 0.97).pass && !at_least("ratio", 0.96, 0.97).pass);
        assert!(at_most("µs", 0.6, 0.5).give_or_take(0.2).pass);
        assert!(at_least("ratio", 0.96, 0.97).give_or_take(0.02).pass);
        assert!(!at_least("ratio", 0.9, 0.97).give_or_take(0.02).pass);
        assert!(known("calls/s", f64::NAN).pass, "there is no goal");
    }

    #[test]
    fn what_is_no_number_meets_no_goal() {
        assert!(!at_most("ratio", f64::NAN, 1.0).pass && !at_least("ratio", f64::NAN, 1.0).pass);
    }
}
