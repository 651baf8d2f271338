//! What programs under debug say on standard output: how far each walk has come, and how
//! it ended.

use std::io::Write as _;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// A walk has come somewhere.
    Progress(Progress),
    /// A walk, or something else with a name, has come to its end.
    Outcome(Outcome),
}

/// How far a walk has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// What it does.
    pub moment: Moment,
    /// Which walk.
    pub name: String,
    /// In which process.
    pub at: String,
    /// When: see [`monotonic_nanos`].
    pub nanos: u64,
}

/// What a walk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Its call has arrived, and is being handled.
    Begins,
    /// It waits for an order.
    Awaits,
    /// It has gone past a point.
    Passes,
    /// A call that it made in this process has come back.
    Resumes,
}

/// How something ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What.
    pub name: String,
    /// `ok`, or how it failed.
    pub outcome: String,
}

impl Progress {
    /// A walk has come this far, now.
    pub fn new(moment: Moment, name: &str, at: &str) -> Self {
        Self { moment, name: name.to_owned(), at: at.to_owned(), nanos: monotonic_nanos() }
    }

    /// Says so. That nobody hears it is no reason to fail.
    pub fn print(&self) {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }
}

/// A clock that all processes of a machine share, and that nobody can set.
pub fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds * 1_000_000_000 + nanos
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn lines_are_told_apart() {
        let progress = Progress::new(Moment::Begins, "walk", "a");
        let line: Line = serde_json::from_str(&serde_json::to_string(&progress).unwrap()).unwrap();
        assert_eq!(line, Line::Progress(progress));
        let text = r#"{"name":"walk","outcome":"ok","took_ms":3}"#;
        let outcome = Outcome { name: "walk".to_owned(), outcome: "ok".to_owned() };
        assert_eq!(serde_json::from_str::<Line>(text).unwrap(), Line::Outcome(outcome));
    }
}
