//! The satellite's state machine.
//!
//! Events of the program come in by [`Satellite::handle_event`] and are answered
//! at once: go, or stand still. Whoever stands still is let go later, by
//! [`Output::Resume`]. A stop ends in one of three ways: the user ends it, the
//! rule allows it (a local timer, or news from central), or central is lost.
//!
//! # What a wait is charged
//!
//! A strand that waits by the rule leaves with exactly the delay that was
//! demanded of it, never with the time it really stood: news from central take
//! time, and if that time were charged, others would have to catch up with it,
//! late again, and delays would creep up for ever. What the user holds is charged
//! in full.
//!
//! # Alone
//!
//! Without central nobody could end a hold, so nobody is held: all stops end.
//! Delays stay, because clocks that snapped back to real time would fire every
//! timer at once. Events with less delay than the floor take it over instead of
//! waiting for it; a timer that does so finds that it is not due yet.
//!
//! (Longer than most files, because it is the one place where all that can
//! happen to a strand meets; what it is made of has files of its own.)

use std::collections::VecDeque;

use ddbx_protocol::{
    AllOn, BreakpointId, Delay, Mode, ProcessIndex, RealTime, Safeguard, Safeguards, Scope, StopId,
    StopReason, ToCentral, ToSatellite, VirtualTime,
};

mod waiting;
mod waiting_inside;
mod why;

use super::breakpoints::Breakpoints;
use super::inside::Inside;
use super::permit::{Judgement, LocalPermit};
use super::process_hold::ProcessHold;
use super::stops::{Stop, Stops};
use super::strand::{Strand, StrandId};
use ddbx_protocol::Gate;

pub use why::Why;

/// The answer to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may happen now, with this delay.
    Go(Delay),
    /// The strand stands still until it is resumed.
    Stopped,
}

/// What the driver must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this to central.
    Send(ToCentral),
    /// Let this strand's event happen now, with this delay.
    Resume {
        /// Which.
        strand: StrandId,
        /// Its delay from now on.
        delay: Delay,
        /// Whether the user has let it go on anyway.
        forced: bool,
    },
}

/// The debugger inside one process.
#[derive(Debug)]
pub struct Satellite<S: Safeguards = AllOn> {
    process: ProcessIndex,
    mode: Mode,
    safeguards: S,
    attached: bool,
    permit: LocalPermit,
    breakpoints: Breakpoints,
    stops: Stops,
    inside: Inside,
    hold: ProcessHold,
    next_due: Option<RealTime>,
    next_number: u64,
    /// Stops of the user's that have become the rule's: central hears of them
    /// when it is known that they stay.
    changed: Vec<u64>,
    outputs: VecDeque<Output>,
    /// Only for the simulator: one clock for the whole process.
    process_clock: Delay,
}

impl<S: Safeguards> Satellite<S> {
    /// A satellite that is not attached yet.
    pub fn new(process: ProcessIndex, mode: Mode, safeguards: S) -> Self {
        Self {
            process,
            mode,
            safeguards,
            attached: false,
            permit: LocalPermit::default(),
            breakpoints: Breakpoints::default(),
            stops: Stops::default(),
            inside: Inside::default(),
            hold: ProcessHold::default(),
            next_due: None,
            next_number: 0,
            changed: Vec::new(),
            outputs: VecDeque::new(),
            process_clock: Delay::ZERO,
        }
    }

    /// The greatest delay known in this process.
    pub fn floor(&self) -> Delay {
        self.permit.floor()
    }

    /// The same, and the delay of whoever stands still now and may still come here.
    pub fn furthest_behind(&self, now: RealTime) -> Delay {
        let standing = self.furthest_standing().map(|(clock, _)| now.delay_of(clock));
        standing.map_or(self.floor(), |delay| delay.max(self.floor()))
    }

    /// The breakpoints that are planted here.
    pub fn breakpoints(&self) -> &Breakpoints {
        &self.breakpoints
    }

