//! What happened where: the events of each process in their order, and which of them are
//! the two ends of a message. All that a diagram asks of many events at once is answered
//! from here, without the events themselves.

use std::collections::{HashMap, VecDeque};

use ddbx_protocol::{CallId, ControlId, Event, EventId, EventKind, ProcessName};

/// An event: in which lane, and the how manieth there. Neither changes when old events are
/// forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Its lane.
    pub lane: usize,
    /// Its place there.
    pub nth: u64,
}

/// What kind of event it is, as far as a diagram tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Something leaves.
    Departure,
    /// A call, or a connection, arrives.
    CallArrives,
    /// A return arrives.
    ReturnArrives,
    /// A point.
    Point,
    /// A deadline has passed, or a call was given up.
    Late,
    /// Anything else.
    Other,
}

impl Sort {
    fn of(kind: &EventKind) -> Self {
        match kind {
            EventKind::CallSent { .. }
            | EventKind::ReturnSent { .. }
            | EventKind::Connected { .. } => Self::Departure,
            EventKind::CallArrived { .. } | EventKind::Accepted { .. } => Self::CallArrives,
            EventKind::ReturnArrived { .. } => Self::ReturnArrives,
            EventKind::Point { .. } => Self::Point,
            EventKind::DeadlineExpired { .. } | EventKind::Cancelled { .. } => Self::Late,
            EventKind::Spawned { .. }
            | EventKind::Ended { .. }
            | EventKind::Fired { .. }
            | EventKind::Entered { .. }
            | EventKind::Closed { .. } => Self::Other,
        }
    }

    /// Whether it is the end of a message.
    pub fn is_arrival(self) -> bool {
        matches!(self, Self::CallArrives | Self::ReturnArrives)
    }
}

/// What is kept of an event here.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Its number.
    pub number: u64,
    /// When it was.
    pub at: i64,
    /// What kind of event it is.
    pub sort: Sort,
    /// The other end of the message, if that has been heard of.
    pub other: Option<Place>,
}

/// Somebody stood still before an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Since then.
    pub from: i64,
    /// Until then: that is when the event was.
    pub to: i64,
    /// The number of the event.
    pub number: u64,
}

/// What happened in one process.
#[derive(Clone, Debug)]
pub struct Lane {
    /// Its name.
    pub process: ProcessName,
    slots: VecDeque<Slot>,
    first: u64,
    stretches: VecDeque<Stretch>,
    /// How long the longest of them is.
    longest: i64,
    /// Where deadlines passed and calls were given up.
    late: VecDeque<u64>,
}

impl Lane {
    /// The first place that is kept, and the one after the last.
    pub fn range(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.slots.len() as u64
    }

