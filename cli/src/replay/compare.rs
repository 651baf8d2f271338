//! What a process did again, from what it recorded while it did: the last word of one
//! that has exited.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ddbx_central::logic::replay::Run;
use ddbx_protocol::replay::{Differs, Next, Progress};
use ddbx_protocol::{End, EventKind, EventNumber};
use ddbx_recording::{Entry, Log, Moment, Recording, Tail};

/// How many events are shown of what both have in common.
const RECENT_MAX: usize = 8;

/// How far a process has come that is gone.
pub(super) struct LastWord {
    pub(super) progress: Progress,
    /// Whether there can be no more of it.
    pub(super) is_closed: bool,
}

impl LastWord {
    /// Of a run of the recording; none if it has not begun again.
    pub(super) fn of(recording: &Recording, again: &Path, run: &Run) -> Option<Self> {
        let replayed = Recording::open(again).ok()?;
        let (done, is_closed) = read(log(&replayed, run)?);
        let (recorded, _) = read(log(recording, run)?);
        let done: BTreeMap<EventNumber, EventKind> =
            done.into_iter().map(|event| (event.number, event.kind)).collect();
        let is_done = |event: &Moment| {
            done.get(&event.number).is_some_and(|kind| kind.identity() == event.kind.identity())
        };
        let of = recorded.len() as u64;
        let missing = recorded.iter().position(|event| must_happen(event) && !is_done(event));
        let common = &recorded[..missing.unwrap_or(recorded.len())];
        let differs = common.iter().find_map(|event| {
            let actual = done.get(&event.number)?;
            let (number, expected) = (event.number, event.kind.clone());
            (is_done(event) && actual.sent_as() != expected.sent_as()).then(|| Differs {
                number,
                expected,
                actual: actual.clone(),
            })
        });
        let recent = common.iter().rev().take(RECENT_MAX).rev();
        let next = missing.map(|at| {
            let (number, kind) = (recorded[at].number, recorded[at].kind.clone());
            Next { number, kind, took: Duration::ZERO }
        });
        let progress = Progress {
            done: common.len() as u64,
            of,
            next,
            must_end: false,
            lasted: Duration::ZERO,
            idle: Duration::ZERO,
            waiting: Vec::new(),
            recent: recent.map(|event| (event.number, event.kind.clone())).collect(),
            differs,
        };
        Some(Self { progress, is_closed })
    }
}

/// How many events a recording has that happen again.
pub(super) fn count(recording: &Recording) -> u64 {
    recording.logs().iter().map(|log| read(log).0.len() as u64).sum()
}

fn log<'a>(recording: &'a Recording, run: &Run) -> Option<&'a Log> {
    let (name, start) = run;
    let mut logs = recording.logs().iter();
    logs.find(|log| log.manifest().process == *name && log.manifest().start == *start)
}

/// The events that happen again, and whether there can be no more.
fn read(log: &Log) -> (Vec<Moment>, bool) {
    let Ok(mut reader) = log.read() else { return (Vec::new(), false) };
    let mut events = Vec::new();
    while let Ok(Some(recorded)) = reader.read() {
        // Connections come as they come.
        if let Entry::Event(event) = recorded.entry
            && !event.kind.is_of_connection()
        {
            events.push(event);
        }
    }
    (events, reader.tail() == Tail::Closed)
}

/// A call may be given up by the very end of its process.
fn must_happen(event: &Moment) -> bool {
    !matches!(event.kind, EventKind::Cancelled { end: End::Caller, .. })
}
