//! What a process did when it was recorded, and is to do again.
//!
//! An event waits until it is the next one. Who it is, is in the event itself: its
//! control and its call have the same names in every run. What a control does without
//! waiting, such as giving up a call, is crossed off wherever it stands. When all has
//! happened again the process goes on by itself; or it ends, if it did.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use ddbx_protocol::replay::{Differs, Next};
use ddbx_protocol::{
    CallId, CallPath, ChoiceName, ControlId, End, EventKind, EventNumber, RealTime, Shared,
};
use ddbx_recording::{ChoiceValue, Entry};

mod calls;
mod fates;
mod places;
#[cfg(test)]
mod tests;

use calls::Calls;
use places::{Mark, Places};

/// Where an event stands in the script: a small number, since there are several of them for
/// each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(NonZeroU32);

impl Place {
    /// That of the event with this index. There is no room for more events than have one.
    fn at(index: usize) -> Self {
        Self(u32::try_from(index + 1).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Where an event belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Here.
    At(Place),
    /// Nowhere in what is left: behind the end, or it should not happen.
    Beyond,
    /// Nowhere in all that was recorded.
    Unheard,
    /// The script is over, and the process went on.
    Free,
}

/// A recorded call that is like one that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Like {
    /// Which of its control's.
    pub path: CallPath,
    /// Whether it has the same arguments, and goes over the same connection.
    pub is_same: bool,
}

/// What becomes of calls anywhere in a script, besides their events. Every call is prepared for
/// each of these, and in most scripts there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorts {
    /// Deadlines pass.
    pub expire: bool,
    /// Calls are given up by their callees.
    pub are_given_up: bool,
    /// The same by their callers.
    pub are_left: bool,
}

impl Sorts {
    /// Whether there is any.
    pub fn any(self) -> bool {
        self.expire || self.are_given_up || self.are_left
    }
}

#[derive(Debug)]
struct Step {
    number: EventNumber,
    kind: EventKind,
    /// How long its control had been on the way to it.
    took: Duration,
    is_done: bool,
}

/// The recorded events of a process.
#[derive(Debug, Default)]
pub struct Script {
    steps: Vec<Step>,
    next: usize,
    done: u64,
    /// Where each event still comes that nobody has claimed.
    places: Places,
    /// The calls among them, once one was not what it was counted as: mostly all are.
    calls: Option<Calls>,
    choices: BTreeMap<(ControlId, Option<CallPath>, ChoiceName), VecDeque<ChoiceValue>>,
    /// A control runs on from the last event, and others wait until it stands again:
    /// so what they share inside the process is used in the same order.
    is_running: bool,
    /// Whether the process ended after the last event.
    must_end: bool,
    /// Its calls to which it got no answer.
    unanswered: BTreeSet<CallId>,
    /// Of a process that ended: those of them that others have handled to some end.
    handled: BTreeSet<CallId>,
    /// Its calls that never arrived.
    lost: BTreeSet<CallId>,
    /// Those that others handle which are on their way or being handled.
    abroad: BTreeSet<CallId>,
    lasted: Duration,
    last_number: EventNumber,
    first_difference: Option<Differs>,
}

impl Script {
    /// The script of what was recorded.
    pub fn new(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut script = Self::default();
        // How long something took only says how patient to be: so no names are kept for it.
        let mut seen: BTreeMap<u64, RealTime> = BTreeMap::new();
        let mut last = RealTime::default();
        for entry in entries {
            let moment = match entry {
                Entry::Event(moment) => moment,
                Entry::Choice(choice) => {
                    let key = (choice.control, choice.call, choice.name);
                    script.choices.entry(key).or_default().push_back(choice.value);
                    continue;
                }
                Entry::Gap(_) => continue,
            };
            script.last_number = script.last_number.max(moment.number);
            if moment.kind.is_of_connection() {
                continue;
            }
            let control = moment.kind.control().map(Mark::of_control);
            let before = control.and_then(|control| seen.insert(control, moment.at));
            // Nobody knows when a control set out that has done nothing before.
            let before = before.unwrap_or(last);
            last = last.max(moment.at);
            let took = moment.at.since(before);
            let (number, kind) = (moment.number, moment.kind);
            script.steps.push(Step { number, kind, took, is_done: false });
        }
        script.places = Places::of(&script.steps);
        script.unanswered = script.without_answer().cloned().collect();
        script.lasted = last.since(RealTime::default());
        script.skip();
        script
    }

    /// The same of a process that ended by itself, and of whose calls without an answer others
    /// have handled these to some end.
    pub fn to_the_end(self, handled: BTreeSet<CallId>) -> Self {
        Self { must_end: true, handled, ..self }
    }

