//! Events of a replay, each in its turn.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

use ddbx_protocol::replay::{AtTurn, RECENT_MAX, WAITING_MAX};
use ddbx_protocol::{CallId, Delay, EventKind, EventNumber, Progress};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, oneshot};

use super::{Handle, fragments};
use crate::last_words::LastWords;
use crate::logic::script::{Claim, Place, Script, Sorts};

pub(crate) struct Replay {
    state: Mutex<State>,
    /// Told when the process goes on by itself, and whether it does.
    freed: Notify,
    is_freed: AtomicBool,
    /// What may become of calls at all.
    sorts: Sorts,
    /// Where it is said how far all has come in the end.
    last_words: Option<LastWords>,
}

struct State {
    script: Script,
    /// Who waits for a turn.
    turns: BTreeMap<Place, oneshot::Sender<Told>>,
    /// Who waits for the end.
    beyond: BTreeMap<u64, (EventKind, oneshot::Sender<Told>)>,
    next_beyond: u64,
    /// How far it had come when that was last asked, and when it was first seen there.
    seen: (u64, Instant),
    recent: VecDeque<Place>,
    /// Who tells how far it has come.
    wake: Sender<()>,
}

/// How somebody waits.
pub(super) enum Wait<'a> {
    /// Until it is told.
    Told(oneshot::Receiver<Told>),
    /// Until the process goes on by itself. A call waits in this way for each thing that may
    /// become of it and did not: so nothing is kept of it.
    Freed(Notified<'a>),
}

/// What somebody hears who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It may happen.
    Now,
    /// There is a place for it that somebody else had.
    ClaimAgain,
}

impl Replay {
    pub(super) fn new(script: Script, last_words: Option<LastWords>, wake: Sender<()>) -> Self {
        let sorts = script.sorts();
        let state = Mutex::new(State {
            script,
            turns: BTreeMap::new(),
            beyond: BTreeMap::new(),
            next_beyond: 0,
            seen: (0, Instant::now()),
            recent: VecDeque::new(),
            wake,
        });
        Self { state, freed: Notify::new(), is_freed: AtomicBool::new(false), sorts, last_words }
    }

    /// Asks the script something.
    pub(super) fn ask<T>(&self, question: impl FnOnce(&mut Script) -> T) -> T {
        question(&mut self.lock().script)
    }

    /// What may become of calls at all.
    pub(super) fn sorts(&self) -> Sorts {
        self.sorts
    }

    /// Whether the process goes on by itself.
    pub(super) fn is_freed(&self) -> bool {
        self.is_freed.load(Ordering::SeqCst)
    }

    /// Waits until the process goes on by itself.
    pub(super) async fn freed(&self) {
        let freed = {
            let state = self.lock();
            if state.script.is_free() {
                return;
            }
            // Made while this is locked, so that it is not told too early.
            self.freed.notified()
        };
        let mut freed = pin!(freed);
        let mut known: Option<Waker> = None;
        poll_fn(|context| {
            // Every call waits for this each time that it is looked at, beside what it really
            // waits for: then nothing is to be done.
            let is_known = known.as_ref().is_some_and(|known| known.will_wake(context.waker()));
            if is_known && !self.is_freed.load(Ordering::Acquire) {
                return Poll::Pending;
            }
            known = Some(context.waker().clone());
            freed.as_mut().poll(context)
        })
        .await;
    }

    /// An event that does not wait.
    pub(super) fn happens_at_once(&self, kind: &EventKind) -> EventNumber {
        let mut state = self.lock();
        let place = state.script.claim_at_once(kind);
        let number = state.happens(place, kind);
        self.call_next(&mut state);
        number
    }

