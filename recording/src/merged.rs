//! The whole run in one order: nothing arrives before it was sent, and otherwise
//! entries come by the time since their logs began.
//!
//! All logs are read at once. Of the entries that come next in their logs, those whose
//! departure has been are free; the earliest of them is taken. When none is free, one
//! arrival is to blame: its departure is not there, or is later than the arrival
//! itself. It is taken with that remark, and the rest goes on.
//!
//! A process that was started again counts its events anew, so several departures can
//! have one name; the one that fits is meant. If an earlier start was killed, what it
//! did last may not be there, while the name of it comes again later: it is taken for
//! lost when nothing else goes on.
//!
//! Clocks of two processes are never compared to say what came first, only to have an
//! order that is easy to read. Every departure is remembered until the end: this takes
//! some hundred bytes each.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use ddbx_protocol::{EventId, EventKind, EventNumber, ProcessName};
use foldhash::fast::RandomState;

use crate::entry::{Entry, Payload};
use crate::reader::{Log, Position, ReadError, Recording, Tail};

mod ahead;
mod stream;

use stream::Stream;

/// If there are more logs than this, they are read by one thread.
const THREADS_MAX: usize = 32;

/// What comes next.
#[derive(Debug)]
pub enum Step<'a> {
    /// An entry.
    Entry(MergedEntry<'a>),
    /// A log ends here. If it is not closed, more may have been written or lost.
    End {
        /// Which log.
        log: &'a Log,
        /// How it ends.
        tail: Tail,
    },
    /// A log cannot be read on.
    Broken {
        /// Which log.
        log: &'a Log,
        /// Why.
        error: ReadError,
    },
}

/// An entry in the order of the whole run.
#[derive(Debug)]
pub struct MergedEntry<'a> {
    /// In which log.
    pub log: &'a Log,
    /// Where there.
    pub position: Position,
    /// How long after the first event of that log. What has no time of its own has
    /// that of the event before it.
    pub since_start: Duration,
    /// What.
    pub entry: Entry,
    /// Of an arrival: what is to be said of its departure.
    pub departure: Departure,
}

impl MergedEntry<'_> {
    /// The name of the event, if it is one.
    pub fn event_id(&self) -> Option<EventId> {
        let Entry::Event(moment) = &self.entry else {
            return None;
        };
        Some(EventId { process: self.log.manifest().process.clone(), number: moment.number })
    }

    /// What happened, if it is an event.
    pub fn kind(&self) -> Option<&EventKind> {
        match &self.entry {
            Entry::Event(moment) => Some(&moment.kind),
            Entry::Choice(_) | Entry::Gap(_) => None,
        }
    }

    /// What was said there, if it is an event and that was recorded.
    pub fn payload(&self) -> Option<&Payload> {
        match &self.entry {
            Entry::Event(moment) => moment.payload.as_deref(),
            Entry::Choice(_) | Entry::Gap(_) => None,
        }
    }

    fn sent_as(&self) -> Option<&EventId> {
        self.kind().and_then(EventKind::sent_as)
    }
}

/// Where the departure of an arrival is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Before it, as it should be; or there is none to look for.
    Before,
    /// Before it, but it is the departure of something else.
    Other,
    /// After it, or after something that comes after it.
    Later,
    /// Not in the recording.
    Absent,
}

/// Reads a recording in one order.
pub fn merged(recording: &Recording) -> Merged<'_> {
    let mut merged = Merged {
        streams: Vec::new(),
        by_process: BTreeMap::new(),
        ready: BTreeSet::new(),
        waiting: BTreeMap::new(),
        departures: HashMap::default(),
        departed_again: HashMap::default(),
        ended: VecDeque::new(),
    };
    let may_have_threads = recording.logs().len() <= THREADS_MAX;
    let of_one_process = |a: &Log, b: &Log| a.manifest().process == b.manifest().process;
    for logs in recording.logs().chunk_by(of_one_process) {
        let index = merged.streams.len();
        merged.by_process.extend(logs.first().map(|log| (&log.manifest().process, index)));
        merged.streams.push(Stream::new(logs, may_have_threads));
        merged.advance(index);
    }
    merged
}

/// The name of a departure: of which stream it is, and its number there.
type Origin = (usize, EventNumber);

/// The entries of all logs, and how each log ends.
#[derive(Debug)]
pub struct Merged<'a> {
    streams: Vec<Stream<'a>>,
    by_process: BTreeMap<&'a ProcessName, usize>,
    /// Streams whose next entry can be taken, by its time.
    ready: BTreeSet<(Duration, usize)>,
    /// Streams whose next entry waits for this departure.
    waiting: BTreeMap<EventId, Vec<usize>>,
    /// What has departed. Every message is looked up here: so without the names of processes.
    departures: HashMap<Origin, EventKind, RandomState>,
    /// The same of processes that were started again, with names that come again.
    departed_again: HashMap<Origin, Vec<EventKind>, RandomState>,
    /// How logs ended of which the last entry was taken.
    ended: VecDeque<Step<'a>>,
}

