//! A call of a session, as its caller sees it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::LocalKey;
use std::time::{Duration, Instant};

use ddbx_protocol::{
    CallId, CallPath, Delay, End, EventKind, EventNumber, Gate, MethodName, RealTime, RpcEvent,
    Stack, VirtualTime,
};
use ddbx_satellite::driver::{Armed, Arrival, Handle, Passed, Step, TimerOf, Visit};
use serde::Serialize;
use serde_json::Value;
use tarpc::client::RpcError;
use tarpc::{RequestName, context};

use super::Client;
use crate::control::Control;
use crate::envelope::{Hello, RequestMeta, ResponseMeta, SentDelay};
use crate::naming::{self, Called};
use crate::pool::{Pooled, Rooms};

pub(super) struct Call {
    /// None from outside.
    pub(super) control: Option<Arc<Control>>,
    called: Called,
    stack: Stack,
    method: MethodName,
    content: u16,
    /// What it has of its deadline.
    remaining: Duration,
    /// Its arguments, for a breakpoint where it comes back.
    pub(super) args: Option<Value>,
    left: Left,
}

/// How a call has left its caller.
#[derive(Default)]
struct Left {
    /// What its clock showed.
    at: VirtualTime,
    delay: Delay,
    is_free: bool,
    sent: EventNumber,
}

thread_local! {
    static ROOMS: Rooms<Call> = RefCell::default();
}

impl Pooled for Call {
    fn rooms() -> &'static LocalKey<Rooms<Self>> {
        &ROOMS
    }
}

impl Call {
    pub(super) fn begin<Req: RequestName + Serialize, Resp>(
        client: &Client<Req, Resp>,
        satellite: &Handle,
        (ctx, now): (&context::Context, Instant),
        request: &Req,
    ) -> Self {
        let process = &client.process;
        let controls = process.controls();
        controls.made.fetch_add(1, Ordering::Relaxed);
        let method = naming::method(request.name());
        let caller = Control::of_call(process, ctx);
        // Where nothing is recorded or replayed, nobody asks.
        let content = match satellite.has_course() {
            true => naming::content(controls.hash(request), client.connection.nth()),
            false => 0,
        };
        // What is left of the deadline is read before anything can hold the call: from
        // here on only virtual time counts.
        let (called, stack, remaining) = match &caller {
            Some(caller) => {
                let control = &caller.control;
                let called = caller.next_call(&method, request);
                (called, control.stack.clone(), control.remaining(ctx.deadline, now))
            }
            None => {
                let control = controls.root(satellite, method.clone(), request);
                let floor = satellite.floor();
                let remaining = controls.deadlines.remaining(ctx.deadline, now, floor);
                let called = Called { control, path: CallPath::root(1) };
                (called, Stack::home(satellite.process()), remaining)
            }
        };
        Self {
            control: caller.map(|caller| caller.control),
            called,
            stack,
            method,
            content,
            remaining,
            args: None,
            left: Left::default(),
        }
    }

    pub(super) fn id(&self) -> CallId {
        self.called.id()
    }

    /// In a replay: which of the recorded calls it is.
    pub(super) async fn find(&mut self, satellite: &Handle) {
        let Some(control) = &self.control else { return };
        let find = || satellite.like(control.call.as_ref(), &self.departure());
        let mut found = find();
        if found.as_ref().is_some_and(|like| !like.is_same) {
            // It may be another one that is begun beside it: that one comes first.
            tokio::task::yield_now().await;
            found = find();
        }
        if let Some(like) = found {
            self.called.path = like.path;
        }
    }

    fn departure(&self) -> EventKind {
        let (call, method) = (self.id(), self.method.clone());
        EventKind::CallSent { call, method, content: self.content }
    }

    pub(super) fn gate(&self, event: RpcEvent) -> Gate {
        Gate::Rpc(event, self.method.clone())
    }

    pub(super) fn leaving(&self) -> Visit<'_> {
        let (control, stack) = (&self.called.control, &self.stack);
        let from_outside = Visit { control, stack, delay: None, is_free: false, inside: None };
        self.control.as_ref().map_or(from_outside, |control| control.visit())
    }

    /// It leaves its caller, now or when it may.
    pub(super) fn leaves<'a>(
        &'a self,
        satellite: &'a Handle,
        arrival: Arrival,
    ) -> Step<'a, (Passed, EventNumber)> {
        satellite.pass(self.leaving(), arrival, || self.departure())
    }

    /// It has left.
    pub(super) fn has_left(&mut self, (passed, sent): (Passed, EventNumber), now: RealTime) {
        let Passed { delay, is_free } = passed;
        if let Some(control) = &self.control {
            control.went_on(passed);
        }
        self.left = Left { at: now - delay, delay, is_free, sent };
    }

    pub(super) fn meta(&self, satellite: &Handle, hello: Option<Hello>) -> RequestMeta {
        let (satellite, at, delay) = (satellite.clone(), self.left.at, self.left.delay);
        RequestMeta {
            stack: self.stack.clone(),
            call: self.called.clone(),
            delay: SentDelay::Leaves { satellite, at, delay },
            is_free: self.left.is_free,
            remaining_nanos: u64::try_from(self.remaining.as_nanos()).unwrap_or(u64::MAX),
            sent: self.left.sent,
            hello,
        }
    }

    /// An error that was made outside the handler's wrapper has no delay. It may come
    /// from whoever is furthest behind; if the connection is lost, also from one that stands.
    pub(super) fn coming_back(
        &self,
        satellite: &Handle,
        answer: Option<&ResponseMeta>,
        is_lost: bool,
    ) -> Visit<'_> {
        let woken = || match is_lost {
            true => satellite.woken_by_a_loss(self.left.at, self.left.delay),
            false => satellite.woken_by_anybody(self.left.at, self.left.delay),
        };
        let (delay, is_free) = answer.map_or_else(|| (woken(), false), |a| (a.delay, a.is_free));
        Visit {
            control: &self.called.control,
            stack: &self.stack,
            delay: Some(delay),
            is_free: is_free || self.left.is_free,
            inside: None,
        }
    }

    pub(super) fn arm_deadline<'a>(&'a self, satellite: &'a Handle) -> Armed<'a> {
        satellite.arm(TimerOf {
            control: &self.called.control,
            stack: &self.stack,
            delay: self.left.delay,
            due: self.left.at + self.remaining,
            gate: Gate::Deadline,
            is_free: false,
        })
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
                let passed = Passed { delay, is_free: self.left.is_free };
                (passed, Err(RpcError::DeadlineExceeded))
            }
        }
    }

    /// Its caller goes on.
    pub(super) fn is_over(&self, passed: Passed) {
        if let Some(control) = &self.control {
            control.wake(self.left.at, passed.delay);
            control.is_free_from_now_on(passed.is_free);
        }
    }
}

/// Notes that a call was given up, if its future is dropped before the answer.
pub(super) struct GivenUp<'a> {
    pub(super) call: &'a Call,
    pub(super) satellite: &'a Handle,
    pub(super) is_answered: bool,
}

impl GivenUp<'_> {
    pub(super) fn disarm(mut self) {
        self.is_answered = true;
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let cancelled = || EventKind::Cancelled { call: self.call.id(), end: End::Caller };
            self.satellite.note(self.call.left.delay, cancelled);
        }
    }
}
