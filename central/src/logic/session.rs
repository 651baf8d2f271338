//! Central's state machine: satellites and the user come in by `handle_*`, what
//! must be sent is taken by [`Central::poll_output`].
//!
//! Central never speaks first: it sends a process something only when what that
//! process must know has changed. In steady state there is nothing to send, and
//! a process that no held strand can reach hears nothing at all.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use ddbx_protocol::session::TIMED_MAX;
use ddbx_protocol::{
    AllOn, Breakpoint, BreakpointId, Delay, Mode, Open, Permit, ProcessIndex, Reading, RealTime,
    Safeguard, Safeguards, Stack, StopId, StopReason, Timed, ToCentral, ToSatellite, VirtualTime,
};

use super::ask;
use super::permits::{Floors, Known, known};
use super::stops::{Stop, Stops};
use super::topology::{Processes, Topology};

/// How many may stand still, or wait inside their processes, in one session. Each takes some
/// hundred bytes here, and in its process the call itself.
const STOPS_MAX: usize = 1 << 18;

/// How many processes are remembered that have left: they may come back.
const LEFT_MAX: usize = 1_024;

/// What the user asks for.
#[derive(Clone, Debug)]
pub enum Command {
    /// Let a stop go on, under the rule.
    Continue(StopId),
    /// Let a stop go on whatever the rule says.
    Force(StopId),
    /// Let a stop pass this one gate whatever the rule says.
    Pass(StopId),
    /// Hold a whole process, or end that.
    Pause(ProcessIndex, bool),
    /// Plant a breakpoint in a process, now and whenever it joins.
    Plant(ProcessIndex, Breakpoint),
    /// Plant a breakpoint in these processes and nowhere else. Where it was before, it is
    /// replaced in one step: nobody slips through.
    Replant(BreakpointId, Vec<(ProcessIndex, Breakpoint)>),
    /// Remove a breakpoint everywhere.
    Remove(BreakpointId),
}

/// Why somebody stands still: one step of the chain to the user's own hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Because {
    /// Who stands still.
    pub stop: StopId,
    /// Why.
    pub reason: StopReason,
    /// Its clock.
    pub clock: VirtualTime,
}

/// The central debugger of one session.
#[derive(Debug)]
pub struct Central<S: Safeguards = AllOn> {
    mode: Mode,
    safeguards: S,
    topology: Topology,
    floors: Floors,
    stops: Stops<S>,
    stops_max: usize,
    members: BTreeMap<ProcessIndex, Member>,
    /// Those who have left, the first to leave first.
    left: VecDeque<ProcessIndex>,
    forgotten: u64,
    breakpoints: Vec<(ProcessIndex, Breakpoint)>,
    /// Processes that the user has paused.
    paused: Processes,
    /// Ask mode: the delays with which waiting strands came.
    asked: BTreeMap<StopId, Delay>,
    alarm: Option<RealTime>,
    dirty: bool,
    /// Where somebody who was waited for is gone without a word.
    vanished: Processes,
    /// Those for whom something may have changed since they were told what they must know: so
    /// that a change costs as much as there are of them, however many others there are.
    unsettled: Processes,
    forced: bool,
    outputs: VecDeque<(ProcessIndex, ToSatellite)>,
}

/// A satellite that is attached, and what it was told last.
#[derive(Debug, Default)]
struct Member {
    floor: Delay,
    known: Known,
    reading: Reading,
}

impl<S: Safeguards> Central<S> {
    /// A session without members.
    pub fn new(mode: Mode, safeguards: S) -> Self {
        Self {
            mode,
            topology: Topology::default(),
            floors: Floors::new(),
            stops: Stops::new(safeguards.clone()),
            stops_max: STOPS_MAX,
            members: BTreeMap::new(),
            left: VecDeque::new(),
            forgotten: 0,
            breakpoints: Vec::new(),
            paused: Processes::new(),
            asked: BTreeMap::new(),
            alarm: None,
            dirty: false,
            vanished: Processes::new(),
            unsettled: Processes::new(),
            forced: false,
            outputs: VecDeque::new(),
            safeguards,
        }
    }

