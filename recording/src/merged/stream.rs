//! The entries of one process, one after the other.

use std::collections::VecDeque;
use std::slice;
use std::time::Duration;

use ddbx_protocol::{EventNumber, RealTime};

use super::ahead::{Ahead, End};
use super::{Departure, MergedEntry, Step};
use crate::entry::Entry;
use crate::reader::{Log, Tail};

/// The logs of one process. One that was started again has several.
#[derive(Debug)]
pub(super) struct Stream<'a> {
    /// The entry that comes next.
    pub(super) head: Option<MergedEntry<'a>>,
    /// Logs that are not begun.
    logs: slice::Iter<'a, Log>,
    reader: Option<(&'a Log, Ahead)>,
    /// Whether other threads may read them.
    may_have_threads: bool,
    /// The first event of the log that is read.
    start: Option<RealTime>,
    since_start: Duration,
    /// Where that log begins in the order: where the one before it ends.
    offset: Duration,
    /// Whether something is missing in that log so far.
    lacks: bool,
    /// Whether something is missing in a log before it.
    pub(super) has_lost: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(logs: &'a [Log], may_have_threads: bool) -> Self {
        Self {
            head: None,
            logs: logs.iter(),
            reader: None,
            may_have_threads,
            start: None,
            since_start: Duration::ZERO,
            offset: Duration::ZERO,
            lacks: false,
            has_lost: false,
        }
    }

    /// The place of the next entry by its time.
    pub(super) fn head_at(&self) -> Duration {
        self.offset.saturating_add(self.since_start)
    }

    /// Whether the event of this number may still come.
    pub(super) fn may_have(&self, number: EventNumber) -> bool {
        let Some(head) = &self.head else {
            return false;
        };
        !self.logs.as_slice().is_empty()
            || matches!(&head.entry, Entry::Event(moment) if moment.number <= number)
    }

    /// Goes to the next entry. Logs that end before it are added to `ended`.
    pub(super) fn advance(&mut self, ended: &mut VecDeque<Step<'a>>) {
        self.head = None;
        while self.head.is_none() {
            let Some((log, reader)) = &mut self.reader else {
                let Some(log) = self.logs.next() else {
                    return;
                };
                (self.offset, self.since_start, self.start) =
                    (self.head_at(), Duration::ZERO, None);
                self.has_lost |= std::mem::take(&mut self.lacks);
                match log.read() {
                    Ok(reader) => {
                        self.reader = Some((log, Ahead::new(reader, self.may_have_threads)));
                    }
                    Err(error) => {
                        self.lacks = true;
                        ended.push_back(Step::Broken { log, error });
                    }
                }
                continue;
            };
            let log = *log;
            match reader.next() {
                Ok(recorded) => {
                    match &recorded.entry {
                        Entry::Event(moment) => {
                            self.lacks |= self.start.is_none() && moment.number > EventNumber(1);
                            let start = *self.start.get_or_insert(moment.at);
                            self.since_start = moment.at.since(start);
                        }
                        Entry::Gap(_) => self.lacks = true,
                        Entry::Choice(_) => {}
                    }
                    self.head = Some(MergedEntry {
                        log,
                        position: recorded.position,
                        since_start: self.since_start,
                        entry: recorded.entry,
                        departure: Departure::Before,
                    });
                }
                Err(end) => {
                    let end = ending(log, end);
                    self.lacks |= !matches!(end, Step::End { tail: Tail::Closed, .. });
                    ended.push_back(end);
                    self.reader = None;
                }
            }
        }
    }
}

fn ending(log: &Log, end: End) -> Step<'_> {
    match end {
        Ok(tail) => Step::End { log, tail },
        Err(error) => Step::Broken { log, error },
    }
}
