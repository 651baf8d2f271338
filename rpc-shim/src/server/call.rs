//! A call of a session, as its callee sees it.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::Poll;

use ddbx_protocol::{
    CallId, ControlId, Delay, End as Side, EventKind, EventNumber, Gate, RpcEvent, VirtualTime,
};
use ddbx_recording::{Happens, Note};
use ddbx_satellite::driver::{Alarm, Armed, Captured, Passed, Visit};
use futures::future::Either;
use serde::Serialize;
use serde_json::Value;
use tarpc::ServerError;

use crate::capture;
use crate::control::{Control, Deadline, Origin, Present};
use crate::deadlines::Now;
use crate::envelope::{ResponseMeta, Traced, TracedResponse};
use crate::methods::Method;
use crate::pool::Room;
use crate::process::Process;

const CALLED: &str = "a call brought it here";

/// Marks the error with which a wrapped server ends a handler at its deadline.
const DEADLINE: &str = "ddbx: the deadline has passed in virtual time";

/// Nobody reads it: the call was given up.
const CANCELLED: &str = "ddbx: the call was given up, as recorded";

pub(super) struct Call {
    pub(super) control: Present,
    pub(super) is_from_outside: bool,
    /// Its arguments, for a breakpoint where it leaves.
    pub(super) args: Option<Box<Value>>,
}

/// How a call has ended.
pub(super) struct End<T> {
    outcome: Result<T, ServerError>,
    delay: Delay,
    sent: EventNumber,
}

impl Call {
    fn id(&self) -> CallId {
        let path = self.control.call().cloned();
        CallId { control: self.control.id(), path: path.expect(CALLED) }
    }

