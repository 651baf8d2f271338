//! Whose control is it? The thread of control that a task carries, with its clock.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::future::Future;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use ddbx_protocol::{
    AllOn, CallPath, ControlId, Delay, EventKind, Gate, InFlight, RealTime, Stack, VirtualTime,
};
use ddbx_recording::Who;
use ddbx_satellite::driver::{Alarm, Armed, Captured, Handle, Passed, Somebody, TimerOf, Visit};
use ddbx_satellite::logic::clock;
use ddbx_satellite::logic::strand::{Strand, StrandId};
use serde::Serialize;
use serde_json::Value;

use crate::deadlines::{Came, FAR, Remaining};
use crate::envelope::RequestMeta;
use crate::methods::Method;
use crate::naming::{Began, Name};
use crate::process::Process;
use crate::seats::{Guest, Key};
use crate::{methods, naming};

mod origin;
mod presence;
mod task;

pub(crate) use origin::{Comes, Home, Newcomer, Origin};
pub(crate) use presence::{AtGate, Elsewhere, Present};
pub use task::spawn;
pub(crate) use task::{as_control, current, on_course, run_in_task};

/// A thread of control while it is in one process; or the room of one that has left,
/// which is kept for another and seen by nobody.
#[derive(Default)]
pub(crate) struct Control {
    /// None once it has left.
    here: Option<Here>,
    /// What came with the call that brought it here, if one did. It stays in the room.
    called: Box<RequestMeta>,
    /// Under which it waits inside the program.
    strand: StrandId,
    delay: AtomicU64,
    is_free: AtomicBool,
    /// How much of it stands at a gate, waits for a response or sleeps: then it
    /// does not wait inside the program.
    elsewhere: AtomicU32,
    pub(crate) method: Option<&'static Method>,
    /// When it came, and what it had of a deadline then.
    came: Came,
    /// With which delay its call came in, if nothing stood in its way.
    came_in_with: Option<Delay>,
    calls: AtomicU32,
    /// For its deadline. It stays in the room.
    alarm: OnceLock<Alarm>,
    key: Key,
    /// Few have any. It stays in the room.
    more: OnceLock<Box<More>>,
}

/// What few controls need.
#[derive(Default)]
struct More {
    /// Its name, once somebody has asked for it.
    named: OnceLock<ControlId>,
    /// What it was shown of its deadline, if something stood in its way.
    deadline: OnceLock<Deadline>,
    timers: AtomicU64,
    entries: AtomicU64,
    /// The arguments of the call that brought it here, for a breakpoint where it leaves.
    args: OnceLock<Value>,
    children: Mutex<Children>,
}

/// Until when, in virtual time, and what the handler was shown of it.
#[derive(Clone, Copy)]
struct Deadline {
    due: VirtualTime,
    shown: Option<Instant>,
}

/// What a control leads to while it is in a process.
pub(crate) struct Here {
    process: Process,
    /// Of one that began here.
    home: Option<Box<Home>>,
}

/// Those that a control has started, and calls that it numbers by what they are.
type Children = BTreeMap<String, u32>;

impl Control {
    /// It is in the process as long as what this returns.
    #[inline(always)]
    pub(crate) fn begin(new: Newcomer<'_>) -> Present {
        let (mut vacant, key) = (new.process.controls().seats.vacant(), new.key);
        vacant.what().enter(new);
        let control = vacant.enter();
        control.process().controls().seats.has(key);
        Present(Some(control))
    }

