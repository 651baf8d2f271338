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

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{
    AllOn, BreakpointId, Delay, ProcessIndex, RealTime, Safeguard, Safeguards, Scope, StopId,
    StopReason, ToCentral, ToSatellite, VirtualTime,
};

use super::breakpoints::Breakpoints;
use super::permit::{Judgement, LocalPermit};
use super::strand::{Gate, Strand, StrandId};

/// How the rule is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the satellite itself, from what central has told it.
    Permit,
    /// By central, which is asked at every event: the reference.
    Ask,
}

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
    },
}

/// Why a strand stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why {
    /// The kind of stop.
    pub reason: StopReason,
    /// Whom it waits for, where the rule makes it wait.
    pub by: Option<StopId>,
    /// The process that both may enter.
    pub through: ProcessIndex,
    /// How long it still has to stand, counted from the end of the stop that it
    /// waits for if `open`, and from now if not.
    pub at_least: Duration,
    /// Whether nobody knows when that stop ends.
    pub open: bool,
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
    stops: BTreeMap<u64, Stop>,
    number_of: BTreeMap<StrandId, u64>,
    /// Stops that only the user can end, furthest behind first.
    users: BTreeSet<(VirtualTime, u64)>,
    /// Stops that the rule will end, furthest behind first.
    waiting: BTreeSet<(VirtualTime, u64)>,
    inside: BTreeMap<StrandId, Inside>,
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

#[derive(Debug)]
struct Stop {
    strand: Strand,
    gate: Gate,
    reason: StopReason,
    since: RealTime,
    /// At `since`.
    delay: Delay,
    /// Whether its breakpoints have had their say.
    broke: bool,
    /// Whether central is to know of it.
    counts: bool,
    /// Only for the simulator: judged once and never again.
    judged_once: Option<(RealTime, Delay)>,
}

impl Stop {
    fn clock(&self) -> VirtualTime {
        self.since - self.delay
    }

    fn grown(&self, now: RealTime) -> Delay {
        self.delay + now.since(self.since)
    }
}

#[derive(Debug)]
struct Inside {
    strand: Strand,
    since: RealTime,
    /// Its number, once central knows of it.
    number: Option<u64>,
}

/// Who holds the whole process.
#[derive(Debug, Default)]
struct ProcessHold {
    stops: BTreeSet<u64>,
    paused: bool,
    since: Option<RealTime>,
}

impl ProcessHold {
    fn is_on(&self) -> bool {
        self.paused || !self.stops.is_empty()
    }
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
            stops: BTreeMap::new(),
            number_of: BTreeMap::new(),
            users: BTreeSet::new(),
            waiting: BTreeSet::new(),
            inside: BTreeMap::new(),
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

    /// How many strands stand still at a gate.
    pub fn stopped(&self) -> usize {
        self.stops.len()
    }

    /// How many of them only the user can let go.
    pub fn held_by_user(&self) -> usize {
        self.users.len()
    }

    /// A strand comes to a gated event.
    #[inline]
    pub fn handle_event(&mut self, now: RealTime, strand: &Strand, gate: &Gate) -> Verdict {
        // The way of nearly every event: nobody stands still, nobody is further
        // behind, nothing to look out for.
        let quiet = self.mode == Mode::Permit
            && self.stops.is_empty()
            && self.permit.is_quiet()
            && self.breakpoints.is_empty()
            && !self.hold.is_on()
            && self.attached
            && self.safeguards.on(Safeguard::ClockPerControl);
        if quiet && strand.delay == self.permit.floor() {
            return Verdict::Go(strand.delay);
        }
        self.judge_event(now, strand, gate)
    }

    /// A control without a past comes in from outside: it takes over the
    /// greatest delay among the clients of this process.
    pub fn handle_newcomer(&mut self, now: RealTime, strand: &Strand, gate: &Gate) -> Verdict {
        if self.mode == Mode::Ask && self.attached {
            self.stop(now, strand.clone(), gate.clone(), StopReason::Delay, None);
            return Verdict::Stopped;
        }
        let mut strand = strand.clone();
        if self.safeguards.on(Safeguard::LateJoinerTakesDelay) {
            let held = self.users.first().map(|(clock, _)| now.delay_of(*clock).just_less());
            strand.delay = self.permit.newcomer(now).max(held.unwrap_or_default());
        }
        self.handle_event(now, &strand, gate)
    }