    fn method(&self) -> &'static Method {
        self.control.method.expect(CALLED)
    }

    fn gate(&self, event: RpcEvent) -> Gate {
        Gate::Rpc(event, self.method().name.clone())
    }

    /// One from outside takes over the delay that it meets.
    fn visit(&self) -> Visit<'_> {
        let visit = self.control.visit();
        Visit { delay: visit.delay.filter(|_| !self.is_from_outside), inside: None, ..visit }
    }

    /// It enters the process when it may: the deadline that its handler is shown, and that
    /// it has. A breakpoint may want to see it.
    pub(super) async fn enters<Req: Serialize>(&mut self, request: &Req) -> Deadline {
        let args = || Some(capture::args(self.control.process().controls(), request));
        let seen = || Captured { args: args(), result: None };
        let satellite = self.control.satellite();
        let arrival = satellite.arrive(self.visit(), || self.gate(RpcEvent::Arrive), seen);
        if satellite.meets(|| self.gate(RpcEvent::Return)) {
            self.args = args().map(Box::new);
        }
        let (control, satellite) = (&self.control, self.control.satellite());
        let (origin, process) = (control.origin(), control.process());
        let arrives = || arrives(control.id(), origin, process, self.method());
        let (passed, _) = satellite.pass(self.visit(), arrival, arrives).await;
        control.went_on(passed);
        let deadline = control.show_deadline(Now::of(satellite));
        control.is_in();
        deadline
    }

    /// Its handler comes to an end before its deadline passes. Many do so at once: then no
    /// alarm has to be set. In a replay there is none, and more to it: see [`Self::ends`].
    #[inline]
    pub(super) fn handled<'a, F: Future>(
        &'a self,
        mut handler: Pin<&'a mut F>,
        alarm: &'a mut Option<Alarm>,
        due: VirtualTime,
    ) -> impl Future<Output = Option<F::Output>> + use<'a, F> {
        let satellite = self.control.satellite();
        let rings = move || satellite.alarm(due + self.control.delay());
        poll_fn(move |context| {
            if satellite.is_replay() {
                return Poll::Ready(None);
            }
            match handler.as_mut().poll(context) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending => {
                    if alarm.is_none() {
                        *alarm = rings();
                    }
                    let rang = alarm.as_ref().map(|alarm| alarm.poll_rang(context));
                    rang.unwrap_or(Poll::Pending).map(|()| None)
                }
            }
        })
    }

    /// Its deadline, for which an alarm may have been set.
    pub(super) fn deadline(&self, due: VirtualTime, alarm: Option<Alarm>) -> Armed<'_> {
        let timer = self.control.timer(due, Gate::Deadline);
        match alarm {
            Some(alarm) => self.control.satellite().armed(timer, alarm),
            None => self.control.satellite().arm(timer),
        }
    }

    /// Its response leaves, if there is one, nothing stands in its way and nobody wants to
    /// know of it.
    #[inline]
    pub(super) fn ends_at_once<T>(
        &self,
        outcome: Option<Result<T, ServerError>>,
    ) -> Result<End<T>, Option<Result<T, ServerError>>> {
        let (delay, satellite) = (self.control.delay(), self.control.satellite());
        let Some(outcome) = outcome else { return Err(None) };
        let open = satellite.open_at(self.method().groups).filter(|open| open.delay == delay);
        let pass = |open| satellite.pass_open(open, || satellite.now(), || self.note_of_return());
        match open.and_then(pass) {
            Some(sent) => Ok(End { outcome, delay, sent }),
            None => Err(Some(outcome)),
        }
    }

    /// The same when it may, or its deadline passes first.
    pub(super) fn ends<'a, T: Serialize + 'a>(
        &'a self,
        outcome: Option<Result<T, ServerError>>,
        handler: impl Future<Output = Result<T, ServerError>> + 'a,
        deadline: Armed<'a>,
    ) -> Pin<Box<impl Future<Output = End<T>>>> {
        let handled = async {
            let outcome = match outcome {
                Some(outcome) => outcome,
                None => handler.await,
            };
            let left = self.leaves(&outcome).await;
            End { outcome, delay: left.0.delay, sent: left.1 }
        };
        Box::pin(self.ends_or_expires(handled, deadline))
    }

    /// The handler has come to an end: its response leaves when it may.
    async fn leaves<T: Serialize>(
        &self,
        outcome: &Result<T, ServerError>,
    ) -> (Passed, EventNumber) {
        let (control, satellite) = (&self.control, self.control.satellite());
        let result = || Some(capture::result(control.process().controls(), outcome));
        let seen = || Captured { args: self.args.as_deref().cloned(), result: result() };
        let visit = control.visit();
        let arrival = satellite.arrive(visit, || self.gate(RpcEvent::Return), seen);
        match satellite.pass(visit, arrival, || self.returns()) {
            Either::Left(at_once) => at_once.into_inner(),
            Either::Right(later) => {
                let _elsewhere = Control::elsewhere(&***control);
                let left = later.await;
                control.went_on(left.0);
                left
            }
        }
    }

    /// Its handler comes to an end, or its deadline passes; or, in a replay, it is given
    /// up where it was.
    async fn ends_or_expires<T>(
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
                    let sent = satellite.happens(delay, || self.returns()).await;
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

    fn returns(&self) -> EventKind {
        EventKind::ReturnSent { call: self.id() }
    }

    /// The same in short.
    #[inline]
    fn note_of_return(&self) -> Note {
        let path = self.control.call().cloned().expect(CALLED);
        Note { control: self.control.who(), path, what: Happens::ReturnSent }
    }

    fn cancelled(&self) -> EventKind {
        EventKind::Cancelled { call: self.id(), end: Side::Callee }
    }

    /// What goes back.
    #[inline]
    pub(super) fn answer<T>(&self, end: End<T>) -> TracedResponse<T> {
        let End { outcome, delay, sent } = end;
        let satellite = self.control.satellite();
        let (is_free, from) = (self.control.visit().is_free, satellite.process());
        let name = self.control.was_introduced().then(|| satellite.name());
        let meta = Room::new(ResponseMeta { delay, is_free, from, sent, name });
        match outcome {
            Ok(response) => Traced::With(meta, response),
            Err(error) => Traced::Failed(Box::new((meta, error))),
        }
    }
}

/// A call of this control arrives.
pub(super) fn arrives(
    control: ControlId,
    origin: &Origin,
    process: &Process,
    method: &Method,
) -> EventKind {
    let call = CallId { control, path: origin.call().cloned().expect(CALLED) };
    let (method, sent_as) = (method.name.clone(), origin.departure(process));
    EventKind::CallArrived { call, method, sent_as }
}

/// The same in short.
#[inline]
pub(super) fn note_of_arrival(origin: &Origin, process: &Process, method: &'static Method) -> Note {
    let path = origin.call().cloned().expect(CALLED);
    let what = Happens::CallArrived { method: &method.name, sent_as: origin.sent_as() };
    Note { control: origin.who(process, method), path, what }
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
