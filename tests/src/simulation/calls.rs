//! Calls and timers: requests, responses, cancellations, deadlines, leases.

use std::rc::Rc;
use std::time::Duration;

use ddbx_protocol::Gate;
use ddbx_protocol::session::HEARTBEAT;
use ddbx_protocol::{Delay, ProcessIndex, RpcEvent, Stack, VirtualTime};
use ddbx_satellite::logic::clock;

use super::program::Nanos;
use super::tasks::Waits;
use super::trace::What;
use super::world::{Event, Next, World};

/// One RPC.
pub(super) struct Call {
    pub(super) name: Rc<str>,
    caller: u64,
    caller_process: usize,
    pub(super) callee: usize,
    pub(super) method: usize,
    /// At the callee.
    pub(super) stack: Stack,
    /// Of each of its messages.
    request_delay: Delay,
    response_delay: Delay,
    cancel_delay: Delay,
    pub(super) is_branch: bool,
    deadline: Option<Nanos>,
    caller_timer: Option<u64>,
    callee_timer: Option<u64>,
    pub(super) handler: Option<u64>,
    /// Strands of its messages at gates.
    request: u64,
    response: u64,
    cancellation: u64,
    progress: Progress,
    /// Whether the caller still waits.
    is_wanted: bool,
}

#[derive(PartialEq, Eq)]
enum Progress {
    /// The request has not reached its handler.
    Requested,
    /// The handler runs, or waits to.
    Handled,
    /// The handler is done or dropped.
    Over,
}

/// A message of the program.
pub(super) enum Message {
    Request(u64),
    Response(u64),
    Cancel(u64),
}

/// A pending timer.
pub(super) struct Timer {
    process: usize,
    kind: TimerKind,
    due: VirtualTime,
    delay: Delay,
    stack: Stack,
    is_branch: bool,
    name: Rc<str>,
}

/// What a timer is for.
#[derive(Clone, Copy)]
pub(super) enum TimerKind {
    /// The caller's deadline.
    Caller(u64),
    /// The callee's.
    Callee(u64),
    Sleep(u64),
    /// A lease, renewed by this task.
    Lease(usize, u64),
}