    /// The event at a place.
    pub fn slot(&self, nth: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(nth.checked_sub(self.first)?).ok()?)
    }

    /// The last event.
    pub fn last(&self) -> Option<&Slot> {
        self.slots.back()
    }

    /// The first place at or after which nothing is before this time.
    pub fn from(&self, at: i64) -> u64 {
        self.first + self.slots.partition_point(|slot| slot.at < at) as u64
    }

    /// The same, where that is not far after `nth`, at which it is earlier.
    pub fn from_near(&self, nth: u64, at: i64) -> u64 {
        let is_before = |nth: u64| self.slot(nth).is_some_and(|slot| slot.at < at);
        let mut step = 1;
        while is_before(nth + step) {
            step *= 2;
        }
        let (mut low, mut high) = (nth + step / 2, (nth + step).min(self.range().end));
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(middle) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// How many events that are kept have a smaller number.
    pub fn before(&self, number: u64) -> u64 {
        self.slots.partition_point(|slot| slot.number < number) as u64
    }

    /// The place of the event that is nearest to this time.
    pub fn nearest(&self, at: i64) -> Option<u64> {
        let after = self.from(at);
        let before = after.checked_sub(1).filter(|nth| self.range().contains(nth));
        let far = |nth: u64| self.slot(nth).map(|slot| slot.at.abs_diff(at));
        match (before, far(after)) {
            (Some(before), Some(late)) if far(before) < Some(late) => Some(before),
            (_, Some(_)) => Some(after),
            (before, None) => before,
        }
    }

    /// Who stood still within these times.
    pub fn stretches(&self, from: i64, to: i64) -> impl Iterator<Item = &Stretch> {
        let first = self.stretches.partition_point(|stretch| stretch.to < from);
        let latest = to.saturating_add(self.longest);
        let may_be = self.stretches.range(first..).take_while(move |stretch| stretch.to <= latest);
        may_be.filter(move |stretch| stretch.from <= to)
    }

    /// Whether a deadline passed, or a call was given up, at one of these places.
    pub fn is_late(&self, range: &std::ops::Range<u64>) -> bool {
        let at = self.late.partition_point(|nth| *nth < range.start);
        self.late.get(at).is_some_and(|nth| range.contains(nth))
    }

    /// The events at these places.
    pub fn slots(&self, range: std::ops::Range<u64>) -> impl Iterator<Item = &Slot> {
        let place = |nth: u64| nth.saturating_sub(self.first).min(self.slots.len() as u64) as usize;
        let (from, to) = (place(range.start), place(range.end));
        self.slots.range(from..to.max(from))
    }
}

/// All lanes, in the order in which their processes were first heard of: who calls is
/// mostly before who is called, so arrows are short.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    lanes: Vec<Lane>,
    by_process: HashMap<ProcessName, usize>,
    known: Known,
}

/// What is needed to add events.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Messages of which one end has been, by the name of their departure.
    departed: HashMap<EventId, End>,
    awaited: HashMap<EventId, End>,
    /// The last event of a control in a lane.
    last: HashMap<(usize, ControlId), End>,
}

/// An end of a message, or an event of a control.
#[derive(Clone, Debug)]
struct End {
    place: Place,
    at: i64,
    delay: u64,
    call: Option<CallId>,
}

/// What an event that was added turned out to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Added {
    pub(super) place: Place,
    pub(super) at: i64,
    /// How long it stood still before, in nanoseconds.
    pub(super) stood: i64,
}

impl Lanes {
    /// All of them.
    pub fn all(&self) -> &[Lane] {
        &self.lanes
    }

    /// Which lane a process has.
    pub fn of(&self, process: &ProcessName) -> Option<usize> {
        self.by_process.get(process).copied()
    }

    /// An event.
    pub fn slot(&self, place: Place) -> Option<&Slot> {
        self.lanes.get(place.lane)?.slot(place.nth)
    }

    /// The time of the latest event.
    pub fn latest(&self) -> Option<i64> {
        self.lanes.iter().filter_map(|lane| Some(lane.last()?.at)).max()
    }

    /// The time of the earliest that is kept.
    pub fn earliest(&self) -> Option<i64> {
        self.lanes.iter().filter_map(|lane| Some(lane.slots.front()?.at)).min()
    }

    /// The same, to which nothing is added any more.
    pub(super) fn frozen(&self) -> Self {
        let (lanes, by_process) = (self.lanes.clone(), self.by_process.clone());
        Self { lanes, by_process, known: Known::default() }
    }