impl<'a> Iterator for Merged<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        if let Some(step) = self.ended.pop_front() {
            return Some(step);
        }
        let (index, blamed) = match self.ready.pop_first() {
            Some((_, index)) => (index, None),
            None => self.blame_one().map(|(index, why)| (index, Some(why)))?,
        };
        let mut entry = self.streams[index].head.take()?;
        entry.departure = blamed.unwrap_or_else(|| self.judge(&entry));
        let departs = match &entry.entry {
            Entry::Event(moment) if moment.kind.is_departure() => entry.event_id(),
            _ => None,
        };
        if let (Some(_), Entry::Event(moment)) = (&departs, &entry.entry) {
            let origin = (index, moment.number);
            if let Some(before) = self.departures.insert(origin, moment.kind.clone()) {
                self.departed_again.entry(origin).or_default().push(before);
            }
        }
        self.advance(index);
        // Whoever waits for it.
        for index in departs.and_then(|id| self.waiting.remove(&id)).unwrap_or_default() {
            self.place(index);
        }
        Some(Step::Entry(entry))
    }
}

impl Merged<'_> {
    /// Whether the departure of this arrival has been. If all has been read, this is
    /// known even of one that was taken without.
    pub(crate) fn has_departed(&self, arrival: &EventKind) -> bool {
        let Some(origin) = arrival.sent_as().and_then(|sent_as| self.origin(sent_as)) else {
            return false;
        };
        let Some(last) = self.departures.get(&origin) else { return false };
        let before = || self.departed_again.get(&origin).into_iter().flatten();
        fits(last, arrival) || before().any(|sent| fits(sent, arrival))
    }

    /// As what a departure is known, if its process has a log.
    fn origin(&self, departure: &EventId) -> Option<Origin> {
        Some((*self.by_process.get(&departure.process)?, departure.number))
    }

    /// Goes to the next entry of a stream.
    fn advance(&mut self, index: usize) {
        self.streams[index].advance(&mut self.ended);
        self.place(index);
    }

    /// The next entry of a stream can be taken, or waits.
    fn place(&mut self, index: usize) {
        let stream = &self.streams[index];
        let Some(head) = &stream.head else {
            return;
        };
        match head.sent_as().filter(|sent_as| self.waits(head, sent_as)) {
            Some(missing) => self.waiting.entry(missing.clone()).or_default().push(index),
            None => _ = self.ready.insert((stream.head_at(), index)),
        }
    }

    /// Whether it waits for a departure that has not been; in vain, perhaps.
    fn waits(&self, entry: &MergedEntry<'_>, sent_as: &EventId) -> bool {
        let has_departed = entry.kind().is_some_and(|arrival| self.has_departed(arrival));
        let is_known =
            || self.origin(sent_as).is_some_and(|origin| self.departures.contains_key(&origin));
        !has_departed && (!is_known() || self.may_come(sent_as))
    }

    fn judge(&self, entry: &MergedEntry<'_>) -> Departure {
        match entry.kind().and_then(|arrival| Some((arrival, arrival.sent_as()?))) {
            Some((arrival, sent_as)) if !self.has_departed(arrival) => {
                if self.may_be_lost(sent_as) { Departure::Absent } else { Departure::Other }
            }
            _ => Departure::Before,
        }
    }

    /// All streams wait for departures: takes one that waits in vain, or, if they wait
    /// for each other, any.
    fn blame_one(&mut self) -> Option<(usize, Departure)> {
        let waiting = self.waiting.iter();
        let each = waiting.filter_map(|(id, streams)| {
            let may_come = (self.may_come(id), !self.may_be_lost(id));
            streams.first().map(|index| (may_come, *index, id))
        });
        let (may_come, index, id) = each.min()?;
        let id = id.clone();
        let others = self.waiting.get_mut(&id)?;
        others.retain(|other| *other != index);
        if others.is_empty() {
            self.waiting.remove(&id);
        }
        Some((index, if may_come == (true, true) { Departure::Later } else { Departure::Absent }))
    }

    /// Whether a departure that has not been may still come.
    fn may_come(&self, departure: &EventId) -> bool {
        self.stream(departure).is_some_and(|stream| stream.may_have(departure.number))
    }

    /// Whether an earlier start of its process may have done it, and has no trace of it.
    fn may_be_lost(&self, departure: &EventId) -> bool {
        self.stream(departure).is_some_and(|stream| stream.has_lost)
    }

    fn stream(&self, departure: &EventId) -> Option<&Stream<'_>> {
        self.by_process.get(&departure.process).map(|index| &self.streams[*index])
    }
}

/// Whether `arrival` is the other end of `departure`.
fn fits(departure: &EventKind, arrival: &EventKind) -> bool {
    use EventKind::{Accepted, CallArrived, CallSent, Connected, ReturnArrived, ReturnSent};
    match (departure, arrival) {
        (CallSent { call: sent, method: asked, .. }, CallArrived { call, method, .. }) => {
            sent == call && asked == method
        }
        (ReturnSent { call: sent }, ReturnArrived { call, .. }) => sent == call,
        (Connected { connection: made }, Accepted { connection, .. }) => made == connection,
        _ => false,
    }
}
