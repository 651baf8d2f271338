//! Reads a recording for the screen.

use std::collections::HashMap;
use std::path::Path;

use ddbx_protocol::{Delay, Event, EventId, ProcessName};
use ddbx_recording::{
    Departure, Entry, Finding, Log, MergedEntry, OpenError, Recording, Step, Tail, merged,
};

use crate::state::State;
use crate::state::events::EventLog;
use crate::state::recorded::Note;

mod align;

use align::Apart;

/// How many events are read at the most: about half a kilobyte each.
const EVENTS_MAX: usize = 1_000_000;

/// Reads what can be read. What cannot is said in the log.
pub fn load(directory: &Path) -> Result<State, OpenError> {
    let recording = Recording::open(directory)?;
    let mut read = Read::new(&recording);
    for step in merged(&recording) {
        if read.events.len() == EVENTS_MAX {
            read.note(0, format!("only the first {EVENTS_MAX} events are shown: there are more"));
            break;
        }
        read.handle(step);
    }
    let breaches = recording.seal().map(|seal| seal.check(directory)).unwrap_or_default();
    for breach in breaches {
        read.note(0, Finding::Breach(breach).to_string());
    }
    let logs = recording.logs().iter().map(Log::manifest);
    let pids = logs.map(|log| (log.process.to_string(), log.pid)).collect();
    let missed = read.missed;
    let (mut events, notes) = read.aligned();
    events.missed = missed;
    let name = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy();
    Ok(State::of_recording(name.into_owned(), events, notes, pids))
}

/// What has been read so far, in the order of the whole run.
struct Read<'a> {
    logs: HashMap<*const Log, usize>,
    processes: Vec<&'a ProcessName>,
    events: Vec<(usize, Event)>,
    /// In which log, when by its clock, and what.
    notes: Vec<(usize, i64, String)>,
    missed: u64,
    /// Of each log, when the first and the last event were.
    spans: Vec<Option<(i64, i64)>>,
    departures: HashMap<EventId, (usize, i64, Delay)>,
    apart: Apart,
}

impl<'a> Read<'a> {
    fn new(recording: &'a Recording) -> Self {
        let logs = recording.logs();
        Self {
            logs: logs.iter().enumerate().map(|(nth, log)| (log as *const Log, nth)).collect(),
            processes: logs.iter().map(|log| &log.manifest().process).collect(),
            events: Vec::new(),
            notes: Vec::new(),
            missed: 0,
            spans: vec![None; logs.len()],
            departures: HashMap::new(),
            apart: Apart::new(logs.len()),
        }
    }

    fn log(&self, log: &Log) -> usize {
        self.logs.get(&(log as *const Log)).copied().unwrap_or_default()
    }

    fn note(&mut self, log: usize, text: String) {
        let at = self.spans.get(log).copied().flatten().map_or(0, |(_, last)| last);
        self.notes.push((log, at, text));
    }

    fn handle(&mut self, step: Step<'_>) {
        match step {
            Step::Entry(entry) => self.entry(entry),
            Step::End { tail: Tail::Closed, .. } => {}
            Step::End { log, tail } => {
                let (process, start) = (log.manifest().process.clone(), log.manifest().start);
                let text = Finding::NotClosed { process, start, tail }.to_string();
                self.note(self.log(log), text);
            }
            Step::Broken { log, error } => {
                self.missed += 1;
                self.note(self.log(log), error.to_string());
            }
        }
    }

    fn entry(&mut self, entry: MergedEntry<'_>) {
        let log = self.log(entry.log);
        let process = &entry.log.manifest().process;
        match entry.entry {
            Entry::Event(moment) => {
                let event = moment.of(process);
                let at = event.at.as_nanos();
                let span = self.spans[log].get_or_insert((at, at));
                span.1 = span.1.max(at);
                let sent = event.kind.sent_as().filter(|_| entry.departure == Departure::Before);
                if let Some((from, left, delay)) = sent.and_then(|id| self.departures.get(id)) {
                    // It was there before it was held.
                    let held = event.delay.beyond(*delay).as_nanos();
                    let came = at.saturating_sub(i64::try_from(held).unwrap_or(i64::MAX));
                    self.apart.message((*from, *left), (log, came));
                }
                if event.kind.is_departure() {
                    self.departures.insert(event.id.clone(), (log, at, event.delay));
                }
                self.events.push((log, event));
            }
            Entry::Gap(gap) => {
                self.missed += gap.missing;
                let text = format!("{} of {process} are missing here: {}", gap.missing, gap.why);
                self.note(log, text);
            }
            Entry::Choice(_) => {}
        }
    }

    /// All on one clock, in the order of their times.
    fn aligned(mut self) -> (EventLog, Vec<Note>) {
        for next in 1..self.spans.len() {
            // A process that was started again: after it had been before.
            let spans = (self.spans[next - 1], self.spans[next]);
            if let (Some((_, last)), Some((first, _))) = spans
                && self.processes[next - 1] == self.processes[next]
            {
                self.apart.message((next - 1, last), (next, first));
            }
        }
        let firsts: Vec<i64> =
            self.spans.iter().map(|span| span.map_or(0, |(first, _)| first)).collect();
        let offsets = self.apart.offsets(&firsts);
        let mut last: HashMap<ProcessName, i64> = HashMap::new();
        let mut departed: HashMap<EventId, i64> = HashMap::new();
        let mut timed: Vec<(i64, Event)> = Vec::with_capacity(self.events.len());
        for (log, event) in self.events {
            let at = event.at.as_nanos().saturating_add(offsets[log]);
            let sent = event.kind.sent_as().and_then(|id| departed.get(id)).copied();
            let last = last.entry(event.id.process.clone()).or_insert(at);
            let at = at.max(*last).max(sent.unwrap_or(at));
            *last = at;
            if event.kind.is_departure() {
                departed.insert(event.id.clone(), at);
            }
            timed.push((at, event));
        }
        drop(departed);
        // Those of one time stay in the order in which they could be read.
        timed.sort_by_key(|(at, _)| *at);
        // Logs that contradict each other can have put that off.
        let first = timed.first().map_or(0, |(at, _)| *at);
        let mut events = EventLog::whole();
        timed.into_iter().for_each(|(at, event)| events.push_at(event, at.saturating_sub(first)));
        let note = |(log, at, text): (usize, i64, String)| {
            let offset = offsets.get(log).copied().unwrap_or_default();
            Note { at: at.saturating_add(offset).saturating_sub(first).max(0), text }
        };
        (events, self.notes.into_iter().map(note).collect())
    }
}
