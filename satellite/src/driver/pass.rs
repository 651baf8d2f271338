//! A strand comes to a gate: on the way that nearly all take it costs one atomic
//! load, nothing is built and nobody is asked. Calls are moved about with all that they
//! may ever have to wait for: so what few of them need is in boxes, made when it is needed.

use std::future::{Ready, ready};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use ddbx_protocol::attach::VALUE_BYTES_MAX;
use ddbx_protocol::{
    BreakpointId, Condition, ControlId, Delay, EventKind, EventNumber, Gate, RealTime, Stack,
    VirtualTime,
};
use ddbx_recording::ToNote;
use futures::future::{BoxFuture, Either};
use serde_json::Value;
use tokio::sync::oneshot;

use super::floor::woken;
use super::replay::Replay;
use super::{BUSY, Core, Handle, Waiting};
use crate::logic::Verdict;
use crate::logic::breakpoints::Groups;
use crate::logic::strand::{Strand, StrandId};

/// Whoever comes to gates. Few of them must wait: so this is made when it is asked for.
pub trait Somebody: Sync {
    /// Whose control it is.
    fn id(&self) -> ControlId;
    /// Where it may still have an effect.
    fn stack(&self) -> Stack;
}

/// What mostly is there at once, and otherwise later.
pub type Step<'a, T> = Either<Ready<T>, BoxFuture<'a, T>>;

/// Who comes to a gate.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    /// Who.
    pub who: &'a dyn Somebody,
    /// Its delay; none for a control from outside, which takes over one.
    pub delay: Option<Delay>,
    /// Whether the user has let it go on anyway.
    pub is_free: bool,
    /// The number under which it may be known to wait inside the program.
    pub inside: Option<StrandId>,
}

/// Nothing stands in the way of events with this delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// The delay.
    pub delay: Delay,
    /// Whether they are recorded, which is all.
    pub is_noted: bool,
}

/// It may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// With this delay.
    pub delay: Delay,
    /// Whether the user has let it go on anyway.
    pub is_free: bool,
}

/// What a breakpoint gets to see of an event.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// The arguments of the call, or the values of the point.
    pub args: Option<Value>,
    /// The result of the call.
    pub result: Option<Value>,
}

impl Captured {
    pub(super) fn args_text(&self) -> Option<String> {
        self.args.as_ref().map(bounded)
    }

    pub(super) fn result_text(&self) -> Option<String> {
        self.result.as_ref().map(bounded)
    }
}

fn bounded(value: &Value) -> String {
    let text = value.to_string();
    match text.len() <= VALUE_BYTES_MAX {
        true => text,
        false => Value::String(format!("({} bytes, too long to show)", text.len())).to_string(),
    }
}

impl Handle {
    /// With which delay events pass without question, except those that breakpoints look out
    /// for. Whoever comes from outside takes that delay over.
    #[inline]
    pub fn open_at(&self, groups: Groups) -> Option<Open> {
        let (open_at, is_noted) = match self.0.open_at.load(Ordering::Acquire) {
            BUSY => (self.0.noted_at.load(Ordering::Acquire), true),
            open_at => (open_at, false),
        };
        let is_open =
            open_at != BUSY && self.0.looked_out_for.load(Ordering::Acquire) & groups.0 == 0;
        is_open.then(|| Open { delay: Delay::from_nanos(open_at), is_noted })
    }

    /// An event passes that way: its number, which is 0 if nobody wants to know of it. None if
    /// it does not pass after all.
    #[inline]
    pub fn pass_open(
        &self,
        open: Open,
        at: impl FnOnce() -> RealTime,
        event: impl FnOnce() -> ToNote,
    ) -> Option<EventNumber> {
        match open.is_noted {
            false => Some(EventNumber::default()),
            true => self.note_open(open.delay, at, event),
        }
    }

    /// Apart, so that what nobody records does not come with all that this takes.
    #[inline(never)]
    fn note_open(
        &self,
        delay: Delay,
        at: impl FnOnce() -> RealTime,
        event: impl FnOnce() -> ToNote,
    ) -> Option<EventNumber> {
        self.recorder()?.note_in_time(at(), delay, event)
    }

    /// A strand comes to a gate. What a breakpoint would see is captured now, and
    /// only if one is there.
    pub fn arrive(
        &self,
        visit: Visit<'_>,
        gate: impl FnOnce() -> Gate,
        capture: impl FnOnce() -> Captured,
    ) -> Arrival {
        let (quiet, groups) = (self.quiet(visit), self.0.looked_out_for.load(Ordering::Acquire));
        // What is said is looked at only on the way of those who are judged.
        let quiet = quiet.filter(|_| !self.keeps_payloads());
        // In a replay there may be something in its way when its turn has come.
        let is_in_turn = self.is_replay();
        if let Some(passed) = quiet
            && groups == 0
            && !is_in_turn
        {
            return Arrival::Quiet(passed);
        }
        let gate = gate();
        match quiet.filter(|_| !is_among(&gate, groups)) {
            Some(_) if is_in_turn => Arrival::InTurn(Box::new(gate)),
            Some(passed) => Arrival::Quiet(passed),
            None => Arrival::Judge(Box::new(self.look(visit, gate, capture))),
        }
    }