    /// The same, in which these calls of the process do not arrive anywhere.
    pub fn without(self, lost: BTreeSet<CallId>) -> Self {
        Self { lost, ..self }
    }

    /// What becomes of calls in it.
    pub fn sorts(&self) -> Sorts {
        use EventKind::{Cancelled, DeadlineExpired};
        let any = |is: fn(&EventKind) -> bool| self.steps.iter().any(|step| is(&step.kind));
        Sorts {
            expire: any(|kind| matches!(kind, DeadlineExpired { .. })),
            are_given_up: any(|kind| matches!(kind, Cancelled { end: End::Callee, .. })),
            are_left: any(|kind| matches!(kind, Cancelled { end: End::Caller, .. })),
        }
    }

    /// An event comes. It keeps the place until it has happened or is put back.
    pub fn claim(&mut self, kind: &EventKind) -> Claim {
        if self.is_free() {
            return Claim::Free;
        }
        let Some(found) = self.find(kind) else { return Claim::Unheard };
        let Some(place) = self.places.claim(found) else { return Claim::Beyond };
        if let Some(calls) = &mut self.calls {
            calls.remove(&self.steps[place.index()].kind, place);
        }
        Claim::At(place)
    }

    /// An event that had this place does not happen now.
    pub fn put_back(&mut self, place: Place) {
        if let Some(calls) = &mut self.calls {
            calls.insert(&self.steps[place.index()].kind, place);
        }
        self.places.put_back(place);
    }

    /// Where an event still comes, first, that nobody has claimed.
    fn left(&self, kind: &EventKind) -> Option<Place> {
        self.places.left(self.find(kind)?)
    }

    /// The kind of an event, if it was recorded. Mostly it is the next one, and that is at
    /// hand.
    fn find(&self, kind: &EventKind) -> Option<Place> {
        match self.steps.get(self.next) {
            Some(next) if next.kind.is_like(kind) => {
                Some(self.places.kind_at(Place::at(self.next)))
            }
            _ => self.places.kind(&self.steps, kind),
        }
    }

    /// Whether the event at this place comes next, now or when nobody runs.
    pub fn is_next(&self, place: Place) -> bool {
        place.index() == self.next
    }

    /// Whether the event at this place may happen.
    pub fn is_turn(&self, place: Place) -> bool {
        place.index() < self.next || self.turn() == Some(place)
    }

    /// Which event may happen now, if it comes.
    pub fn turn(&self) -> Option<Place> {
        let may_be = !self.is_running && !self.is_over() && !self.is_needed();
        may_be.then_some(Place::at(self.next))
    }

    /// Whether others need the process to be there: when it ends they drop what they do
    /// for it, if it has given that up or not. Its last event waits for them, except if they
    /// wait for that.
    fn is_needed(&self) -> bool {
        let is_last = |(at, step): (usize, &Step)| at == self.next || is_past(step);
        let mut left = self.steps.iter().enumerate().skip(self.next);
        !self.abroad.is_empty() && !self.steps[self.next].kind.is_departure() && left.all(is_last)
    }

    /// The event at this place happens, for which it was claimed.
    pub fn happens(&mut self, place: Place, actual: &EventKind) -> EventNumber {
        let step = &self.steps[place.index()];
        let number = step.number;
        // All else has been compared when it was claimed. Arguments may have what is different
        // in every run, such as the time.
        if step.kind.sent_as() != actual.sent_as() {
            self.differs(place, actual);
        }
        self.finish(place);
        self.skip();
        number
    }

    /// The event that has claimed this place turns out to be this one.
    pub fn turns_out(&mut self, place: Place, actual: &EventKind) {
        if !self.steps[place.index()].kind.is_like(actual) {
            self.differs(place, actual);
        }
    }

    fn differs(&mut self, place: Place, actual: &EventKind) {
        let Step { number, kind, .. } = &self.steps[place.index()];
        let (number, expected) = (*number, kind);
        self.first_difference.get_or_insert_with(|| Differs {
            number,
            expected: expected.clone(),
            actual: actual.clone(),
        });
    }

    /// Where an event belongs that does not wait, if anywhere. It happens now.
    pub fn claim_at_once(&mut self, kind: &EventKind) -> Option<Place> {
        match self.claim(kind) {
            Claim::At(place) if !kind.is_of_connection() => Some(place),
            _ => None,
        }
    }

    /// An event happens that was not recorded.
    pub fn happens_beyond(&mut self) -> EventNumber {
        self.last_number = EventNumber(self.last_number.0 + 1);
        self.last_number
    }

