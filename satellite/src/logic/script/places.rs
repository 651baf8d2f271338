//! Where in a script each event is: all that are the same in any run are linked in their
//! order, and the first of them is found by what they are. A program that does a million
//! things asks a few million times, so an answer costs no comparison with the rest of the
//! script and no room.

use std::hash::{Hash as _, Hasher};
use std::mem::{Discriminant, discriminant};

use ddbx_protocol::{ControlId, EventKind};

use super::{Place, Step};

/// The places of all events, and which of them nobody has claimed.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The first event of the first kind in each drawer.
    drawers: Vec<Option<Place>>,
    links: Vec<Link>,
    /// What sorts of events there are at all. Every call asks for the end of its deadline, and
    /// in most scripts there is none.
    sorts: Vec<Discriminant<EventKind>>,
}

/// What belongs to an event, and to its kind if it is the first one of that.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The first event of its kind.
    kind: Place,
    /// The next one of its kind that nobody has claimed.
    next: Option<Place>,
    is_claimed: bool,
    /// Of the kind: its first event that nobody has claimed.
    left: Option<Place>,
    /// Of the kind: another one in the same drawer.
    beside: Option<Place>,
}

impl Places {
    /// Of all these events; nobody has claimed any.
    pub(super) fn of(steps: &[Step]) -> Self {
        let drawers = vec![None; steps.len().next_power_of_two()];
        let links = Vec::with_capacity(steps.len());
        let mut places = Self { drawers, links, sorts: Vec::new() };
        // Where the first event of a kind is: the last one so far.
        let mut last: Vec<Place> = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let (place, drawer) = (Place::at(at), places.drawer(&step.kind));
            let kind =
                places.in_drawer(drawer).find(|kind| steps[kind.index()].kind.is_like(&step.kind));
            last.push(place);
            match kind {
                Some(kind) => {
                    let before = std::mem::replace(&mut last[kind.index()], place);
                    places.links[before.index()].next = Some(place);
                    places.links.push(Link {
                        kind,
                        next: None,
                        is_claimed: false,
                        left: None,
                        beside: None,
                    });
                }
                None => {
                    let sort = discriminant(&step.kind);
                    if !places.sorts.contains(&sort) {
                        places.sorts.push(sort);
                    }
                    let beside = places.drawers[drawer].replace(place);
                    let (kind, left) = (place, Some(place));
                    places.links.push(Link { kind, next: None, is_claimed: false, left, beside });
                }
            }
        }
        places
    }

    /// The kind of an event, if it is one of these.
    pub(super) fn kind(&self, steps: &[Step], kind: &EventKind) -> Option<Place> {
        let is_known = self.sorts.contains(&discriminant(kind));
        let mut all = is_known.then(|| self.all_like(kind)).into_iter().flatten();
        all.find(|place| steps[place.index()].kind.is_like(kind))
    }

    /// The kind of the event at a place.
    pub(super) fn kind_at(&self, place: Place) -> Place {
        self.links[place.index()].kind
    }

    /// The kinds that may be the one of an event: also those that differ only in from whom a
    /// message comes.
    pub(super) fn all_like(&self, kind: &EventKind) -> impl Iterator<Item = Place> {
        self.in_drawer(self.drawer(kind))
    }

    /// The first event of a kind that nobody has claimed.
    pub(super) fn left(&self, kind: Place) -> Option<Place> {
        self.links[kind.index()].left
    }

    /// Whether nobody has claimed this one.
    pub(super) fn is_left(&self, place: Place) -> bool {
        !self.links[place.index()].is_claimed
    }

    /// Claims it.
    pub(super) fn claim(&mut self, kind: Place) -> Option<Place> {
        let place = self.links[kind.index()].left?;
        self.links[place.index()].is_claimed = true;
        self.links[kind.index()].left = self.links[place.index()].next;
        Some(place)
    }

    /// It can be claimed again, in its place.
    pub(super) fn put_back(&mut self, place: Place) {
        let kind = self.links[place.index()].kind;
        let mut next = self.links[kind.index()].left;
        let mut before = None;
        while let Some(other) = next.filter(|other| *other < place) {
            (before, next) = (Some(other), self.links[other.index()].next);
        }
        self.links[place.index()].is_claimed = false;
        self.links[place.index()].next = next;
        match before {
            Some(before) => self.links[before.index()].next = Some(place),
            None => self.links[kind.index()].left = Some(place),
        }
    }

    fn in_drawer(&self, drawer: usize) -> impl Iterator<Item = Place> {
        let first = self.drawers.get(drawer).copied().flatten();
        std::iter::successors(first, |place| self.links[place.index()].beside)
    }

    /// Where such events are.
    fn drawer(&self, kind: &EventKind) -> usize {
        let mark = Mark::of(kind);
        // The number of drawers is a power of two, and the upper half is mixed best.
        (mark >> 32) as usize & self.drawers.len().wrapping_sub(1)
    }
}