    /// With what a strand passes gates where no breakpoints are, if it does so without question.
    fn quiet(&self, visit: Visit<'_>) -> Option<Passed> {
        let quiet_at = self.0.quiet_at.load(Ordering::Acquire);
        let delay = visit.delay.map_or(quiet_at, Delay::as_nanos);
        let is_quiet = quiet_at != BUSY && delay == quiet_at;
        is_quiet.then(|| Passed { delay: Delay::from_nanos(delay), is_free: visit.is_free })
    }

    /// It passes the gate, now or when it may: that is an event, which has a number.
    pub fn pass<'a>(
        &'a self,
        visit: Visit<'a>,
        arrival: Arrival,
        event: impl FnOnce() -> EventKind + Send + 'a,
    ) -> Step<'a, (Passed, EventNumber)> {
        let course = self.0.course.get();
        let replay =
            course.and_then(|course| course.replay.as_deref().filter(|_| !course.shakes()));
        let passed = match (arrival, replay) {
            (Arrival::Quiet(passed), _) if course.is_none_or(|course| !course.has_turns()) => {
                passed
            }
            (Arrival::InTurn(gate), Some(replay)) => {
                return self.pass_replayed(replay, visit, gate, event());
            }
            (arrival, _) => {
                return Either::Right(Box::pin(self.pass_in_turn(visit, arrival, event)));
            }
        };
        let baton = course.and_then(|course| course.baton.as_ref());
        let number = match self.note_alone_now(baton, passed.delay, event) {
            Ok(number) => number,
            Err(event) => {
                let arrival = Arrival::Quiet(passed);
                return Either::Right(Box::pin(self.pass_in_turn(visit, arrival, event)));
            }
        };
        let recorder = course.and_then(|course| course.recorder.as_ref());
        match recorder.filter(|recorder| !recorder.is_open()) {
            None => Either::Left(ready((passed, number))),
            Some(recorder) => Either::Right(Box::pin(async move {
                recorder.may_be_known().await;
                (passed, number)
            })),
        }
    }

    /// The same in a replay. Mostly it is its turn, and nothing stands in the way.
    fn pass_replayed<'a>(
        &'a self,
        replay: &'a Replay,
        visit: Visit<'a>,
        gate: Box<Gate>,
        kind: EventKind,
    ) -> Step<'a, (Passed, EventNumber)> {
        let come = match self.passes_in_turn(visit, &gate) {
            Some(passed) => match replay.come_and_happen(self, passed.delay, kind) {
                ControlFlow::Break(number) => return Either::Left(ready((passed, number))),
                ControlFlow::Continue(come) => come,
            },
            None => replay.come(kind),
        };
        Either::Right(Box::pin(async move {
            let turn = come.turn().await;
            let passed = self.judge(visit, Arrival::InTurn(gate)).await;
            (passed, turn.happens(self, passed.delay))
        }))
    }

    async fn pass_in_turn(
        &self,
        visit: Visit<'_>,
        arrival: Arrival,
        event: impl FnOnce() -> EventKind,
    ) -> (Passed, EventNumber) {
        let kind = event();
        self.shake(|| kind.clone()).await;
        let Some(replay) = self.replay() else {
            let payload = self.payload_of(&arrival);
            let passed = self.judge(visit, arrival).await;
            return (passed, self.note_alone_with(passed.delay, payload, || kind).await);
        };
        let turn = replay.turn(kind).await;
        let passed = self.judge(visit, arrival).await;
        (passed, turn.happens(self, passed.delay))
    }

    async fn judge(&self, visit: Visit<'_>, arrival: Arrival) -> Passed {
        let arrived = match arrival {
            Arrival::Quiet(passed) => return passed,
            Arrival::InTurn(gate) => match self.passes_in_turn(visit, &gate) {
                Some(passed) => return passed,
                // What it says was not captured, since nobody wanted to see it.
                None => Box::new(self.arrived(visit, *gate)),
            },
            Arrival::Judge(arrived) => arrived,
        };
        let passed = Box::pin(self.stand(visit, *arrived)).await;
        Passed { is_free: passed.is_free || visit.is_free, ..passed }
    }

    /// With what a strand passes a gate now, if nothing stands in its way.
    fn passes_in_turn(&self, visit: Visit<'_>, gate: &Gate) -> Option<Passed> {
        let groups = self.0.looked_out_for.load(Ordering::Acquire);
        self.quiet(visit).filter(|_| !is_among(gate, groups))
    }

    /// The delay of a strand that has waited since its clock showed `began`, and was woken
    /// because a connection is lost (see [`Floor::woken_by_anybody`](super::Floor)). What stood still at its
    /// other end was lost with it, and the connection may tell of that earlier than central
    /// does: then it is still said to stand, and is who is furthest behind.
    pub fn woken_by_a_loss(&self, began: VirtualTime, delay: Delay) -> Delay {
        let now = self.now();
        match self.lock().satellite.furthest_behind(now) {
            furthest if furthest <= delay => delay,
            furthest => woken(now, began, delay, furthest),
        }
    }

    /// Whether a breakpoint waits for such an event.
    pub fn meets(&self, gate: impl FnOnce() -> Gate) -> bool {
        let groups = self.0.looked_out_for.load(Ordering::Acquire);
        groups != 0 && {
            let gate = gate();
            is_among(&gate, groups)
                && self.lock().satellite.breakpoints().at(&gate).next().is_some()
        }
    }

    fn look(&self, visit: Visit<'_>, gate: Gate, capture: impl FnOnce() -> Captured) -> Arrived {
        let (mut matched, mut conditions) = (false, Vec::new());
        for breakpoint in self.lock().satellite.breakpoints().at(&gate) {
            matched = true;
            let condition = breakpoint.condition.clone();
            conditions.extend(condition.map(|condition| (breakpoint.id, condition)));
        }
        // Not while the satellite is locked: this runs the program's own code.
        let captured = (matched || self.keeps_payloads()).then(capture);
        Arrived { captured, conditions, ..self.arrived(visit, gate) }
    }

    fn arrived(&self, visit: Visit<'_>, gate: Gate) -> Arrived {
        let delay = visit.delay.unwrap_or_default();
        // In a replay the order is known: only what the user holds waits.
        let strand = Strand {
            is_free: visit.is_free || self.is_replay(),
            ..Strand::new(self.new_strand(), visit.who.stack(), delay)
        };
        Arrived { strand, gate, captured: None, conditions: Vec::new() }
    }

    pub(super) async fn stand(&self, visit: Visit<'_>, arrived: Arrived) -> Passed {
        let Arrived { mut strand, gate, captured, conditions } = arrived;
        if let Some(captured) = captured.as_ref().filter(|_| !conditions.is_empty()) {
            let watched = self.0.report.watched();
            let who = (self.name(), &visit.who.id());
            strand.met = self.0.conditions.holding(conditions, captured, watched, who).await;
        }
        let (resume, resumed) = oneshot::channel();
        {
            let mut core = self.lock();
            let now = self.now();
            let verdict = match visit.delay {
                None if !self.is_replay() => core.satellite.handle_newcomer(now, &strand, &gate),
                delay => {
                    let delay = delay.unwrap_or_else(|| core.satellite.floor());
                    strand.delay = core.woken(now, visit.inside, delay);
                    core.satellite.handle_event(now, &strand, &gate)
                }
            };
            if let Verdict::Go(delay) = verdict {
                self.drain(&mut core);
                return Passed { delay, is_free: false };
            }
            let control = visit.who.id();
            core.standing.insert(strand.id, Waiting { resume, control, captured, told: false });
            self.drain(&mut core);
        }
        // If this future is dropped, so is the strand.
        let guard = DropGuard { handle: self, strand: strand.id, armed: true };
        let alone = Passed { delay: strand.delay, is_free: false };
        let passed = resumed.await.unwrap_or(alone);
        guard.disarm();
        passed
    }
}

