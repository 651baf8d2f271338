//! What has happened in the program.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use ddbx_protocol::{Event, EventKind, ProcessName};

use super::lanes::{Lanes, Place};
use super::table::{Column, Mark, Row, Table};
use super::{Screen, State};
use crate::text::micros_of;

/// How many events of a session are kept.
const EVENTS_MAX: usize = 20_000;

/// The events of how many processes are kept.
const PROCESSES_MAX: usize = 4_096;

/// For how long another one may come before an event that has been heard of.
const EARLY_NANOS: i64 = 400_000_000;

/// How many of them are shown as rows.
const ROWS_MAX: usize = 1_000;

/// An event, and when it was on the clock that all processes share.
#[derive(Clone, Debug)]
pub struct Happened {
    /// What.
    pub event: Event,
    /// In nanoseconds since the session began, or the recording.
    pub at: i64,
    /// Where it is in a diagram.
    pub place: Place,
    /// How long it was held before, in nanoseconds.
    pub stood: i64,
}

impl Happened {
    /// Whether a text is in what is shown of it. There are many to ask: the room for that is
    /// used again.
    fn has(&self, lowercase: &str, room: &mut String) -> bool {
        room.clear();
        // Nothing goes wrong when text is written into memory.
        let _ = write!(
            room,
            "{}\n{}\n{}",
            self.event.id.process, self.event.id.number.0, self.event.kind
        );
        room.make_ascii_lowercase();
        room.contains(lowercase)
    }
}

/// The last of what has happened, in the order of time. Each event has a number of its own
/// here.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    events: VecDeque<Happened>,
    /// Those of a session that others may still come before: processes tell of what they do
    /// now and then, each of them much at once.
    early: BTreeMap<ProcessName, VecDeque<Event>>,
    /// When the first of each process was, and whose it is.
    firsts: BTreeSet<(i64, ProcessName)>,
    early_count: usize,
    heard: u64,
    /// How many had been heard of at some time, and since when that has been all.
    heard_before: (u64, u64),
    first: u64,
    /// How many did not get here, or into the recording.
    pub missed: u64,
    /// What is to be added to the clock of a process.
    offsets: BTreeMap<ProcessName, i64>,
    lanes: Lanes,
    is_whole: bool,
}

impl EventLog {
    /// One that keeps all, for recordings.
    pub fn whole() -> Self {
        Self { is_whole: true, ..Self::default() }
    }

    /// An event of a session, heard at this time. Clocks of processes have nothing to do
    /// with each other: whose event was heard soonest after it happened says how far they
    /// are apart.
    pub fn push(&mut self, event: Event, heard_ms: u64) {
        if self.offsets.len() >= PROCESSES_MAX && !self.offsets.contains_key(&event.id.process) {
            self.begin_anew();
        }
        let heard = i64::try_from(heard_ms).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        let process = event.id.process.clone();
        let offset = heard.saturating_sub(event.at.as_nanos());
        let known = self.offsets.get(&process).copied();
        self.heard += 1;
        self.early_count += 1;
        self.firsts.remove(&(self.first_at(&process), process.clone()));
        self.offsets.insert(process.clone(), known.unwrap_or(offset).min(offset));
        self.early.entry(process.clone()).or_default().push_back(event);
        self.firsts.insert((self.first_at(&process), process));
        while self.early_count > EVENTS_MAX / 2
            || self.firsts.first().is_some_and(|(at, _)| *at < heard - EARLY_NANOS)
        {
            self.settle_next();
        }
    }

    /// So many processes have come and gone that nobody can look through them: what is known
    /// of them is forgotten, and counted.
    fn begin_anew(&mut self) {
        let forgotten = self.events.len() + self.early_count;
        let missed = self.missed.saturating_add(forgotten as u64);
        *self = Self { first: self.range().end, missed, heard: self.heard, ..Self::default() };
    }

    /// When the first of those of a process was, as far as its clock is known by now.
    fn first_at(&self, process: &ProcessName) -> i64 {
        let first = self.early.get(process).and_then(VecDeque::front);
        let offset = self.offsets.get(process).copied().unwrap_or_default();
        first.map_or(0, |first| first.at.as_nanos().saturating_add(offset))
    }

