//! A call of a session, as its caller sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use ddbx_protocol::{
    CallId, CallPath, ControlId, End, EventKind, EventNumber, Gate, RealTime, RpcEvent, Stack,
};
use ddbx_recording::{Happens, Note, SentAs};
use ddbx_satellite::driver::{Captured, Handle, Open, Passed, Somebody, TimerOf, Visit};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tarpc::{RequestName, context};

use super::{Answer, Client, Said};
use crate::capture;
use crate::control::Control;
use crate::controls::Controls;
use crate::deadlines::{Now, far_away};
use crate::envelope::{Left, Own, RequestMeta};
use crate::methods::{self, Method};
use crate::naming;
use crate::pool::Shared;

/// A call until it is over. If it is dropped before, it is given up.
pub(super) struct Call<'a> {
    pub(super) who: Who<'a>,
    /// Its arguments, for a breakpoint where it comes back.
    args: Option<Box<Value>>,
    is_over: bool,
}

/// Which call it is.
#[derive(Clone)]
pub(super) struct Who<'a> {
    pub(super) satellite: &'a Handle,
    /// None from outside.
    control: Option<Arc<Control>>,
    /// What it shares with its request.
    pub(super) meta: Shared<RequestMeta>,
}

impl<'a> Call<'a> {
    /// A call begins. If nothing stands in its way it has left with that, and what its request
    /// takes along is returned too. tarpc is given a deadline that does not come.
    #[inline]
    pub(super) fn begin<Req: RequestName + Serialize + 'static, Resp: 'static>(
        client: &Client<Req, Resp>,
        satellite: &'a Handle,
        ctx: &mut context::Context,
        request: &Req,
    ) -> (Self, Option<Shared<RequestMeta>>) {
        let now = Now::of(satellite);
        let caller = Control::of_call(&client.process, ctx);
        let controls = client.process.controls();
        controls.made.fetch_add(1, Ordering::Relaxed);
        let method = methods::method(request.name());
        let visit = caller.as_ref().map(|caller| caller.control.visit());
        let open = satellite.open_at(method.groups);
        let open = open.filter(|open| visit.is_none_or(|visit| visit.delay == Some(open.delay)));
        let left = open.map(|Open { delay, .. }| Left {
            at: now.clock - delay,
            delay,
            is_free: visit.is_some_and(|visit| visit.is_free),
            sent: EventNumber::default(),
        });
        // Where nothing is recorded or replayed, nobody asks.
        let has_course = satellite.has_course();
        let hash = if has_course || caller.is_none() { controls.hash(request) } else { 0 };
        let content = match has_course {
            true => naming::content(hash, client.connection.nth()),
            false => 0,
        };
        // What is left of the deadline is read before anything can hold the call: from
        // here on only virtual time counts.
        let remaining = match &caller {
            Some(caller) => caller.control.remaining(ctx.deadline, now),
            None => {
                let (shown, floor) = (now.clock_at(ctx.deadline), satellite.floor());
                controls.deadlines.remaining(shown, now.clock, floor)
            }
        };
        let of = satellite.process();
        let meta = Shared::new(of, |meta: &mut RequestMeta| {
            match &caller {
                Some(caller) => {
                    meta.control = caller.control.id().into();
                    meta.path = caller.next_call(method, request);
                    meta.stack = caller.control.stack();
                }
                None => {
                    meta.control = controls.root(satellite, method, hash);
                    meta.path = CallPath::root(1);
                    meta.stack = Stack::home(of);
                }
            }
            meta.left = left.unwrap_or_default();
            meta.remaining_nanos = u64::try_from(remaining.as_nanos()).unwrap_or(u64::MAX);
            meta.hello = client.connection.hello(satellite);
            // In a recording every event says whose it is; only notes do not.
            let name = || meta.control.id(|| satellite.name(), method);
            let named = (has_course && open.is_none()).then(name);
            match &mut meta.own {
                Some(own) => (own.method, own.content, own.named) = (method, content, named),
                own => {
                    let (floor, alarm) = (satellite.floor_alone().clone(), satellite.new_alarm());
                    *own = Some(Own { of, floor, alarm, method, content, named });
                }
            }
        });
        let control = caller.map(|caller| caller.control);
        if let Some(control) = &control {
            control.is_elsewhere();
        }
        let who = Who { satellite, control, meta };
        let mut call = Self { who, args: None, is_over: false };
        let note = || call.who.note_of_departure();
        let sent = open.and_then(|open| satellite.pass_open(open, || now.clock, note));
        if let Some(sent) = sent.filter(|sent| *sent != EventNumber::default()) {
            call.edit(|meta| meta.left.sent = sent);
        }
        ctx.deadline = now.at + far_away(remaining);
        let has_left = sent.map(|_| call.who.meta.clone());
        (call, has_left)
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
        let now = Now::of(satellite);
        let at = now.clock - delay;
        self.edit(|meta| meta.left = Left { at, delay, is_free, sent });
        ctx.deadline = now.at + far_away(self.who.meta.remaining());
    }

