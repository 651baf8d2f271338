//! A call of a session, as its callee sees it.

use std::task::{Context, Poll};
use std::time::Instant;

use ddbx_protocol::{
    CallId, ControlId, Delay, End as Side, EventKind, EventNumber, Gate, RpcEvent,
};
use ddbx_recording::{Happens, ToNote};
use ddbx_satellite::driver::{Captured, Handle, Passed, Visit};
use futures::future::{BoxFuture, Either};
use serde::Serialize;
use tarpc::ServerError;

use super::handling::Ended;
use crate::capture;
use crate::control::{Control, Origin, Present, as_control};
use crate::envelope::{ResponseMeta, Says, TracedResponse};
use crate::methods::Method;
use crate::process::Process;
use crate::seats::Guest;

const CALLED: &str = "a call brought it here";

pub(super) struct Call(Present);

impl Call {
    #[inline]
    pub(super) fn new(present: Present) -> Self {
        Self(present)
    }

    #[inline]
    pub(super) fn satellite(&self) -> &Handle {
        self.0.satellite()
    }

    #[inline]
    pub(super) fn delay(&self) -> Delay {
        self.0.delay()
    }

    /// Does something as the control that has called.
    #[inline]
    pub(super) fn as_control<T>(&mut self, what: impl FnOnce() -> T) -> T {
        as_control(self.0.slot(), what)
    }

    /// It enters the process when it may: the deadline that its handler is shown. A
    /// breakpoint may want to see it. One from outside takes over the delay that it meets.
    pub(super) async fn enters<Req: Serialize>(
        &self,
        is_from_outside: bool,
        request: &Req,
    ) -> Option<Instant> {
        let (control, satellite) = (&*self.0, self.0.satellite());
        let args = || capture::args(control.process().controls(), request);
        let seen = || Captured { args: Some(args()), result: None };
        let own = control.visit();
        let visit = Visit { delay: own.delay.filter(|_| !is_from_outside), inside: None, ..own };
        let arrival = satellite.arrive(visit, || gate(control, RpcEvent::Arrive), seen);
        if satellite.meets(|| gate(control, RpcEvent::Return)) {
            control.keep_args(args());
        }
        let (origin, process) = (control.origin(), control.process());
        let arrives = || arrives(control.id(), origin, process, method(control));
        let (passed, _) = satellite.pass(visit, arrival, arrives).await;
        control.went_on(passed);
        let shown = control.show_deadline();
        control.is_in();
        shown
    }

    /// Whether its deadline has come. The alarm for that is set when this is first asked.
    #[inline]
    pub(super) fn poll_alarm(&self, context: &mut Context<'_>) -> Poll<()> {
        let (control, satellite) = (&self.0, self.satellite());
        let alarm = control.alarm();
        if !alarm.is_set() {
            match satellite.is_replay() {
                // There deadlines pass, and calls are given up, when they were.
                true => satellite.set_in_replay(alarm),
                false => satellite.set(alarm, control.due() + control.delay()),
            }
        }
        alarm.poll_rang(context)
    }

    /// Its response leaves, if nothing stands in its way; as what, which is 0 if nobody wants
    /// to know of it.
    #[inline]
    pub(super) fn leaves_at_once(&self) -> Option<EventNumber> {
        let (control, satellite) = (&*self.0, self.satellite());
        let open = satellite.open_at(method(control).groups);
        let open = open.filter(|open| open.delay == control.delay())?;
        satellite.pass_open(open, || satellite.now(), || note_of_return(control))
    }