    /// So late is it by the screen's clock: if nothing more has come for long enough, nothing
    /// comes before what has.
    pub fn settle(&mut self, now_ms: u64) {
        let (heard, since_ms) = self.heard_before;
        if heard != self.heard {
            self.heard_before = (self.heard, now_ms);
        } else if now_ms >= since_ms.saturating_add(EARLY_NANOS.unsigned_abs() / 1_000_000) {
            while self.early_count > 0 {
                self.settle_next();
            }
        }
    }

    /// The earliest is next; but what it follows, if that is here, comes before it.
    fn settle_next(&mut self) {
        let Some((_, earliest)) = self.firsts.first() else { return };
        let mut of = earliest;
        let first = |of: &ProcessName| self.early.get(of).and_then(VecDeque::front);
        // Clocks are read too roughly for it to go round in a circle more than once.
        for _ in 0..self.early.len() {
            let sent_as = first(of).and_then(|first| first.kind.sent_as());
            match sent_as
                .filter(|id| first(&id.process).is_some_and(|first| first.id.number <= id.number))
            {
                Some(id) => of = &id.process,
                None => break,
            }
        }
        let (at, of) = (self.first_at(of), of.clone());
        self.firsts.remove(&(at, of.clone()));
        let Some(event) = self.early.get_mut(&of).and_then(VecDeque::pop_front) else { return };
        if self.early.get(&of).is_some_and(|early| !early.is_empty()) {
            self.firsts.insert((self.first_at(&of), of));
        }
        self.early_count -= 1;
        self.push_at(event, at);
    }

    /// The next event, with a time on the clock that all share; it is not before the last.
    pub fn push_at(&mut self, event: Event, at: i64) {
        if self.events.len() == EVENTS_MAX && !self.is_whole {
            self.first += 1;
            if let Some(old) = self.events.pop_front() {
                self.lanes.forget(&old.event, old.place);
            }
        }
        let at = at.max(self.events.back().map_or(at, |last| last.at));
        let added = self.lanes.push(&event, self.range().end, at);
        let (at, place, stood) = (added.at, added.place, added.stood);
        self.events.push_back(Happened { event, at, place, stood });
    }

    /// The same, by process.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// What there is now, to be looked at while more happens. Nothing of one that is kept
    /// whole: it stays as it is.
    pub fn frozen(&self) -> Option<Self> {
        (!self.is_whole).then(|| Self {
            events: self.events.clone(),
            first: self.first,
            missed: self.missed,
            lanes: self.lanes.frozen(),
            is_whole: true,
            ..Self::default()
        })
    }

    /// The event of a number.
    pub fn get(&self, number: u64) -> Option<&Happened> {
        self.events.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The first number, and the one after the last.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.events.len() as u64
    }

    /// Those with these numbers.
    pub fn within(
        &self,
        range: std::ops::Range<u64>,
    ) -> impl DoubleEndedIterator<Item = (u64, &Happened)> {
        let all = self.range();
        let (from, to) =
            (range.start.clamp(all.start, all.end), range.end.clamp(all.start, all.end));
        let place = |number: u64| (number - self.first) as usize;
        let events = self.events.range(place(from)..place(to.max(from)));
        events.enumerate().map(move |(at, happened)| (from + at as u64, happened))
    }

    /// The next, or the last, event of the control of this one.
    pub fn of_same_control(&self, number: u64, by: isize) -> Option<u64> {
        let control = self.get(number)?.event.kind.control()?;
        let is_same = |(_, other): &(u64, &Happened)| other.event.kind.control() == Some(control);
        match by > 0 {
            true => self.within(number + 1..u64::MAX).find(is_same),
            false => self.within(0..number).rev().find(is_same),
        }
        .map(|(number, _)| number)
    }