    /// A strand begins to wait inside the program.
    pub fn handle_wait_inside(&mut self, now: RealTime, strand: &Strand) {
        let inside = Inside { strand: strand.clone(), since: now, number: None };
        self.inside.insert(strand.id, inside);
        self.register_inside();
    }

    /// A strand that waited inside the program goes on, with this delay.
    pub fn handle_wake_inside(&mut self, now: RealTime, strand: StrandId, delay: Delay) -> Delay {
        let Some(inside) = self.inside.remove(&strand) else { return delay };
        let stood = !self.safeguards.on(Safeguard::InsideClockRuns);
        let delay = if stood { inside.strand.delay + now.since(inside.since) } else { delay };
        if let Some(number) = inside.number {
            self.send(ToCentral::Gone { number, delay });
        }
        delay
    }

    /// A strand is dropped, wherever it is.
    pub fn handle_drop(&mut self, now: RealTime, strand: StrandId) {
        if let Some(inside) = self.inside.remove(&strand)
            && let Some(number) = inside.number
        {
            self.send(ToCentral::Gone { number, delay: inside.strand.delay });
        }
        if let Some(&number) = self.number_of.get(&strand) {
            self.end_process_hold_of(now, number);
            self.forget(number, |stop| stop.grown(now));
            self.pump(now);
        }
    }

    /// The process has a new connection.
    pub fn handle_connected(&mut self, to: ProcessIndex) {
        self.send(ToCentral::Connected { to });
    }

    /// Central has answered: its rules hold from now on.
    pub fn handle_attached(&mut self) {
        self.attached = true;
        self.register_inside();
    }

    /// Central is lost: nobody stays held, delays stay.
    pub fn handle_lost(&mut self, now: RealTime) {
        self.attached = false;
        self.breakpoints.clear();
        self.hold = ProcessHold::default();
        // Others may find out a little later, and let go what they hold then:
        // what waits for them here, timers above all, allows for that.
        let open = self.permit.open().is_some();
        self.permit.let_go(now);
        if open {
            self.permit.raise(self.permit.floor() + HEARTBEAT);
        }
        for number in self.stops.keys().copied().collect::<Vec<_>>() {
            let stop = &self.stops[&number];
            let mut delay = stop.grown(now).max(self.permit.floor());
            if !self.safeguards.on(Safeguard::DelaysKeptOnLoss) {
                delay = Delay::ZERO;
            }
            self.leave(number, delay);
        }
        for inside in self.inside.values_mut() {
            inside.number = None;
        }
        self.outputs.retain(|output| !matches!(output, Output::Send(_)));
        self.next_due = None;
        if !self.safeguards.on(Safeguard::DelaysKeptOnLoss) {
            self.permit = LocalPermit::default();
        }
    }