    /// Somebody takes the room. (Always in place: what a newcomer is made of would be moved
    /// about otherwise.)
    #[inline(always)]
    pub(crate) fn enter(&mut self, new: Newcomer<'_>) {
        // Each has a number of its own; the room's first one is counted, the others follow.
        self.strand = match self.strand {
            StrandId(0) => new.process.satellite().expect(HAS_SATELLITE).new_strand(),
            StrandId(last) => StrandId(last.wrapping_add(REUSED)),
        };
        let home = match new.comes {
            Comes::Called(meta) => {
                mem::swap(&mut self.called, meta);
                None
            }
            Comes::Home(home) => Some(home),
        };
        self.here = Some(Here { process: new.process, home });
        *self.delay.get_mut() = new.delay.as_nanos();
        *self.is_free.get_mut() = new.is_free;
        *self.elsewhere.get_mut() = u32::from(!new.is_in);
        self.method = new.method;
        self.came = new.came;
        self.came_in_with = (new.is_in && new.method.is_some()).then_some(new.delay);
        *self.calls.get_mut() = 0;
        self.key = new.key;
        if let Some(more) = self.more.get_mut() {
            **more = More::default();
        }
    }

    fn more(&self) -> &More {
        self.more.get_or_init(Box::default)
    }

    /// The alarm for its deadline.
    #[inline]
    pub(crate) fn alarm(&self) -> &Alarm {
        self.alarm.get_or_init(|| self.satellite().new_alarm())
    }

    pub(crate) fn keep_args(&self, args: Value) {
        let _ = self.more().args.set(args);
    }

    pub(crate) fn args(&self) -> Option<&Value> {
        self.more.get()?.args.get()
    }

    /// It has left: what it led to.
    pub(crate) fn leave(&mut self) -> Option<Here> {
        self.here.take()
    }

    #[inline]
    fn here(&self) -> &Here {
        self.here.as_ref().expect("a room without anybody is only kept")
    }

    /// Whether this is its key.
    pub(crate) fn has(&self, key: Key) -> bool {
        self.key == key
    }

    /// Its name.
    pub(crate) fn id(&self) -> ControlId {
        let name = || self.origin().id(self.process(), self.began_with());
        self.more().named.get_or_init(name).clone()
    }

    /// The same in a note.
    pub(crate) fn who(&self) -> Who {
        self.origin().who(self.process(), self.began_with())
    }

    /// The same for whoever it calls. Where nothing is recorded no name is made for that.
    #[inline]
    pub(crate) fn tell_name(&self, name: &mut Name) {
        if let Origin::Called(meta) = self.origin()
            && let Name::Root { hash, nth, began } = *meta.control()
            && !self.satellite().has_course()
            && let Some(began) = began.or_else(|| self.began())
        {
            name.set_root(hash, nth, Some(began));
        } else {
            *name = self.id().into();
        }
    }

    /// With what it began, if that was the call that brought it here.
    fn began(&self) -> Option<Began> {
        let home = self.called.home()?;
        Some(Began { home: self.process().controls().home(home)?, method: self.method? })
    }