    /// Who stands under this number, and where.
    pub fn standing(&self, number: u64) -> Option<(StrandId, &Gate)> {
        self.stops.get(number).map(|stop| (stop.strand.id, &stop.gate))
    }

    /// The breakpoint that will stop it, if the rule makes it wait before one.
    pub fn awaited(&self, number: u64) -> Option<BreakpointId> {
        let stop = self.stops.get(number).filter(|stop| !stop.broke)?;
        self.breakpoints.will_stop(&stop.gate, &stop.strand.met)
    }

    /// How many strands stand still at a gate.
    pub fn stopped(&self) -> usize {
        self.stops.len()
    }

    /// How many of them only the user can let go.
    pub fn held_by_user(&self) -> usize {
        self.stops.users_len()
    }

    /// If nobody stands still and there is nothing to look out for: the delay with
    /// which everybody may pass without further question.
    #[inline]
    pub fn quiet_at(&self) -> Option<Delay> {
        self.calm_at().filter(|_| self.breakpoints.is_empty())
    }

    /// The same for everybody whom no breakpoint can meet.
    #[inline]
    pub fn calm_at(&self) -> Option<Delay> {
        let quiet = self.mode == Mode::Permit
            && self.stops.is_empty()
            && self.permit.is_quiet()
            && !self.hold.is_on()
            && self.safeguards.on(Safeguard::ClockPerControl);
        quiet.then(|| self.permit.floor())
    }

    /// A strand comes to a gated event.
    #[inline]
    pub fn handle_event(&mut self, now: RealTime, strand: &Strand, gate: &Gate) -> Verdict {
        // The way of nearly every event.
        if self.quiet_at() == Some(strand.delay) {
            return Verdict::Go(strand.delay);
        }
        self.judge_event(now, strand.clone(), gate)
    }

    /// A control without a past comes in from outside: it takes over the
    /// greatest delay among the clients of this process.
    pub fn handle_newcomer(&mut self, now: RealTime, strand: &Strand, gate: &Gate) -> Verdict {
        if !self.safeguards.on(Safeguard::LateJoinerTakesDelay) {
            return self.handle_event(now, strand, gate);
        }
        if self.mode == Mode::Ask && self.attached {
            let clock = now - Delay::ZERO;
            let number = self.file_stop(strand.clone(), gate.clone(), StopReason::Delay, clock);
            let stack = strand.stack.clone();
            self.send(ToCentral::Ask { number, stack, delay: None, sent: now });
            return Verdict::Stopped;
        }
        let mut strand = strand.clone();
        strand.delay = self.permit.floor();
        // It comes just after whoever stands still and is furthest behind (and so
        // after all that has happened here), and goes on with that one.
        let held = self.stops.furthest_held(None).map(|(clock, _)| clock);
        let standing = held.into_iter().chain(self.permit.furthest_behind()).min();
        let clock = standing.map(VirtualTime::just_after).filter(|c| *c < now - strand.delay);
        let Some(clock) = clock else { return self.handle_event(now, &strand, gate) };
        self.stop(now, strand, gate.clone(), StopReason::Delay, clock);
        self.pump(now);
        Verdict::Stopped
    }

    /// A strand is dropped, wherever it is.
    pub fn handle_drop(&mut self, now: RealTime, strand: StrandId) {
        if let Some(waiter) = self.inside.remove(strand)
            && let Some(number) = waiter.number
        {
            self.send(ToCentral::Gone { number, delay: waiter.strand.delay });
        }
        if let Some(number) = self.stops.number_of(strand) {
            let delay = self.charged_so_far(now, number);
            self.permit.raise(delay);
            self.forget(now, number, delay);
            self.pump(now);
        }
    }

    /// The process has a new connection.
    pub fn handle_connected(&mut self, to: ProcessIndex) {
        self.send(ToCentral::Connected { to });
    }

    /// A first call comes from this process.
    pub fn handle_accepted(&mut self, from: ProcessIndex) {
        self.send(ToCentral::Accepted { from });
    }