    /// Adds an event. Nothing is before what it follows, also if that is heard of later.
    pub(super) fn push(&mut self, event: &Event, number: u64, at: i64) -> Added {
        let process = &event.id.process;
        let lane = self.of(process).unwrap_or_else(|| {
            self.by_process.insert(process.clone(), self.lanes.len());
            self.lanes.push(Lane {
                process: process.clone(),
                slots: VecDeque::new(),
                first: 0,
                stretches: VecDeque::new(),
                longest: 0,
                late: VecDeque::new(),
            });
            self.lanes.len() - 1
        });
        let place = Place { lane, nth: self.lanes[lane].range().end };
        let call = event.kind.call().cloned();
        let is_same = |end: &&End| end.call == call;
        let sent = event.kind.sent_as().and_then(|id| self.known.departed.get(id)).filter(is_same);
        let awaited = match event.kind.is_departure() {
            true => self.known.awaited.remove(&event.id).filter(|end| end.call == call),
            false => None,
        };
        let mut at = awaited.as_ref().map_or(at, |end| at.min(end.at));
        at = sent.map_or(at, |end| at.max(end.at));
        at = self.lanes[lane].last().map_or(at, |last| at.max(last.at));

        let other = sent.or(awaited.as_ref()).map(|end| end.place);
        let stood = self.stood(event, lane, at, sent);
        let lane = &mut self.lanes[lane];
        let sort = Sort::of(&event.kind);
        lane.slots.push_back(Slot { number, at, sort, other });
        if sort == Sort::Late {
            lane.late.push_back(place.nth);
        }
        if stood > 0 {
            lane.stretches.push_back(Stretch { from: at - stood, to: at, number });
            lane.longest = lane.longest.max(stood);
        }
        if let Some(Slot { other: end, .. }) = other.and_then(|other| self.slot_mut(other)) {
            *end = Some(place);
        }
        let end = End { place, at, delay: event.delay.as_nanos(), call };
        if event.kind.is_departure() {
            self.known.departed.insert(event.id.clone(), end.clone());
        } else if let (None, Some(id)) = (other, event.kind.sent_as()) {
            self.known.awaited.insert(id.clone(), end.clone());
        }
        if let Some(control) = event.kind.control() {
            self.known.last.insert((place.lane, control.clone()), end);
        }
        Added { place, at, stood }
    }

    /// How long an event stood at its gate. Its delay has grown so much since it was sent,
    /// or since the last event of its control in this process. An answer whose departure is
    /// not known may have its delay from elsewhere, so nothing is said of that.
    fn stood(&self, event: &Event, lane: usize, at: i64, sent: Option<&End>) -> i64 {
        let before = match Sort::of(&event.kind).is_arrival() {
            true => sent,
            false => event.kind.control().and_then(|of| self.known.last.get(&(lane, of.clone()))),
        };
        let Some(before) = before else { return 0 };
        let grown = event.delay.as_nanos().saturating_sub(before.delay);
        i64::try_from(grown).unwrap_or(i64::MAX).min(at.saturating_sub(before.at)).max(0)
    }

    fn slot_mut(&mut self, place: Place) -> Option<&mut Slot> {
        let lane = self.lanes.get_mut(place.lane)?;
        lane.slots.get_mut(usize::try_from(place.nth.checked_sub(lane.first)?).ok()?)
    }

    /// Forgets the oldest event of its lane.
    pub(super) fn forget(&mut self, event: &Event, place: Place) {
        let Some(lane) = self.lanes.get_mut(place.lane) else { return };
        let Some(slot) = lane.slots.pop_front() else { return };
        lane.first += 1;
        if lane.late.front() == Some(&place.nth) {
            lane.late.pop_front();
        }
        if lane.stretches.front().is_some_and(|stretch| stretch.number == slot.number) {
            lane.stretches.pop_front();
        }
        let is_it = |end: &End| end.place == place;
        if self.known.departed.get(&event.id).is_some_and(is_it) {
            self.known.departed.remove(&event.id);
        }
        if let Some(id) = event.kind.sent_as()
            && self.known.awaited.get(id).is_some_and(is_it)
        {
            self.known.awaited.remove(id);
        }
        if let Some(control) = event.kind.control() {
            let key = (place.lane, control.clone());
            if self.known.last.get(&key).is_some_and(is_it) {
                self.known.last.remove(&key);
            }
        }
    }