    /// Where a breakpoint would be that stops this event.
    pub fn place(&self, number: u64) -> Option<String> {
        let event = &self.get(number)?.event;
        let process = &event.id.process;
        Some(match &event.kind {
            EventKind::CallSent { method, .. } => format!("{process}:{method}@call"),
            EventKind::CallArrived { method, .. } => format!("{process}:{method}@arrive"),
            EventKind::ReturnSent { call } | EventKind::ReturnArrived { call, .. } => {
                let is_same = |other: &&Happened| other.event.kind.call() == Some(call);
                let mut of_call = self.events.iter().filter(is_same);
                let method = of_call.find_map(|other| other.event.kind.method())?;
                let gate = match event.kind {
                    EventKind::ReturnSent { .. } => "return",
                    _ => "resume",
                };
                format!("{process}:{method}@{gate}")
            }
            EventKind::Point { label, .. } => format!("{process}:point({label})"),
            _ => return None,
        })
    }
}

/// Of the screen of events.
#[derive(Clone, Debug, Default)]
pub struct EventsPane {
    /// What is looked at while more happens; none if the latest is shown.
    stays: Option<Stays>,
}

#[derive(Clone, Debug)]
struct Stays {
    /// What there was; none if it is all there still.
    events: Option<EventLog>,
    /// What comes after this is not shown.
    until: u64,
}

impl EventsPane {
    /// Whether the latest is shown.
    pub fn follows(&self) -> bool {
        self.stays.is_none()
    }

    /// What is shown, if these are all events.
    pub fn log<'a>(&'a self, events: &'a EventLog) -> &'a EventLog {
        self.stays.as_ref().and_then(|stays| stays.events.as_ref()).unwrap_or(events)
    }

    /// Shows the latest, from now on.
    pub(crate) fn follow(&mut self) {
        self.stays = None;
    }

    /// Shows what there is now, while more happens.
    pub(super) fn stay(&mut self, events: &EventLog) {
        if self.follows() {
            self.stays = Some(Stays { events: events.frozen(), until: u64::MAX });
        }
    }

    /// Shows what is before this one, of a recording.
    pub(super) fn show_until(&mut self, until: u64) {
        self.stays = Some(Stays { events: None, until });
    }
}

const COLUMNS: &[Column] = &[
    Column::number("at", 14),
    Column::text("process", 3),
    Column::number("no.", 7),
    Column::text("what", 6),
    Column::text("who", 5),
    Column::number("delay", 12).from(100),
];

/// What the screen shows, the latest first.
pub fn table(state: &State) -> Table {
    let pane = &state.events_pane;
    let until = pane.stays.as_ref().map_or(u64::MAX, |stays| stays.until);
    let filter = state.pane(Screen::Events).filter.to_lowercase();
    let mut text = String::new();
    let has =
        |(_, happened): &(u64, &Happened)| filter.is_empty() || happened.has(&filter, &mut text);
    let rows = pane.log(&state.events).within(0..until).rev().filter(has).take(ROWS_MAX);
    let rows = rows.map(|(number, happened)| {
        let Event { id, delay, kind, .. } = &happened.event;
        let is_late =
            matches!(kind, EventKind::DeadlineExpired { .. } | EventKind::Cancelled { .. });
        let text = kind.to_string();
        let (what, who) = match kind {
            // Whose task it is, is in its name; a verb between two names would be cut out.
            EventKind::Spawned { control, .. } => ("begins", control.as_str()),
            EventKind::Ended { control } => ("ends", control.as_str()),
            _ => text.split_once("  ").unwrap_or((&text, "")),
        };
        Row {
            key: number.to_string(),
            cells: vec![
                micros_of(happened.at).into(),
                (&id.process).into(),
                id.number.0.into(),
                what.into(),
                who.into(),
                micros_of(i64::try_from(delay.length().as_nanos()).unwrap_or(i64::MAX)).into(),
            ],
            mark: if is_late { Mark::Wrong } else { Mark::Plain },
        }
    });
    let empty = match state.is_recording() {
        true => "nothing was recorded",
        false => "nothing has happened since the screen was opened",
    };
    let note = match pane.follows() {
        _ if state.is_recording() => "",
        true => "follows what happens; Space stays here",
        false => "stays here; Space follows what happens",
    };
    Table { columns: COLUMNS, rows: rows.collect(), empty: empty.to_owned(), note }
}
