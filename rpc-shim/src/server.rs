//! A call arrives and its response leaves: the server's half of the shim.

use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ddbx_protocol::{
    CallId, CallPath, ConnectionId, Delay, End, EventKind, EventNumber, Gate, ProcessIndex,
    RpcEvent, Stack,
};
use ddbx_satellite::driver::{Captured, Handle, Visit};
use serde::Serialize;
use tarpc::server::Serve;
use tarpc::{RequestName, ServerError, context};

use crate::capture;
use crate::control::{Control, Newcomer};
use crate::controls::Key;
use crate::envelope::{Hello, RequestMeta, ResponseMeta, Traced, TracedRequest, TracedResponse};
use crate::process::Process;

/// Marks the error with which a wrapped server ends a handler at its deadline.
const DEADLINE: &str = "ddbx: the deadline has passed in virtual time";

/// Nobody reads it: the call was given up.
const CANCELLED: &str = "ddbx: the call was given up, as recorded";

const NO_REQUEST: &str = "ddbx: the other end called with an answer";

/// A wrapped service. Made by [`Process::serve`].
#[derive(Clone)]
pub struct Server<S> {
    service: S,
    process: Process,
}

impl<S: Serve> Server<S>
where
    S::Req: RequestName + Serialize,
    S::Resp: Serialize,
{
    pub(crate) fn new(service: S, process: Process) -> Self {
        Self { service, process }
    }

    async fn serve_in_session(
        self,
        satellite: &Handle,
        mut ctx: context::Context,
        meta: Option<Box<RequestMeta>>,
        request: S::Req,
    ) -> TracedResponse<S::Resp> {
        let controls = self.process.controls();
        controls.served.fetch_add(1, Ordering::Relaxed);
        let origin = self.origin(satellite, &ctx, meta, &request);
        let method = controls.handled(request.name(), satellite.process());
        let control = Control::begin(
            &self.process,
            satellite,
            Newcomer {
                id: origin.call.control.clone(),
                stack: origin.stack,
                delay: origin.delay.unwrap_or_default(),
                is_free: origin.is_free,
                method: Some(method.clone()),
                call: Some(origin.call.path.clone()),
                allowed: origin.remaining,
                key: Key::of(&ctx),
            },
        );
        let elsewhere = control.elsewhere();
        let gate = |event| Gate::Rpc(event, method.clone());
        let args = || Some(capture::args(controls, &request));
        // One from outside takes over the delay that it meets.
        let visit = || Visit { delay: origin.delay, inside: None, ..control.visit() };
        let arrival = satellite.arrive(
            visit(),
            || gate(RpcEvent::Arrive),
            || Captured { args: args(), result: None },
        );
        let args_for_later = satellite.meets(|| gate(RpcEvent::Return)).then(args).flatten();
        let arrives = || EventKind::CallArrived {
            call: origin.call.clone(),
            method: method.clone(),
            sent_as: origin.sent.map(|(process, number)| controls.event_of(process, number)),
        };
        let (passed, _) = satellite.pass(visit(), arrival, arrives).await;
        control.went_on(passed);
        let call = || origin.call.clone();
        let cancelled = || EventKind::Cancelled { call: call(), end: End::Callee };

        // The handler sees the deadline that it would have seen.
        let (due, shown) = control.show_deadline(origin.remaining);
        ctx.deadline = shown.unwrap_or(ctx.deadline);
        drop(elsewhere);
        let handled = async {
            let outcome = control.clone().run(self.service.serve(ctx, request)).await;
            let result = || Some(capture::result(controls, &outcome));
            let seen = || Captured { args: args_for_later, result: result() };
            let leaves = || EventKind::ReturnSent { call: call() };
            let at_gate = control.arrive(|| gate(RpcEvent::Return), seen);
            let (passed, sent) = at_gate.pass(leaves).await;
            (outcome, passed.delay, sent)
        };
        let mut deadline = control.arm(due, Gate::Deadline);
        let expires = || EventKind::DeadlineExpired { call: call(), end: End::Callee };
        // Nobody waits for either of them any longer if the call is given up.
        let ends = pin!(async {
            tokio::select! {
                biased;
                handled = handled => handled,
                delay = deadline.fired(expires) => {
                    let leaves = || EventKind::ReturnSent { call: call() };
                    let sent = satellite.happens(delay, leaves).await;
                    (Err(ended(io::ErrorKind::TimedOut, DEADLINE)), delay, sent)
                }
            }
        });
        // Dropped before the handler is: whoever waits for what that has locked gets it
        // after this event.
        let dropped = Dropped { control: &control, cancelled };
        let (outcome, delay, sent) = tokio::select! {
            biased;
            end = ends => end,
            () = satellite.brought_about(control.delay(), cancelled), if satellite.is_replay() => {
                (Err(ended(io::ErrorKind::Interrupted, CANCELLED)), control.delay(), EventNumber(0))
            }
        };
        dropped.disarm();
        let (is_free, from) = (control.visit().is_free, satellite.process());
        let name = origin.introduced.then(|| satellite.name());
        let meta = Box::new(ResponseMeta { delay, is_free, from, sent, name });
        match outcome {
            Ok(response) => Traced::With(meta, response),
            Err(error) => Traced::Failed(meta, error),
        }
    }

    /// Where a call comes from.
    fn origin(
        &self,
        satellite: &Handle,
        ctx: &context::Context,
        meta: Option<Box<RequestMeta>>,
        request: &S::Req,
    ) -> Origin {
        let here = satellite.process();
        let Some(meta) = meta else {
            let controls = self.process.controls();
            let root = controls.root(&satellite.name(), request.name(), request);
            let clock = satellite.now() - satellite.floor();
            return Origin {
                call: CallId { control: root, path: CallPath::root(0) },
                stack: Stack::home(here),
                delay: None,
                is_free: false,
                remaining: controls.deadlines.remaining(ctx.deadline, clock),
                sent: None,
                introduced: false,
            };
        };
        let caller = meta.stack.last().copied();
        let introduced = meta.hello.is_some();
        if let Some(caller) = caller {
            satellite.accepted(caller);
            if let Some(hello) = meta.hello {
                self.meet(satellite, caller, hello);
            }
        }
        Origin {
            introduced,
            stack: Stack(meta.stack.iter().copied().chain([here]).collect()),
            delay: Some(meta.delay.now()),
            is_free: meta.is_free,
            remaining: Duration::from_nanos(meta.remaining_nanos),
            sent: caller.map(|caller| (caller, meta.sent)),
            call: meta.call,
        }
    }

    /// A call comes over a connection that may be new.
    fn meet(&self, satellite: &Handle, caller: ProcessIndex, hello: Hello) {
        let controls = self.process.controls();
        if controls.meet_connection(caller, &hello) {
            satellite.note(satellite.floor(), || EventKind::Accepted {
                connection: ConnectionId { client: hello.name, nth: hello.connection },
                sent_as: controls.event_of(caller, hello.connected),
            });
        }
    }
}