    /// A control runs on from an event.
    pub fn runs(&mut self) {
        self.is_running = true;
    }

    /// It stands again.
    pub fn stands(&mut self) {
        self.is_running = false;
    }

    /// Which of its calls a control makes, which it has counted. Calls that are begun in
    /// one `select!` come in the order of dice: then the content tells, or the method.
    pub fn like(&mut self, outer: Option<&CallPath>, counted: &EventKind) -> Option<Like> {
        let EventKind::CallSent { call: CallId { path, .. }, content: wanted, .. } = counted else {
            return None;
        };
        let at = self.left(counted);
        // Mostly it was counted right.
        if at.is_some_and(|at| self.content(at) == Some(*wanted)) && path.is_made_in(outer) {
            return Some(Like { path: path.clone(), is_same: true });
        }
        let calls = self.calls.get_or_insert_with(|| {
            let left = (0..self.steps.len()).map(Place::at).filter(|at| self.places.is_left(*at));
            let mut calls = Calls::default();
            left.for_each(|at| calls.insert(&self.steps[at.index()].kind, at));
            calls
        });
        let place = calls.like(outer, counted, at)?;
        let call = self.steps[place.index()].kind.call()?;
        Some(Like { path: call.path.clone(), is_same: self.content(place) == Some(*wanted) })
    }

    /// What the arguments of the call at a place are.
    fn content(&self, place: Place) -> Option<u16> {
        match self.steps[place.index()].kind {
            EventKind::CallSent { content, .. } => Some(content),
            _ => None,
        }
    }

    /// From whom the message came that a control gets as its `nth`, if it gets one.
    pub fn sender(
        &self,
        control: &ControlId,
        call: Option<&CallPath>,
        nth: u64,
    ) -> Option<Option<&ControlId>> {
        let (who, r#in, what) = (control.clone(), call.cloned(), Shared::Message);
        let any = EventKind::Entered { control: who, call: r#in, nth, what, from: None };
        let left = self.places.all_like(&any).filter_map(|like| self.places.left(like));
        let likes = left.filter_map(|place| match &self.steps[place.index()].kind {
            EventKind::Entered { control: who, call: r#in, nth: which, what, from }
                if (who, r#in.as_ref(), *which, *what) == (control, call, nth, Shared::Message) =>
            {
                Some((place, from.as_ref()))
            }
            _ => None,
        });
        likes.min_by_key(|(place, _)| *place).map(|(_, from)| from)
    }

    /// What a choice came to.
    pub fn choice(
        &mut self,
        control: &ControlId,
        call: Option<&CallPath>,
        name: &ChoiceName,
    ) -> Option<ChoiceValue> {
        self.choices.get_mut(&(control.clone(), call.cloned(), name.clone()))?.pop_front()
    }

    /// Whether all has happened again.
    pub fn is_over(&self) -> bool {
        self.next == self.steps.len()
    }

    /// Whether the process goes on by itself.
    pub fn is_free(&self) -> bool {
        self.is_over() && !self.must_end
    }

    /// Whether the process ends when all has happened again.
    pub fn must_end(&self) -> bool {
        self.must_end
    }

    /// How long all of it took when it was recorded.
    pub fn lasted(&self) -> Duration {
        self.lasted
    }

    /// How many events have happened again, and of how many.
    pub fn count(&self) -> (u64, u64) {
        (self.done, self.steps.len() as u64)
    }

    /// What must come next.
    pub fn next(&self) -> Option<Next> {
        let step = self.steps.get(self.next)?;
        Some(Next { number: step.number, kind: step.kind.clone(), took: step.took })
    }

    /// What has happened in another way, the first time.
    pub fn first_difference(&self) -> Option<&Differs> {
        self.first_difference.as_ref()
    }

    /// The event at a place, and its number.
    pub fn at(&self, place: Place) -> (EventNumber, &EventKind) {
        (self.steps[place.index()].number, &self.steps[place.index()].kind)
    }

    fn skip(&mut self) {
        while self.steps.get(self.next).is_some_and(is_past) {
            self.finish(Place::at(self.next));
            self.next += 1;
        }
    }

    fn finish(&mut self, place: Place) {
        if !std::mem::replace(&mut self.steps[place.index()].is_done, true) {
            self.done += 1;
        }
    }
}

fn is_past(step: &Step) -> bool {
    step.is_done || is_optional(&step.kind)
}

/// Nobody waits for a call to be given up: if it is not, it gets no answer either.
fn is_optional(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Cancelled { end: End::Caller, .. })
}
