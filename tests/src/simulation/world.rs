//! A simulated machine room: processes, a network, a debugger, and one clock.
//!
//! Events are handled in the order of time; at one time the debugger's messages
//! come first, then what the debugger lets go, then the program. With a debugger
//! latency of zero, everything the debugger does in answer to something is done
//! before anything else happens.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use std::time::Duration;

use ddbx_protocol::Gate;
use ddbx_protocol::{
    Delay, MethodName, PointLabel, ProcessIndex, RealTime, Stack, ToCentral, ToSatellite,
    VirtualTime,
};
use ddbx_satellite::logic::strand::{Strand, StrandId};
use ddbx_satellite::logic::{Satellite, Verdict};

use super::calls::{Call, Message, Timer};
use super::debugger::Debugger;
use super::program::{Nanos, Op, Program};
use super::scenario::{Sabotage, Scenario};
use super::tasks::{Lock, Task};
use super::trace::{Happened, Stood, Trace, What};

/// After this long everything that is going to happen has happened.
const END: RealTime = RealTime::from_nanos(100_000_000_000_000);

/// Something that will happen.
pub(super) enum Event {
    /// A debugger message reaches central.
    ToCentral(usize, u64, ToCentral),
    /// A debugger message reaches a satellite.
    ToSatellite(usize, u64, ToSatellite),
    /// The driver of a satellite or of central has something to do.
    Debugger(super::debugger::Duty),
    /// A satellite wanted to be called.
    SatelliteTimer(usize),
    /// Central wanted to be called.
    CentralTimer,
    /// A satellite lets a strand go.
    Resume(usize, u64, Delay),
    /// A task has finished its work.
    Step(u64),
    /// A message of the program arrives.
    Deliver(Message),
    /// A timer is due.
    Due(u64),
    /// A control starts.
    Start(usize),
}

impl Event {
    /// What comes first at one time.
    fn class(&self) -> u8 {
        match self {
            Self::ToCentral(..) | Self::ToSatellite(..) | Self::Debugger(_) => 0,
            Self::SatelliteTimer(_) | Self::CentralTimer | Self::Resume(..) => 1,
            Self::Step(_) | Self::Deliver(_) | Self::Due(_) | Self::Start(_) => 2,
        }
    }
}

/// What happens when a strand passes its gate.
pub(super) enum Next<'p> {
    Start(u64),
    Send { task: u64, process: usize, method: usize, deadline: Option<Nanos> },
    Arrive(u64),
    Return(u64),
    Resume(u64),
    Cancel(u64),
    Fire(u64),
    Spawn(u64, &'p [Op]),
    Lock(u64, usize),
    Unlock(u64, usize),
    Renew(u64, usize, Nanos),
    Point(u64),
}

/// A strand at a gate.
pub(super) struct AtGate<'p> {
    pub(super) process: usize,
    next: Next<'p>,
    stood: usize,
}

pub(super) struct Process {
    pub(super) satellite: Satellite<Sabotage>,
    pub(super) is_alive: bool,
    pub(super) timer_set: Option<RealTime>,
    pub(super) floor_seen: Delay,
    pub(super) connected: std::collections::BTreeSet<usize>,
}

/// One run.
pub struct World<'p> {
    pub(super) program: &'p Program,
    pub(super) scenario: &'p Scenario,
    pub(super) now: RealTime,
    queue: BinaryHeap<Reverse<Scheduled>>,
    events: BTreeMap<u64, Event>,
    next_id: u64,
    pub(super) tasks: BTreeMap<u64, Task<'p>>,
    pub(super) calls: BTreeMap<u64, Call>,
    pub(super) timers: BTreeMap<u64, Timer>,
    pub(super) leases: BTreeMap<(usize, usize), u64>,
    pub(super) locks: BTreeMap<(usize, usize), Lock>,
    pub(super) at_gate: BTreeMap<u64, AtGate<'p>>,
    pub(super) processes: Vec<Process>,
    pub(super) fifo: BTreeMap<(usize, usize), (VirtualTime, RealTime)>,
    pub(super) debugger: Debugger,
    pub(super) trace: Trace,
    method: MethodName,
    label: PointLabel,
    held_since: Option<RealTime>,
    /// For how long the user has held strands that stand at a gate.
    held_strands: BTreeMap<u64, Nanos>,
    noted: RealTime,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Scheduled {
    at: RealTime,
    class: u8,
    id: u64,
}

/// Runs a program.
pub fn run(program: &Program, scenario: &Scenario) -> Trace {
    let mut world = World::new(program, scenario);
    world.begin();
    while let Some(Reverse(scheduled)) = world.queue.pop() {
        if scheduled.at > END {
            break;
        }
        world.now = world.now.max(scheduled.at);
        world.note_held_strands();
        if let Some(event) = world.events.remove(&scheduled.id) {
            world.handle(event);
            world.note_holding();
        }
    }
    world.finish()
}

