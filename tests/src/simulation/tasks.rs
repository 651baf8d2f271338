//! Tasks run scripts: controls, handlers and branches.

use std::collections::VecDeque;
use std::rc::Rc;

use ddbx_protocol::Gate;
use ddbx_protocol::{Delay, ProcessIndex, RpcEvent, Stack, VirtualTime};
use ddbx_satellite::logic::clock;
use ddbx_satellite::logic::strand::{Strand, StrandId};

use super::calls::TimerKind;
use super::program::{Nanos, Op};
use super::trace::What;
use super::world::{Event, Next, World};

/// The lock that a single-threaded process takes for each request.
pub(super) const WHOLE_PROCESS: usize = usize::MAX;

/// Somebody who runs a script.
pub(super) struct Task<'p> {
    pub(super) name: Rc<str>,
    pub(super) process: usize,
    frames: Vec<Frame<'p>>,
    pub(super) delay: Delay,
    pub(super) stack: Stack,
    parent: Parent,
    pub(super) is_branch: bool,
    /// How many gated events it has had: names the next.
    events: u32,
    locks: Vec<usize>,
    pub(super) waits: Waits,
}

struct Frame<'p> {
    ops: &'p [Op],
    at: usize,
    /// To be unlocked at its end.
    lock: Option<usize>,
}

#[derive(Clone, Copy)]
enum Parent {
    None,
    /// A handler of this call.
    Call(u64),
    /// A branch of this task.
    Branch(u64),
}

/// What a task that does not run waits for.
pub(super) enum Waits {
    Nothing,
    Response {
        call: u64,
        since: VirtualTime,
    },
    Lock {
        lock: usize,
        since: VirtualTime,
    },
    Timer(u64),
    /// Branches still running; the latest clock and greatest delay so far.
    Branches {
        left: Vec<u64>,
        first_wins: bool,
        latest: VirtualTime,
        greatest: Delay,
    },
}

/// A lock of a process.
#[derive(Default)]
pub(super) struct Lock {
    holder: Option<u64>,
    queue: VecDeque<u64>,
}

impl<'p> World<'p> {
    pub(super) fn start_root(&mut self, index: usize) {
        let root = &self.program.roots[index];
        if !self.processes[root.process].is_alive {
            return;
        }
        let stack = Stack::home(ProcessIndex(root.process as u64));
        let name: Rc<str> = format!("root{index}").into();
        let task = self.new_task(name, root.process, &root.body, Delay::ZERO, stack, Parent::None);
        // Undisturbed runs start controls from outside at given virtual times.
        if root.is_outside && self.scenario.starts.is_empty() {
            self.enter(root.process, self.task_strand(task), &Gate::Spawn, Next::Start(task));
        } else {
            self.gate(root.process, self.task_strand(task), &Gate::Spawn, Next::Start(task));
        }
    }

    pub(super) fn started(&mut self, task: u64, delay: Delay) {
        self.set_delay(task, delay);
        self.log_task(task, What::Started);
        let name = &self.tasks[&task].name;
        if let Some(index) = name.strip_prefix("root").and_then(|index| index.parse::<usize>().ok())
            && self.program.roots[index].is_outside
        {
            let clock = (self.now - delay).as_nanos().max(0) as Nanos;
            self.trace.outside_starts.insert(index, clock);
        }
        self.step(task);
    }

    fn new_task(
        &mut self,
        name: Rc<str>,
        process: usize,
        ops: &'p [Op],
        delay: Delay,
        stack: Stack,
        parent: Parent,
    ) -> u64 {
        let id = self.new_id();
        let frames = vec![Frame { ops, at: 0, lock: None }];
        let (locks, waits) = (Vec::new(), Waits::Nothing);
        let is_branch = false;
        let events = 0;
        let task =
            Task { name, process, frames, delay, stack, parent, is_branch, events, locks, waits };
        self.tasks.insert(id, task);
        id
    }

    /// A handler starts, with the whole process if that is single-threaded.
    pub(super) fn start_handler(&mut self, call_id: u64, delay: Delay) {
        let call = &self.calls[&call_id];
        let (process, stack, is_branch) = (call.callee, call.stack.clone(), call.is_branch);
        let ops = &self.program.processes[process].methods[call.method];
        let name: Rc<str> = format!("{}>", call.name).into();
        let task = self.new_task(name, process, ops, delay, stack, Parent::Call(call_id));
        self.task(task).is_branch = is_branch;
        self.call(call_id).handler = Some(task);
        if self.program.processes[process].single_threaded {
            self.take_lock(task, WHOLE_PROCESS);
        } else {
            self.step(task);
        }
    }

