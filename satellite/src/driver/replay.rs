//! Events of a replay, each in its turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ddbx_protocol::replay::{AtTurn, RECENT_MAX, WAITING_MAX};
use ddbx_protocol::{CallId, Delay, EventKind, EventNumber, Progress};
use tokio::sync::oneshot;

use super::{Handle, fragments};
use crate::logic::script::{Claim, Place, Script};

pub(super) struct Replay(Mutex<State>);

struct State {
    script: Script,
    /// Who waits for a turn.
    turns: BTreeMap<Place, oneshot::Sender<Told>>,
    /// Who waits for the end.
    beyond: BTreeMap<u64, (EventKind, oneshot::Sender<Told>)>,
    next_beyond: u64,
    moved_at: Instant,
    recent: VecDeque<(EventNumber, EventKind)>,
}

/// What somebody hears who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// It may happen.
    Now,
    /// There is a place for it that somebody else had.
    ClaimAgain,
}

impl Replay {
    pub(super) fn new(script: Script) -> Self {
        Self(Mutex::new(State {
            script,
            turns: BTreeMap::new(),
            beyond: BTreeMap::new(),
            next_beyond: 0,
            moved_at: Instant::now(),
            recent: VecDeque::new(),
        }))
    }

    /// Asks the script something.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut Script) -> T) -> T {
        question(&mut self.lock().script)
    }

    /// An event that does not wait.
    pub(super) fn happens_at_once(&self, kind: &EventKind) -> EventNumber {
        self.lock().happens(kind, |script| script.happens_at_once(kind))
    }

    /// Waits for the turn of an event.
    pub(super) async fn turn(&self, mut kind: EventKind) -> Turn<'_> {
        loop {
            let (mut turn, wait) = self.claim(kind);
            let told = match wait {
                // Nobody drops the other end without saying something.
                Some(wait) => wait.await.unwrap_or(Told::Now),
                None => Told::Now,
            };
            match turn.kind.take_if(|_| told == Told::ClaimAgain) {
                Some(same) => kind = same,
                None => return turn,
            }
        }
    }

    fn claim(&self, kind: EventKind) -> (Turn<'_>, Option<oneshot::Receiver<Told>>) {
        let mut state = self.lock();
        let (tell, told) = oneshot::channel();
        let (place, wait) = match state.script.claim(&kind) {
            Claim::Free => (Claimed::Nothing, None),
            Claim::At(place) if state.script.is_turn(place) => (Claimed::Place(place), None),
            Claim::At(place) => {
                state.turns.insert(place, tell);
                (Claimed::Place(place), Some(told))
            }
            Claim::Beyond => {
                state.next_beyond += 1;
                let id = state.next_beyond;
                state.beyond.insert(id, (kind.clone(), tell));
                (Claimed::Beyond(id), Some(told))
            }
        };
        (Turn { replay: self, kind: Some(kind), claimed: place }, wait)
    }

    /// The control that ran on from the last event stands.
    pub(super) fn stands(&self) {
        let mut state = self.lock();
        state.script.stands();
        state.call_next();
    }

    pub(super) fn progress(&self) -> Progress {
        let state = self.lock();
        let (done, of) = state.script.count();
        let at_turn = state.turns.keys().map(|place| {
            let (number, kind) = state.script.at(*place);
            AtTurn { kind: kind.clone(), number: Some(number) }
        });
        let beyond = state.beyond.values().filter(|(kind, _)| !may_never_come(kind));
        let beyond = beyond.map(|(kind, _)| AtTurn { kind: kind.clone(), number: None });
        Progress {
            done,
            of,
            next: state.script.next(),
            must_end: state.script.must_end(),
            lasted: state.script.lasted(),
            idle: state.moved_at.elapsed(),
            waiting: beyond.chain(at_turn).take(WAITING_MAX).collect(),
            recent: state.recent.iter().cloned().collect(),
            differs: state.script.differs().cloned(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// An event happens: its number. One that was not recorded brings nobody further.
    fn happens(
        &mut self,
        kind: &EventKind,
        happens: impl FnOnce(&mut Script) -> EventNumber,
    ) -> EventNumber {
        let before = self.script.count();
        let number = happens(&mut self.script);
        if self.script.count() != before {
            self.moved_at = Instant::now();
            if self.recent.len() == RECENT_MAX {
                self.recent.pop_front();
            }
            self.recent.push_back((number, kind.clone()));
        }
        self.call_next();
        number
    }

    /// Whoever had this place does without it. Another one may have come for it too late.
    fn put_back(&mut self, place: Place) {
        self.script.put_back(place);
        let identity = self.script.at(place).1.identity();
        let others = self.beyond.extract_if(.., |_, (kind, _)| kind.identity() == identity);
        for (_, (_, tell)) in others {
            let _ = tell.send(Told::ClaimAgain);
        }
    }

    fn call_next(&mut self) {
        if let Some(tell) = self.script.turn().and_then(|place| self.turns.remove(&place)) {
            let _ = tell.send(Told::Now);
        }
        if self.script.is_free() {
            for (_, (_, tell)) in std::mem::take(&mut self.beyond) {
                let _ = tell.send(Told::Now);
            }
        }
    }
}

/// Whether somebody is always prepared for it.
fn may_never_come(kind: &EventKind) -> bool {
    use EventKind::{Cancelled, DeadlineExpired, Fired};
    matches!(kind, DeadlineExpired { .. } | Fired { .. } | Cancelled { .. })
}

enum Claimed {
    Place(Place),
    Beyond(u64),
    Nothing,
}

/// It is the turn of an event. It happens, or another may have its place.
pub(super) struct Turn<'a> {
    replay: &'a Replay,
    kind: Option<EventKind>,
    claimed: Claimed,
}

impl Turn<'_> {
    /// Whether the event was recorded.
    pub(super) fn is_recorded(&self) -> bool {
        matches!(self.claimed, Claimed::Place(_))
    }

    /// It happens: its number. Its control runs on from here, and others wait for that
    /// if it is known when it stands again.
    pub(super) fn happens(mut self, satellite: &Handle, delay: Delay) -> EventNumber {
        let Some(kind) = self.kind.take() else { return EventNumber::default() };
        let number = self.replay.lock().happens(&kind, |script| {
            let number = match self.claimed {
                Claimed::Place(place) => script.happens(place, &kind),
                Claimed::Beyond(_) | Claimed::Nothing => script.happens_beyond(),
            };
            if !script.is_over() && fragments::begins(satellite, number.0) {
                script.runs();
            }
            number
        });
        satellite.keep_numbered(number, delay, kind);
        number
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.kind.is_none() {
            return;
        }
        let mut state = self.replay.lock();
        match self.claimed {
            Claimed::Place(place) => {
                state.turns.remove(&place);
                state.put_back(place);
            }
            Claimed::Beyond(id) => _ = state.beyond.remove(&id),
            Claimed::Nothing => {}
        }
    }
}