impl<'p> World<'p> {
    fn new(program: &'p Program, scenario: &'p Scenario) -> Self {
        let processes = (0..program.processes.len())
            .map(|index| Process {
                satellite: Satellite::new(
                    ProcessIndex(index as u64),
                    scenario.mode,
                    scenario.sabotage,
                ),
                is_alive: true,
                timer_set: None,
                floor_seen: Delay::ZERO,
                connected: std::collections::BTreeSet::new(),
            })
            .collect::<Vec<_>>();
        Self {
            program,
            scenario,
            now: RealTime::from_nanos(0),
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            next_id: 0,
            tasks: BTreeMap::new(),
            calls: BTreeMap::new(),
            timers: BTreeMap::new(),
            leases: BTreeMap::new(),
            locks: BTreeMap::new(),
            at_gate: BTreeMap::new(),
            debugger: Debugger::new(processes.len(), scenario),
            processes,
            fifo: BTreeMap::new(),
            trace: Trace::default(),
            method: MethodName::new("Service.method").expect("a valid name"),
            label: PointLabel::new("here").expect("a valid name"),
            held_since: None,
            held_strands: BTreeMap::new(),
            noted: RealTime::default(),
        }
    }

    fn begin(&mut self) {
        self.begin_session();
        for (index, root) in self.program.roots.iter().enumerate() {
            let start = self.scenario.starts.get(&index).copied().unwrap_or(root.starts_at);
            self.at(RealTime::from_nanos(start as i64), Event::Start(index));
        }
    }

