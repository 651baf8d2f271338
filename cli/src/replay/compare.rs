//! What a process did again, from what it recorded while it did: the last word of one
//! that has exited.

use std::collections::BTreeMap;
use std::path::Path;

use ddbx_central::logic::replay::Run;
use ddbx_protocol::replay::Next;
use ddbx_protocol::{End, EventKind, EventNumber};
use ddbx_recording::{Entry, Log, Moment, Recording};

/// The first recorded event that did not happen again; none if all did.
pub(super) fn first_missing(recording: &Recording, again: &Path, run: &Run) -> Option<Next> {
    let replayed = Recording::open(again).ok();
    let done: BTreeMap<EventNumber, EventKind> = replayed
        .as_ref()
        .and_then(|replayed| log(replayed, run))
        .map(|log| events(log).map(|event| (event.number, event.kind.identity())).collect())
        .unwrap_or_default();
    let recorded = log(recording, run)?;
    let is_missing = |event: &Moment| done.get(&event.number) != Some(&event.kind.identity());
    let first = events(recorded).filter(|event| must_happen(&event.kind)).find(is_missing)?;
    let (number, kind) = (first.number, first.kind);
    Some(Next { number, kind, took: std::time::Duration::ZERO })
}

/// How many events a recording has that happen again.
pub(super) fn count(recording: &Recording) -> u64 {
    let events = recording.logs().iter().flat_map(events);
    events.filter(|event| !event.kind.is_of_connection()).count() as u64
}

fn log<'a>(recording: &'a Recording, run: &Run) -> Option<&'a Log> {
    let (name, start) = run;
    let mut logs = recording.logs().iter();
    logs.find(|log| log.manifest().process == *name && log.manifest().start == *start)
}

fn events(log: &Log) -> impl Iterator<Item = Moment> + use<> {
    let mut reader = log.read().ok();
    let entries = std::iter::from_fn(move || reader.as_mut()?.read().ok().flatten());
    entries.filter_map(|recorded| match recorded.entry {
        Entry::Event(moment) => Some(moment),
        Entry::Choice(_) | Entry::Gap(_) => None,
    })
}

/// Connections come as they come, and a call may be given up by the very end of its
/// process.
fn must_happen(kind: &EventKind) -> bool {
    !kind.is_of_connection() && !matches!(kind, EventKind::Cancelled { end: End::Caller, .. })
}
