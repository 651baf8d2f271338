//! What happened before what, from the events alone.
//!
//! The events of one process are totally ordered, and every arrival names its
//! departure. That is Lamport's happened-before in full, so vector clocks need
//! not travel with the messages: [`Causality`] computes them from any stream
//! of events in which departures come before their arrivals.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::event::Event;
use crate::ids::{EventId, EventNumber, ProcessName};

/// For each process, the last of its events that is in the past. Processes that
/// are not in the past at all are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VectorClock(BTreeMap<ProcessName, EventNumber>);

impl VectorClock {
    /// The last event of `process` that is in the past; 0 for none.
    pub fn last_of(&self, process: &ProcessName) -> EventNumber {
        self.0.get(process).copied().unwrap_or_default()
    }

    /// Whether `event` is in the past of the event that has this clock, or is it.
    pub fn includes(&self, event: &EventId) -> bool {
        event.number <= self.last_of(&event.process)
    }

    /// The processes in the past, with the last event of each.
    pub fn iter(&self) -> impl Iterator<Item = (&ProcessName, EventNumber)> {
        self.0.iter().map(|(process, number)| (process, *number))
    }

    fn raise(&mut self, process: &ProcessName, number: EventNumber) {
        let last = self.0.entry(process.clone()).or_default();
        *last = (*last).max(number);
    }
}

/// An event stream, seen so far.
#[derive(Debug, Default)]
pub struct Causality {
    /// The clock of each process's latest event.
    now: BTreeMap<ProcessName, VectorClock>,
    /// The clocks of departures: each can be named by arrivals still to come.
    departures: BTreeMap<EventId, VectorClock>,
}

impl Causality {
    /// Takes the next event and returns its vector clock. On an error nothing
    /// changes, so a caller that merges streams can try the event again later.
    pub fn observe(&mut self, event: &Event) -> Result<&VectorClock, MissingDeparture> {
        let departure = match event.kind.sent_as() {
            None => None,
            Some(sent_as) => Some(self.departures.get(sent_as).ok_or_else(|| {
                MissingDeparture { arrival: event.id.clone(), departure: sent_as.clone() }
            })?),
        };
        let clock = self.now.entry(event.id.process.clone()).or_default();
        for (process, number) in departure.into_iter().flat_map(VectorClock::iter) {
            clock.raise(process, number);
        }
        clock.raise(&event.id.process, event.id.number);
        if event.kind.is_departure() {
            self.departures.insert(event.id.clone(), clock.clone());
        }
        Ok(clock)
    }
}

/// An arrival whose departure has not been seen.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("event {arrival} arrives from {departure}, which is not there yet")]
pub struct MissingDeparture {
    /// The event that was given.
    pub arrival: EventId,
    /// The event it names.
    pub departure: EventId,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::EventKind;
    use crate::ids::{CallId, CallPath, ControlId, MethodName, PointLabel};
    use crate::time::{Delay, RealTime};

    fn id(process: usize, number: u64) -> EventId {
        EventId {
            process: ProcessName::new(format!("p{process}")).unwrap(),
            number: EventNumber(number),
        }
    }

    fn event(id: EventId, sent_as: Option<EventId>) -> Event {
        let control = ControlId::new("p0/main").unwrap();
        let call = CallId { control, path: CallPath::root(1) };
        let method = MethodName::new("World.hello").unwrap();
        let kind = match sent_as {
            Some(departure) => EventKind::CallArrived { call, method, sent_as: Some(departure) },
            None => EventKind::CallSent { call, method, content: 0 },
        };
        Event { id, at: RealTime::default(), delay: Delay::ZERO, kind }
    }

    #[test]
    fn an_arrival_needs_its_departure_and_can_be_tried_again() {
        let mut causality = Causality::default();
        let arrival = event(id(1, 1), Some(id(0, 1)));
        let error = causality.observe(&arrival).unwrap_err();
        assert_eq!(error.to_string(), "event p1:1 arrives from p0:1, which is not there yet");
        causality.observe(&event(id(0, 1), None)).unwrap();
        let clock = causality.observe(&arrival).unwrap();
        assert!(
            clock.includes(&id(0, 1)) && clock.includes(&id(1, 1)) && !clock.includes(&id(1, 2))
        );
    }

    #[test]
    fn a_point_is_no_departure() {
        let mut causality = Causality::default();
        let control = ControlId::new("p0/main").unwrap();
        let label = PointLabel::new("here").unwrap();
        let mut point = event(id(0, 1), None);
        point.kind = EventKind::Point { control, call: None, label };
        causality.observe(&point).unwrap();
        assert!(causality.observe(&event(id(1, 1), Some(id(0, 1)))).is_err());
    }

    proptest! {
        /// Random message patterns: the clock of an event includes exactly what
        /// a search backwards through process order and messages finds.
        #[test]
        fn clocks_are_happened_before(steps in prop::collection::vec((0usize..4, any::<prop::sample::Index>(), any::<bool>()), 1..40)) {
            let mut causality = Causality::default();
            let mut past: BTreeMap<EventId, Vec<EventId>> = BTreeMap::new();
            let mut next = [1u64; 4];
            let mut sent: Vec<EventId> = Vec::new();
            let mut clocks = Vec::new();
            for (process, pick, arrives) in steps {
                let this = id(process, next[process]);
                let from = (arrives && !sent.is_empty()).then(|| sent[pick.index(sent.len())].clone());
                let mut before = vec![this.clone()];
                for direct in from.iter().cloned().chain((next[process] > 1).then(|| id(process, next[process] - 1))) {
                    before.extend(past[&direct].iter().cloned());
                }
                past.insert(this.clone(), before);
                if from.is_none() {
                    sent.push(this.clone());
                }
                clocks.push((this.clone(), causality.observe(&event(this, from)).unwrap().clone()));
                next[process] += 1;
            }
            for (this, clock) in &clocks {
                for other in past.keys() {
                    prop_assert_eq!(clock.includes(other), past[this].contains(other), "{} in past of {}", other, this);
                }
            }
        }
    }
}