    #[inline]
    fn began_with(&self) -> &'static Method {
        self.method.unwrap_or_else(|| methods::method("unknown"))
    }

    /// Which call of its control brought it here.
    pub(crate) fn call(&self) -> Option<CallPath> {
        self.origin().call()
    }

    /// How it came to be here.
    #[inline]
    pub(crate) fn origin(&self) -> Origin<'_> {
        self.here().home.as_deref().map_or(Origin::Called(&self.called), Origin::Home)
    }

    /// Whether the caller has said who it is, and waits for the same.
    #[inline]
    pub(crate) fn was_introduced(&self) -> bool {
        matches!(self.origin(), Origin::Called(meta) if meta.hello().is_some())
    }

    /// The control of this task, or of the handler that a context was given to, if
    /// it is in this process.
    pub(crate) fn of_call(process: &Process, ctx: &tarpc::context::Context) -> Option<Caller> {
        let own = task::current_if(|control| control.process().is(process));
        let own = own.map(|control| Caller { control, is_in_its_task: true });
        let of_context = || process.controls().seats.find(Key::of(ctx));
        own.or_else(|| Some(Caller { control: of_context()?, is_in_its_task: false }))
    }

    #[inline]
    pub(crate) fn process(&self) -> &Process {
        &self.here().process
    }

    #[inline]
    pub(crate) fn satellite(&self) -> &Handle {
        self.process().satellite().expect(HAS_SATELLITE)
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
        self.more().timers.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Its next use of something that controls share.
    pub(crate) fn next_entry(&self) -> u64 {
        self.more().entries.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn visit(&self) -> Visit<'_> {
        Visit {
            who: self,
            delay: Some(self.delay()),
            is_free: self.is_free(),
            inside: Some(self.strand),
        }
    }

    /// It went on with this.
    pub(crate) fn went_on(&self, passed: Passed) {
        self.delay.store(passed.delay.as_nanos(), Ordering::Release);
        self.is_free_from_now_on(passed.is_free);
    }

    pub(crate) fn is_free(&self) -> bool {
        self.is_free.load(Ordering::Relaxed)
    }

    pub(crate) fn is_free_from_now_on(&self, is_free: bool) {
        if is_free {
            self.is_free.store(true, Ordering::Relaxed);
        }
    }

    /// It came from outside, and is in now.
    pub(crate) fn is_in(&self) {
        if self.elsewhere.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.is_seen_inside();
        }
    }

    /// Whoever looks from now on sees it inside. Whoever has looked before, it must tell.
    #[inline]
    pub(crate) fn is_seen_inside(&self) {
        self.satellite().inside(self.delay(), || self.inside());
    }

    /// Until [`Self::is_in`] is said once more it does not wait inside the program.
    #[inline]
    pub(crate) fn is_elsewhere(&self) {
        self.elsewhere.fetch_add(1, Ordering::SeqCst);
    }

    /// The same, until this is dropped.
    #[inline]
    pub(crate) fn elsewhere<C: Borrow<Self>>(control: C) -> Elsewhere<C> {
        control.borrow().is_elsewhere();
        Elsewhere(control)
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
    pub(crate) fn show_deadline(&self) -> Option<Instant> {
        let deadline = || {
            let came = Came::now(self.satellite(), self.came.allowed);
            self.deadline_of(&came, self.delay())
        };
        self.more().deadline.get_or_init(deadline).shown
    }

    /// Of a call that came in then, with this delay.
    fn deadline_of(&self, came: &Came, delay: Delay) -> Deadline {
        let due = (came.clock(self.satellite()) - delay) + came.allowed;
        Deadline { due, shown: came.shown }
    }

    fn deadline(&self) -> Option<Deadline> {
        match self.came_in_with {
            Some(delay) => Some(self.deadline_of(&self.came, delay)),
            None => self.more.get()?.deadline.get().copied(),
        }
    }

    /// When its deadline passes. While it stands before its handler it has been shown none yet.
    pub(crate) fn due(&self) -> VirtualTime {
        let comes = || self.deadline_of(&self.came, self.delay());
        self.deadline().unwrap_or_else(comes).due
    }

    /// The same, for a timer that is set now. A replay takes its time.
    pub(crate) fn due_or_later(&self) -> VirtualTime {
        match self.satellite().is_replay() {
            true => self.clock() + self.came.allowed,
            false => self.due(),
        }
    }

    /// What is left now, in virtual time, of a deadline that a context shows, which is then on
    /// the process's clock.
    pub(crate) fn remaining(
        &self,
        (shown, shows): (Instant, RealTime),
        now: RealTime,
    ) -> Remaining {
        match self.deadline() {
            Some(own) if own.shown == Some(shown) || Remaining::from_until(now, shows) > FAR => {
                Remaining::of_control(now - self.delay(), own.due)
            }
            _ => self.process().controls().deadlines.remaining(shows, now, self.delay()),
        }
    }

    /// A timer on its clock.
    pub(crate) fn arm(&self, due: VirtualTime, gate: Gate) -> Armed<'_> {
        self.satellite().arm(self.timer(due, gate))
    }

    pub(crate) fn timer(&self, due: VirtualTime, gate: Gate) -> TimerOf<'_> {
        // A deadline is not free: it must not overtake what it waits for, which may
        // be held for reasons of its own.
        let is_free = gate == Gate::Sleep && self.is_free();
        TimerOf { who: self, delay: self.delay(), due, gate, is_free }
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        self.more().children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A control that this one starts.
    pub(crate) fn child(&self, name: &str) -> Present {
        let id = naming::child(&self.id(), self.call().as_ref(), name, &mut self.children());
        let is_free = self.is_free();
        Self::begin(Newcomer::named(self.process(), id, self.delay(), is_free))
    }

    /// As it waits inside the program, if it does.
    pub(crate) fn inside(&self) -> Option<Strand> {
        let here = self.elsewhere.load(Ordering::SeqCst) == 0;
        here.then(|| Strand::new(self.strand, self.stack(), self.delay()))
    }

    /// The call that it handles, if it handles one.
    pub(crate) fn in_flight(&self) -> Option<InFlight> {
        let now = self.satellite().now();
        Some(InFlight {
            method: self.method?.name.clone(),
            control: self.id(),
            depth: u32::try_from(self.stack().0.len() - 1).unwrap_or(u32::MAX),
            age: now.since(self.came.clock(self.satellite())),
            delay: self.delay(),
            due: self.due(),
            now,
        })
    }
}