/// Whether breakpoints look out for what is in the group of a gate. Mostly there are none.
fn is_among(gate: &Gate, groups: u64) -> bool {
    groups != 0 && groups & Groups::of_gate(gate).0 != 0
}

impl Core {
    /// The delay of a control that may have waited inside the program: for what, is
    /// not known, so it is charged as if for whoever is furthest behind here.
    fn woken(&mut self, now: RealTime, inside: Option<StrandId>, delay: Delay) -> Delay {
        let Some(id) = inside else { return delay };
        let Some(since) = self.satellite.inside_since(id) else { return delay };
        let woken = woken(now, since - delay, delay, self.satellite.floor());
        self.satellite.handle_wake_inside(now, id, woken)
    }
}

/// Somebody at a gate.
pub enum Arrival {
    /// Nothing stands in the way.
    Quiet(Passed),
    /// Nothing does as yet, in a replay: it is judged when its turn has come.
    InTurn(Box<Gate>),
    /// The rule and the breakpoints have a say.
    Judge(Box<Arrived>),
}

/// What there is to judge.
pub struct Arrived {
    pub(super) strand: Strand,
    pub(super) gate: Gate,
    pub(super) captured: Option<Captured>,
    pub(super) conditions: Vec<(BreakpointId, Condition)>,
}

/// Tells the satellite when a strand that stands still is dropped.
struct DropGuard<'a> {
    handle: &'a Handle,
    strand: StrandId,
    armed: bool,
}

impl DropGuard<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for DropGuard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.handle.forget(self.strand);
        }
    }
}