    /// Runs a task until it has to wait.
    pub(super) fn step(&mut self, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let process = task.process;
        let Some(frame) = task.frames.last_mut() else {
            return self.ended(id);
        };
        let Some(op) = frame.ops.get(frame.at) else {
            let lock = frame.lock;
            task.frames.pop();
            match lock {
                Some(lock) => {
                    let strand = self.task_strand(id);
                    self.gate(process, strand, &Gate::Sync, Next::Unlock(id, lock));
                }
                None => self.step(id),
            }
            return;
        };
        frame.at += 1;
        let strand = self.task_strand(id);
        match op {
            Op::Work(nanos) => self.after(*nanos, Event::Step(id)),
            Op::Point => self.gate(process, strand, &self.point(), Next::Point(id)),
            Op::Call { process: callee, method, deadline } => {
                let (process_called, method, deadline) = (*callee, *method, *deadline);
                let next = Next::Send { task: id, process: process_called, method, deadline };
                self.gate(process, strand, &self.rpc(RpcEvent::Call), next);
            }
            Op::Both(a, b) => self.branch(id, a, b, false),
            Op::First(a, b) => self.branch(id, a, b, true),
            Op::Locked(lock, body) => {
                let frame = Frame { ops: body, at: 0, lock: Some(*lock) };
                self.task(id).frames.push(frame);
                self.gate(process, strand, &Gate::Sync, Next::Lock(id, *lock));
            }
            Op::Sleep(nanos) => {
                let task = self.task(id);
                let (stack, delay, is_branch) = (task.stack.clone(), task.delay, task.is_branch);
                let kind = TimerKind::Sleep(id);
                let timer = self.arm(process, kind, *nanos, delay, &stack, is_branch);
                self.task(id).waits = Waits::Timer(timer);
            }
            Op::Renew { lease, length } => {
                self.gate(process, strand, &Gate::Sync, Next::Renew(id, *lease, *length));
            }
            Op::Spawn(body) => {
                self.gate(process, strand, &Gate::Spawn, Next::Spawn(id, body));
            }
        }
    }

    /// A control has started another one; both go on.
    pub(super) fn spawned(&mut self, creator: u64, body: &'p [Op], delay: Delay) {
        self.set_delay(creator, delay);
        self.log_task(creator, What::Passed);
        let process = self.task(creator).process;
        let stack = Stack::home(ProcessIndex(process as u64));
        let name = self.event_name(creator);
        let child = self.new_task(name, process, body, delay, stack, Parent::None);
        self.after(0, Event::Step(child));
        self.step(creator);
    }

    fn branch(&mut self, id: u64, a: &'p [Op], b: &'p [Op], first_wins: bool) {
        let base = self.event_name(id);
        let task = self.task(id);
        let (process, delay, stack) = (task.process, task.delay, task.stack.clone());
        let mut left = Vec::new();
        for (side, ops) in [("a", a), ("b", b)] {
            let name: Rc<str> = format!("{base}{side}").into();
            let branch =
                self.new_task(name, process, ops, delay, stack.clone(), Parent::Branch(id));
            self.task(branch).is_branch = true;
            left.push(branch);
        }
        let (latest, greatest) = (self.now - delay, delay);
        let branches = left.clone();
        self.task(id).waits = Waits::Branches { left, first_wins, latest, greatest };
        for branch in branches {
            self.after(0, Event::Step(branch));
        }
    }

    /// A task has run its script.
    fn ended(&mut self, id: u64) {
        let task = self.task(id);
        match task.parent {
            Parent::None => {
                self.tasks.remove(&id);
            }
            Parent::Call(_) => {
                let (process, strand) = (task.process, self.task_strand(id));
                self.gate(process, strand, &self.rpc(RpcEvent::Return), Next::Return(id));
            }
            Parent::Branch(parent) => {
                let (delay, clock) = (task.delay, self.now - self.tasks[&id].delay);
                self.tasks.remove(&id);
                self.branch_ended(parent, id, clock, delay);
            }
        }
    }

    fn branch_ended(&mut self, parent: u64, branch: u64, clock: VirtualTime, delay: Delay) {
        let (now, sabotage) = (self.now, self.scenario.sabotage);
        let task = self.task(parent);
        let Waits::Branches { left, first_wins, latest, greatest } = &mut task.waits else {
            return;
        };
        left.retain(|other| *other != branch);
        let delay = clock::wake(now, *latest, clock, [*greatest, delay], &sabotage);
        if !left.is_empty() && !*first_wins {
            (*latest, *greatest) = ((*latest).max(clock), (*greatest).max(delay));
            return;
        }
        let losers = std::mem::take(left);
        task.waits = Waits::Nothing;
        task.delay = delay;
        for loser in losers {
            self.abort(loser, delay);
        }
        self.step(parent);
    }