impl Guest<Control> {
    /// Runs a future as this control.
    pub(crate) fn run<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        task::Run::new(self, future)
    }

    /// Comes to a gate of this process.
    pub(crate) fn arrive(
        &self,
        gate: impl FnOnce() -> Gate,
        capture: impl FnOnce() -> Captured,
    ) -> AtGate {
        let elsewhere = Control::elsewhere(self.clone());
        AtGate { arrival: self.satellite().arrive(self.visit(), gate, capture), elsewhere }
    }

    /// Its next timer runs out.
    pub(crate) fn next_timer_fires(&self) -> impl FnOnce() -> EventKind + use<> {
        let (own, timer) = (self.clone(), self.next_timer());
        move || EventKind::Fired { control: own.id(), call: own.call(), timer }
    }

    /// Sleeps until its clock shows this.
    pub(crate) async fn sleep_until(&self, due: VirtualTime, fires: impl FnOnce() -> EventKind) {
        let _elsewhere = Control::elsewhere(&**self);
        let mut timer = self.arm(due, Gate::Sleep);
        let delay = timer.fired(fires).await;
        self.delay.store(delay.as_nanos(), Ordering::Release);
    }
}

/// Who makes a call.
pub(crate) struct Caller {
    pub(crate) control: Guest<Control>,
    /// Or in another one, which it has started without a word.
    is_in_its_task: bool,
}

impl Caller {
    /// Which of its calls this is, counted where counting gives the same in every run. In
    /// tasks that run side by side it does not: there, calls are numbered by what they are.
    pub(crate) fn next_call<T: Serialize>(&self, method: &Method, args: &T) -> CallPath {
        let control = &self.control;
        let nth = match self.is_in_its_task {
            true => control.calls.fetch_add(1, Ordering::Relaxed) + 1,
            false => {
                let hash = control.process().controls().hash(args);
                naming::by_content(method, hash, &mut control.children())
            }
        };
        control.call().map_or_else(|| CallPath::root(nth), |call| call.child(nth))
    }
}

impl Somebody for Control {
    fn id(&self) -> ControlId {
        self.id()
    }

    fn stack(&self) -> Stack {
        let here = self.satellite().process();
        match self.origin() {
            Origin::Called(meta) => meta.stack().call(here),
            Origin::Home(_) => Stack::home(here),
        }
    }
}

/// Between the numbers of two that had the same room: more than are counted in a process.
const REUSED: u64 = 1 << 40;

const HAS_SATELLITE: &str = "without a satellite there are no controls";
