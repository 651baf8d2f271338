//! Walks through the processes of a test, and what becomes of them.

use serde_json::{Value, json};

use crate::process::Process;

/// A process that starts walks.
pub struct Caller(pub Process);

/// What became of a walk.
#[derive(Debug)]
pub struct Outcome {
    pub what: String,
    pub took_ms: u64,
}

/// A walk for [`Caller::walk`] and `--once`: through these processes, each of which
/// works for so many milliseconds.
pub fn walk(name: &str, deadline_ms: u64, steps: &[(&str, u64)]) -> String {
    let step = |&(at, work_ms): &(&str, u64)| json!({ "at": at, "work_ms": work_ms });
    let steps: Vec<Value> = steps.iter().map(step).collect();
    json!({ "name": name, "deadline_ms": deadline_ms, "steps": steps }).to_string()
}

impl Caller {
    /// Starts a walk.
    pub fn walk(&mut self, name: &str, deadline_ms: u64, steps: &[(&str, u64)]) {
        self.0.say(&walk(name, deadline_ms, steps));
    }

    /// Starts a walk and waits until it has gone well: all its connections exist then.
    pub fn warm_up(&mut self, steps: &[&str]) {
        let steps: Vec<_> = steps.iter().map(|at| (*at, 0)).collect();
        self.walk("warm-up", 30_000, &steps);
        assert_eq!(self.outcome("warm-up").what, "ok");
    }

    /// Waits until a walk has ended.
    pub fn outcome(&self, name: &str) -> Outcome {
        let of_it = |line: &str| read(line).is_some_and(|said| said["name"] == name);
        let said = read(&self.0.line(of_it)).unwrap();
        let what = said["outcome"].as_str().unwrap().to_owned();
        Outcome { what, took_ms: said["took_ms"].as_u64().unwrap() }
    }

    /// Whether a walk has ended.
    pub fn has_ended(&self, name: &str) -> bool {
        let of_it = |line: &str| read(line).is_some_and(|said| said["name"] == name);
        self.0.printed().lines().any(of_it)
    }
}

fn read(line: &str) -> Option<Value> {
    serde_json::from_str(line).ok()
}
