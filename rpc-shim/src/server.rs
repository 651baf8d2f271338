//! A call arrives and its response leaves: the server's half of the shim, made like the
//! client's.

use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ddbx_protocol::{
    CallPath, ConnectionId, Delay, EventKind, EventNumber, Gate, MethodName, ProcessIndex,
    RpcEvent, Stack,
};
use ddbx_satellite::driver::{Arrival, Captured, Handle, before};
use futures::future::Either;
use serde::Serialize;
use tarpc::server::Serve;
use tarpc::{RequestName, ServerError, context};

use crate::capture;
use crate::control::{Control, Newcomer};
use crate::envelope::{Hello, RequestMeta, Traced, TracedRequest, TracedResponse};
use crate::naming::Called;
use crate::pool::Room;
use crate::process::Process;
use crate::seats::Key;

mod call;

pub(crate) use call::is_deadline;
use call::{Call, Dropped, End};

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
        (process, service): (&Process, S),
        satellite: &Handle,
        mut ctx: context::Context,
        meta: Option<Room<RequestMeta>>,
        request: S::Req,
    ) -> TracedResponse<S::Resp> {
        let now = Instant::now();
        let (call, arrival) = Self::arrives(process, satellite, (&ctx, now), meta, &request);
        let (passed, now) = match call.enters(satellite, arrival) {
            Either::Left(at_once) => (at_once.into_inner().0, now),
            Either::Right(later) => (later.await.0, Instant::now()),
        };
        let (due, shown) = call.is_in(passed, now);
        let call = &call;
        // The handler sees the deadline that it would have seen.
        ctx.deadline = shown.unwrap_or(ctx.deadline);
        let mut handler = pin!(call.control.clone().run(service.serve(ctx, request)));
        // Dropped before the handler is: whoever waits for what that has locked gets it
        // after this event.
        let dropped = Dropped(call);
        let deadline = call.control.arm(due, Gate::Deadline);
        let end = match before(&deadline, handler.as_mut()).await {
            Some(outcome) => match call.leaves(&outcome) {
                Either::Left(at_once) => End::new(outcome, at_once.into_inner()),
                Either::Right(later) => {
                    let handled = async { End::new(outcome, later.await) };
                    Box::pin(call.ends(handled, deadline)).await
                }
            },
            None => {
                let handled = async {
                    let outcome = handler.await;
                    let leaves = call.leaves(&outcome);
                    let left = leaves.await;
                    End::new(outcome, left)
                };
                Box::pin(call.ends(handled, deadline)).await
            }
        };
        dropped.disarm();
        call.answer(satellite, end)
    }

    /// A call arrives, and comes to its gate.
    fn arrives(
        process: &Process,
        satellite: &Handle,
        (ctx, now): (&context::Context, Instant),
        meta: Option<Room<RequestMeta>>,
        request: &S::Req,
    ) -> (Call, Arrival) {
        let controls = process.controls();
        controls.served.fetch_add(1, Ordering::Relaxed);
        let method = controls.handled(request.name(), satellite.process());
        let origin = Self::origin(process, satellite, (ctx, now), meta, (&method, request));
        let control = Control::begin(
            process,
            satellite,
            Newcomer {
                name: origin.call.control,
                stack: origin.stack,
                delay: origin.delay.unwrap_or_default(),
                is_free: origin.is_free,
                method: Some(method),
                call: Some(origin.call.path),
                allowed: origin.remaining,
                key: Key::of(ctx),
                since: satellite.at(now),
                is_outside: true,
            },
        );
        let Origin { delay, sent, introduced, .. } = origin;
        let mut call = Call { control, delay, sent, introduced, args: None };
        let args = || Some(capture::args(controls, request));
        let seen = || Captured { args: args(), result: None };
        let arrival = satellite.arrive(call.visit(), || call.gate(RpcEvent::Arrive), seen);
        if satellite.meets(|| call.gate(RpcEvent::Return)) {
            call.args = args().map(Box::new);
        }
        (call, arrival)
    }

    /// Where a call comes from.
    fn origin(
        process: &Process,
        satellite: &Handle,
        (ctx, now): (&context::Context, Instant),
        meta: Option<Room<RequestMeta>>,
        (method, request): (&MethodName, &S::Req),
    ) -> Origin {
        let here = satellite.process();
        let Some(meta) = meta else {
            let controls = process.controls();
            let control = controls.root(satellite, method.clone(), request);
            return Origin {
                call: Called { control, path: CallPath::root(0) },
                stack: Stack::home(here),
                delay: None,
                is_free: false,
                remaining: controls.deadlines.remaining(ctx.deadline, now, satellite.floor()),
                sent: None,
                introduced: false,
            };
        };
        let meta = meta.into_inner();
        let caller = meta.stack.top();
        let introduced = meta.hello.is_some();
        if let Some(caller) = caller {
            satellite.accepted(caller);
            if let Some(hello) = meta.hello {
                Self::meet(process, satellite, caller, hello);
            }
        }
        Origin {
            introduced,
            stack: meta.stack.call(here),
            delay: Some(meta.delay.now()),
            is_free: meta.is_free,
            remaining: Duration::from_nanos(meta.remaining_nanos),
            sent: caller.map(|caller| (caller, meta.sent)),
            call: meta.call,
        }
    }

    /// A call comes over a connection that may be new.
    fn meet(process: &Process, satellite: &Handle, caller: ProcessIndex, hello: Hello) {
        let controls = process.controls();
        if controls.meet_connection(caller, &hello) {
            satellite.note(satellite.floor(), || EventKind::Accepted {
                connection: ConnectionId { client: hello.name, nth: hello.connection },
                sent_as: controls.event_of(caller, hello.connected),
            });
        }
    }
}

struct Origin {
    call: Called,
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
            Traced::Failed(..) => return Err(call::ended(io::ErrorKind::InvalidData, NO_REQUEST)),
        };
        let Self { service, process } = self;
        match process.satellite() {
            Some(satellite) => {
                let whole = (&process, service);
                let call = pin!(Self::serve_in_session(whole, satellite, ctx, meta, body));
                Ok(satellite.run(call).await)
            }
            None => {
                // A client in a session has told tarpc another deadline than its own.
                let remaining = meta.map(|meta| Duration::from_nanos(meta.remaining_nanos));
                let due = remaining.and_then(|remaining| Instant::now().checked_add(remaining));
                ctx.deadline = due.unwrap_or(ctx.deadline);
                service.serve(ctx, body).await.map(Traced::Plain)
            }
        }
    }
}