/// A number that is the same for events that are the same in any run: a hash that needs no
/// secret, since what is recorded is not made to collide.
pub(super) struct Mark(u64);

impl Mark {
    fn of(kind: &EventKind) -> u64 {
        let mut mark = Self(0);
        discriminant(kind).hash(&mut mark);
        kind.control().hash(&mut mark);
        kind.path().hash(&mut mark);
        match kind {
            EventKind::Fired { timer: nth, .. } | EventKind::Entered { nth, .. } => {
                nth.hash(&mut mark);
            }
            EventKind::Point { label, .. } => label.hash(&mut mark),
            _ => {}
        }
        mark.finish()
    }

    /// The same for one control.
    pub(super) fn of_control(control: &ControlId) -> u64 {
        let mut mark = Self(0);
        control.hash(&mut mark);
        mark.finish()
    }

    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for Mark {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.add(u64::from_le_bytes(last));
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use ddbx_protocol::{EventNumber, PointLabel};

    use super::*;

    fn point(label: usize) -> EventKind {
        let label = PointLabel::new(format!("point-{label}")).unwrap();
        EventKind::Point { control: ControlId::new("p/main").unwrap(), call: None, label }
    }

    fn places(labels: &[usize]) -> (Vec<Step>, Places) {
        let step = |(at, label): (usize, &usize)| Step {
            number: EventNumber(at as u64 + 1),
            kind: point(*label),
            took: std::time::Duration::ZERO,
            is_done: false,
        };
        let steps: Vec<_> = labels.iter().enumerate().map(step).collect();
        let places = Places::of(&steps);
        (steps, places)
    }

    #[test]
    fn events_of_a_kind_are_claimed_in_their_order_and_can_be_put_back() {
        let (steps, mut places) = places(&[1, 2, 1, 1, 2]);
        let [one, two] = [1, 2].map(|label| places.kind(&steps, &point(label)).unwrap());
        assert_eq!(places.kind(&steps, &point(3)), None);
        let mut claim = |kind| places.claim(kind).map(|place| place.index());
        assert_eq!(
            [claim(one), claim(one), claim(one), claim(one)],
            [Some(0), Some(2), Some(3), None]
        );
        assert_eq!(claim(two), Some(1));
        for place in [2, 0, 3] {
            places.put_back(Place::at(place));
        }
        let mut claim = |kind| places.claim(kind).map(|place| place.index());
        assert_eq!(
            [claim(one), claim(one), claim(one), claim(one)],
            [Some(0), Some(2), Some(3), None]
        );
        assert_eq!([claim(two), claim(two)], [Some(4), None]);
    }

    /// Otherwise a long script is searched, not looked up.
    #[test]
    fn no_drawer_is_full() {
        let (_, places) = places(&(0..4096).collect::<Vec<_>>());
        let longest = (0..4096).map(|drawer| places.in_drawer(drawer).count()).max();
        assert!(longest <= Some(10), "{longest:?}");
    }
}