/// A call is on its way, or being handled elsewhere.
pub struct Abroad {
    satellite: Handle,
    call: CallId,
}

impl Drop for Abroad {
    fn drop(&mut self) {
        if let Some(replay) = self.satellite.replay() {
            let mut state = replay.lock();
            state.script.is_back(&self.call);
            state.call_next();
        }
    }
}

/// An event may happen now. If this is dropped instead, it does not.
pub struct InTurn<'a> {
    satellite: &'a Handle,
    turn: Option<Turn<'a>>,
}

impl InTurn<'_> {
    /// Whether a recording says that it happens.
    pub fn is_recorded(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::is_recorded)
    }

    /// It happens, and was this.
    pub fn happens(self, delay: Delay, kind: EventKind) -> EventNumber {
        match self.turn {
            Some(mut turn) => {
                turn.kind = Some(kind);
                turn.happens(self.satellite, delay)
            }
            None => self.satellite.note(delay, || kind),
        }
    }
}

impl Handle {
    /// Whether this is a replay, and a call never arrived in it.
    pub fn is_lost(&self, call: &CallId) -> bool {
        self.replay().is_some_and(|replay| replay.ask(|script| script.is_lost(call)))
    }

    /// In a replay a call leaves, until what this gives is dropped.
    pub fn leaves(&self, call: &CallId) -> Abroad {
        if let Some(replay) = self.replay() {
            replay.ask(|script| script.leaves(call));
        }
        Abroad { satellite: self.clone(), call: call.clone() }
    }

    /// Waits until an event may happen of which more is known when it does: before a
    /// lock is taken, for instance. Without a replay that is at once.
    pub async fn turn(&self, event: impl FnOnce() -> EventKind) -> InTurn<'_> {
        let turn = match self.replay() {
            Some(replay) => Some(Box::pin(replay.turn(event())).await),
            None => {
                self.shake(event).await;
                None
            }
        };
        InTurn { satellite: self, turn }
    }

    /// Something happens that neither rule nor breakpoint concerns, in its turn.
    pub async fn happens(&self, delay: Delay, event: impl FnOnce() -> EventKind) -> EventNumber {
        match self.replay() {
            Some(replay) => Box::pin(replay.turn(event())).await.happens(self, delay),
            None => self.note_alone(delay, event).await,
        }
    }

    /// Waits for an event that only a recording brings about; without one, for ever.
    pub async fn brought_about(&self, delay: Delay, event: impl FnOnce() -> EventKind) {
        if let Some(replay) = self.replay() {
            let turn = Box::pin(replay.turn(event())).await;
            if turn.is_recorded() {
                turn.happens(self, delay);
                return;
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use ddbx_protocol::{ControlId, PointLabel, RealTime};
    use ddbx_recording::{Entry, Moment};

    use super::*;

    /// Two branches of one control come to the same place, and one of them is given up.
    #[test]
    fn who_is_given_up_leaves_its_turn_to_another() {
        let point = |label| EventKind::Point {
            control: ControlId::new("p/main").unwrap(),
            call: None,
            label: PointLabel::new(label).unwrap(),
        };
        let moment = |(number, kind)| {
            let (at, delay) = (RealTime::default(), Delay::ZERO);
            Entry::Event(Moment { number: EventNumber(number), at, delay, kind, payload: None })
        };
        let script = [(1, point("first")), (2, point("second"))].map(moment);
        let replay = Replay::new(Script::new(script));
        let mut context = Context::from_waker(Waker::noop());
        let mut one = Box::pin(replay.turn(point("second")));
        let mut other = Box::pin(replay.turn(point("second")));
        assert!(one.as_mut().poll(&mut context).is_pending());
        assert!(other.as_mut().poll(&mut context).is_pending());
        drop(one);
        assert!(other.as_mut().poll(&mut context).is_pending(), "it is not its turn");
        replay.happens_at_once(&point("first"));
        let Poll::Ready(turn) = other.as_mut().poll(&mut context) else { panic!("its turn") };
        assert!(turn.is_recorded());
    }
}