/// Notes that a handler was dropped before its end: the caller has given up, or is gone.
struct Dropped<'a, F: Fn() -> EventKind> {
    control: &'a Control,
    cancelled: F,
}

impl<F: Fn() -> EventKind> Dropped<'_, F> {
    fn disarm(self) {
        std::mem::forget(self);
    }
}

impl<F: Fn() -> EventKind> Drop for Dropped<'_, F> {
    fn drop(&mut self) {
        self.control.satellite().note(self.control.delay(), || (self.cancelled)());
    }
}

struct Origin {
    call: CallId,
    stack: Stack,
    /// None from outside.
    delay: Option<Delay>,
    is_free: bool,
    remaining: Duration,
    sent: Option<(ProcessIndex, EventNumber)>,
    /// Whether the caller has said who it is, and waits for the same.
    introduced: bool,
}

impl<S: Serve> Serve for Server<S>
where
    S::Req: RequestName + Serialize,
    S::Resp: Serialize,
{
    type Req = TracedRequest<S::Req>;
    type Resp = TracedResponse<S::Resp>;

    async fn serve(
        self,
        mut ctx: context::Context,
        request: Self::Req,
    ) -> Result<Self::Resp, ServerError> {
        let (meta, body) = match request {
            Traced::Plain(body) => (None, body),
            Traced::With(meta, body) => (Some(meta), body),
            Traced::Failed(..) => return Err(ended(io::ErrorKind::InvalidData, NO_REQUEST)),
        };
        let satellite = self.process.satellite().cloned();
        match satellite {
            Some(satellite) => {
                let call = pin!(self.serve_in_session(&satellite, ctx, meta, body));
                Ok(satellite.run(call).await)
            }
            None => {
                // A client in a session has told tarpc another deadline than its own.
                let remaining = meta.map(|meta| Duration::from_nanos(meta.remaining_nanos));
                let due = remaining.and_then(|remaining| Instant::now().checked_add(remaining));
                ctx.deadline = due.unwrap_or(ctx.deadline);
                self.service.serve(ctx, body).await.map(Traced::Plain)
            }
        }
    }
}

/// By its text alone: tarpc writes kinds of errors as signed numbers and reads them as
/// unsigned ones, so over bincode they come out as others.
pub(crate) fn is_deadline(error: &ServerError) -> bool {
    error.detail == DEADLINE
}

fn ended(kind: io::ErrorKind, why: &str) -> ServerError {
    ServerError::new(kind, why.to_owned())
}