    /// A satellite attaches: its process can call `callees`, and has seen delays
    /// up to `floor` (in an earlier session with a central that was lost).
    pub fn handle_joined(
        &mut self,
        now: RealTime,
        process: ProcessIndex,
        callees: &[ProcessIndex],
        floor: Delay,
    ) {
        if self.members.contains_key(&process) {
            // It has dialled again before its loss was noticed: what it held is gone.
            self.handle_left(now, process);
        }
        self.members.insert(process, Member::default());
        self.unsettled.insert(process);
        self.left.retain(|left| *left != process);
        if self.paused.contains(&process) {
            self.outputs.push_back((process, ToSatellite::Pause(true)));
        }
        for &callee in callees {
            self.topology.connect(process, callee);
        }
        self.stops.forget_affected();
        let mut floor = floor;
        if self.safeguards.on(Safeguard::LateJoinerTakesDelay) {
            // There is no point in its waiting for what ended before it came.
            let reach = self.topology.reach(&Stack::home(process), &self.safeguards);
            floor = reach.iter().map(|below| self.floor(*below)).fold(floor, Delay::max);
        }
        self.raise(&Stack::home(process), floor);
        for (place, breakpoint) in &self.breakpoints {
            if *place == process {
                self.outputs.push_back((process, ToSatellite::Plant(breakpoint.clone())));
            }
        }
        self.dirty = true;
    }

    /// A satellite is gone: its process has died, or cannot be heard.
    pub fn handle_left(&mut self, now: RealTime, process: ProcessIndex) {
        if self.members.remove(&process).is_some() {
            self.left.push_back(process);
        }
        for id in self.stops.in_process(process) {
            let Some(stop) = self.stops.get(id).copied() else {
                continue;
            };
            let affected = self.stops.affected(stop.class, &self.topology);
            self.stops.remove(id);
            self.asked.remove(&id);
            if stop.reason != StopReason::Inside {
                self.raise_all(&affected, now.delay_of(stop.clock));
                self.vanished.extend(affected.iter());
            }
        }
        if self.left.len() > LEFT_MAX
            && let Some(process) = self.left.pop_front()
        {
            self.forget(process);
        }
        self.dirty = true;
    }

    /// A process that has left long ago is not remembered any more.
    fn forget(&mut self, process: ProcessIndex) {
        self.forgotten += 1;
        self.topology.forget(process);
        self.floors.remove(&process);
        self.paused.remove(&process);
        self.breakpoints.retain(|(at, _)| *at != process);
        self.stops.forget_affected();
    }

    /// How many processes have left and are forgotten.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Whether there is room for this stop, or it is there already.
    pub fn has_room_for(&self, stop: StopId) -> bool {
        self.stops.len() < self.stops_max || self.stops.get(stop).is_some()
    }

    /// There is room for no more than that.
    #[cfg(test)]
    pub(crate) fn limit_stops(&mut self, most: usize) {
        self.stops_max = most;
    }

