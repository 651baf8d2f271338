//! Whose control is it? The thread of control that a task carries, with its clock.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use ddbx_protocol::{
    AllOn, CallPath, ControlId, Delay, EventKind, Gate, InFlight, MethodName, RealTime, Stack,
    VirtualTime,
};
use ddbx_satellite::driver::{
    Armed, Arrival, Captured, Handle, Named as _, Passed, TimerOf, Visit,
};
use ddbx_satellite::logic::clock;
use ddbx_satellite::logic::strand::{Strand, StrandId};
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::deadlines::{DEADLINE_DEFAULT, FAR};
use crate::naming::{self, Called, Name};
use crate::process::Process;
use crate::seats::{Key, Seat};

tokio::task_local! {
    static CURRENT: Arc<Control>;
}

/// A thread of control while it is in one process; or the room of one that has left,
/// which is kept for another and seen by nobody.
pub(crate) struct Control(Option<Here>);

/// A thread of control in a process.
pub(crate) struct Here {
    process: Process,
    pub(crate) name: Name,
    pub(crate) stack: Stack,
    /// Under which it waits inside the program.
    strand: StrandId,
    delay: AtomicU64,
    is_free: AtomicBool,
    /// How much of it stands at a gate, waits for a response or sleeps: then it
    /// does not wait inside the program.
    elsewhere: AtomicU32,
    pub(crate) method: Option<MethodName>,
    /// Which call of its control brought it here.
    pub(crate) call: Option<CallPath>,
    since: RealTime,
    /// What it had of a deadline when it came.
    allowed: Duration,
    deadline: OnceLock<Deadline>,
    calls: AtomicU32,
    timers: AtomicU64,
    entries: AtomicU64,
    children: Mutex<BTreeMap<String, u32>>,
    key: Key,
}

/// Until when, in virtual time, and what the handler was shown of it.
#[derive(Clone, Copy)]
struct Deadline {
    due: VirtualTime,
    shown: Option<Instant>,
}

/// Who begins to be in a process.
pub(crate) struct Newcomer {
    pub(crate) name: Name,
    pub(crate) stack: Stack,
    pub(crate) delay: Delay,
    pub(crate) is_free: bool,
    /// The call that brings it here.
    pub(crate) method: Option<MethodName>,
    /// Which of the control's calls that is.
    pub(crate) call: Option<CallPath>,
    /// What it has of a deadline.
    pub(crate) allowed: Duration,
    /// Where a call that was given its context finds it again.
    pub(crate) key: Key,
    /// When it came.
    pub(crate) since: RealTime,
    /// Whether it is not in yet, until [`Control::is_in`].
    pub(crate) is_outside: bool,
}

impl Deref for Control {
    type Target = Here;
    fn deref(&self) -> &Here {
        self.0.as_ref().expect("a room without anybody is only kept")
    }
}

impl Control {
    /// It is in the process as long as what this returns.
    pub(crate) fn begin(process: &Process, satellite: &Handle, new: Newcomer) -> Present {
        let control = Self(Some(Here {
            process: process.clone(),
            name: new.name,
            stack: new.stack,
            strand: satellite.new_strand(),
            delay: AtomicU64::new(new.delay.as_nanos()),
            is_free: AtomicBool::new(new.is_free),
            elsewhere: AtomicU32::new(u32::from(new.is_outside)),
            method: new.method,
            call: new.call,
            since: new.since,
            allowed: new.allowed,
            deadline: OnceLock::new(),
            calls: AtomicU32::new(0),
            timers: AtomicU64::new(0),
            entries: AtomicU64::new(0),
            children: Mutex::default(),
            key: new.key,
        }));
        let (seat, control) = process.controls().seats.take(new.key, control);
        Present { control, seat }
    }

    /// It has left: what is left of it.
    pub(crate) fn take(&mut self) -> Option<Here> {
        self.0.take()
    }