    /// In a replay: which of the recorded calls it is.
    async fn find(&mut self) {
        let Who { satellite, control: Some(control), .. } = &self.who else { return };
        let find = || satellite.like(control.call(), &self.who.departure());
        let mut found = find();
        if found.as_ref().is_some_and(|like| !like.is_same) {
            // It may be another one that is begun beside it: that one comes first.
            tokio::task::yield_now().await;
            found = find();
        }
        if let Some(like) = found {
            self.edit(|meta| meta.path = like.path);
        }
    }

    /// Before its request has been made.
    fn edit(&mut self, change: impl FnOnce(&mut RequestMeta)) {
        change(self.who.meta.edit().expect("its request shares it later"));
    }

    /// It comes back, if nothing stands in its way and nobody wants to see it.
    #[inline]
    pub(super) fn is_back_at_once(&self, passed: Passed, sent_as: impl FnOnce() -> SentAs) -> bool {
        let (who, satellite) = (&self.who, self.who.satellite);
        let open = satellite.open_at(who.method().groups);
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
        let who = self.who.clone();
        Box::pin(async move {
            let Left { at, delay, is_free, .. } = who.meta.left;
            let due = at + who.meta.remaining();
            let timer = TimerOf { who: &who, delay, due, gate: Gate::Deadline, is_free: false };
            let mut deadline = who.satellite.arm_with(timer, &who.own().alarm);
            let expires = || EventKind::DeadlineExpired { call: who.id(), end: End::Caller };
            Passed { delay: deadline.expired(expires).await, is_free }
        })
    }

    /// Its caller goes on.
    #[inline]
    pub(super) fn is_over(&mut self, passed: Passed) {
        self.is_over = true;
        if let Some(control) = &self.who.control {
            control.wake(self.who.meta.left.at, passed.delay);
            control.is_free_from_now_on(passed.is_free);
        }
    }
}

impl Drop for Call<'_> {
    #[inline]
    fn drop(&mut self) {
        let who = &self.who;
        who.own().alarm.unset();
        if !self.is_over {
            let cancelled = || EventKind::Cancelled { call: who.id(), end: End::Caller };
            who.satellite.note(who.meta.left.delay, cancelled);
        }
        if let Some(control) = &who.control {
            control.is_in();
        }
    }
}

impl Who<'_> {
    #[inline]
    fn own(&self) -> &Own {
        self.meta.own.as_ref().expect("this is its caller")
    }

    #[inline]
    fn method(&self) -> &'static Method {
        self.own().method
    }

    pub(super) fn id(&self) -> CallId {
        CallId { control: Somebody::id(self), path: self.meta.path.clone() }
    }

    fn gate(&self, event: RpcEvent) -> Gate {
        Gate::Rpc(event, self.method().name.clone())
    }

    fn departure(&self) -> EventKind {
        let Own { method, content, .. } = self.own();
        EventKind::CallSent { call: self.id(), method: method.name.clone(), content: *content }
    }

    /// The same in short.
    #[inline]
    fn note_of_departure(&self) -> Note {
        let Own { method, content, .. } = self.own();
        self.note(Happens::CallSent { method: &method.name, content: *content })
    }

    /// What happens to it.
    #[inline]
    fn note(&self, what: Happens) -> Note {
        let control = match &self.control {
            Some(control) => control.who(),
            // It began here, with this call.
            None => self.meta.control.who(self.satellite.process(), self.method()),
        };
        Note { control, path: self.meta.path.clone(), what }
    }

    /// It comes back to its caller.
    fn visit(&self, Passed { delay, is_free }: Passed) -> Visit<'_> {
        Visit { who: self, delay: Some(delay), is_free, inside: None }
    }

    /// When its deadline passes, if nothing is held.
    #[inline]
    fn due(&self) -> RealTime {
        let Left { at, delay, .. } = self.meta.left;
        (at + delay) + self.meta.remaining()
    }

    /// Sets the alarm for its deadline.
    #[inline]
    pub(super) fn set_alarm(&self) {
        self.satellite.set(&self.own().alarm, self.due());
    }

    /// Whether it has rung.
    #[inline]
    pub(super) fn poll_alarm(&self, context: &mut Context<'_>) -> Poll<()> {
        self.own().alarm.poll_rang(context)
    }

    /// With which delay it comes back, and whether the user has let it go on anyway. An error
    /// that was made outside the handler's wrapper has no delay. It may come from whoever is
    /// furthest behind; if the connection is lost, also from one that stands.
    #[inline]
    pub(super) fn is_back_with<T>(&self, answer: &Answer<T>) -> Passed {
        let Left { at, delay, is_free, .. } = self.meta.left;
        match &answer.said {
            Said::Delay(delay) => Passed { delay: *delay, is_free },
            Said::All(meta) => Passed { delay: meta.delay, is_free: meta.is_free || is_free },
            Said::Nothing if answer.is_lost() => {
                Passed { delay: self.satellite.woken_by_a_loss(at, delay), is_free }
            }
            Said::Nothing => {
                Passed { delay: self.own().floor.woken_by_anybody(at, delay), is_free }
            }
        }
    }
}

impl Somebody for Who<'_> {
    fn id(&self) -> ControlId {
        // One without a name began here, with this call.
        let make = || self.meta.control.id(|| self.satellite.name(), self.method());
        self.own().named.clone().unwrap_or_else(make)
    }

    fn stack(&self) -> Stack {
        self.meta.stack.clone()
    }
}
