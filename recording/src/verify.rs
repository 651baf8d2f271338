//! Whether a recording is whole, and makes sense.
//!
//! All logs are read at once. An event is taken when its departure has been, which is
//! what [`Causality`] judges; if in the end every event has been taken, there is an
//! order of the whole run in which no message arrives before it is sent. When nothing
//! can be taken, one arrival is to blame: its departure is not there, or is later
//! than the arrival itself.
//!
//! Every departure is remembered until the end: this takes some hundred bytes each.

use std::collections::{BTreeMap, BTreeSet};

use ddbx_protocol::{Causality, Event, EventId, EventKind, EventNumber, ProcessName};
use thiserror::Error;

use crate::manifest::ProcessManifest;
use crate::reader::{ReadError, Recording, Tail};

mod stream;

use stream::Stream;

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
}

impl Finding {
    /// Whether something is wrong with the recording.
    pub fn is_wrong(&self) -> bool {
        !matches!(self, Self::DepartureLost { .. })
    }
}

/// Reads a whole recording and checks it: sums, numbers, and that every message was
/// sent before it arrived.
pub fn verify(recording: &Recording) -> Verification {
    let mut check = Check::default();
    let mut streams: Vec<Stream> = Vec::new();
    for log in recording.logs() {
        match streams.last_mut() {
            Some(stream) if stream.process() == &log.manifest().process => stream.add(log.clone()),
            _ => streams.push(Stream::new(log.clone())),
        }
    }
    for stream in &mut streams {
        check.findings.extend(stream.advance());
    }
    let mut all: BTreeMap<ProcessName, Stream> = BTreeMap::new();
    all.extend(streams.into_iter().map(|stream| (stream.process().clone(), stream)));
    loop {
        let mut taken = 0;
        for stream in all.values_mut() {
            taken += check.take_all(stream);
        }
        if taken == 0 && !check.blame_one(&mut all) {
            break;
        }
    }
    let logs = all.into_values().flat_map(Stream::into_summaries).collect();
    Verification { logs, findings: check.findings }
}

#[derive(Default)]
struct Check {
    causality: Causality,
    departures: BTreeMap<EventId, EventKind>,
    /// Departures of which there are several: a process that was started again
    /// counts its events anew.
    ambiguous: BTreeSet<EventId>,
    findings: Vec<Finding>,
}

impl Check {
    /// Takes events of a stream while their departures are there.
    fn take_all(&mut self, stream: &mut Stream) -> u64 {
        let mut taken = 0;
        while let Some(event) = stream.head()
            && self.causality.observe(event).is_ok()
        {
            let event = event.clone();
            if let Some(departure) = event.kind.sent_as()
                && !self.ambiguous.contains(departure)
                && !self.departures.get(departure).is_some_and(|sent| fits(sent, &event.kind))
            {
                let (arrival, departure) = (event.id.clone(), departure.clone());
                self.findings.push(Finding::OtherDeparture { arrival, departure });
            }
            if event.kind.is_departure()
                && self.departures.insert(event.id.clone(), event.kind).is_some()
            {
                self.ambiguous.insert(event.id);
            }
            self.findings.extend(stream.advance());
            taken += 1;
        }
        taken
    }

    /// All streams wait for departures: one that waits in vain is let through, or,
    /// if they wait for each other, any. False if none waits.
    fn blame_one(&mut self, streams: &mut BTreeMap<ProcessName, Stream>) -> bool {
        let mut blamed = None;
        for (process, stream) in streams.iter() {
            let Some((event, sent_as)) =
                stream.head().and_then(|event| Some((event, event.kind.sent_as()?)))
            else {
                continue;
            };
            let (arrival, departure) = (event.id.clone(), sent_as.clone());
            let from = streams.get(&departure.process);
            let is_ahead = from.is_some_and(|from| from.is_before(departure.number));
            if is_ahead && blamed.is_some() {
                continue;
            }
            let finding = if is_ahead {
                Finding::BeforeDeparture { arrival, departure }
            } else if from.is_none_or(|from| from.has_lost(departure.number)) {
                Finding::DepartureLost { arrival, departure }
            } else {
                Finding::NoDeparture { arrival, departure }
            };
            blamed = Some((process.clone(), finding));
            if !is_ahead {
                break;
            }
        }
        let Some((process, finding)) = blamed else {
            return false;
        };
        self.findings.push(finding);
        if let Some(stream) = streams.get_mut(&process) {
            if let Some(event) = stream.head() {
                let kind = without_departure(&event.kind);
                let _ = self.causality.observe(&Event { kind, ..event.clone() });
            }
            self.findings.extend(stream.advance());
        }
        true
    }
}

/// Whether `arrival` is the other end of `departure`.
fn fits(departure: &EventKind, arrival: &EventKind) -> bool {
    use EventKind::{Accepted, CallArrived, CallSent, Connected, ReturnArrived, ReturnSent};
    match (departure, arrival) {
        (CallSent { call: sent, method: asked }, CallArrived { call, method, .. }) => {
            sent == call && asked == method
        }
        (ReturnSent { call: sent }, ReturnArrived { call, .. }) => sent == call,
        (Connected { connection: made }, Accepted { connection, .. }) => made == connection,
        _ => false,
    }
}

/// An event of the same control or connection that waits for nothing, and that nothing
/// waits for.
fn without_departure(kind: &EventKind) -> EventKind {
    match kind.clone() {
        EventKind::CallArrived { call, method, .. } => {
            EventKind::CallArrived { call, method, sent_as: None }
        }
        EventKind::ReturnArrived { call, .. } => EventKind::ReturnArrived { call, sent_as: None },
        EventKind::Accepted { connection, .. } => EventKind::Closed { connection },
        other => other,
    }
}