    /// The same when it may.
    pub(super) fn leaves<T: Serialize + 'static>(
        &self,
        outcome: &Result<T, ServerError>,
    ) -> BoxFuture<'static, (Passed, EventNumber)> {
        let control = Guest::clone(&self.0);
        let result = || Some(capture::result(control.process().controls(), outcome));
        let seen = || Captured { args: control.args().cloned(), result: result() };
        let of_return = || gate(&control, RpcEvent::Return);
        let arrival = control.satellite().arrive(control.visit(), of_return, seen);
        Box::pin(async move {
            let event = || returns(&control);
            match control.satellite().pass(control.visit(), arrival, event) {
                Either::Left(at_once) => at_once.into_inner(),
                Either::Right(later) => {
                    let _elsewhere = Control::elsewhere(&*control);
                    let left = later.await;
                    control.went_on(left.0);
                    left
                }
            }
        })
    }

    /// Its deadline passes; or, in a replay, it is given up where it was.
    pub(super) fn expires(&self) -> BoxFuture<'static, Ended> {
        let control = Guest::clone(&self.0);
        Box::pin(async move {
            let (satellite, control) = (control.satellite(), &*control);
            let timer = control.timer(control.due_or_later(), Gate::Deadline);
            let mut deadline = satellite.arm_with(timer, control.alarm());
            let expires =
                || EventKind::DeadlineExpired { call: call_id(control), end: Side::Callee };
            let expired = async { Ended::Expired(deadline.expired(expires).await) };
            or_is_given_up(control, expired).await
        })
    }

    /// Its deadline has passed: a response that says so leaves; or the same.
    pub(super) fn says_so(&self, delay: Delay) -> BoxFuture<'static, Ended> {
        let control = Guest::clone(&self.0);
        Box::pin(async move {
            let leaves = control.satellite().happens(delay, || returns(&control));
            or_is_given_up(&control, async { Ended::SaidSo(delay, leaves.await) }).await
        })
    }

    /// Its handler is dropped before its end: the caller has given up, or is gone.
    pub(super) fn is_given_up(&self) {
        let control = &*self.0;
        control.satellite().note(control.delay(), || cancelled(control));
    }

    /// What goes back.
    #[inline]
    pub(super) fn answer<T: 'static>(
        &self,
        outcome: Result<T, ServerError>,
        delay: Delay,
        sent: EventNumber,
    ) -> TracedResponse<T> {
        let (control, satellite) = (&self.0, self.satellite());
        let (is_free, is_introduced) = (control.is_free(), control.was_introduced());
        let is_short = !is_free && !is_introduced;
        let says = is_short.then(|| Says::of(delay, sent)).flatten();
        let meta = || {
            let name = is_introduced.then(|| satellite.name());
            ResponseMeta { delay, is_free, from: satellite.process(), sent, name }
        };
        match (outcome, says) {
            (Ok(response), Some(says)) => TracedResponse::short(response, says),
            (Ok(response), None) => TracedResponse::said(meta(), response),
            (Err(error), _) => TracedResponse::Failed(Box::new((meta(), error))),
        }
    }
}

/// In a replay a call is given up where it was.
async fn or_is_given_up(control: &Control, ends: impl Future<Output = Ended>) -> Ended {
    let satellite = control.satellite();
    let given_up = satellite.given_up(control.delay(), || cancelled(control));
    tokio::select! {
        biased;
        ended = ends => ended,
        () = given_up, if satellite.is_replay() => Ended::GivenUp(control.delay()),
    }
}

fn call_id(control: &Control) -> CallId {
    CallId { control: control.id(), path: control.call().expect(CALLED) }
}

#[inline]
fn method(control: &Control) -> &'static Method {
    control.method.expect(CALLED)
}

fn gate(control: &Control, event: RpcEvent) -> Gate {
    Gate::Rpc(event, method(control).name.clone())
}

fn returns(control: &Control) -> EventKind {
    EventKind::ReturnSent { call: call_id(control) }
}

/// The same in short.
#[inline(always)]
fn note_of_return(control: &Control) -> ToNote {
    control.origin().note(control.process(), method(control), Happens::ReturnSent)
}

fn cancelled(control: &Control) -> EventKind {
    EventKind::Cancelled { call: call_id(control), end: Side::Callee }
}

/// A call of this control arrives.
pub(super) fn arrives(
    control: ControlId,
    origin: Origin<'_>,
    process: &Process,
    method: &Method,
) -> EventKind {
    let call = CallId { control, path: origin.call().expect(CALLED) };
    let (method, sent_as) = (method.name.clone(), origin.departure(process));
    EventKind::CallArrived { call, method, sent_as }
}

/// The same in short.
#[inline(always)]
pub(super) fn note_of_arrival(
    origin: Origin<'_>,
    process: &Process,
    method: &'static Method,
) -> ToNote {
    let what = Happens::CallArrived { method: &method.name, sent_as: origin.sent_as() };
    origin.note(process, method, what)
}