    /// Central applies the rule in this way. It says so before anything else, so nobody
    /// stands still yet.
    pub fn handle_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    /// Central has answered: its rules hold from now on.
    pub fn handle_attached(&mut self, now: RealTime) {
        self.attached = true;
        // What it has met alone, or while it dialled, central may not know.
        let floor = self.permit.floor();
        if floor > Delay::ZERO {
            self.send(ToCentral::Raised { floor });
        }
        self.register_inside(now);
    }

    /// Central is lost: nobody stays held, delays stay.
    pub fn handle_lost(&mut self, now: RealTime) {
        self.attached = false;
        self.breakpoints.clear();
        self.hold = ProcessHold::default();
        self.inside.forget_numbers();
        self.permit.let_go(now);
        // What waited here for what was held here goes on after it.
        let held = self.stops.furthest_held(None).map(|(clock, _)| now.delay_of(clock));
        self.permit.raise(held.unwrap_or_default());
        self.next_due = None;
        self.outputs.retain(|output| !matches!(output, Output::Send(_)));
        for number in self.stops.numbers() {
            let Some(stop) = self.stops.get(number) else { continue };
            let delay = match self.safeguards.on(Safeguard::DelaysKeptOnLoss) {
                true => stop.grown(now).max(self.permit.floor()),
                false => Delay::ZERO,
            };
            self.leave(now, number, delay);
        }
        if !self.safeguards.on(Safeguard::DelaysKeptOnLoss) {
            self.permit = LocalPermit::default();
        }
    }

    /// Central says something.
    pub fn handle_central(&mut self, now: RealTime, message: ToSatellite) {
        match message {
            ToSatellite::Permit(permit) => {
                self.permit.adopt(now, &permit);
                self.register_inside(now);
            }
            ToSatellite::Vanished { permit } => {
                self.permit.adopt(now, &permit);
                self.register_inside(now);
                self.go_on_at_once(now);
            }
            ToSatellite::Continue { number } => self.end_users_stop(now, number),
            ToSatellite::Force { number } => {
                let delay = self.charged_so_far(now, number);
                self.let_go(now, number, delay, true);
            }
            ToSatellite::Pass { number } => {
                let delay = self.charged_so_far(now, number);
                self.let_go(now, number, delay, false);
            }
            ToSatellite::Pause(pause) => {
                if self.hold.pause(now, pause) {
                    self.end_process_stops(now);
                }
            }
            ToSatellite::Plant(breakpoint) => self.breakpoints.plant(breakpoint),
            ToSatellite::Remove(id) => {
                self.breakpoints.remove(id);
            }
            ToSatellite::Granted { number, delay } => {
                if self.stops.get(number).is_some_and(|stop| !stop.reason.is_users()) {
                    self.pass_gate(now, number, delay);
                }
            }
        }
        self.pump(now);
    }

    /// Time has come to where [`Satellite::poll_timeout`] said.
    pub fn handle_timeout(&mut self, now: RealTime) {
        self.pump(now);
    }

    /// When [`Satellite::handle_timeout`] wants to be called, if nothing happens.
    pub fn poll_timeout(&self) -> Option<RealTime> {
        self.next_due
    }