    /// Whether this is its key.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.key == key
    }

    /// Its name.
    pub(crate) fn id(&self) -> ControlId {
        self.name.id()
    }

    /// The control of this task, or of the handler that a context was given to, if
    /// it is in this process.
    pub(crate) fn of_call(process: &Process, ctx: &tarpc::context::Context) -> Option<Caller> {
        let own = current().filter(|control| control.process.is(process));
        let own = own.map(|control| Caller { control, is_in_its_task: true });
        let of_context = || process.controls().seats.find(Key::of(ctx));
        own.or_else(|| Some(Caller { control: of_context()?, is_in_its_task: false }))
    }

    /// Runs a future as this control.
    pub(crate) fn run<F: Future>(self: Arc<Self>, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, future)
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) fn satellite(&self) -> &Handle {
        self.process.satellite().expect("without a satellite there are no controls")
    }

    pub(crate) fn delay(&self) -> Delay {
        Delay::from_nanos(self.delay.load(Ordering::Acquire))
    }

    /// Its virtual clock.
    pub(crate) fn clock(&self) -> VirtualTime {
        self.satellite().now() - self.delay()
    }

    /// Its next timer.
    pub(crate) fn next_timer(&self) -> u64 {
        self.timers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Its next use of something that controls share.
    pub(crate) fn next_entry(&self) -> u64 {
        self.entries.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A call that it makes, which is the `nth` one.
    fn call(&self, nth: u32) -> Called {
        let outer = self.call.as_ref();
        let path = outer.map_or_else(|| CallPath::root(nth), |call| call.child(nth));
        Called { control: self.name.clone(), path }
    }

    pub(crate) fn visit(&self) -> Visit<'_> {
        Visit {
            control: &self.name,
            stack: &self.stack,
            delay: Some(self.delay()),
            is_free: self.is_free.load(Ordering::Relaxed),
            inside: Some(self.strand),
        }
    }

    /// It went on with this.
    pub(crate) fn went_on(&self, passed: Passed) {
        self.delay.store(passed.delay.as_nanos(), Ordering::Release);
        self.is_free_from_now_on(passed.is_free);
    }

    pub(crate) fn is_free_from_now_on(&self, is_free: bool) {
        if is_free {
            self.is_free.store(true, Ordering::Relaxed);
        }
    }

    /// It came from outside, and is in now.
    pub(crate) fn is_in(&self) {
        if self.elsewhere.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.satellite().inside(self.delay(), || self.inside());
        }
    }

    /// Until this is dropped it does not wait inside the program.
    pub(crate) fn elsewhere(self: &Arc<Self>) -> Elsewhere {
        self.elsewhere.fetch_add(1, Ordering::SeqCst);
        Elsewhere(self.clone())
    }

    /// Woken by something with this delay, after a wait that began at `began`.
    pub(crate) fn wake(&self, began: VirtualTime, by: Delay) {
        if self.delay() == by {
            return;
        }
        let now = self.satellite().now();
        let delay = clock::wake(now, began, now - by, [self.delay(), by], &AllOn);
        self.delay.store(delay.as_nanos(), Ordering::Release);
    }

    /// It is shown what it has of a deadline, from now on.
    pub(crate) fn show_deadline(&self, now: Instant) -> (VirtualTime, Option<Instant>) {
        let due = (self.satellite().at(now) - self.delay()) + self.allowed;
        let shown = now.checked_add(self.allowed);
        let _ = self.deadline.set(Deadline { due, shown });
        (due, shown)
    }

    /// What is left, in virtual time, of a deadline that a context shows.
    pub(crate) fn remaining(&self, shown: Instant, now: Instant) -> Duration {
        let is_far = shown.saturating_duration_since(now) > FAR;
        match self.deadline.get() {
            Some(own) if own.shown == Some(shown) || is_far => {
                own.due.since(self.satellite().at(now) - self.delay())
            }
            _ => self.process.controls().deadlines.remaining(shown, now, self.delay()),
        }
    }

    /// Comes to a gate of this process.
    pub(crate) fn arrive(
        self: &Arc<Self>,
        gate: impl FnOnce() -> Gate,
        capture: impl FnOnce() -> Captured,
    ) -> AtGate {
        let elsewhere = self.elsewhere();
        AtGate { arrival: self.satellite().arrive(self.visit(), gate, capture), elsewhere }
    }

    /// A timer on its clock.
    pub(crate) fn arm(&self, due: VirtualTime, gate: Gate) -> Armed<'_> {
        let (control, stack, delay) = (&self.name, &self.stack, self.delay());
        // A deadline is not free: it must not overtake what it waits for, which may
        // be held for reasons of its own.
        let is_free = gate == Gate::Sleep && self.is_free.load(Ordering::Relaxed);
        self.satellite().arm(TimerOf { control, stack, delay, due, gate, is_free })
    }

    /// Its next timer runs out.
    pub(crate) fn next_timer_fires(&self) -> impl FnOnce() -> EventKind + use<> {
        let (name, call, timer) = (self.name.clone(), self.call.clone(), self.next_timer());
        move || EventKind::Fired { control: name.id(), call, timer }
    }

    /// Sleeps until its clock shows this.
    pub(crate) async fn sleep_until(
        self: &Arc<Self>,
        due: VirtualTime,
        fires: impl FnOnce() -> EventKind,
    ) {
        let _elsewhere = self.elsewhere();
        let mut timer = self.arm(due, Gate::Sleep);
        let delay = timer.fired(fires).await;
        self.delay.store(delay.as_nanos(), Ordering::Release);
    }

    /// A control that this one starts.
    pub(crate) fn child(&self, name: &str) -> Present {
        let id = {
            let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
            naming::child(&self.id(), self.call.as_ref(), name, &mut children)
        };
        let delay = self.delay();
        let new = Newcomer {
            name: id.into(),
            stack: Stack::home(self.satellite().process()),
            delay,
            is_free: self.is_free.load(Ordering::Relaxed),
            method: None,
            call: None,
            allowed: DEADLINE_DEFAULT,
            key: Key::unique(self.satellite().new_strand()),
            since: self.satellite().now(),
            is_outside: false,
        };
        Self::begin(&self.process, self.satellite(), new)
    }

    /// As it waits inside the program, if it does.
    pub(crate) fn inside(&self) -> Option<Strand> {
        let here = self.elsewhere.load(Ordering::SeqCst) == 0;
        here.then(|| Strand::new(self.strand, self.stack.clone(), self.delay()))
    }

    /// The call that it handles, if it handles one.
    pub(crate) fn in_flight(&self) -> Option<InFlight> {
        let now = self.satellite().now();
        // While it stands before its handler it has been shown no deadline yet.
        let comes_due = (self.since - self.delay()) + self.allowed;
        Some(InFlight {
            method: self.method.clone()?,
            control: self.id(),
            depth: u32::try_from(self.stack.0.len() - 1).unwrap_or(u32::MAX),
            age: now.since(self.since),
            delay: self.delay(),
            due: self.deadline.get().map_or(comes_due, |deadline| deadline.due),
            now,
        })
    }
}

