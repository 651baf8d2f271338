//! Whether a recording is whole, and makes sense.
//!
//! It is read in one order of the whole run ([`merged`]): if every arrival comes after
//! its departure there, no message arrives before it is sent. Whether a departure that
//! is not there was lost, or was never there, is known when all logs have been read.

use std::collections::BTreeMap;
use std::time::Duration;

use ddbx_protocol::{EventId, EventKind, EventNumber, ProcessName};
use thiserror::Error;

use crate::entry::{Entry, Gap};
use crate::manifest::{Keep, ProcessManifest};
use crate::merged::{Departure, Merged, MergedEntry, Step, merged};
use crate::reader::{Log, ReadError, Recording, Tail};
use crate::seal::Breach;

/// What was found in a recording.
#[derive(Debug, Default)]
pub struct Verification {
    /// What each log holds.
    pub logs: Vec<LogSummary>,
    /// What is remarkable, in the order in which it was found.
    pub findings: Vec<Finding>,
}

impl Verification {
    /// Whether nothing is wrong. What was lost and said to be lost is not wrong.
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(Finding::is_wrong)
    }
}

/// What a log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSummary {
    /// Whose log.
    pub manifest: ProcessManifest,
    /// How many events.
    pub events: u64,
    /// How many results of choices.
    pub choices: u64,
    /// In how many places something is missing.
    pub gaps: u64,
    /// How many entries are missing there.
    pub missing: u64,
    /// The first event and the last one.
    pub range: Option<(EventNumber, EventNumber)>,
    /// How long after the first event the last one came.
    pub lasted: Duration,
    /// How it ends; none if it is damaged.
    pub tail: Option<Tail>,
}

/// Something remarkable about a recording.
#[derive(Debug, Error)]
pub enum Finding {
    /// A log cannot be read to its end.
    #[error(transparent)]
    Unreadable(ReadError),
    /// Events are missing, and no gap says so.
    #[error("{event} comes after number {}, and nothing says what became of those between", after.0)]
    Jump {
        /// The event.
        event: EventId,
        /// The one before it.
        after: EventNumber,
    },
    /// The numbers of events do not rise.
    #[error("{event} comes after number {}", after.0)]
    NotRising {
        /// The event.
        event: EventId,
        /// The one before it.
        after: EventNumber,
    },
    /// An arrival names a departure that is not there, and should be.
    #[error("{arrival} names {departure} as its departure, and there is no such departure")]
    NoDeparture {
        /// The arrival.
        arrival: EventId,
        /// What it names.
        departure: EventId,
    },
    /// An arrival names a departure of something else.
    #[error("{arrival} names {departure} as its departure, which is that of something else")]
    OtherDeparture {
        /// The arrival.
        arrival: EventId,
        /// What it names.
        departure: EventId,
    },
    /// An arrival comes before its departure.
    #[error("{arrival} comes before its departure {departure}")]
    BeforeDeparture {
        /// The arrival.
        arrival: EventId,
        /// What it names.
        departure: EventId,
    },
    /// The departure of an arrival is in a part that was not kept, lost in a gap or
    /// at a torn end, or in a process that did not record.
    #[error("the departure {departure} of {arrival} was not kept")]
    DepartureLost {
        /// The arrival.
        arrival: EventId,
        /// What it names.
        departure: EventId,
    },
    /// Entries are missing, and the log says so.
    #[error(transparent)]
    Gap(LostEntries),
    /// A log does not say that it ends.
    #[error("the log of {process} {}", unfinished(*tail))]
    NotClosed {
        /// Whose log.
        process: ProcessName,
        /// Which of its starts.
        start: u32,
        /// How it ends.
        tail: Tail,
    },
    /// The recording is not what it was when it was finished.
    #[error(transparent)]
    Breach(#[from] Breach),
}

/// Entries that are said to be missing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} missing {} ({})", counted(gap.missing), self.place(), gap.why)]
pub struct LostEntries {
    /// Whose.
    pub process: ProcessName,
    /// After which event; 0 if no event before them is there.
    pub after: EventNumber,
    /// How many, and why.
    pub gap: Gap,
}

impl LostEntries {
    fn place(&self) -> String {
        match self.after {
            EventNumber(0) => format!("at the beginning of {}", self.process),
            after => format!("after {}:{}", self.process, after.0),
        }
    }
}

fn counted(missing: u64) -> String {
    if missing == 1 { "1 entry is".to_owned() } else { format!("{missing} entries are") }
}

fn unfinished(tail: Tail) -> &'static str {
    match tail {
        Tail::Closed => "was closed in good order",
        Tail::Open(_) => "was not closed: its process was killed, or still runs",
        Tail::Torn(_) => {
            "ends in the middle of a block: its process was killed while it wrote, the disk was \
             full, or it writes now"
        }
    }
}

impl Finding {
    /// Whether something is wrong with the recording.
    pub fn is_wrong(&self) -> bool {
        !matches!(self, Self::DepartureLost { .. } | Self::Gap(_) | Self::NotClosed { .. })
    }
}

/// Reads a whole recording and checks it: sums, numbers, that every message was sent
/// before it arrived, and, if it is finished, that it is what it was then.
pub fn verify(recording: &Recording) -> Verification {
    let accounts = recording.logs().iter().map(|log| (key(log), Account::new(log))).collect();
    let mut check = Check { accounts, absent: Vec::new(), findings: Vec::new() };
    let mut steps = merged(recording);
    for step in steps.by_ref() {
        match step {
            Step::Entry(entry) => check.entry(&entry),
            Step::End { log, tail } => check.end(log, tail),
            Step::Broken { log, error } => {
                check.account(log).lose_the_rest();
                check.findings.push(Finding::Unreadable(error));
            }
        }
    }
    check.look_for_absent(&steps);
    if let Some(seal) = recording.seal() {
        check.findings.extend(seal.check(recording.directory()).into_iter().map(Finding::Breach));
    }
    let logs = check.accounts.into_values().map(|account| account.summary).collect();
    Verification { logs, findings: check.findings }
}

