//! A call of a session, as its caller sees it.

use std::mem;
use std::sync::atomic::Ordering;

use ddbx_protocol::{
    CallId, CallPath, ControlId, End, EventKind, EventNumber, Gate, RealTime, RpcEvent, Stack,
};
use ddbx_recording::{Happens, Note};
use ddbx_satellite::driver::{
    Alarm, Armed, Arrival, Handle, Open, Passed, SetAlarm, Somebody, Step, TimerOf, Visit,
};
use serde::Serialize;
use serde_json::Value;
use tarpc::client::RpcError;
use tarpc::{RequestName, context};

use super::{Answer, Client};
use crate::control::{Caller, Control};
use crate::deadlines::Now;
use crate::envelope::{Left, Own, RequestMeta};
use crate::methods::{self, Method};
use crate::naming;
use crate::pool::Shared;

pub(super) struct Call<'a> {
    pub(super) satellite: &'a Handle,
    /// None from outside.
    control: Option<&'a Control>,
    /// What it shares with its request.
    pub(super) meta: Shared<RequestMeta>,
    /// Its arguments, for a breakpoint where it comes back.
    pub(super) args: Option<Box<Value>>,
}

impl<'a> Call<'a> {
    /// A call begins. If nothing stands in its way it has left with that, which is what is
    /// said second.
    pub(super) fn begin<Req: RequestName + Serialize, Resp>(
        client: &'a Client<Req, Resp>,
        (satellite, caller): (&'a Handle, Option<&'a Caller>),
        (ctx, now): (&context::Context, Now),
        request: &Req,
    ) -> (Self, bool) {
        let controls = client.process.controls();
        controls.made.fetch_add(1, Ordering::Relaxed);
        let method = methods::method(request.name());
        let visit = caller.map(|caller| caller.control.visit());
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
        let remaining = match caller {
            Some(caller) => caller.control.remaining(ctx.deadline, now),
            None => {
                let (shown, floor) = (now.clock_at(ctx.deadline), satellite.floor());
                controls.deadlines.remaining(shown, now.clock, floor)
            }
        };
        let of = satellite.process();
        let meta = Shared::new(of, |meta: &mut RequestMeta| {
            match caller {
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
        let control = caller.map(|caller| &*caller.control);
        let mut call = Self { satellite, control, meta, args: None };
        let pass = |open| satellite.pass_open(open, || now.clock, || call.note_of_departure());
        let sent = open.and_then(pass);
        if let Some(sent) = sent.filter(|sent| *sent != EventNumber::default()) {
            call.edit(|meta| meta.left.sent = sent);
        }
        (call, sent.is_some())
    }

    fn own(&self) -> &Own {
        self.meta.own.as_ref().expect("this is its caller")
    }

    pub(super) fn method(&self) -> &'static Method {
        self.own().method
    }

    pub(super) fn id(&self) -> CallId {
        CallId { control: Somebody::id(self), path: self.meta.path.clone() }
    }

    /// In a replay: which of the recorded calls it is.
    pub(super) async fn find(&mut self) {
        let Some(control) = self.control else { return };
        let find = || self.satellite.like(control.call(), &self.departure());
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
        change(self.meta.edit().expect("its request shares it later"));
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
    pub(super) fn note(&self, what: Happens) -> Note {
        let control = match self.control {
            Some(control) => control.who(),
            // It began here, with this call.
            None => self.meta.control.who(self.satellite.process(), self.method()),
        };
        Note { control, path: self.meta.path.clone(), what }
    }

    pub(super) fn gate(&self, event: RpcEvent) -> Gate {
        Gate::Rpc(event, self.method().name.clone())
    }

    pub(super) fn leaving(&self) -> Visit<'_> {
        let from_outside = Visit { who: self, delay: None, is_free: false, inside: None };
        self.control.map_or(from_outside, Control::visit)
    }

    /// It leaves its caller, now or when it may.
    pub(super) fn leaves(&self, arrival: Arrival) -> Step<'_, (Passed, EventNumber)> {
        self.satellite.pass(self.leaving(), arrival, || self.departure())
    }

    /// It has left.
    pub(super) fn has_left(&mut self, (passed, sent): (Passed, EventNumber), now: RealTime) {
        let Passed { delay, is_free } = passed;
        if let Some(control) = self.control {
            control.went_on(passed);
        }
        self.edit(|meta| meta.left = Left { at: now - delay, delay, is_free, sent });
    }

    /// With which delay it comes back, and whether the user has let it go on anyway. An error
    /// that was made outside the handler's wrapper has no delay. It may come from whoever is
    /// furthest behind; if the connection is lost, also from one that stands.
    #[inline]
    pub(super) fn comes_back<T>(&self, answer: &Answer<T>) -> Passed {
        let Left { at, delay, is_free, .. } = self.meta.left;
        match &answer.meta {
            Some(meta) => Passed { delay: meta.delay, is_free: meta.is_free || is_free },
            None if answer.is_lost() => {
                Passed { delay: self.satellite.woken_by_a_loss(at, delay), is_free }
            }
            None => Passed { delay: self.own().floor.woken_by_anybody(at, delay), is_free },
        }
    }

    /// The alarm for its deadline.
    #[inline]
    pub(super) fn alarm(&self) -> &Alarm {
        &self.own().alarm
    }

    /// When its deadline passes, if nothing is held.
    #[inline]
    pub(super) fn due(&self) -> RealTime {
        let Left { at, delay, .. } = self.meta.left;
        (at + delay) + self.meta.remaining()
    }

    /// Its deadline, for which an alarm has been set unless this is a replay.
    pub(super) fn deadline<'b>(&'b self, alarm: Option<SetAlarm<'b>>) -> Armed<'b> {
        let Left { at, delay, .. } = self.meta.left;
        let due = at + self.meta.remaining();
        let timer = TimerOf { who: self, delay, due, gate: Gate::Deadline, is_free: false };
        match alarm {
            Some(alarm) => self.satellite.armed(timer, alarm),
            None => self.satellite.arm(timer),
        }
    }

    /// It is answered, or its deadline passes.
    pub(super) async fn ends<T>(
        &self,
        answered: impl Future<Output = (Passed, Result<T, RpcError>)>,
        mut deadline: Armed<'_>,
    ) -> (Passed, Result<T, RpcError>) {
        let expires = || EventKind::DeadlineExpired { call: self.id(), end: End::Caller };
        tokio::select! {
            biased;
            answered = answered => answered,
            delay = deadline.fired(expires) => {
                let passed = Passed { delay, is_free: self.meta.left.is_free };
                (passed, Err(RpcError::DeadlineExceeded))
            }
        }
    }

    /// Its caller goes on.
    #[inline]
    pub(super) fn is_over(&self, passed: Passed) {
        if let Some(control) = self.control {
            control.wake(self.meta.left.at, passed.delay);
            control.is_free_from_now_on(passed.is_free);
        }
    }
}

impl Somebody for Call<'_> {
    fn id(&self) -> ControlId {
        // One without a name began here, with this call.
        let make = || self.meta.control.id(|| self.satellite.name(), self.method());
        self.own().named.clone().unwrap_or_else(make)
    }

    fn stack(&self) -> Stack {
        self.meta.stack.clone()
    }
}

/// Notes that a call was given up, if its future is dropped before the answer.
pub(super) struct GivenUp<'a>(pub(super) &'a Call<'a>);

impl GivenUp<'_> {
    pub(super) fn disarm(self) {
        mem::forget(self);
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        let Self(call) = self;
        let cancelled = || EventKind::Cancelled { call: call.id(), end: End::Caller };
        call.satellite.note(call.meta.left.delay, cancelled);
    }
}