    /// A satellite says something.
    pub fn handle_satellite(&mut self, now: RealTime, from: ProcessIndex, message: ToCentral) {
        if !self.members.contains_key(&from) {
            return;
        }
        self.dirty = true;
        match message {
            ToCentral::Stopped { number, reason, stack, clock, sent } => {
                let delay = sent.delay_of(clock);
                let clock = self.read(now, from, clock, sent);
                let class = self.stops.class(&stack);
                let id = StopId { process: from, number };
                let was_users = self.stops.get(id).is_some_and(|stop| stop.reason.is_users());
                self.asked.remove(&id);
                self.stops.insert(id, Stop { reason, class, clock });
                if let StopReason::Breakpoint(hit) = reason {
                    // One that stops only once must not be planted again.
                    self.breakpoints.retain(|(at, b)| !(b.once && (*at, b.id) == (from, hit)));
                }
                if reason == StopReason::Inside {
                    // Where it may go next, the delays of where it waits count.
                    self.raise(&stack, delay.max(self.floor(from)));
                } else if was_users {
                    // What the user held is charged, though the rule still says
                    // wait.
                    self.raise(&stack, delay);
                }
            }
            ToCentral::Gone { number, delay } => {
                let id = StopId { process: from, number };
                if let Some(stop) = self.stops.get(id).copied() {
                    // Dropped while it asked: what counts is how long the rule made
                    // it wait, not the way of the question.
                    let mut delay = delay;
                    if let Some(asked) = self.asked.remove(&id)
                        && self.furthest_behind(id, &stop).is_none()
                    {
                        delay = delay.min(asked.max(self.floor(from)));
                    }
                    self.knows(from, delay);
                    let affected = self.stops.affected(stop.class, &self.topology);
                    self.raise_all(&affected, delay);
                    self.stops.remove(id);
                }
                self.stops.forget_classes_if_empty();
            }
            ToCentral::Raised { floor } => {
                self.knows(from, floor);
                self.raise(&Stack::home(from), floor);
            }
            ToCentral::Connected { to } => self.connect(from, to),
            ToCentral::Accepted { from: caller } => self.connect(caller, from),
            ToCentral::Ask { number, stack, delay, sent } => {
                let (clock, delay) = match delay {
                    Some(delay) => (self.read(now, from, sent - delay, sent), delay),
                    None => self.newcomer(now, from),
                };
                self.raise(&stack, delay);
                let class = self.stops.class(&stack);
                let id = StopId { process: from, number };
                self.stops.insert(id, Stop { reason: StopReason::Delay, class, clock });
                self.asked.insert(id, delay);
            }
        }
    }

    /// The user asks for something.
    pub fn handle_user(&mut self, command: Command) {
        match command {
            Command::Continue(id) => {
                self.send(id.process, ToSatellite::Continue { number: id.number });
            }
            Command::Force(id) => {
                self.forced = true;
                self.send(id.process, ToSatellite::Force { number: id.number });
            }
            Command::Pass(id) => {
                self.forced = true;
                self.send(id.process, ToSatellite::Pass { number: id.number });
            }
            Command::Pause(process, pause) => {
                if pause {
                    self.paused.insert(process);
                } else {
                    self.paused.remove(&process);
                }
                self.send(process, ToSatellite::Pause(pause));
            }
            Command::Plant(process, breakpoint) => self.plant(process, breakpoint),
            Command::Replant(id, places) => {
                self.remove(id, |process| places.iter().all(|(place, _)| *place != process));
                for (process, breakpoint) in places {
                    self.plant(process, breakpoint);
                }
            }
            Command::Remove(id) => self.remove(id, |_| true),
        }
    }

    fn plant(&mut self, process: ProcessIndex, breakpoint: Breakpoint) {
        self.breakpoints.retain(|(at, old)| (*at, old.id) != (process, breakpoint.id));
        self.breakpoints.push((process, breakpoint.clone()));
        self.send(process, ToSatellite::Plant(breakpoint));
    }

