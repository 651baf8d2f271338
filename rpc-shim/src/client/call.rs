//! A call of a session, as its caller sees it.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::thread::LocalKey;

use ddbx_protocol::{
    CallId, CallPath, ControlId, Delay, End, EventKind, EventNumber, Gate, RealTime, RpcEvent,
    Stack, VirtualTime,
};
use ddbx_recording::{Beginning, Happens, Note, SentAs, ToNote};
use ddbx_satellite::driver::{Alarm, Captured, Handle, Passed, Somebody, TimerOf, Visit};
use ddbx_satellite::shelf::{self, Kept, Shelves};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tarpc::{RequestName, context};

use super::{Answer, Client, Said};
use crate::capture;
use crate::control::Control;
use crate::controls::Controls;
use crate::envelope::{Brief, FIRST, Hello, RequestMeta, TracedRequest};
use crate::methods::{self, Method};
use crate::naming::{self, Name};
use crate::seats::Guest;

/// A call until it is over. If it is dropped before, it is given up.
pub(super) struct Call<'a> {
    pub(super) who: Who<'a>,
    /// Its arguments, for a breakpoint where it comes back.
    args: Option<Box<Value>>,
    is_over: bool,
}

/// Which call it is.
pub(super) struct Who<'a> {
    pub(super) satellite: &'a Handle,
    /// None from outside.
    control: Option<Guest<Control>>,
    /// The rest, in room that is used again.
    own: Option<Box<Own>>,
}

/// What a caller knows of its call.
struct Own {
    /// What every request says, and how it has left.
    brief: Brief,
    /// What its clock showed then.
    left_at: VirtualTime,
    method: &'static Method,
    /// What tells it from others that are begun beside it, in a recording.
    content: u16,
    /// Of one from outside, which begins with this call: its name, if it has been made.
    name: Option<ControlId>,
    /// Of any other: which of the calls of its control.
    path: CallPath,
    /// For its deadline. It stays in the room.
    alarm: Alarm,
    /// Under which of this process's names it has introduced the connection, if it has.
    introduced: Option<u64>,
}

thread_local! {
    static OWN: Shelves<Box<Own>> = const { RefCell::new(Vec::new()) };
}

impl Kept for Own {
    type Pointer = Box<Self>;
    fn shelves() -> &'static LocalKey<Shelves<Box<Self>>> {
        &OWN
    }
}

impl<'a> Call<'a> {
    /// A call begins. If nothing stands in its way it has left with that: then what its request
    /// takes along is written. tarpc is given a deadline that does not come.
    #[inline]
    pub(super) fn begin<Req: RequestName + Serialize + 'static, Resp: 'static>(
        client: &Client<Req, Resp>,
        satellite: &'a Handle,
        ctx: &mut context::Context,
        request: &mut TracedRequest<Req>,
    ) -> (Self, bool) {
        let (meta, request) = request.parts_mut();
        let now = satellite.now();
        let shows = satellite.at(ctx.deadline);
        let caller = Control::of_call(&client.process, ctx);
        let controls = client.process.controls();
        let method = methods::method(request.name());
        let open = satellite.open_at(method.groups);
        let open = open.filter(|open| {
            caller.as_ref().is_none_or(|caller| caller.control.delay() == open.delay)
        });
        let delay = open.map(|open| open.delay).unwrap_or_default();
        // Where nothing is recorded or replayed, nobody asks; and what passes without being noted
        // is neither.
        let has_course = open.is_none_or(|open| open.is_noted) && satellite.has_course();
        let hash = if has_course || caller.is_none() { controls.hash(request) } else { 0 };
        let content = match has_course {
            true => naming::content(hash, client.connection.nth()),
            false => 0,
        };
        // What is left of the deadline is read before anything can hold the call: from
        // here on only virtual time counts.
        let remaining = match &caller {
            Some(caller) => caller.control.remaining((ctx.deadline, shows), now),
            None => controls.deadlines.remaining(shows, now, satellite.floor()),
        };
        let mut own =
            shelf::take::<Own>(satellite.process()).unwrap_or_else(|| Own::new(satellite));
        let nth = match &caller {
            Some(caller) => {
                controls.made_by_controls.fetch_add(1, Ordering::Relaxed);
                own.path = caller.next_call(method, request);
                0
            }
            None => controls.nth_root(has_course, method, hash),
        };
        let brief = Brief {
            delay,
            remaining,
            sent: EventNumber::default(),
            caller: satellite.process(),
            hash,
            nth,
            is_free: caller.as_ref().is_some_and(|caller| caller.control.is_free()),
            has_waited: false,
        };
        own.brief = brief;
        own.left_at = now - delay;
        own.method = method;
        own.content = content;
        own.name = None;
        own.introduced = None;
        let control = caller.map(|caller| caller.control);
        if let Some(control) = &control {
            control.is_elsewhere();
        }
        let mut who = Who { satellite, control, own: Some(own) };
        // In a recording every event says whose it is; only notes do not.
        if has_course && open.is_none() && who.control.is_none() {
            who.edit().name = Some(Somebody::id(&who));
        }
        ctx.deadline = remaining.given(ctx.deadline, shows, now);
        let note = || who.note_of_departure();
        let sent = open.and_then(|open| satellite.pass_open(open, || now, note));
        if let Some(sent) = sent {
            who.edit().brief.sent = sent;
            let hello = client.connection.hello(satellite);
            who.write(meta, (Brief { sent, ..brief }, now - delay), hello);
        }
        (Self { who, args: None, is_over: false }, sent.is_some())
    }