    /// Central says something.
    pub fn handle_central(&mut self, now: RealTime, message: ToSatellite) {
        match message {
            ToSatellite::Permit(permit) => {
                self.permit.adopt(now, &permit);
                self.register_inside();
            }
            ToSatellite::Vanished { permit } => {
                self.permit.adopt(now, &permit);
                self.go_on_at_once();
            }
            ToSatellite::Continue { number } => self.end_users_stop(now, number),
            ToSatellite::Force { number } => {
                if let Some(delay) = self.stops.get(&number).map(|stop| stop.grown(now)) {
                    self.end_process_hold_of(now, number);
                    self.leave(number, delay);
                }
            }
            ToSatellite::Pause(pause) => {
                self.hold.paused = pause;
                if pause {
                    self.hold.since.get_or_insert(now);
                } else {
                    self.end_process_hold_if_over(now);
                }
            }
            ToSatellite::Plant(breakpoint) => self.breakpoints.plant(breakpoint),
            ToSatellite::Remove(id) => {
                self.breakpoints.remove(id);
            }
            ToSatellite::Granted { number, delay } => {
                if self.stops.get(&number).is_some_and(|stop| !stop.reason.is_users()) {
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

    /// Why a strand stands still, if it does.
    pub fn why(&self, now: RealTime, strand: StrandId) -> Option<Why> {
        let number = *self.number_of.get(&strand)?;
        let stop = &self.stops[&number];
        let through = self.process;
        let mut why =
            Why { reason: stop.reason, by: None, through, at_least: Duration::ZERO, open: true };
        if stop.reason.is_users() {
            return Some(why);
        }
        match self.judge(stop.clock(), stop.delay, Some(number)) {
            Judgement::Go => why.open = false,
            Judgement::When(demanded, by) => {
                (why.by, why.open) = (by, false);
                why.at_least = demanded.beyond(stop.grown(now));
            }
            Judgement::Blocked(by) => {
                why.by = Some(by);
                let behind = self.users.first().map(|(clock, _)| *clock);
                let behind = behind.into_iter().chain(self.permit.open().map(|open| open.0)).min();
                why.at_least = behind.map_or(Duration::ZERO, |clock| stop.clock().since(clock));
            }
        }
        Some(why)
    }

    fn judge_event(&mut self, now: RealTime, strand: &Strand, gate: &Gate) -> Verdict {
        if !self.attached {
            return Verdict::Go(strand.delay.max(self.permit.floor()));
        }
        let mut delay = strand.delay;
        if !self.safeguards.on(Safeguard::ClockPerControl) {
            delay = self.process_clock;
        }
        if self.mode == Mode::Ask {
            self.stop(now, strand.clone(), gate.clone(), StopReason::Delay, Some(delay));
            return Verdict::Stopped;
        }
        if self.permit.raise(delay) {
            self.send(ToCentral::Raised { floor: delay });
            self.register_inside();
        }
        let judgement = if self.is_gated(gate) {
            self.judge(now - delay, delay, None)
        } else {
            Judgement::Go
        };
        if judgement == Judgement::Go {
            let Some((reason, scope)) = self.stopped_by_user(gate) else { return Verdict::Go(delay) };
            let number = self.stop(now, strand.clone(), gate.clone(), reason, Some(delay));
            self.begin_process_hold(now, number, scope);
            return Verdict::Stopped;
        }
        let number = self.stop(now, strand.clone(), gate.clone(), StopReason::Delay, Some(delay));
        if let Judgement::When(demanded, _) = judgement {
            let due = (now - delay) + demanded;
            self.next_due = Some(self.next_due.map_or(due, |earlier| earlier.min(due)));
            if !self.safeguards.on(Safeguard::Reevaluation)
                && let Some(stop) = self.stops.get_mut(&number)
            {
                stop.judged_once = Some((due, demanded));
            }
        }
        Verdict::Stopped
    }

    fn is_gated(&self, gate: &Gate) -> bool {
        let off = |safeguard| !self.safeguards.on(safeguard);
        !(*gate == Gate::Timer && off(Safeguard::TimersGated)
            || gate.is_departure() && off(Safeguard::DeparturesGated)
            || gate.is_arrival() && off(Safeguard::GateAtArrival))
    }

    /// The rule, with what stands still in this process counted in. Local stops
    /// by the rule need not be: whatever blocks them is a client of this process
    /// and blocks directly.
    fn judge(&self, clock: VirtualTime, delay: Delay, me: Option<u64>) -> Judgement {
        let mut standing = self.users.iter().filter(|(_, number)| Some(*number) != me);
        if let Some(&(behind, number)) = standing.next()
            && behind <= clock
            && self.safeguards.on(Safeguard::BeingInCounts)
        {
            return Judgement::Blocked(self.id(number));
        }
        if !self.safeguards.on(Safeguard::AheadBlocksNobody) {
            let other = self.stops.keys().find(|number| Some(**number) != me);
            let elsewhere = self.permit.open().map(|open| open.1);
            if let Some(by) = other.map(|number| self.id(*number)).or(elsewhere) {
                return Judgement::Blocked(by);
            }
        }
        self.permit.judge(clock, delay)
    }

    /// Whether the user wants this event stopped, now that the rule allows it.
    fn stopped_by_user(&mut self, gate: &Gate) -> Option<(StopReason, Scope)> {
        if self.hold.is_on() {
            return Some((StopReason::Process, Scope::Call));
        }
        self.breakpoints.hit(gate).map(|(id, scope)| (StopReason::Breakpoint(id), scope))
    }

    /// Makes a strand stand still. Without a delay it is a newcomer that asks.
    fn stop(
        &mut self,
        now: RealTime,
        mut strand: Strand,
        gate: Gate,
        reason: StopReason,
        delay: Option<Delay>,
    ) -> u64 {
        self.next_number += 1;
        let number = self.next_number;
        let newcomer = delay.is_none();
        let mut delay = delay.unwrap_or(strand.delay);
        if reason == StopReason::Process
            && !self.safeguards.on(Safeguard::HoldChargesFromStop)
            && let Some(since) = self.hold.since
        {
            delay += now.since(since);
        }
        strand.delay = delay;
        let counts = (gate != Gate::Timer || self.safeguards.on(Safeguard::TimersCount))
            && (!strand.is_branch || self.safeguards.on(Safeguard::BranchesCount));
        self.number_of.insert(strand.id, number);
        let stop = Stop {
            strand,
            gate,
            reason,
            since: now,
            delay,
            broke: reason.is_users(),
            counts,
            judged_once: None,
        };
        if counts && self.mode == Mode::Ask && !reason.is_users() {
            let stack = stop.strand.stack.clone();
            let delay = (!newcomer).then_some(delay);
            self.send(ToCentral::Ask { number, stack, delay });
        } else if counts {
            self.send(stopped(number, &stop));
        }
        self.file(number, &stop);
        self.stops.insert(number, stop);
        if reason.is_users() {
            self.register_inside();
        }
        number
    }

    fn file(&mut self, number: u64, stop: &Stop) {
        let place = (stop.clock(), number);
        if stop.reason.is_users() {
            self.users.insert(place);
        } else {
            self.waiting.insert(place);
        }
    }

    /// The rule lets a stop go: now its breakpoints have their say.
    fn pass_gate(&mut self, now: RealTime, number: u64, delay: Delay) {
        let Some(stop) = self.stops.get(&number) else { return };
        let (gate, broke) = (stop.gate.clone(), stop.broke);
        let held = if broke && !self.hold.is_on() { None } else { self.stopped_by_user(&gate) };
        match held {
            None => self.leave(number, delay),
            Some((reason, scope)) => {
                self.change(now, number, reason, delay);
                self.begin_process_hold(now, number, scope);
            }
        }
    }

    /// The user ends a stop; from here the rule decides.
    fn end_users_stop(&mut self, now: RealTime, number: u64) {
        let Some(stop) = self.stops.get(&number) else { return };
        if stop.reason.is_users() {
            self.change(now, number, StopReason::Delay, stop.grown(now));
            self.end_process_hold_of(now, number);
        }
    }

    /// A stop goes on for another reason, charged up to now. Central is told
    /// when it is known whether it stays.
    fn change(&mut self, now: RealTime, number: u64, reason: StopReason, delay: Delay) {
        let Some(mut stop) = self.stops.remove(&number) else { return };
        self.unfile(number, &stop);
        (stop.reason, stop.since, stop.delay) = (reason, now, delay);
        self.permit.raise(delay);
        stop.broke |= reason.is_users();
        if stop.counts && self.mode == Mode::Ask && !reason.is_users() {
            let stack = stop.strand.stack.clone();
            self.send(ToCentral::Ask { number, stack, delay: Some(delay) });
        } else if stop.counts && reason.is_users() {
            self.send(stopped(number, &stop));
        } else {
            self.changed.push(number);
        }
        self.file(number, &stop);
        self.stops.insert(number, stop);
        self.register_inside();
    }

    fn unfile(&mut self, number: u64, stop: &Stop) {
        let place = (stop.clock(), number);
        self.users.remove(&place);
        self.waiting.remove(&place);
    }

    fn begin_process_hold(&mut self, now: RealTime, number: u64, scope: Scope) {
        if scope == Scope::Process {
            self.hold.stops.insert(number);
            self.hold.since.get_or_insert(now);
        }
    }

    fn end_process_hold_of(&mut self, now: RealTime, number: u64) {
        if self.hold.stops.remove(&number) {
            self.end_process_hold_if_over(now);
        }
    }

    fn end_process_hold_if_over(&mut self, now: RealTime) {
        if self.hold.is_on() {
            return;
        }
        self.hold.since = None;
        let held = self.stops.iter().filter(|(_, stop)| stop.reason == StopReason::Process);
        for number in held.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.end_users_stop(now, number);
        }
    }

    /// Lets go whatever the rule lets go, furthest behind first, and finds out
    /// when to look again. Where one is blocked, so are all behind whom it is not.
    fn pump(&mut self, now: RealTime) {
        self.next_due = None;
        if self.mode == Mode::Ask {
            return;
        }
        let waiting: Vec<u64> = self.waiting.iter().map(|(_, number)| *number).collect();
        for number in waiting {
            let Some(stop) = self.stops.get(&number) else { continue };
            let (clock, delay) = (stop.clock(), stop.delay);
            let mut judgement = self.judge(clock, delay, Some(number));
            if !self.is_gated(&stop.gate) {
                judgement = Judgement::Go;
            }
            if let Some((due, demanded)) = stop.judged_once {
                judgement =
                    if now < due { Judgement::When(demanded, None) } else { Judgement::Go };
            }
            let demanded = match judgement {
                Judgement::Go => delay,
                Judgement::When(demanded, _) if now >= clock + demanded => demanded,
                Judgement::When(demanded, _) => {
                    let due = clock + demanded;
                    self.next_due = Some(self.next_due.map_or(due, |earlier| earlier.min(due)));
                    continue;
                }
                Judgement::Blocked(_) if self.safeguards.on(Safeguard::Reevaluation) => break,
                Judgement::Blocked(_) => continue,
            };
            let charged = !self.safeguards.on(Safeguard::LatencyNotCharged);
            let delay = if charged { stop.grown(now) } else { demanded };
            self.pass_gate(now, number, delay);
            if !self.safeguards.on(Safeguard::TiesTogether) {
                break;
            }
        }
        for number in std::mem::take(&mut self.changed) {
            match self.stops.get(&number) {
                Some(stop) if stop.counts && !stop.reason.is_users() => {
                    let message = stopped(number, stop);
                    self.send(message);
                }
                _ => {}
            }
        }
    }

    /// Somebody that was waited for is gone without a word: all that nothing
    /// else blocks go on now, with the delay they would have reached.
    fn go_on_at_once(&mut self) {
        let waiting: Vec<u64> = self.waiting.iter().map(|(_, number)| *number).collect();
        for number in waiting {
            let stop = &self.stops[&number];
            match self.judge(stop.clock(), stop.delay, Some(number)) {
                Judgement::Go => self.leave(number, stop.delay),
                Judgement::When(demanded, _) => self.leave(number, demanded),
                Judgement::Blocked(_) => {}
            }
        }
    }

    fn leave(&mut self, number: u64, delay: Delay) {
        if let Some(strand) = self.forget(number, |_| delay) {
            self.permit.raise(delay);
            self.process_clock = self.process_clock.max(delay);
            self.outputs.push_back(Output::Resume { strand, delay });
        }
    }

    fn forget(&mut self, number: u64, delay: impl FnOnce(&Stop) -> Delay) -> Option<StrandId> {
        let stop = self.stops.remove(&number)?;
        self.unfile(number, &stop);
        self.number_of.remove(&stop.strand.id);
        self.hold.stops.remove(&number);
        if stop.counts {
            self.send(ToCentral::Gone { number, delay: delay(&stop) });
        }
        Some(stop.strand.id)
    }

    /// Tells central of those who wait inside while something affects this
    /// process: it affects them, and so what they may enter next.
    fn register_inside(&mut self) {
        if !self.attached || !self.safeguards.on(Safeguard::InsideFollowed) {
            return;
        }
        let blocked = self.mode == Mode::Ask || !self.permit.is_quiet() || !self.users.is_empty();
        let floor = self.permit.floor();
        let reason = if self.safeguards.on(Safeguard::InsideClockRuns) {
            StopReason::Inside
        } else {
            StopReason::Breakpoint(BreakpointId(u32::MAX))
        };
        for inside in self.inside.values_mut() {
            if inside.number.is_none() && (blocked || inside.strand.delay < floor) {
                self.next_number += 1;
                inside.number = Some(self.next_number);
                self.outputs.push_back(Output::Send(ToCentral::Stopped {
                    number: self.next_number,
                    reason,
                    stack: inside.strand.stack.clone(),
                    delay: inside.strand.delay,
                }));
            }
        }
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

fn stopped(number: u64, stop: &Stop) -> ToCentral {
    let stack = stop.strand.stack.clone();
    ToCentral::Stopped { number, reason: stop.reason, stack, delay: stop.delay }
}