    /// What is before and after an event, of what is kept.
    ///
    /// The events of a process are in one order, so the past of an event has in each lane all
    /// up to some place, and its future all from some place on. Each event is looked at once:
    /// an arrival in the past has its departure there too, and so all before that.
    pub fn relations(&self, of: Place) -> Relations {
        let mut past: Vec<u64> = self.lanes.iter().map(|lane| lane.first).collect();
        let mut seen = past.clone();
        let mut future: Vec<u64> = self.lanes.iter().map(|lane| lane.range().end).collect();
        let mut unseen = future.clone();
        if self.slot(of).is_none() {
            return Relations { of, past, future };
        }
        past[of.lane] = of.nth + 1;
        let mut todo = vec![of.lane];
        while let Some(lane) = todo.pop() {
            let range = seen[lane]..past[lane];
            seen[lane] = seen[lane].max(past[lane]);
            let arrivals = self.lanes[lane].slots(range).filter(|slot| slot.sort.is_arrival());
            for other in arrivals.filter_map(|slot| slot.other) {
                if other.nth >= past[other.lane] {
                    past[other.lane] = other.nth + 1;
                    todo.push(other.lane);
                }
            }
        }
        past[of.lane] = of.nth;
        future[of.lane] = of.nth;
        todo.push(of.lane);
        while let Some(lane) = todo.pop() {
            let range = future[lane]..unseen[lane];
            unseen[lane] = unseen[lane].min(future[lane]);
            let departures = self.lanes[lane].slots(range);
            let departures = departures.filter(|slot| slot.sort == Sort::Departure);
            for other in departures.filter_map(|slot| slot.other) {
                if other.nth < future[other.lane] {
                    future[other.lane] = other.nth;
                    todo.push(other.lane);
                }
            }
        }
        future[of.lane] = of.nth + 1;
        Relations { of, past, future }
    }
}

/// How an event stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It is the same.
    Same,
    /// It may have had a part in it.
    Past,
    /// It may follow from it.
    Future,
    /// Neither could know of the other.
    Beside,
}

/// What is before and after an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relations {
    of: Place,
    /// Of each lane, the first place that is not in the past.
    past: Vec<u64>,
    /// Of each lane, the first place that is in the future.
    future: Vec<u64>,
}

impl Relations {
    /// The event.
    pub fn of(&self) -> Place {
        self.of
    }

    /// How an event stands to it.
    pub fn to(&self, place: Place) -> Relation {
        match place {
            place if place == self.of => Relation::Same,
            Place { lane, nth } if self.past.get(lane).is_some_and(|past| nth < *past) => {
                Relation::Past
            }
            Place { lane, nth } if self.future.get(lane).is_some_and(|from| nth >= *from) => {
                Relation::Future
            }
            _ => Relation::Beside,
        }
    }