/// Who makes a call.
pub(crate) struct Caller {
    pub(crate) control: Arc<Control>,
    /// Or in another one, which it has started without a word.
    is_in_its_task: bool,
}

impl Caller {
    /// The call, counted where counting gives the same in every run. In tasks that run
    /// side by side it does not: there, calls are numbered by what they are.
    pub(crate) fn next_call<T: Serialize>(&self, method: &MethodName, args: &T) -> Called {
        let control = &self.control;
        let nth = match self.is_in_its_task {
            true => control.calls.fetch_add(1, Ordering::Relaxed) + 1,
            false => {
                let mut likes = control.children.lock().unwrap_or_else(PoisonError::into_inner);
                let hash = control.process.controls().hash(args);
                naming::by_content(method, hash, &mut likes)
            }
        };
        control.call(nth)
    }
}

/// A control is in the process. (Its end is not the end of the last pointer to it:
/// that may be in the hands of somebody who has locked the satellite.)
pub(crate) struct Present {
    control: Arc<Control>,
    seat: Arc<Seat>,
}

impl Deref for Present {
    type Target = Arc<Control>;
    fn deref(&self) -> &Arc<Control> {
        &self.control
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        // For good: a call that it has started may end later.
        self.elsewhere.fetch_add(1, Ordering::SeqCst);
        let (key, strand) = (self.key, self.strand);
        match self.seat.leave(&mut self.control) {
            Some(here) => here.process.has_lost(key, strand, &self.seat),
            None => self.process.has_lost(key, strand, &self.seat),
        }
    }
}

/// A control at a gate.
pub(crate) struct AtGate {
    arrival: Arrival,
    elsewhere: Elsewhere,
}

impl AtGate {
    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.elsewhere.0
    }

    /// It goes on, now or when it may: that is this event.
    pub(crate) async fn pass(self, event: impl FnOnce() -> EventKind + Send) {
        let control = &self.elsewhere.0;
        let (passed, _) = control.satellite().pass(control.visit(), self.arrival, event).await;
        control.went_on(passed);
    }
}

/// A control stands at a gate, waits for a response or sleeps.
pub(crate) struct Elsewhere(Arc<Control>);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.0.is_in();
    }
}

/// The control of this task, wherever it is.
pub(crate) fn current() -> Option<Arc<Control>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// The same, if what it does is recorded, shaken or follows a recording.
pub(crate) fn on_course() -> Option<Arc<Control>> {
    let on_course =
        |control: &Arc<Control>| control.satellite().has_course().then(|| control.clone());
    CURRENT.try_with(on_course).ok().flatten()
}

/// Starts a new control in this process, which takes over the delay of this one. Its
/// name is the same in every run; a second child of one name gets a number. Without
/// a session it is `tokio::spawn`.
pub fn spawn<F>(name: &str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match current() {
        Some(parent) => run_in_task(parent.child(name), Some(parent.id()), future),
        None => tokio::spawn(future),
    }
}

/// Runs a new control in a task of its own.
pub(crate) fn run_in_task<F>(
    control: Present,
    by: Option<ControlId>,
    future: F,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let start = control.arrive(|| Gate::Spawn, Captured::default);
    let id = control.id();
    let satellite = control.satellite().clone();
    let all = async move {
        start.pass(|| EventKind::Spawned { control: id.clone(), by }).await;
        let output = control.clone().run(future).await;
        let (satellite, delay) = (control.satellite(), control.delay());
        satellite.happens(delay, || EventKind::Ended { control: id }).await;
        output
    };
    satellite.spawn(all)
}
