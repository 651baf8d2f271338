//! What programs do in a replay, each thing in its turn.

use ddbx_protocol::{CallId, Delay, EventKind, EventNumber};

use super::Handle;
use super::replay::Turn;

/// A call is on its way, or being handled elsewhere.
pub struct Abroad {
    satellite: Handle,
    call: CallId,
}

impl Drop for Abroad {
    fn drop(&mut self) {
        if let Some(replay) = self.satellite.replay() {
            replay.is_back(&self.call);
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
            Some(turn) => turn.happens_as(self.satellite, delay, kind),
            None => self.satellite.note(delay, || kind),
        }
    }
}

impl Handle {
    /// Whether this is a replay, and a call never arrived in it.
    pub fn is_lost(&self, call: &CallId) -> bool {
        self.replay().is_some_and(|replay| replay.ask(|script| script.is_lost(call)))
    }

    /// Whether this is a replay, and an answer to a call is still to come in it.
    pub fn is_answered(&self, call: &CallId) -> bool {
        self.replay().is_some_and(|replay| replay.ask(|script| script.is_answered(call)))
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

    /// Waits until a call is given up by its callee, which only a recording brings about;
    /// without one, for ever.
    pub async fn given_up(&self, delay: Delay, event: impl FnOnce() -> EventKind) {
        if let Some(replay) = self.replay().filter(|replay| replay.sorts().are_given_up) {
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
    use std::cell::Cell;
    use std::pin::pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use ddbx_protocol::{
        Breakpoint, BreakpointId, ControlId, FromCentral, Gate, Mode, Pattern, Place, PointLabel,
        ProcessIndex, ProcessName, RealTime, Scope, Stack, ToSatellite,
    };
    use ddbx_recording::{Entry, Moment};

    use super::*;
    use crate::driver::{Course, NothingToReport, Somebody, TimerOf, Visit};
    use crate::logic::script::Script;

    struct Anybody(ControlId);

    impl Somebody for Anybody {
        fn id(&self) -> ControlId {
            self.0.clone()
        }

        fn stack(&self) -> Stack {
            Stack::home(ProcessIndex(1))
        }
    }

    fn point(who: &str) -> EventKind {
        let (control, label) = (ControlId::new(who), PointLabel::new("point"));
        EventKind::Point { control: control.unwrap(), call: None, label: label.unwrap() }
    }

    /// A process in which these controls came to a point in this order.
    fn replay_of(order: &[&str]) -> Handle {
        let name = ProcessName::new("p").unwrap();
        let satellite = Handle::start(ProcessIndex(1), name, Arc::new(NothingToReport)).unwrap();
        let moment = |(nth, who): (usize, &&str)| {
            let (number, kind) = (EventNumber(nth as u64 + 1), point(who));
            let (at, delay) = (RealTime::default(), Delay::ZERO);
            Entry::Event(Moment { number, at, delay, kind, payload: None })
        };
        let script = Script::new(order.iter().enumerate().map(moment));
        satellite.follow(Course { script: Some(script), ..Course::default() });
        satellite
    }

    async fn comes_to_a_point(satellite: &Handle, who: &str) -> EventNumber {
        let anybody = Anybody(ControlId::new(who).unwrap());
        let delay = Some(Delay::ZERO);
        let visit = Visit { who: &anybody, delay, is_free: false, inside: None };
        let gate = || Gate::Point(PointLabel::new("point").unwrap());
        let arrival = satellite.arrive(visit, gate, Default::default);
        satellite.pass(visit, arrival, || point(who)).await.1
    }

    fn poll_once<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Otherwise each of its events would cost a wake-up.
    #[test]
    fn a_control_comes_from_its_event_to_the_next_without_waiting() {
        let satellite = replay_of(&["p/a", "p/a", "p/b", "p/a"]);
        let both = pin!(async {
            comes_to_a_point(&satellite, "p/a").await;
            comes_to_a_point(&satellite, "p/a").await
        });
        let mut both = pin!(satellite.run(both));
        assert_eq!(poll_once(both.as_mut()), Poll::Ready(EventNumber(2)));
    }

    #[test]
    fn another_one_waits_as_long_as_the_last_one_runs() {
        let satellite = replay_of(&["p/a", "p/b", "p/a"]);
        let mut other = Box::pin(async {
            let other = pin!(comes_to_a_point(&satellite, "p/b"));
            satellite.run(other).await
        });
        {
            let first = pin!(async {
                comes_to_a_point(&satellite, "p/a").await;
                poll_once(other.as_mut()).is_pending()
            });
            let mut first = pin!(satellite.run(first));
            assert_eq!(poll_once(first.as_mut()), Poll::Ready(true));
        }
        assert_eq!(poll_once(other.as_mut()), Poll::Ready(EventNumber(2)));
    }

    /// Every call has a deadline: if no recorded one passes, they cost next to nothing.
    #[test]
    fn a_deadline_is_looked_for_when_the_process_goes_on_by_itself() {
        let satellite = replay_of(&["p/a"]);
        let anybody = Anybody(ControlId::new("p/b").unwrap());
        let (due, gate) = (satellite.now() - Delay::ZERO, Gate::Deadline);
        let timer = TimerOf { who: &anybody, delay: Delay::ZERO, due, gate, is_free: false };
        let mut deadline = satellite.arm(timer);
        let is_looked_for = Cell::new(false);
        let mut expires = pin!(deadline.expired(|| {
            is_looked_for.set(true);
            point("p/b")
        }));
        assert!(poll_once(expires.as_mut()).is_pending() && !is_looked_for.get());
        let mut last = pin!(comes_to_a_point(&satellite, "p/a"));
        assert!(poll_once(last.as_mut()).is_ready());
        let _ = poll_once(expires.as_mut());
        assert!(is_looked_for.get());
    }

    #[test]
    fn a_breakpoint_holds_whom_it_meets_before_its_turn() {
        let satellite = replay_of(&["p/a", "p/b"]);
        let mut second = pin!(comes_to_a_point(&satellite, "p/b"));
        assert!(poll_once(second.as_mut()).is_pending());
        let (place, scope) = (Place::Point { label: Pattern::from("*") }, Scope::Call);
        let breakpoint = Breakpoint {
            id: BreakpointId(1),
            place,
            scope,
            ignore: 1,
            once: false,
            condition: None,
        };
        let (inbox, name) = (satellite.inbox(), satellite.name());
        inbox.connected(Box::new(|_| {}));
        inbox.deliver(FromCentral::Welcome { name, start: 1, mode: Mode::Permit });
        inbox.deliver(FromCentral::Says(ToSatellite::Plant(breakpoint)));
        let mut first = pin!(comes_to_a_point(&satellite, "p/a"));
        assert!(poll_once(first.as_mut()).is_ready(), "one may pass");
        assert!(poll_once(second.as_mut()).is_pending(), "it is its turn, and it is held");
        assert_eq!(satellite.progress().unwrap().done, 1);
    }
}