    /// It leaves when it may. A breakpoint may want to see it. The deadline that tarpc is given
    /// tells the callee when that was.
    pub(super) async fn leaves<Req: Serialize>(
        &mut self,
        controls: &Controls,
        ctx: &mut context::Context,
        request: &Req,
    ) {
        let satellite = self.who.satellite;
        if satellite.is_replay() {
            self.find().await;
        }
        let who = &self.who;
        let args = || Some(capture::args(controls, request));
        let seen = || Captured { args: args(), result: None };
        let from_outside = Visit { who, delay: None, is_free: false, inside: None };
        let visit = who.control.as_deref().map_or(from_outside, Control::visit);
        let arrival = satellite.arrive(visit, || who.gate(RpcEvent::Call), seen);
        let kept = satellite.meets(|| who.gate(RpcEvent::Resume)).then(args).flatten();
        let (passed, sent) = satellite.pass(visit, arrival, || who.departure()).await;
        let Passed { delay, is_free } = passed;
        if let Some(control) = &who.control {
            control.went_on(passed);
        }
        self.args = kept.map(Box::new);
        let own = self.who.edit();
        own.brief = Brief { delay, is_free, sent, ..own.brief };
        own.left_at = satellite.now() - delay;
        ctx.deadline = own.brief.remaining.given_now();
    }

    /// In a replay: which of the recorded calls it is.
    async fn find(&mut self) {
        let Who { satellite, control: Some(control), .. } = &self.who else { return };
        let find = || satellite.like(control.call().as_ref(), &self.who.departure());
        let mut found = find();
        if found.as_ref().is_some_and(|like| !like.is_same) {
            // It may be another one that is begun beside it: that one comes first.
            tokio::task::yield_now().await;
            found = find();
        }
        if let Some(like) = found {
            self.who.edit().path = like.path;
        }
    }

    /// It comes back, if nothing stands in its way and nobody wants to see it.
    #[inline]
    pub(super) fn is_back_at_once(&self, passed: Passed, sent_as: impl FnOnce() -> SentAs) -> bool {
        let (who, satellite) = (&self.who, self.who.satellite);
        let open = satellite.open_at(who.own().method.groups);
        let open = open.filter(|open| open.delay == passed.delay);
        let note = || who.note(Happens::ReturnArrived { sent_as: sent_as() });
        open.is_some_and(|open| satellite.pass_open(open, || satellite.now(), note).is_some())
    }

    /// The same when it may.
    pub(super) fn comes_back(
        &self,
        passed: Passed,
        result: impl FnOnce() -> Value,
        returned: EventKind,
    ) -> BoxFuture<'a, Passed> {
        let who = self.who.clone();
        let seen = || Captured { args: self.args.as_deref().cloned(), result: Some(result()) };
        let of_return = || who.gate(RpcEvent::Resume);
        let arrival = who.satellite.arrive(who.visit(passed), of_return, seen);
        Box::pin(
            async move { who.satellite.pass(who.visit(passed), arrival, move || returned).await.0 },
        )
    }

    /// Its deadline passes.
    pub(super) fn expires(&self) -> BoxFuture<'a, Passed> {
        // From now on another alarm wakes it.
        self.who.own().alarm.unset();
        let who = self.who.clone();
        Box::pin(async move {
            let Own { brief: Brief { delay, remaining, is_free, .. }, left_at, alarm, .. } =
                who.own();
            // A replay takes its time.
            let since =
                if who.satellite.is_replay() { who.satellite.now() - *delay } else { *left_at };
            let (delay, due) = (*delay, since + *remaining);
            let timer = TimerOf { who: &who, delay, due, gate: Gate::Deadline, is_free: false };
            let mut deadline = who.satellite.arm_with(timer, alarm);
            let expires = || EventKind::DeadlineExpired { call: who.id(), end: End::Caller };
            Passed { delay: deadline.expired(expires).await, is_free: *is_free }
        })
    }

    /// Its caller goes on.
    #[inline]
    pub(super) fn is_over(&mut self, passed: Passed) {
        self.is_over = true;
        if let Some(control) = &self.who.control {
            control.wake(self.who.own().left_at, passed.delay);
            control.is_free_from_now_on(passed.is_free);
        }
    }
}