impl World<'_> {
    /// A request leaves.
    pub(super) fn sent(
        &mut self,
        task: u64,
        callee: usize,
        method: usize,
        deadline: Option<Nanos>,
        delay: Delay,
    ) {
        self.set_delay(task, delay);
        let name = self.event_name(task);
        let caller = &self.tasks[&task];
        let (caller_process, is_branch) = (caller.process, caller.is_branch);
        let (stack, strand) = (caller.stack.clone(), caller.name.clone());
        self.log(name.clone(), &strand, caller_process, What::CallSent, delay);
        self.connect_if_new(caller_process, callee);
        let id = self.new_id();
        let call = Call {
            name,
            caller: task,
            caller_process,
            callee,
            method,
            stack: stack.clone().call(ProcessIndex(callee as u64)),
            request_delay: delay,
            response_delay: delay,
            cancel_delay: delay,
            is_branch,
            deadline,
            caller_timer: None,
            callee_timer: None,
            handler: None,
            request: self.new_id(),
            response: self.new_id(),
            cancellation: self.new_id(),
            progress: Progress::Requested,
            is_wanted: true,
        };
        self.calls.insert(id, call);
        if let Some(length) = deadline {
            let kind = TimerKind::Caller(id);
            let timer = self.arm(caller_process, kind, length, delay, &stack, is_branch);
            self.call(id).caller_timer = Some(timer);
        }
        self.task(task).waits = Waits::Response { call: id, since: self.now - delay };
        self.post(caller_process, callee, delay, Message::Request(id));
    }

    /// A message arrives: it is judged here and now.
    pub(super) fn deliver(&mut self, message: Message) {
        match message {
            Message::Request(id) => {
                let call = &self.calls[&id];
                let callee = call.callee;
                if call.progress == Progress::Over {
                    return;
                }
                if !self.processes[callee].is_alive {
                    // The connection is reset; whoever finds out keeps its delay.
                    let call = self.call(id);
                    call.progress = Progress::Over;
                    let (to, delay) = (call.caller_process, call.response_delay);
                    self.post(callee, to, delay, Message::Response(id));
                    return;
                }
                let delay = call.request_delay;
                let strand = self.strand(call.request, &call.stack, delay, call.is_branch);
                self.gate(callee, strand, &self.rpc(RpcEvent::Arrive), Next::Arrive(id));
            }
            Message::Response(id) => {
                let call = &self.calls[&id];
                let to = call.caller_process;
                if call.is_wanted && self.processes[to].is_alive {
                    let delay = call.response_delay;
                    let strand = self.strand(call.response, &call.stack, delay, call.is_branch);
                    self.gate(to, strand, &self.rpc(RpcEvent::Resume), Next::Resume(id));
                }
            }
            Message::Cancel(id) => {
                let call = &self.calls[&id];
                let callee = call.callee;
                if call.progress != Progress::Over && self.processes[callee].is_alive {
                    let stack = Stack::home(ProcessIndex(callee as u64));
                    let delay = call.cancel_delay;
                    let strand = self.strand(call.cancellation, &stack, delay, call.is_branch);
                    self.gate(callee, strand, &Gate::Cancel, Next::Cancel(id));
                }
            }
        }
    }

    /// A request has reached its handler.
    pub(super) fn arrived(&mut self, id: u64, delay: Delay) {
        let call = self.call(id);
        call.progress = Progress::Handled;
        let (stack, deadline) = (call.stack.clone(), call.deadline);
        let (callee, is_branch) = (call.callee, call.is_branch);
        self.log_call(id, "arrive", callee, What::CallArrived, delay);
        if let Some(length) = deadline {
            let kind = TimerKind::Callee(id);
            let timer = self.arm(callee, kind, length, delay, &stack, is_branch);
            self.call(id).callee_timer = Some(timer);
        }
        self.start_handler(id, delay);
    }

    /// The handler's response leaves.
    pub(super) fn respond(&mut self, id: u64, delay: Delay) {
        let call = self.call(id);
        call.progress = Progress::Over;
        let (from, to) = (call.callee, call.caller_process);
        if let Some(timer) = call.callee_timer.take() {
            self.disarm(timer);
        }
        // Whether anybody still waits for it, only the caller's process knows.
        self.call(id).response_delay = delay;
        self.post(from, to, delay, Message::Response(id));
    }

    /// A response has reached its caller.
    pub(super) fn resumed(&mut self, id: u64, delay: Delay) {
        let call = self.call(id);
        let to = call.caller_process;
        self.log_call(id, "resume", to, What::ReturnArrived, delay);
        self.answer(id, delay);
    }

    /// The caller goes on, woken by somebody with this delay.
    fn answer(&mut self, id: u64, delay: Delay) {
        let (now, sabotage) = (self.now, self.scenario.sabotage);
        let call = self.call(id);
        call.is_wanted = false;
        let (caller, timer) = (call.caller, call.caller_timer.take());
        if let Some(timer) = timer {
            self.disarm(timer);
        }
        let Some(task) = self.tasks.get_mut(&caller) else {
            return;
        };
        let Waits::Response { since, .. } = task.waits else {
            return;
        };
        task.waits = Waits::Nothing;
        task.delay = clock::wake(now, since, now - delay, [task.delay, delay], &sabotage);
        self.step(caller);
    }

    /// The caller drops a call: the callee is told, with the delay of whoever
    /// caused it.
    pub(super) fn give_up(&mut self, id: u64, delay: Delay) {
        let call = self.call(id);
        call.is_wanted = false;
        let (from, to, response) = (call.caller_process, call.callee, call.response);
        let timer = call.caller_timer.take();
        if let Some(timer) = timer {
            self.disarm(timer);
        }
        self.drop_strand(from, response);
        self.call(id).cancel_delay = delay;
        self.post(from, to, delay, Message::Cancel(id));
    }

    /// A cancellation has reached the callee.
    pub(super) fn cancelled(&mut self, id: u64, delay: Delay) {
        if self.call(id).progress == Progress::Over {
            return;
        }
        let callee = self.call(id).callee;
        self.log_call(id, "cancel", callee, What::Cancelled, delay);
        self.drop_handling(id, delay);
    }

    fn drop_handling(&mut self, id: u64, delay: Delay) {
        let call = self.call(id);
        let (callee, request, handler) = (call.callee, call.request, call.handler);
        call.progress = Progress::Over;
        if let Some(timer) = call.callee_timer.take() {
            self.disarm(timer);
        }
        self.drop_strand(callee, request);
        if let Some(handler) = handler {
            self.abort(handler, delay);
        }
    }

    /// Arms a timer that runs out when the clock of its strand has gone on by
    /// `length`.
    pub(super) fn arm(
        &mut self,
        process: usize,
        kind: TimerKind,
        length: Nanos,
        delay: Delay,
        stack: &Stack,
        is_branch: bool,
    ) -> u64 {
        let due = (self.now - delay) + Duration::from_nanos(length);
        let name: Rc<str> = match kind {
            TimerKind::Caller(call) => format!("{}/caller deadline", self.calls[&call].name).into(),
            TimerKind::Callee(call) => format!("{}/callee deadline", self.calls[&call].name).into(),
            TimerKind::Sleep(task) => self.event_name(task),
            TimerKind::Lease(_, task) => format!("{}/lease", self.event_name(task)).into(),
        };
        let timer = Timer { process, kind, due, delay, stack: stack.clone(), is_branch, name };
        let id = self.new_id();
        self.timers.insert(id, timer);
        self.at(due + delay, Event::Due(id));
        id
    }

    pub(super) fn disarm(&mut self, id: u64) {
        if let Some(timer) = self.timers.remove(&id) {
            self.drop_strand(timer.process, id);
        }
    }

    /// A timer is due: an event like any other.
    pub(super) fn timer_due(&mut self, id: u64) {
        let Some(timer) = self.timers.get(&id) else {
            return;
        };
        let process = timer.process;
        let strand = self.strand(id, &timer.stack, timer.delay, timer.is_branch);
        let is_sleep = matches!(timer.kind, TimerKind::Sleep(_));
        let gate = if is_sleep { Gate::Sleep } else { Gate::Deadline };
        self.gate(process, strand, &gate, Next::Fire(id));
    }

    /// A timer has passed its gate. If its delay has grown without its standing
    /// still (alone, without central), it is not due yet.
    pub(super) fn fired(&mut self, id: u64, delay: Delay) {
        let (now, timer) = (self.now, self.timers.get_mut(&id).expect("a live timer"));
        timer.delay = delay;
        if now - delay < timer.due {
            // What it waits for may go on a little later than itself.
            let is_sleep = matches!(timer.kind, TimerKind::Sleep(_));
            let more = if is_sleep { Duration::ZERO } else { HEARTBEAT };
            let due = timer.due + delay + more;
            self.at(due, Event::Due(id));
            return;
        }
        let Some(timer) = self.timers.remove(&id) else {
            return;
        };
        let name = timer.name.clone();
        let what = match timer.kind {
            TimerKind::Caller(_) | TimerKind::Callee(_) => What::TimedOut,
            TimerKind::Sleep(_) => What::Woke,
            TimerKind::Lease(..) => What::LeaseLost,
        };
        self.log(name.clone(), &name, timer.process, what, delay);
        match timer.kind {
            TimerKind::Caller(call) => {
                self.call(call).caller_timer = None;
                self.give_up(call, delay);
                self.answer(call, delay);
            }
            TimerKind::Callee(call) => {
                self.call(call).callee_timer = None;
                self.drop_handling(call, delay);
                self.respond(call, delay);
            }
            TimerKind::Sleep(task) => {
                self.task(task).waits = Waits::Nothing;
                self.set_delay(task, delay);
                self.step(task);
            }
            TimerKind::Lease(lease, _) => {
                self.leases.remove(&(timer.process, lease));
            }
        }
    }

    /// A lease is armed, in place of the one that was running.
    pub(super) fn renewed(&mut self, task: u64, lease: usize, length: Nanos, delay: Delay) {
        self.set_delay(task, delay);
        self.log_task(task, What::Passed);
        let process = self.task(task).process;
        if let Some(old) = self.leases.remove(&(process, lease)) {
            self.disarm(old);
        }
        let stack = Stack::home(ProcessIndex(process as u64));
        let kind = TimerKind::Lease(lease, task);
        let timer = self.arm(process, kind, length, delay, &stack, false);
        self.leases.insert((process, lease), timer);
        self.step(task);
    }

    /// Sends a message: its latency is a function of its name, and one connection
    /// keeps its order, in virtual time so that both runs of a pair agree, and in
    /// real time because connections do.
    fn post(&mut self, from: usize, to: usize, delay: Delay, message: Message) {
        let name = match &message {
            Message::Request(id) => format!("{} request", self.calls[id].name),
            Message::Response(id) => format!("{} response", self.calls[id].name),
            Message::Cancel(id) => format!("{} cancel", self.calls[id].name),
        };
        let latency = Duration::from_nanos(self.chance(&name, &self.scenario.network));
        let (mut last_clock, last_real) = self.fifo.get(&(from, to)).copied().unwrap_or_default();
        if !self.scenario.faults.is_empty() {
            // Clocks may have been set back by a loss: only real order is left.
            last_clock = self.now - delay;
        }
        let unhindered = self.now - delay + latency;
        // Who waits for another on its connection comes just after it.
        let hindered = unhindered <= last_clock && self.scenario.grain == 1;
        let clock = if hindered { last_clock.just_after() } else { unhindered.max(last_clock) };
        let real = (clock + delay).max(last_real).max(self.now);
        if real > unhindered + delay {
            let (Message::Request(id) | Message::Response(id) | Message::Cancel(id)) = &message;
            self.trace.hindered.insert(self.calls[id].name.clone());
        }
        self.fifo.insert((from, to), (clock, real));
        self.at(real, Event::Deliver(message));
    }

    fn connect_if_new(&mut self, from: usize, to: usize) {
        if self.processes[from].connected.insert(to) {
            let to = ProcessIndex(to as u64);
            self.processes[from].satellite.handle_connected(to);
            self.drain(from);
        }
    }

    pub(super) fn call(&mut self, id: u64) -> &mut Call {
        self.calls.get_mut(&id).expect("a known call")
    }

    fn log_call(&mut self, id: u64, event: &str, process: usize, what: What, delay: Delay) {
        let strand = self.calls[&id].name.clone();
        self.log(format!("{strand}/{event}").into(), &strand, process, what, delay);
    }

    /// A process dies: with all that runs in it, and all that waits for it is reset.
    pub(super) fn crash(&mut self, process: usize) {
        self.processes[process].is_alive = false;
        let tasks: Vec<u64> =
            self.tasks.iter().filter(|(_, t)| t.process == process).map(|(id, _)| *id).collect();
        for task in tasks {
            self.tasks.remove(&task);
        }
        self.timers.retain(|_, timer| timer.process != process);
        self.leases.retain(|(of, _), _| *of != process);
        self.locks.retain(|(of, _), _| *of != process);
        let gone: Vec<u64> =
            self.at_gate.iter().filter(|(_, g)| g.process == process).map(|(id, _)| *id).collect();
        for strand in gone {
            self.forget_at_gate(strand);
        }
        let mut lost = Vec::new();
        for (id, call) in &mut self.calls {
            if call.callee == process && call.progress != Progress::Over {
                call.progress = Progress::Over;
                lost.push((*id, call.caller_process, call.response_delay));
            }
        }
        for (id, caller, delay) in lost {
            self.post(process, caller, delay, Message::Response(id));
        }
    }
}