    /// What the driver must do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn judge_event(&mut self, now: RealTime, mut strand: Strand, gate: &Gate) -> Verdict {
        if !self.attached {
            // Nobody else tells of delays now but those who come with them.
            self.permit.raise(strand.delay);
            return Verdict::Go(self.permit.floor());
        }
        if !self.safeguards.on(Safeguard::ClockPerControl) {
            strand.delay = self.process_clock;
        }
        let delay = strand.delay;
        let clock = now - delay;
        // Whom the user has let go on anyway nobody asks for.
        if self.mode == Mode::Ask && !strand.is_free {
            self.stop(now, strand, gate.clone(), StopReason::Delay, clock);
            return Verdict::Stopped;
        }
        if self.permit.raise(delay) {
            self.send(ToCentral::Raised { floor: delay });
            self.register_inside(now);
        }
        let judgement = match self.is_gated(gate) && !strand.is_free {
            true => self.judge(clock, delay, None),
            false => Judgement::Go,
        };
        if judgement == Judgement::Go {
            let Some((reason, scope)) = self.stopped_by_user(gate, &strand.met) else {
                return Verdict::Go(delay);
            };
            let from_start = !self.safeguards.on(Safeguard::HoldChargesFromStop);
            let charged = self.hold.since().filter(|_| from_start && reason == StopReason::Process);
            let clock = charged.unwrap_or(now) - delay;
            let number = self.stop(now, strand, gate.clone(), reason, clock);
            self.begin_process_hold(now, number, scope);
            return Verdict::Stopped;
        }
        self.stop(now, strand, gate.clone(), StopReason::Delay, clock);
        if let Judgement::When(demanded, _) = judgement {
            self.look_again_at(clock + demanded);
        }
        Verdict::Stopped
    }

    fn is_gated(&self, gate: &Gate) -> bool {
        let off = |safeguard| !self.safeguards.on(safeguard);
        !(gate.is_timer() && off(Safeguard::TimersGated)
            || gate.is_departure() && off(Safeguard::DeparturesGated)
            || gate.is_arrival() && off(Safeguard::GateAtArrival))
    }

    /// The rule, with what stands still in this process counted in. Local stops
    /// by the rule need not be: whatever blocks them is a client of this process
    /// and blocks directly.
    fn judge(&self, clock: VirtualTime, delay: Delay, me: Option<u64>) -> Judgement {
        if let Some((behind, number)) = self.stops.furthest_held(me)
            && behind <= clock
            && self.safeguards.on(Safeguard::BeingInCounts)
        {
            return Judgement::Blocked(self.id(number));
        }
        if !self.safeguards.on(Safeguard::AheadBlocksNobody) {
            let other = self.stops.numbers().into_iter().find(|number| Some(*number) != me);
            let elsewhere = self.permit.open().map(|open| open.1);
            if let Some(by) = other.map(|number| self.id(number)).or(elsewhere) {
                return Judgement::Blocked(by);
            }
        }
        self.permit.judge(clock, delay)
    }

    /// The stop furthest behind that nobody knows the end of, here or elsewhere.
    fn furthest_standing(&self) -> Option<(VirtualTime, StopId)> {
        let here = self.stops.furthest_held(None).map(|(clock, number)| (clock, self.id(number)));
        here.into_iter().chain(self.permit.open()).min()
    }

    /// Whether the user wants this event stopped, now that the rule allows it.
    fn stopped_by_user(
        &mut self,
        gate: &Gate,
        met: &[BreakpointId],
    ) -> Option<(StopReason, Scope)> {
        if self.hold.is_on() {
            return Some((StopReason::Process, Scope::Call));
        }
        self.breakpoints.hit(gate, met).map(|(id, scope)| (StopReason::Breakpoint(id), scope))
    }

    /// Makes a strand stand still, with its clock at `clock`.
    fn stop(
        &mut self,
        now: RealTime,
        strand: Strand,
        gate: Gate,
        reason: StopReason,
        clock: VirtualTime,
    ) -> u64 {
        let number = self.file_stop(strand, gate, reason, clock);
        self.tell(now, number);
        number
    }

    fn file_stop(
        &mut self,
        strand: Strand,
        gate: Gate,
        reason: StopReason,
        clock: VirtualTime,
    ) -> u64 {
        self.next_number += 1;
        let counts = (!gate.is_timer() || self.safeguards.on(Safeguard::TimersCount))
            && (!strand.is_branch || self.safeguards.on(Safeguard::BranchesCount));
        let (least, broke) = (strand.delay, reason.is_users());
        let once = !self.safeguards.on(Safeguard::Reevaluation);
        let judged_once = match self.permit.judge(clock, least) {
            Judgement::When(demanded, _) if once => Some(demanded),
            _ => None,
        };
        let stop = Stop { strand, gate, reason, clock, least, broke, counts, judged_once };
        self.stops.insert(self.next_number, stop);
        self.next_number
    }

    /// Tells central that a stop stands, and why.
    fn tell(&mut self, now: RealTime, number: u64) {
        let Some(stop) = self.stops.get(number) else { return };
        let is_users = stop.reason.is_users();
        let message = if self.mode == Mode::Ask && !is_users {
            ToCentral::Ask { number, stack: stop.stack(), delay: Some(stop.least), sent: now }
        } else {
            stop.as_message(now, number)
        };
        self.send(message);
        if is_users {
            self.register_inside(now);
        }
    }

    /// The rule lets a stop go: now its breakpoints have their say.
    fn pass_gate(&mut self, now: RealTime, number: u64, delay: Delay) {
        let Some(stop) = self.stops.get(number) else { return };
        let (gate, broke) = (stop.gate.clone(), stop.broke);
        let met = stop.strand.met.clone();
        let asked = !broke || self.hold.is_on();
        let held = asked.then(|| self.stopped_by_user(&gate, &met)).flatten();
        let Some((reason, scope)) = held else { return self.leave(now, number, delay) };
        self.change(now, number, reason, delay);
        self.tell(now, number);
        self.begin_process_hold(now, number, scope);
    }

    /// The user ends a stop; from here the rule decides.
    fn end_users_stop(&mut self, now: RealTime, number: u64) {
        let Some(stop) = self.stops.get(number) else { return };
        if !stop.reason.is_users() {
            // The rule decides already; the user has no wish to see it again.
            return self.stops.break_no_more(number);
        }
        if stop.strand.is_free {
            return self.leave(now, number, stop.grown(now));
        }
        self.change(now, number, StopReason::Delay, stop.grown(now));
        if self.mode == Mode::Ask {
            self.tell(now, number);
        } else {
            self.changed.push(number);
        }
        if self.hold.end(number) {
            self.end_process_stops(now);
        }
    }

    /// A stop goes on for another reason, charged up to now.
    fn change(&mut self, now: RealTime, number: u64, reason: StopReason, delay: Delay) {
        let Some(mut stop) = self.stops.remove(number) else { return };
        (stop.reason, stop.clock, stop.least) = (reason, now - delay, delay);
        stop.broke |= reason.is_users();
        self.stops.insert(number, stop);
        self.permit.raise(delay);
        self.register_inside(now);
    }

    fn begin_process_hold(&mut self, now: RealTime, number: u64, scope: Scope) {
        if scope == Scope::Process {
            self.hold.begin(now, number);
        }
    }

    /// Nobody holds the process any more.
    fn end_process_stops(&mut self, now: RealTime) {
        for number in self.stops.with_reason(StopReason::Process) {
            self.end_users_stop(now, number);
        }
    }

    fn leave(&mut self, now: RealTime, number: u64, delay: Delay) {
        self.let_go(now, number, delay, false);
    }

    fn let_go(&mut self, now: RealTime, number: u64, delay: Delay, forced: bool) {
        if let Some(strand) = self.forget(now, number, delay) {
            self.permit.raise(delay);
            self.process_clock = self.process_clock.max(delay);
            self.outputs.push_back(Output::Resume { strand, delay, forced });
        }
    }

    /// A stop is over, and so is what it did to the process.
    fn forget(&mut self, now: RealTime, number: u64, delay: Delay) -> Option<StrandId> {
        let stop = self.stops.remove(number)?;
        self.send(ToCentral::Gone { number, delay });
        if self.hold.end(number) {
            self.end_process_stops(now);
        }
        Some(stop.strand.id)
    }

    fn send(&mut self, message: ToCentral) {
        if self.attached {
            self.outputs.push_back(Output::Send(message));
        }
    }

    fn id(&self, number: u64) -> StopId {
        StopId { process: self.process, number }
    }
}