impl Drop for Call<'_> {
    #[inline]
    fn drop(&mut self) {
        let who = &self.who;
        if !self.is_over {
            let cancelled = || EventKind::Cancelled { call: who.id(), end: End::Caller };
            who.satellite.note(who.own().brief.delay, cancelled);
        }
        if let Some(control) = &who.control {
            control.is_in();
        }
    }
}

const IS_THERE: &str = "it is there until the call is dropped";

impl Own {
    /// Room for one.
    #[cold]
    fn new(satellite: &Handle) -> Box<Self> {
        Box::new(Self {
            brief: Brief::default(),
            left_at: VirtualTime::default(),
            method: methods::method("unknown"),
            content: 0,
            name: None,
            path: CallPath::root(FIRST),
            alarm: satellite.new_alarm(),
            introduced: None,
        })
    }
}

impl Clone for Who<'_> {
    /// With an alarm of its own.
    fn clone(&self) -> Self {
        let Own { brief, left_at, method, content, name, path, introduced, .. } = self.own();
        let own = Box::new(Own {
            brief: *brief,
            left_at: *left_at,
            method,
            content: *content,
            name: name.clone(),
            path: path.clone(),
            alarm: self.satellite.new_alarm(),
            introduced: *introduced,
        });
        Self { satellite: self.satellite, control: self.control.clone(), own: Some(own) }
    }
}

impl Drop for Who<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            own.alarm.unset();
            shelf::keep::<Own>(self.satellite.process(), own);
        }
    }
}