type Key<'a> = (&'a ProcessName, u32);

fn key(log: &Log) -> Key<'_> {
    (&log.manifest().process, log.manifest().start)
}

struct Check<'a> {
    accounts: BTreeMap<Key<'a>, Account>,
    /// Arrivals whose departures did not come before them.
    absent: Vec<(EventId, EventKind)>,
    findings: Vec<Finding>,
}

impl<'a> Check<'a> {
    fn account(&mut self, log: &'a Log) -> &mut Account {
        self.accounts.entry(key(log)).or_insert_with(|| Account::new(log))
    }

    fn entry(&mut self, entry: &MergedEntry<'a>) {
        let account = self.account(entry.log);
        let process = &entry.log.manifest().process;
        let moment = match &entry.entry {
            Entry::Choice(_) => return account.summary.choices += 1,
            Entry::Gap(gap) => {
                let after = account.miss(gap.missing);
                let lost = LostEntries { process: process.clone(), after, gap: *gap };
                return self.findings.push(Finding::Gap(lost));
            }
            Entry::Event(moment) => moment,
        };
        let event = EventId { process: process.clone(), number: moment.number };
        let about_number = account.event(&event, entry.since_start);
        self.findings.extend(about_number);
        let Some(departure) = moment.kind.sent_as().cloned() else {
            return;
        };
        match entry.departure {
            Departure::Before => {}
            Departure::Absent => self.absent.push((event, moment.kind.clone())),
            Departure::Other => {
                self.findings.push(Finding::OtherDeparture { arrival: event, departure });
            }
            Departure::Later => {
                self.findings.push(Finding::BeforeDeparture { arrival: event, departure });
            }
        }
    }

    fn end(&mut self, log: &'a Log, tail: Tail) {
        let account = self.account(log);
        account.summary.tail = Some(tail);
        if tail != Tail::Closed || account.missing > 0 {
            account.lose_the_rest();
        }
        if tail != Tail::Closed {
            let ProcessManifest { process, start, .. } = log.manifest().clone();
            self.findings.push(Finding::NotClosed { process, start, tail });
        }
    }

    /// Whether departures that did not come were lost, now that all has been read.
    fn look_for_absent(&mut self, steps: &Merged<'_>) {
        for (arrival, kind) in std::mem::take(&mut self.absent) {
            let Some(departure) = kind.sent_as().cloned() else {
                continue;
            };
            if steps.has_departed(&kind) {
                self.findings.push(Finding::BeforeDeparture { arrival, departure });
                continue;
            }
            let of_sender = (&departure.process, 0)..=(&departure.process, u32::MAX);
            let mut logs = self.accounts.range(of_sender).map(|(_, account)| account).peekable();
            let is_lost =
                logs.peek().is_none() || logs.any(|account| account.has_lost(departure.number));
            self.findings.push(match is_lost {
                true => Finding::DepartureLost { arrival, departure },
                false => Finding::NoDeparture { arrival, departure },
            });
        }
    }
}

/// What is known of a log.
struct Account {
    summary: LogSummary,
    /// The number before the next one, if that is known.
    last: Option<u64>,
    /// How many entries are said to be missing since then.
    missing: u64,
    /// Numbers that are said to be missing: from, to.
    lost: Vec<(u64, u64)>,
}

impl Account {
    fn new(log: &Log) -> Self {
        let summary = LogSummary {
            manifest: log.manifest().clone(),
            events: 0,
            choices: 0,
            gaps: 0,
            missing: 0,
            range: None,
            lasted: Duration::ZERO,
            tail: None,
        };
        let last = (log.keep() == Keep::All).then_some(0);
        Self { summary, last, missing: 0, lost: Vec::new() }
    }

    /// Entries are missing; returns the event before them.
    fn miss(&mut self, missing: u64) -> EventNumber {
        self.summary.gaps += 1;
        self.summary.missing = self.summary.missing.saturating_add(missing);
        self.missing = self.missing.saturating_add(missing);
        EventNumber(self.last.unwrap_or_default())
    }

    /// Counts an event and checks its number.
    fn event(&mut self, event: &EventId, since_start: Duration) -> Option<Finding> {
        let summary = &mut self.summary;
        summary.events += 1;
        summary.range =
            Some((summary.range.map_or(event.number, |(first, _)| first), event.number));
        summary.lasted = since_start;
        let number = event.number.0;
        let missing = std::mem::take(&mut self.missing);
        let Some(after) = self.last.replace(number) else {
            // The beginning was not kept.
            self.lost.push((0, number.saturating_sub(1)));
            return None;
        };
        let (event, after) = (event.clone(), EventNumber(after));
        match number.checked_sub(after.0) {
            None | Some(0) => Some(Finding::NotRising { event, after }),
            Some(1) => None,
            Some(step) if step - 1 <= missing => {
                self.lost.push((after.0 + 1, number - 1));
                None
            }
            Some(_) => Some(Finding::Jump { event, after }),
        }
    }

    fn lose_the_rest(&mut self) {
        self.lost.push((self.last.map_or(0, |last| last.saturating_add(1)), u64::MAX));
    }

    /// Whether it is no wonder that the event of this number did not come.
    fn has_lost(&self, number: EventNumber) -> bool {
        self.lost.iter().any(|(from, to)| (*from..=*to).contains(&number.0))
    }
}