    pub(super) fn locked(&mut self, task: u64, lock: usize, delay: Delay) {
        self.set_delay(task, delay);
        self.log_task(task, What::Passed);
        self.take_lock(task, lock);
    }

    fn take_lock(&mut self, id: u64, lock: usize) {
        let now = self.now;
        let process = self.task(id).process;
        let place = self.locks.entry((process, lock)).or_default();
        if place.holder.is_none() {
            place.holder = Some(id);
            self.has_lock(id, lock);
            return;
        }
        place.queue.push_back(id);
        let task = self.task(id);
        task.waits = Waits::Lock { lock, since: now - task.delay };
        let strand = self.task_strand(id);
        self.processes[process].satellite.handle_wait_inside(now, &strand);
        self.drain(process);
    }

    fn has_lock(&mut self, id: u64, lock: usize) {
        let task = self.task(id);
        task.waits = Waits::Nothing;
        task.locks.push(lock);
        let what = if lock == WHOLE_PROCESS { What::Entered } else { What::Acquired };
        self.log_task(id, what);
        self.after(0, Event::Step(id));
    }

    pub(super) fn unlocked(&mut self, id: u64, lock: usize, delay: Delay) {
        self.set_delay(id, delay);
        self.log_task(id, What::Passed);
        self.release_lock(id, lock, delay);
        self.step(id);
    }

    /// Hands a lock over to whoever has waited longest.
    fn release_lock(&mut self, id: u64, lock: usize, delay: Delay) {
        let (now, sabotage) = (self.now, self.scenario.sabotage);
        let process = self.task(id).process;
        self.task(id).locks.retain(|held| *held != lock);
        if lock == WHOLE_PROCESS {
            self.log_task_with(id, What::Left, delay);
        }
        let place = self.locks.entry((process, lock)).or_default();
        place.holder = place.queue.pop_front();
        let Some(next) = place.holder else { return };
        let waiter = self.task(next);
        let Waits::Lock { since, .. } = waiter.waits else {
            return;
        };
        let woken = clock::wake(now, since, now - delay, [waiter.delay, delay], &sabotage);
        let satellite = &mut self.processes[process].satellite;
        let woken = satellite.handle_wake_inside(now, StrandId(next), woken);
        self.task(next).delay = woken;
        self.drain(process);
        self.has_lock(next, lock);
    }

    pub(super) fn returned(&mut self, id: u64, delay: Delay) {
        self.set_delay(id, delay);
        self.log_task(id, What::ReturnSent);
        self.release_all(id, delay);
        if let Some(Task { parent: Parent::Call(call), .. }) = self.tasks.remove(&id) {
            self.respond(call, delay);
        }
    }

    fn release_all(&mut self, id: u64, delay: Delay) {
        for lock in self.task(id).locks.clone() {
            self.release_lock(id, lock, delay);
        }
    }

    /// Drops a task and all it does, on behalf of somebody with this delay.
    pub(super) fn abort(&mut self, id: u64, delay: Delay) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let process = task.process;
        match std::mem::replace(&mut task.waits, Waits::Nothing) {
            Waits::Response { call, .. } => self.give_up(call, delay),
            Waits::Lock { lock, .. } => {
                if let Some(place) = self.locks.get_mut(&(process, lock)) {
                    place.queue.retain(|waiter| *waiter != id);
                }
            }
            Waits::Timer(timer) => self.disarm(timer),
            Waits::Branches { left, .. } => {
                for branch in left {
                    self.abort(branch, delay);
                }
            }
            Waits::Nothing => {}
        }
        self.drop_strand(process, id);
        self.release_all(id, delay);
        self.tasks.remove(&id);
    }

    pub(super) fn task(&mut self, id: u64) -> &mut Task<'p> {
        self.tasks.get_mut(&id).expect("a live task")
    }

    pub(super) fn set_delay(&mut self, task: u64, delay: Delay) {
        self.task(task).delay = delay;
    }

    pub(super) fn task_strand(&self, id: u64) -> Strand {
        let task = &self.tasks[&id];
        self.strand(id, &task.stack, task.delay, task.is_branch)
    }

    /// The name of a task's next event.
    pub(super) fn event_name(&mut self, id: u64) -> Rc<str> {
        let task = self.task(id);
        task.events += 1;
        format!("{}.{}", task.name, task.events).into()
    }

    pub(super) fn log_task(&mut self, id: u64, what: What) {
        let delay = self.task(id).delay;
        self.log_task_with(id, what, delay);
    }

    fn log_task_with(&mut self, id: u64, what: What, delay: Delay) {
        let name = self.event_name(id);
        let (strand, process) = (self.task(id).name.clone(), self.task(id).process);
        self.log(name, &strand, process, what, delay);
    }
}