    fn finish(mut self) -> Trace {
        if let Some(since) = self.held_since {
            self.trace.held.push((since, self.now));
        }
        self.trace.stuck = self.tasks.values().map(|task| task.name.to_string()).collect();
        self.trace.stuck.extend(self.at_gate.keys().map(|id| format!("strand {id} at a gate")));
        self.trace
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::ToCentral(from, epoch, message) => self.central_hears(from, epoch, message),
            Event::ToSatellite(to, epoch, message) => self.satellite_hears(to, epoch, message),
            Event::Debugger(duty) => self.do_duty(duty),
            Event::SatelliteTimer(process) => {
                self.processes[process].timer_set = None;
                self.processes[process].satellite.handle_timeout(self.now);
                self.drain(process);
            }
            Event::CentralTimer => self.central_timer(),
            Event::Resume(process, strand, delay) => {
                if let Some(at_gate) = self.at_gate.remove(&strand) {
                    debug_assert_eq!(at_gate.process, process);
                    let stood = &mut self.trace.stood[at_gate.stood];
                    (stood.until, stood.delay_after) = (Some(self.now), delay);
                    let logged = self.trace.events.len();
                    self.happen(at_gate.next, delay);
                    if let Some(held) = self.held_strands.remove(&strand)
                        && let Some(event) = self.trace.events.get(logged)
                    {
                        self.trace.held_at.insert(event.name.clone(), held);
                    }
                }
            }
            Event::Step(task) => self.step(task),
            Event::Deliver(message) => self.deliver(message),
            Event::Due(timer) => self.timer_due(timer),
            Event::Start(root) => self.start_root(root),
        }
    }

    /// Makes something happen at a time.
    pub(super) fn at(&mut self, at: RealTime, event: Event) {
        let id = self.new_id();
        self.queue.push(Reverse(Scheduled { at: at.max(self.now), class: event.class(), id }));
        self.events.insert(id, event);
    }

    pub(super) fn after(&mut self, nanos: Nanos, event: Event) {
        self.at(self.now + Duration::from_nanos(nanos), event);
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// A strand comes to a gated event; `next` happens when it passes.
    pub(super) fn gate(&mut self, process: usize, strand: Strand, gate: &Gate, next: Next<'p>) {
        self.gate_or_enter(process, strand, gate, next, false);
    }

    /// The same for a control without a past, which takes over a delay.
    pub(super) fn enter(&mut self, process: usize, strand: Strand, gate: &Gate, next: Next<'p>) {
        self.gate_or_enter(process, strand, gate, next, true);
    }

    fn gate_or_enter(
        &mut self,
        process: usize,
        strand: Strand,
        gate: &Gate,
        next: Next<'p>,
        is_newcomer: bool,
    ) {
        let satellite = &mut self.processes[process].satellite;
        let verdict = if is_newcomer {
            satellite.handle_newcomer(self.now, &strand, gate)
        } else {
            satellite.handle_event(self.now, &strand, gate)
        };
        match verdict {
            Verdict::Go(delay) => {
                self.drain(process);
                self.happen(next, delay);
            }
            Verdict::Stopped => {
                let stood = Stood {
                    process,
                    from: self.now,
                    until: None,
                    delay_before: strand.delay,
                    delay_after: strand.delay,
                    came_in_peace: is_newcomer && self.at_gate.is_empty(),
                };
                self.trace.stood.push(stood);
                let stood = self.trace.stood.len() - 1;
                self.at_gate.insert(strand.id.0, AtGate { process, next, stood });
                self.drain(process);
            }
        }
    }

    /// A strand is dropped wherever it stands.
    pub(super) fn drop_strand(&mut self, process: usize, strand: u64) {
        self.forget_at_gate(strand);
        self.processes[process].satellite.handle_drop(self.now, StrandId(strand));
        self.drain(process);
    }

    pub(super) fn forget_at_gate(&mut self, strand: u64) {
        if let Some(at_gate) = self.at_gate.remove(&strand) {
            self.trace.stood[at_gate.stood].until = Some(self.now);
        }
    }

    /// An event has passed its gate.
    fn happen(&mut self, next: Next<'p>, delay: Delay) {
        match next {
            Next::Start(task) => self.started(task, delay),
            Next::Send { task, process, method, deadline } => {
                self.sent(task, process, method, deadline, delay);
            }
            Next::Arrive(call) => self.arrived(call, delay),
            Next::Return(task) => self.returned(task, delay),
            Next::Resume(call) => self.resumed(call, delay),
            Next::Cancel(call) => self.cancelled(call, delay),
            Next::Fire(timer) => self.fired(timer, delay),
            Next::Spawn(task, body) => self.spawned(task, body, delay),
            Next::Lock(task, lock) => self.locked(task, lock, delay),
            Next::Unlock(task, lock) => self.unlocked(task, lock, delay),
            Next::Renew(task, lease, length) => self.renewed(task, lease, length, delay),
            Next::Point(task) => {
                self.set_delay(task, delay);
                self.log_task(task, What::Passed);
                self.step(task);
            }
        }
    }

    pub(super) fn log(
        &mut self,
        name: Rc<str>,
        strand: &Rc<str>,
        process: usize,
        what: What,
        delay: Delay,
    ) {
        let strand = strand.clone();
        self.trace.events.push(Happened { name, process, strand, what, at: self.now, delay });
    }

    pub(super) fn rpc(&self, event: ddbx_protocol::RpcEvent) -> Gate {
        Gate::Rpc(event, self.method.clone())
    }

    pub(super) fn point(&self) -> Gate {
        Gate::Point(self.label.clone())
    }

    /// A number that depends on the seed and a name only, so that both runs of a
    /// pair see the same.
    pub(super) fn chance(&self, name: &str, range: &std::ops::RangeInclusive<Nanos>) -> Nanos {
        let mut hash = self.scenario.seed ^ 0x9e37_79b9_7f4a_7c15;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut rng = fastrand::Rng::with_seed(hash);
        let grain = self.scenario.grain.max(1);
        let (low, high) = (range.start().div_ceil(grain), range.end() / grain);
        rng.u64(low..=high.max(low)) * grain
    }

    /// Time passes: for those whom the user holds, too.
    fn note_held_strands(&mut self) {
        let passed = self.now.since(self.noted).as_nanos() as Nanos;
        self.noted = self.now;
        if passed == 0 || self.held_since.is_none() {
            return;
        }
        for (&strand, at_gate) in &self.at_gate {
            let why = self.processes[at_gate.process].satellite.why(self.now, StrandId(strand));
            if why.is_some_and(|why| why.reason.is_users()) {
                *self.held_strands.entry(strand).or_default() += passed;
            }
        }
    }

    fn note_holding(&mut self) {
        let holding = self.processes.iter().any(|process| process.satellite.held_by_user() > 0);
        match (holding, self.held_since) {
            (true, None) => self.held_since = Some(self.now),
            (false, Some(since)) => {
                self.trace.held.push((since, self.now));
                self.held_since = None;
            }
            _ => {}
        }
        for (index, process) in self.processes.iter_mut().enumerate() {
            if process.satellite.held_by_user() > 0 {
                self.trace.held_in.insert(index);
            }
            let floor = process.satellite.floor();
            self.trace.floor_fell |= floor < process.floor_seen;
            process.floor_seen = floor;
        }
    }

    pub(super) fn strand(&self, id: u64, stack: &Stack, delay: Delay, is_branch: bool) -> Strand {
        Strand { is_branch, ..Strand::new(StrandId(id), stack.clone(), delay) }
    }
}