    /// How many are before it, after it, and neither.
    pub fn counts(&self, lanes: &Lanes) -> (u64, u64, u64) {
        let (mut past, mut future, mut all) = (0, 0, 0);
        for (nth, lane) in lanes.lanes.iter().enumerate() {
            let range = lane.range();
            past += self.past.get(nth).map_or(0, |to| to.saturating_sub(range.start));
            future += self.future.get(nth).map_or(0, |from| range.end.saturating_sub(*from));
            all += range.end - range.start;
        }
        (past, future, all.saturating_sub(past + future + 1))
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::causality::Causality;
    use ddbx_protocol::{CallPath, Delay, EventNumber, MethodName, RealTime};
    use proptest::prelude::*;

    use super::*;
    use crate::state::events::EventLog;

    fn event(process: usize, number: u64, sent_as: Option<EventId>) -> Event {
        let control = ControlId::new("p0/main").unwrap();
        let call = CallId { control, path: CallPath::root(1) };
        let method = MethodName::new("World.hello").unwrap();
        let kind = match sent_as {
            Some(departure) => EventKind::CallArrived { call, method, sent_as: Some(departure) },
            None => EventKind::CallSent { call, method, content: 0 },
        };
        let process = ProcessName::new(format!("p{process}")).unwrap();
        let id = EventId { process, number: EventNumber(number) };
        Event { id, at: RealTime::default(), delay: Delay::ZERO, kind }
    }

    /// Each event is in a process; some are arrivals of one that was sent before.
    fn events(steps: Vec<(usize, Option<prop::sample::Index>)>) -> Vec<Event> {
        let mut numbers = [0; 5];
        let (mut events, mut flying): (Vec<Event>, Vec<EventId>) = Default::default();
        for (process, arrives) in steps {
            numbers[process] += 1;
            let arrived = arrives.filter(|_| !flying.is_empty());
            let sent = arrived.map(|index| flying.swap_remove(index.index(flying.len())));
            let event = event(process, numbers[process], sent);
            if event.kind.is_departure() {
                flying.push(event.id.clone());
            }
            events.push(event);
        }
        events
    }

    proptest! {
        /// The specification: vector clocks.
        #[test]
        fn past_and_future_are_those_of_vector_clocks(
            steps in prop::collection::vec((0..5usize, any::<Option<prop::sample::Index>>()), 1..120),
            chosen: prop::sample::Index,
        ) {
            let events = events(steps);
            let mut causality = Causality::default();
            let clocks: Vec<_> =
                events.iter().map(|event| causality.observe(event).unwrap().clone()).collect();
            let mut log = EventLog::default();
            events.iter().for_each(|event| log.push_at(event.clone(), 0));
            let chosen = chosen.index(events.len());
            let relations = log.lanes().relations(log.get(chosen as u64).unwrap().place);
            let mut counts = (0, 0, 0);
            for (nth, event) in events.iter().enumerate() {
                let expected = match nth {
                    nth if nth == chosen => Relation::Same,
                    _ if clocks[chosen].includes(&event.id) => Relation::Past,
                    nth if clocks[nth].includes(&events[chosen].id) => Relation::Future,
                    _ => Relation::Beside,
                };
                match expected {
                    Relation::Past => counts.0 += 1,
                    Relation::Future => counts.1 += 1,
                    Relation::Beside => counts.2 += 1,
                    Relation::Same => {}
                }
                let place = log.get(nth as u64).unwrap().place;
                prop_assert_eq!(relations.to(place), expected);
            }
            prop_assert_eq!(relations.counts(log.lanes()), counts);
        }

        /// Whoever is heard first: the ends find each other, and time does not go back.
        #[test]
        fn ends_find_each_other_in_any_order(
            steps in prop::collection::vec((0..5usize, any::<Option<prop::sample::Index>>()), 1..80),
            times in prop::collection::vec(0..1_000i64, 80),
        ) {
            let events = events(steps);
            let mut log = EventLog::default();
            // One process after the other, as if each were heard of only at the end.
            for process in 0..5 {
                let name = format!("p{process}");
                for (event, at) in events.iter().zip(&times) {
                    if event.id.process.as_str() == name {
                        log.push_at(event.clone(), *at);
                    }
                }
            }
            for (_, happened) in log.within(log.range()) {
                let slot = log.lanes().slot(happened.place).unwrap();
                let other = slot.other.and_then(|place| log.lanes().slot(place));
                prop_assert_eq!(happened.event.kind.sent_as().is_some(), slot.sort.is_arrival());
                if let Some(sent_as) = happened.event.kind.sent_as() {
                    let other = log.get(other.unwrap().number).unwrap();
                    prop_assert_eq!(&other.event.id, sent_as);
                }
            }
            for lane in log.lanes().all() {
                for at in [0, 300, 500, 999, 1_001] {
                    let first = lane.slot(0).unwrap();
                    if first.at < at {
                        prop_assert_eq!(lane.from_near(0, at), lane.from(at));
                    }
                }
                let times: Vec<_> = lane.slots(lane.range()).map(|slot| slot.at).collect();
                prop_assert!(times.is_sorted());
            }
        }
    }
}
