//! The events of one process, one after the other, and what is missing among them.

use std::collections::VecDeque;

use ddbx_protocol::{Event, EventId, EventNumber, ProcessName};

use super::{Finding, LogSummary};
use crate::entry::Entry;
use crate::manifest::Keep;
use crate::reader::{Log, LogReader, Tail};

/// The logs of one process. One that was started again has several.
pub(super) struct Stream {
    process: ProcessName,
    waiting: VecDeque<Log>,
    reader: Option<LogReader>,
    head: Option<Event>,
    summaries: Vec<LogSummary>,
    /// The number before the next one, if that is known.
    last: Option<u64>,
    /// How many entries are said to be missing since then.
    missing: u64,
    /// Numbers that are said to be missing: from, to.
    lost: Vec<(u64, u64)>,
}

impl Stream {
    pub(super) fn new(log: Log) -> Self {
        Self {
            process: log.manifest().process.clone(),
            waiting: VecDeque::from([log]),
            reader: None,
            head: None,
            summaries: Vec::new(),
            last: None,
            missing: 0,
            lost: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, log: Log) {
        self.waiting.push_back(log);
    }

    pub(super) fn process(&self) -> &ProcessName {
        &self.process
    }

    pub(super) fn into_summaries(self) -> Vec<LogSummary> {
        self.summaries
    }

    /// The next event.
    pub(super) fn head(&self) -> Option<&Event> {
        self.head.as_ref()
    }

    /// Whether the event of this number may still come.
    pub(super) fn is_before(&self, number: EventNumber) -> bool {
        self.head.as_ref().is_some_and(|head| head.id.number <= number)
            || self.head.is_some() && !self.waiting.is_empty()
    }

    /// Whether it is no wonder that the event of this number did not come.
    pub(super) fn has_lost(&self, number: EventNumber) -> bool {
        self.lost.iter().any(|(from, to)| (*from..=*to).contains(&number.0))
    }

    /// Goes to the next event.
    pub(super) fn advance(&mut self) -> Vec<Finding> {
        let mut findings = Vec::new();
        self.head = None;
        while self.head.is_none() {
            if self.reader.is_none() {
                let Some(log) = self.waiting.pop_front() else {
                    break;
                };
                match self.begin(&log) {
                    Ok(reader) => self.reader = Some(reader),
                    Err(finding) => findings.push(finding),
                }
            } else if let Err(finding) = self.step(&mut findings) {
                findings.push(finding);
                self.reader = None;
                self.lost.push((self.last.map_or(0, |last| last.saturating_add(1)), u64::MAX));
            }
        }
        findings
    }

    fn begin(&mut self, log: &Log) -> Result<LogReader, Finding> {
        let manifest = log.manifest().clone();
        (self.last, self.missing) = (None, 0);
        if log.keep() == Keep::All {
            self.last = Some(0);
        }
        self.summaries.push(LogSummary {
            manifest,
            events: 0,
            choices: 0,
            gaps: 0,
            missing: 0,
            range: None,
            tail: None,
        });
        log.read().map_err(Finding::Unreadable)
    }

    /// Reads one entry, or finds the end of a log.
    fn step(&mut self, findings: &mut Vec<Finding>) -> Result<(), Finding> {
        let (Some(reader), Some(summary)) = (&mut self.reader, self.summaries.last_mut()) else {
            return Ok(());
        };
        let Some(recorded) = reader.read().map_err(Finding::Unreadable)? else {
            let tail = reader.tail();
            summary.tail = Some(tail);
            if tail != Tail::Closed || self.missing > 0 {
                self.lost.push((self.last.map_or(0, |last| last.saturating_add(1)), u64::MAX));
            }
            self.reader = None;
            return Ok(());
        };
        match recorded.entry {
            Entry::Choice(_) => summary.choices += 1,
            Entry::Gap(gap) => {
                summary.gaps += 1;
                summary.missing = summary.missing.saturating_add(gap.missing);
                self.missing = self.missing.saturating_add(gap.missing);
            }
            Entry::Event(moment) => {
                summary.events += 1;
                let first = summary.range.map_or(moment.number, |(first, _)| first);
                summary.range = Some((first, moment.number));
                let event = moment.of(&self.process);
                findings.extend(self.number(&event.id));
                self.head = Some(event);
            }
        }
        Ok(())
    }

    /// Checks the number of an event.
    fn number(&mut self, event: &EventId) -> Option<Finding> {
        let number = event.number.0;
        let missing = std::mem::take(&mut self.missing);
        let last = self.last.replace(number);
        let Some(after) = last else {
            // The beginning was not kept.
            self.lost.push((0, number.saturating_sub(1)));
            return None;
        };
        let (event, after) = (event.clone(), EventNumber(after));
        match number.checked_sub(after.0) {
            None | Some(0) => Some(Finding::NotRising { event, after }),
            Some(1) => None,
            Some(step) => {
                let is_said = step - 1 <= missing;
                if is_said {
                    self.lost.push((after.0 + 1, number - 1));
                }
                (!is_said).then_some(Finding::Jump { event, after })
            }
        }
    }
}
