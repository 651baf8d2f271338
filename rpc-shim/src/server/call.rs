//! A call of a session, as its callee sees it.

use std::io;
use std::mem;
use std::time::Instant;

use ddbx_protocol::{
    CallId, Delay, End as Side, EventKind, EventNumber, Gate, MethodName, ProcessIndex, RpcEvent,
    VirtualTime,
};
use ddbx_satellite::driver::{Armed, Arrival, Captured, Handle, Passed, Step, Visit};
use futures::future::Either;
use serde::Serialize;
use serde_json::Value;
use tarpc::ServerError;

use crate::capture;
use crate::control::Present;
use crate::envelope::{ResponseMeta, Traced, TracedResponse};
use crate::pool::Room;

/// Marks the error with which a wrapped server ends a handler at its deadline.
const DEADLINE: &str = "ddbx: the deadline has passed in virtual time";

/// Nobody reads it: the call was given up.
const CANCELLED: &str = "ddbx: the call was given up, as recorded";

pub(super) struct Call {
    pub(super) control: Present,
    /// None from outside.
    pub(super) delay: Option<Delay>,
    /// As what it was sent, and by whom.
    pub(super) sent: Option<(ProcessIndex, EventNumber)>,
    /// Whether the caller has said who it is, and waits for the same.
    pub(super) introduced: bool,
    /// Its arguments, for a breakpoint where it leaves.
    pub(super) args: Option<Box<Value>>,
}

/// How a call has ended.
pub(super) struct End<T> {
    outcome: Result<T, ServerError>,
    delay: Delay,
    sent: EventNumber,
}

impl<T> End<T> {
    pub(super) fn new(
        outcome: Result<T, ServerError>,
        (passed, sent): (Passed, EventNumber),
    ) -> Self {
        Self { outcome, delay: passed.delay, sent }
    }
}

impl Call {
    fn id(&self) -> CallId {
        let path = self.control.call.clone();
        CallId { control: self.control.id(), path: path.expect("a call brought it here") }
    }

    fn method(&self) -> MethodName {
        self.control.method.clone().expect("a call brought it here")
    }

    pub(super) fn gate(&self, event: RpcEvent) -> Gate {
        Gate::Rpc(event, self.method())
    }

    /// One from outside takes over the delay that it meets.
    pub(super) fn visit(&self) -> Visit<'_> {
        Visit { delay: self.delay, inside: None, ..self.control.visit() }
    }

    /// It enters the process, now or when it may.
    pub(super) fn enters<'a>(
        &'a self,
        satellite: &'a Handle,
        arrival: Arrival,
    ) -> Step<'a, (Passed, EventNumber)> {
        let controls = self.control.process().controls();
        let arrives = || EventKind::CallArrived {
            call: self.id(),
            method: self.method(),
            sent_as: self.sent.map(|(process, number)| controls.event_of(process, number)),
        };
        satellite.pass(self.visit(), arrival, arrives)
    }

    /// It is in the process: the deadline that its handler is shown, and that it has.
    pub(super) fn is_in(&self, passed: Passed, now: Instant) -> (VirtualTime, Option<Instant>) {
        self.control.went_on(passed);
        let deadline = self.control.show_deadline(now);
        self.control.is_in();
        deadline
    }

    /// The handler has come to an end: its response leaves, now or when it may.
    pub(super) fn leaves<T: Serialize>(
        &self,
        outcome: &Result<T, ServerError>,
    ) -> Step<'_, (Passed, EventNumber)> {
        let (control, satellite) = (&self.control, self.control.satellite());
        let result = || Some(capture::result(control.process().controls(), outcome));
        let seen = || Captured { args: self.args.as_deref().cloned(), result: result() };
        let visit = control.visit();
        let arrival = satellite.arrive(visit, || self.gate(RpcEvent::Return), seen);
        match satellite.pass(visit, arrival, || EventKind::ReturnSent { call: self.id() }) {
            Either::Left(at_once) => Either::Left(at_once),
            Either::Right(later) => Either::Right(Box::pin(async {
                let _elsewhere = control.elsewhere();
                let left = later.await;
                control.went_on(left.0);
                left
            })),
        }
    }

    /// Its handler comes to an end, or its deadline passes; or, in a replay, it is given
    /// up where it was.
    pub(super) async fn ends<T>(
        &self,
        handled: impl Future<Output = End<T>>,
        mut deadline: Armed<'_>,
    ) -> End<T> {
        let (control, satellite) = (&self.control, self.control.satellite());
        let expires = || EventKind::DeadlineExpired { call: self.id(), end: Side::Callee };
        // Nobody waits for either of them any longer if the call is given up.
        let ends = async {
            tokio::select! {
                biased;
                end = handled => end,
                delay = deadline.fired(expires) => {
                    let leaves = || EventKind::ReturnSent { call: self.id() };
                    let sent = satellite.happens(delay, leaves).await;
                    End { outcome: Err(ended(io::ErrorKind::TimedOut, DEADLINE)), delay, sent }
                }
            }
        };
        let cancelled = || self.cancelled();
        tokio::select! {
            biased;
            end = ends => end,
            () = satellite.brought_about(control.delay(), cancelled), if satellite.is_replay() => {
                let outcome = Err(ended(io::ErrorKind::Interrupted, CANCELLED));
                End { outcome, delay: control.delay(), sent: EventNumber(0) }
            }
        }
    }

    fn cancelled(&self) -> EventKind {
        EventKind::Cancelled { call: self.id(), end: Side::Callee }
    }

    /// What goes back.
    pub(super) fn answer<T>(&self, satellite: &Handle, end: End<T>) -> TracedResponse<T> {
        let End { outcome, delay, sent } = end;
        let (is_free, from) = (self.control.visit().is_free, satellite.process());
        let name = self.introduced.then(|| satellite.name());
        let meta = Room::new(ResponseMeta { delay, is_free, from, sent, name });
        match outcome {
            Ok(response) => Traced::With(meta, response),
            Err(error) => Traced::Failed(Box::new((meta, error))),
        }
    }
}

/// Notes that a handler was dropped before its end: the caller has given up, or is gone.
pub(super) struct Dropped<'a>(pub(super) &'a Call);

impl Dropped<'_> {
    pub(super) fn disarm(self) {
        mem::forget(self);
    }
}

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        let control = &self.0.control;
        control.satellite().note(control.delay(), || self.0.cancelled());
    }
}

/// By its text alone: tarpc writes kinds of errors as signed numbers and reads them as
/// unsigned ones, so over bincode they come out as others.
pub(crate) fn is_deadline(error: &ServerError) -> bool {
    error.detail == DEADLINE
}

pub(super) fn ended(kind: io::ErrorKind, why: &str) -> ServerError {
    ServerError::new(kind, why.to_owned())
}