    /// Waits for the turn of an event.
    pub(super) async fn turn(&self, kind: EventKind) -> Turn<'_> {
        self.come(kind).turn().await
    }

    /// An event comes.
    pub(super) fn come(&self, kind: EventKind) -> Come<'_> {
        let (claimed, wait) = self.claim(&mut self.lock(), &kind);
        let turn = Turn { replay: self, kind: Some(kind), claimed };
        match wait {
            None => Come::InTurn(turn),
            Some(wait) => Come::Early(turn, wait),
        }
    }

    /// An event comes in whose way nothing stands, and happens if it is its turn: its number.
    /// Mostly it is, and with that all is done.
    pub(super) fn come_and_happen(
        &self,
        satellite: &Handle,
        delay: Delay,
        kind: EventKind,
    ) -> ControlFlow<EventNumber, Come<'_>> {
        let mut state = self.lock();
        match self.claim(&mut state, &kind) {
            (claimed, None) => {
                ControlFlow::Break(self.happens(state, claimed, satellite, delay, kind))
            }
            (claimed, Some(wait)) => {
                drop(state);
                let turn = Turn { replay: self, kind: Some(kind), claimed };
                ControlFlow::Continue(Come::Early(turn, wait))
            }
        }
    }

    fn claim(&self, state: &mut State, kind: &EventKind) -> (Claimed, Option<Wait<'_>>) {
        let claim = state.script.claim(kind);
        if let Claim::At(place) = claim
            && state.script.is_next(place)
            && fragments::ends_of(self)
        {
            // It comes to the next event while it runs on from the last one: so it stands, and
            // nobody has to be called between the two.
            state.script.stands();
        }
        match claim {
            Claim::Free => (Claimed::Nothing, None),
            Claim::At(place) if state.script.is_turn(place) => (Claimed::Place(place), None),
            Claim::At(place) => {
                let (tell, told) = oneshot::channel();
                state.turns.insert(place, tell);
                (Claimed::Place(place), Some(Wait::Told(told)))
            }
            // Made while this is locked, so that it is not told too early.
            Claim::Unheard if may_never_come(kind) => {
                (Claimed::Nothing, Some(Wait::Freed(self.freed.notified())))
            }
            Claim::Beyond | Claim::Unheard => {
                let (tell, told) = oneshot::channel();
                state.next_beyond += 1;
                let id = state.next_beyond;
                state.beyond.insert(id, (kind.clone(), tell));
                (Claimed::Beyond(id), Some(Wait::Told(told)))
            }
        }
    }

    /// It happens: its number. Its control runs on from here, and others wait for that
    /// if it is known when it stands again.
    fn happens(
        &self,
        mut state: MutexGuard<'_, State>,
        claimed: Claimed,
        satellite: &Handle,
        delay: Delay,
        kind: EventKind,
    ) -> EventNumber {
        let place = match claimed {
            Claimed::Place(place) => Some(place),
            Claimed::Beyond(_) | Claimed::Nothing => None,
        };
        let number = state.happens(place, &kind);
        if !state.script.is_over() && fragments::begins(satellite, number.0) {
            state.script.runs();
        }
        self.call_next(&mut state);
        drop(state);
        satellite.keep_numbered(number, delay, kind);
        number
    }

    /// An answer to a call that left is there, whether anybody wants it or not.
    pub(super) fn is_back(&self, call: &CallId) {
        let mut state = self.lock();
        state.script.is_back(call);
        self.call_next(&mut state);
    }

    /// The control that ran on from the last event stands.
    pub(super) fn stands(&self) {
        let mut state = self.lock();
        state.script.stands();
        self.call_next(&mut state);
    }

    fn call_next(&self, state: &mut State) {
        state.call_next();
        if state.script.is_free() {
            for (_, (_, tell)) in std::mem::take(&mut state.beyond) {
                let _ = tell.send(Told::Now);
            }
            if !self.is_freed.swap(true, Ordering::SeqCst) {
                // It has alarms to ring.
                let _ = state.wake.send(());
            }
            self.freed.notify_waiters();
        }
    }

    pub(super) fn progress(&self) -> Progress {
        let mut state = self.lock();
        let (done, of) = state.script.count();
        // It is asked often: so nobody looks at the clock at every event.
        if state.seen.0 != done {
            state.seen = (done, Instant::now());
        }
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
            idle: state.seen.1.elapsed(),
            waiting: beyond.chain(at_turn).take(WAITING_MAX).collect(),
            recent: state.recent.iter().map(|place| state.script.at(*place)).map(own).collect(),
            differs: state.script.first_difference().cloned(),
        }
    }

    /// Says how far it has come, where that is read when the process is gone.
    pub(crate) fn say_last_word(&self) {
        if let Some(last_words) = &self.last_words
            && let Err(error) = last_words.say(self.progress())
        {
            eprintln!("ddbx: it is not known how far the replay came: {error}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// An event happens, at its place: its number. One that was not recorded brings nobody
    /// further.
    fn happens(&mut self, place: Option<Place>, kind: &EventKind) -> EventNumber {
        let Some(place) = place else { return self.script.happens_beyond() };
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(place);
        let number = self.script.happens(place, kind);
        if self.script.is_over() {
            // That is said at once: others wait for it, and the process may be about to exit.
            let _ = self.wake.send(());
        }
        number
    }

    /// Whoever had this place does without it. Another one may have come for it too late.
    fn put_back(&mut self, place: Place) {
        self.script.put_back(place);
        let same = self.script.at(place).1;
        let others = self.beyond.extract_if(.., |_, (kind, _)| kind.is_like(same));
        for (_, (_, tell)) in others {
            let _ = tell.send(Told::ClaimAgain);
        }
    }

    fn call_next(&mut self) {
        if let Some(tell) = self.script.turn().and_then(|place| self.turns.remove(&place)) {
            let _ = tell.send(Told::Now);
        }
    }
}

fn own((number, kind): (EventNumber, &EventKind)) -> (EventNumber, EventKind) {
    (number, kind.clone())
}

/// An event has come.
pub(super) enum Come<'a> {
    /// It is its turn.
    InTurn(Turn<'a>),
    /// Not yet.
    Early(Turn<'a>, Wait<'a>),
}

impl<'a> Come<'a> {
    /// Waits until it is its turn.
    pub(super) async fn turn(mut self) -> Turn<'a> {
        loop {
            let (mut turn, wait) = match self {
                Self::InTurn(turn) => return turn,
                Self::Early(turn, wait) => (turn, wait),
            };
            let told = match wait {
                // Nobody drops the other end without saying something.
                Wait::Told(told) => told.await.unwrap_or(Told::Now),
                Wait::Freed(freed) => {
                    freed.await;
                    Told::Now
                }
            };
            match turn.kind.take_if(|_| told == Told::ClaimAgain) {
                Some(same) => self = turn.replay.come(same),
                None => return turn,
            }
        }
    }
}

/// Whether somebody is always prepared for it.
fn may_never_come(kind: &EventKind) -> bool {
    use EventKind::{Cancelled, DeadlineExpired, Fired};
    matches!(kind, DeadlineExpired { .. } | Fired { .. } | Cancelled { .. })
}

#[derive(Clone, Copy)]
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

    /// It happens: its number.
    pub(super) fn happens(mut self, satellite: &Handle, delay: Delay) -> EventNumber {
        let Some(kind) = self.kind.take() else { return EventNumber::default() };
        self.replay.happens(self.replay.lock(), self.claimed, satellite, delay, kind)
    }

    /// The same; and only now it is known what exactly it is.
    pub(super) fn happens_as(
        mut self,
        satellite: &Handle,
        delay: Delay,
        kind: EventKind,
    ) -> EventNumber {
        if let Claimed::Place(place) = self.claimed {
            self.replay.ask(|script| script.turns_out(place, &kind));
        }
        self.kind = Some(kind);
        self.happens(satellite, delay)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.kind.is_none() || matches!(self.claimed, Claimed::Nothing) {
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::task::Context;

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
        let (wake, over) = channel();
        let replay = Replay::new(Script::new(script), None, wake);
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
        drop(turn);
        assert!(over.try_recv().is_err());
        replay.happens_at_once(&point("second"));
        assert_eq!(over.try_recv(), Ok(()), "that is said at once");
    }
}
