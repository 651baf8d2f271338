//! Lines of output that show that a run has failed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use ddbx_protocol::ProcessName;
use regex::Regex;

use crate::text;

/// What Rust prints when a thread panics, with the number of the thread or without.
const PANIC: &str = r"thread '.*' (\(\d+\) )?panicked at ";

/// Looks at every line that is printed, and keeps the first that shows a failure.
///
/// Once processes are asked to end, nothing counts any more: that others are gone
/// then is no surprise.
#[derive(Debug)]
pub struct Alarm {
    patterns: Vec<Regex>,
    is_armed: AtomicBool,
    first: Mutex<Option<FailingLine>>,
}

/// A line that shows a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailingLine {
    /// Who printed it.
    pub process: ProcessName,
    /// As it was printed, without colours.
    pub line: String,
}

impl fmt::Display for FailingLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { process, line } = self;
        write!(f, "{process} printed {:?}", text::one_line(line))
    }
}

impl Alarm {
    /// For lines that match.
    pub fn on(patterns: impl IntoIterator<Item = Regex>) -> Self {
        let patterns = patterns.into_iter().collect();
        Self { patterns, is_armed: AtomicBool::new(true), first: Mutex::default() }
    }

    /// What [`Alarm::on`] needs to hear of panics.
    pub fn panics() -> Regex {
        Regex::new(PANIC).expect("a constant that a test compiles")
    }

    /// The first line that showed a failure.
    pub fn first(&self) -> Option<FailingLine> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn look(&self, process: &ProcessName, line: &str) {
        let is_armed = || self.is_armed.load(Ordering::Relaxed);
        if is_armed() && self.patterns.iter().any(|pattern| pattern.is_match(line)) {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| FailingLine {
                process: process.clone(),
                line: line.to_owned(),
            });
        }
    }

    pub(super) fn disarm(&self) {
        self.is_armed.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_shows_a_failure_is_kept() {
        let alarm = Alarm::on([Alarm::panics(), Regex::new("oversold: [1-9]").unwrap()]);
        let name = ProcessName::new("inventory").unwrap();
        let look = |line: &str| {
            alarm.look(&name, line);
            alarm.first().map(|first| first.line)
        };
        assert_eq!(look("nobody panicked at all"), None);
        assert_eq!(look("oversold: 0"), None);
        let panics = "thread 'main' (4711) panicked at src/main.rs:1:2:";
        assert_eq!(look(panics).as_deref(), Some(panics));
        assert_eq!(look("oversold: 1").as_deref(), Some(panics));
    }

    #[test]
    fn panics_are_recognised_and_what_comes_after_the_end_is_not() {
        let name = ProcessName::new("inventory").unwrap();
        for line in ["thread 'a b' panicked at x.rs", "12:00 thread '<unnamed>' panicked at y"] {
            let alarm = Alarm::on([Alarm::panics()]);
            alarm.look(&name, line);
            assert!(alarm.first().is_some(), "{line}");
            let alarm = Alarm::on([Alarm::panics()]);
            alarm.disarm();
            alarm.look(&name, line);
            assert!(alarm.first().is_none());
        }
    }
}