impl Who<'_> {
    #[inline]
    fn own(&self) -> &Own {
        self.own.as_ref().expect(IS_THERE)
    }

    #[inline]
    fn edit(&mut self) -> &mut Own {
        self.own.as_mut().expect(IS_THERE)
    }

    /// Under which of this process's names it has introduced the connection, if it has.
    #[inline]
    pub(super) fn introduced(&self) -> Option<u64> {
        self.own().introduced
    }

    /// Writes what its request takes along. (It is told what it knows: to read what has just
    /// been written in smaller pieces is to wait for it.)
    #[inline]
    fn write(
        &mut self,
        meta: &mut RequestMeta,
        (brief, left_at): (Brief, VirtualTime),
        hello: Option<Box<Hello>>,
    ) {
        meta.left_at = left_at;
        meta.floor = Some(self.satellite.floor_alone());
        match (&self.control, &self.own().name, hello) {
            (None, None, None) => meta.set_brief(brief),
            (.., hello) => self.write_more(meta, brief, hello),
        }
    }

    fn write_more(&mut self, meta: &mut RequestMeta, brief: Brief, hello: Option<Box<Hello>>) {
        let name = &self.own().name;
        meta.brief = brief;
        let more = meta.more_mut();
        match (&self.control, name) {
            (Some(control), _) => {
                more.stack = control.stack();
                control.tell_name(&mut more.control);
            }
            (None, Some(name)) => more.control = name.clone().into(),
            (None, None) => more.control.set_root(brief.hash, brief.nth, None),
        }
        if self.control.is_none() {
            more.stack.set_home(self.satellite.process());
        }
        more.path = self.path();
        self.edit().introduced = hello.as_ref().map(|hello| hello.names_had);
        more.hello = hello;
    }

    /// Which of the calls of its control it is.
    #[inline]
    fn path(&self) -> CallPath {
        match &self.control {
            Some(_) => self.own().path.clone(),
            None => CallPath::root(FIRST),
        }
    }

    pub(super) fn id(&self) -> CallId {
        CallId { control: Somebody::id(self), path: self.path() }
    }

    fn gate(&self, event: RpcEvent) -> Gate {
        Gate::Rpc(event, self.own().method.name.clone())
    }

    fn departure(&self) -> EventKind {
        let (method, content) = (self.own().method.name.clone(), self.own().content);
        EventKind::CallSent { call: self.id(), method, content }
    }

    /// The same in short.
    #[inline(always)]
    fn note_of_departure(&self) -> ToNote {
        let Own { method, content, .. } = self.own();
        self.note(Happens::CallSent { method: &method.name, content: *content })
    }

    /// The name of a control that begins with this call.
    fn name(&self) -> Name {
        let Own { brief: Brief { hash, nth, .. }, name, .. } = self.own();
        let root = || Name::Root { hash: *hash, nth: *nth, began: None };
        name.clone().map_or_else(root, Name::Known)
    }

    /// What happens to it.
    #[inline(always)]
    fn note(&self, what: Happens) -> ToNote {
        let Own { brief: Brief { hash, nth, .. }, method, name, .. } = self.own();
        let control = match (&self.control, name) {
            // It began here, with this call.
            (None, None) => {
                let (home, method) = (self.satellite.process(), &method.name);
                let beginning = Beginning { home, method, hash: *hash, nth: *nth };
                return ToNote::Usual { beginning, nth: FIRST, what };
            }
            (None, Some(name)) => ddbx_recording::Who::Named(name.clone()),
            (Some(control), _) => control.who(),
        };
        ToNote::Any(Note { control, path: self.path(), what })
    }

    /// It comes back to its caller.
    fn visit(&self, Passed { delay, is_free }: Passed) -> Visit<'_> {
        Visit { who: self, delay: Some(delay), is_free, inside: None }
    }

    /// Writes what the request of one takes along that has left when it might.
    pub(super) fn write_late(&mut self, meta: &mut RequestMeta, hello: Option<Box<Hello>>) {
        let Own { brief, left_at, .. } = *self.own();
        self.write(meta, (brief, left_at), hello);
    }

    /// When its deadline passes, if nothing is held.
    #[inline]
    fn due(&self) -> RealTime {
        let Own { brief: Brief { delay, remaining, .. }, left_at, .. } = self.own();
        (*left_at + *delay) + *remaining
    }

    /// Sets the alarm for its deadline.
    #[inline]
    pub(super) fn set_alarm(&self) {
        self.satellite.set(&self.own().alarm, self.due());
    }

    /// The same in a replay, where deadlines pass when they did.
    pub(super) fn set_alarm_in_replay(&self) {
        self.satellite.set_in_replay(&self.own().alarm);
    }

    /// Whether this is a replay in which it may come to another end than its answer.
    pub(super) fn may_be_given_up_in_replay(&self) -> bool {
        let satellite = self.satellite;
        satellite.is_replay() && !(satellite.only_answers() && satellite.is_answered(&self.id()))
    }

    /// Whether it has rung.
    #[inline]
    pub(super) fn poll_alarm(&self, context: &mut Context<'_>) -> Poll<()> {
        self.own().alarm.poll_rang(context)
    }

    /// It comes back with this delay, which was said in short.
    #[inline]
    pub(super) fn is_back_after(&self, delay: Delay) -> Passed {
        Passed { delay, is_free: self.own().brief.is_free }
    }

    /// With which delay it comes back, and whether the user has let it go on anyway. An error
    /// that was made outside the handler's wrapper has no delay. It may come from whoever is
    /// furthest behind; if the connection is lost, also from one that stands.
    #[inline]
    pub(super) fn is_back_with<T>(&self, answer: &Answer<T>) -> Passed {
        let Own { brief: Brief { delay, is_free, .. }, left_at: at, .. } = *self.own();
        match &answer.said {
            Said::InShort(says) => self.is_back_after(says.delay()),
            Said::All(meta) => Passed { delay: meta.delay, is_free: meta.is_free || is_free },
            Said::Nothing if answer.is_lost() => {
                Passed { delay: self.satellite.woken_by_a_loss(at, delay), is_free }
            }
            Said::Nothing => {
                let floor = self.satellite.floor_alone();
                Passed { delay: floor.woken_by_anybody(at, delay), is_free }
            }
        }
    }
}

impl Somebody for Who<'_> {
    fn id(&self) -> ControlId {
        match &self.control {
            Some(control) => control.id(),
            None => self.name().id(|| self.satellite.name(), self.own().method),
        }
    }

    #[inline]
    fn stack(&self) -> Stack {
        match &self.control {
            Some(control) => control.stack(),
            None => Stack::home(self.satellite.process()),
        }
    }
}