    fn remove(&mut self, id: BreakpointId, from: impl Fn(ProcessIndex) -> bool) {
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.breakpoints)
            .into_iter()
            .partition(|(process, breakpoint)| breakpoint.id == id && from(*process));
        self.breakpoints = kept;
        for (process, _) in gone {
            self.send(process, ToSatellite::Remove(id));
        }
    }

    /// Time has come to where [`Central::poll_timeout`] said.
    pub fn handle_timeout(&mut self) {
        self.dirty = true;
    }

    /// When [`Central::handle_timeout`] wants to be called, if nothing happens.
    pub fn poll_timeout(&self) -> Option<RealTime> {
        self.alarm
    }

    /// The next message to send, and to whom.
    pub fn poll_output(&mut self, now: RealTime) -> Option<(ProcessIndex, ToSatellite)> {
        if self.dirty {
            self.dirty = false;
            match self.mode {
                Mode::Permit => self.tell_permits(now),
                Mode::Ask => self.grant(now),
            }
            self.vanished.clear();
        }
        self.outputs.pop_front()
    }

    /// Everybody who stands still, and why.
    pub fn stops(&self) -> impl Iterator<Item = (StopId, StopReason)> {
        self.stops.iter().map(|(id, stop)| (id, stop.reason))
    }

    /// The delay of a process: the greatest of any client so far, or of whoever
    /// stands in it now and is furthest behind.
    pub fn delay(&self, now: RealTime, process: ProcessIndex) -> Delay {
        let stops = self.stops.in_process(process).into_iter();
        let standing = stops.filter_map(|id| self.stops.get(id)).filter(|s| s.reason.stands());
        let standing = standing.map(|stop| now.delay_of(stop.clock)).max();
        self.floor(process).max(standing.unwrap_or_default())
    }

    /// Whom a process can call.
    pub fn callees(&self, process: ProcessIndex) -> impl Iterator<Item = ProcessIndex> {
        self.topology.callees(process)
    }

    /// The processes that the user has paused, those that are gone included.
    pub fn paused(&self) -> impl Iterator<Item = ProcessIndex> {
        self.paused.iter().copied()
    }

    /// Whether the user has paused a process.
    pub fn is_paused(&self, process: ProcessIndex) -> bool {
        self.paused.contains(&process)
    }

    /// Whether the user has forced anything: then order is not guaranteed.
    pub fn is_order_guaranteed(&self) -> bool {
        !self.forced
    }

    /// Why a stop stands still: itself, whom it waits for, whom that one waits
    /// for, and so on to a hold of the user's, if that is what it waits for.
    pub fn why(&mut self, id: StopId) -> Vec<Because> {
        let mut chain: Vec<Because> = Vec::new();
        let mut at = Some(id);
        while let Some(stop) = at.and_then(|id| self.stops.get(id).copied().map(|s| (id, s))) {
            let (id, stop) = stop;
            if chain.iter().any(|because| because.stop == id) {
                break;
            }
            chain.push(Because { stop: id, reason: stop.reason, clock: stop.clock });
            at = (stop.reason == StopReason::Delay)
                .then(|| self.furthest_behind(id, &stop))
                .flatten();
        }
        chain
    }

    /// How long the first of a chain must still wait at the least, if the rule makes it
    /// wait: from when the last one goes on, if that is the user's to say, or else from now.
    /// It leaves with at least the delay of the last one, and its clock does not go back.
    pub fn at_least(&self, now: RealTime, chain: &[Because]) -> Option<Duration> {
        let (first, last) = (chain.first()?, chain.last()?);
        (first.reason == StopReason::Delay).then(|| match last.reason.is_users() {
            true => first.clock.since(last.clock),
            false => (first.clock + self.floor(last.stop.process)).since(now),
        })
    }

    /// The stop that is furthest behind among those that `stop` waits for. Of each group only
    /// the first can be that.
    fn furthest_behind(&mut self, id: StopId, stop: &Stop) -> Option<StopId> {
        let mut furthest = None;
        for (class, clock, other) in self.stops.firsts_but(id) {
            let is_further = furthest.is_none_or(|known| (clock, other) < known);
            if clock <= stop.clock
                && is_further
                && self.stops.affected(class, &self.topology).contains(&id.process)
            {
                furthest = Some((clock, other));
            }
        }
        furthest.map(|(_, other)| other)
    }

    fn tell_permits(&mut self, now: RealTime) {
        let mut all = known(&mut self.stops, &self.topology, &self.floors);
        let mut concerned = std::mem::take(&mut self.unsettled);
        concerned.extend(all.keys().chain(&self.vanished));
        debug_assert!(
            self.members.iter().all(|(process, member)| {
                let is_settled = member.known.is_empty() && self.floor(*process) == member.floor;
                is_settled || concerned.contains(process)
            }),
            "somebody would not be told what has changed for it"
        );
        for process in concerned {
            let floor = self.floor(process);
            let known = all.remove(&process).unwrap_or_default();
            let vanished = self.vanished.contains(&process);
            let Some(member) = self.members.get_mut(&process) else {
                continue;
            };
            if !known.is_empty() {
                // Some day it need not know that any more.
                self.unsettled.insert(process);
            }
            if member.known == known && member.floor == floor && !vanished {
                continue;
            }
            let permit = permit(now, floor, &known);
            (member.known, member.floor) = (known, floor);
            let message = if vanished {
                ToSatellite::Vanished { permit }
            } else {
                ToSatellite::Permit(permit)
            };
            self.outputs.push_back((process, message));
        }
    }

    fn grant(&mut self, now: RealTime) {
        let evaluation = ask::evaluate(
            now,
            &mut self.stops,
            &self.topology,
            &mut self.floors,
            &mut self.asked,
            &self.vanished,
        );
        self.alarm = evaluation.alarm;
        for (id, delay) in evaluation.granted {
            self.send(id.process, ToSatellite::Granted { number: id.number, delay });
        }
    }

    /// A clock of a member, as one of central's.
    fn read(
        &mut self,
        now: RealTime,
        from: ProcessIndex,
        clock: VirtualTime,
        sent: RealTime,
    ) -> VirtualTime {
        let Some(member) = self.members.get_mut(&from) else { return clock };
        if !self.stops.any_in_process(from) {
            member.reading.forget();
        }
        let too_late = member.reading.hear(now, sent);
        if too_late > Duration::ZERO {
            self.stops.set_back(from, too_late);
        }
        member.reading.read(clock)
    }

    /// A process need not be told of a delay that it has told of itself.
    fn knows(&mut self, process: ProcessIndex, delay: Delay) {
        if let Some(member) = self.members.get_mut(&process)
            && self.mode == Mode::Permit
        {
            self.unsettled.insert(process);
            member.floor = member.floor.max(delay);
        }
    }

    /// Whoever is called takes over the delays of whoever calls.
    fn connect(&mut self, from: ProcessIndex, to: ProcessIndex) {
        if self.topology.connect(from, to) {
            self.stops.forget_affected();
            self.raise(&Stack::home(to), self.floor(from));
        }
    }

    fn send(&mut self, to: ProcessIndex, message: ToSatellite) {
        if self.members.contains_key(&to) {
            self.outputs.push_back((to, message));
        }
    }

    fn floor(&self, process: ProcessIndex) -> Delay {
        self.floors.get(&process).copied().unwrap_or_default()
    }

    /// Raises the floors of everything that a strand with this stack may affect.
    fn raise(&mut self, stack: &Stack, delay: Delay) {
        if delay > Delay::ZERO {
            let class = self.stops.class(stack);
            let affected = self.stops.affected(class, &self.topology);
            self.raise_all(&affected, delay);
        }
    }

    fn raise_all(&mut self, processes: &Processes, delay: Delay) {
        if delay > Delay::ZERO {
            for &process in processes {
                let floor = self.floors.entry(process).or_default();
                if *floor < delay {
                    *floor = delay;
                    self.unsettled.insert(process);
                }
            }
        }
    }

    /// The clock of a newcomer: it has the greatest delay of any client, and
    /// comes just after whoever stands still and is furthest behind. And the
    /// delay with which it goes on at the least.
    fn newcomer(&mut self, now: RealTime, process: ProcessIndex) -> (VirtualTime, Delay) {
        let all = known(&mut self.stops, &self.topology, &self.floors);
        let known = all.get(&process).cloned().unwrap_or_default();
        let delay = self.floor(process);
        let held = self.stops.in_process(process).into_iter();
        let held = held.filter_map(|id| self.stops.get(id).filter(|stop| stop.reason.is_users()));
        let standing = held.map(|stop| stop.clock).chain(known.open.map(|(clock, _)| clock));
        let standing = standing.chain(known.timed.iter().map(|(clock, ..)| *clock)).min();
        let clock = standing.map_or(now - delay, VirtualTime::just_after);
        (clock.min(now - delay), delay)
    }
}

fn permit(now: RealTime, floor: Delay, known: &Known) -> Permit {
    // More than that would not be read.
    let timed = known.timed.iter().take(TIMED_MAX);
    Permit {
        sent: now,
        floor,
        open: known.open.map(|(clock, by)| Open { clock, by }),
        timed: timed.map(|&(clock, leaves_with, by)| Timed { clock, leaves_with, by }).collect(),
    }
}
