//! A call arrives and its response leaves: the server's half of the shim, made like the
//! client's.

use std::io;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ddbx_protocol::{CallPath, ConnectionId, EventKind, ProcessIndex};
use ddbx_satellite::driver::Handle;
use serde::Serialize;
use tarpc::server::Serve;
use tarpc::{RequestName, ServerError, context};

use crate::control::{Control, Deadline, Home, Newcomer, Origin};
use crate::deadlines::Now;
use crate::envelope::{Hello, RequestMeta, Traced, TracedRequest, TracedResponse};
use crate::pool::Shared;
use crate::process::Process;
use crate::seats::Key;

mod call;

pub(crate) use call::is_deadline;
use call::{Call, Dropped};

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

    // Not an async function: what such a one is given takes its room twice, and the futures
    // of handlers are moved about.
    #[expect(clippy::manual_async_fn, reason = "see above")]
    fn serve_in_session(
        (process, service): (Process, S),
        mut ctx: context::Context,
        meta: Option<Shared<RequestMeta>>,
        request: S::Req,
    ) -> impl Future<Output = TracedResponse<S::Resp>> {
        async move {
            let (mut call, deadline) = Self::arrives(process, &ctx, meta, &request);
            let Deadline { due, shown } = match deadline {
                Some(deadline) => deadline,
                None => Box::pin(call.enters(&request)).await,
            };
            let call = &call;
            // The handler sees the deadline that it would have seen.
            ctx.deadline = shown.unwrap_or(ctx.deadline);
            let mut handler = pin!(call.control.clone().run(service.serve(ctx, request)));
            // Dropped before the handler is: whoever waits for what that has locked gets it
            // after this event.
            let dropped = Dropped(call);
            let mut alarm = None;
            let outcome = call.handled(handler.as_mut(), &mut alarm, due).await;
            let end = match call.ends_at_once(outcome) {
                Ok(end) => end,
                Err(outcome) => call.ends(outcome, handler, call.deadline(due, alarm)).await,
            };
            dropped.disarm();
            call.answer(end)
        }
    }

    /// A call arrives. If nothing stands in its way it is in with that, and its deadline is
    /// known.
    #[inline]
    fn arrives(
        process: Process,
        ctx: &context::Context,
        meta: Option<Shared<RequestMeta>>,
        request: &S::Req,
    ) -> (Call, Option<Deadline>) {
        let (satellite, controls) = (process.satellite().expect(IN_SESSION), process.controls());
        let now = Now::of(satellite);
        controls.served.fetch_add(1, Ordering::Relaxed);
        let method = controls.handled(request.name());
        let open = satellite.open_at(method.groups);
        let (delay, is_free, allowed) = match &meta {
            Some(meta) => {
                Self::comes_from(&process, satellite, meta);
                (Some(meta.delay()), meta.left.is_free, meta.remaining())
            }
            None => {
                let (shown, floor) = (now.clock_at(ctx.deadline), satellite.floor());
                (None, false, controls.deadlines.remaining(shown, now.clock, floor))
            }
        };
        let origin = meta.map_or_else(
            || {
                let name = controls.root(satellite, method, controls.hash(request));
                Origin::Home(Box::new(Home { name, call: Some(CallPath::root(0)) }))
            },
            Origin::Called,
        );
        let open = open.filter(|open| delay.is_none_or(|delay| delay == open.delay));
        let passes = open.filter(|open| {
            let arrives = || call::note_of_arrival(&origin, &process, method);
            satellite.pass_open(*open, || now.clock, arrives).is_some()
        });
        let deadline = passes.map(|open| Deadline::new(now, open.delay, allowed));
        let new = Newcomer {
            origin,
            delay: delay.or(passes.map(|open| open.delay)).unwrap_or_default(),
            is_free,
            method: Some(method),
            allowed,
            deadline,
            key: Key::of(ctx),
            since: now.clock,
            is_outside: deadline.is_none(),
            process,
        };
        let is_from_outside = delay.is_none();
        let control = Control::begin(new);
        if deadline.is_some() {
            control.is_seen_inside();
        }
        (Call { control, is_from_outside, args: None }, deadline)
    }

    /// Another process calls, over a connection that may be new.
    #[inline]
    fn comes_from(process: &Process, satellite: &Handle, meta: &RequestMeta) {
        if let Some(caller) = meta.stack.top() {
            satellite.accepted(caller);
            if let Some(hello) = &meta.hello {
                Self::meet(process, satellite, caller, hello);
            }
        }
    }

    /// A call comes over a connection that may be new.
    fn meet(process: &Process, satellite: &Handle, caller: ProcessIndex, hello: &Hello) {
        let controls = process.controls();
        controls.meet(caller, &hello.name, || satellite.is_called(caller, &hello.name));
        if controls.meet_connection(caller, hello) {
            satellite.note(satellite.floor(), || EventKind::Accepted {
                connection: ConnectionId { client: hello.name.clone(), nth: hello.connection },
                sent_as: controls.event_of(caller, hello.connected),
            });
        }
    }
}

const IN_SESSION: &str = "only a process of a session comes here";

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
        match process.satellite().map(Handle::is_in_order) {
            Some(false) => Ok(Self::serve_in_session((process, service), ctx, meta, body).await),
            Some(true) => {
                let satellite = process.satellite().expect(IN_SESSION).clone();
                let mut call =
                    Box::pin(Self::serve_in_session((process, service), ctx, meta, body));
                Ok(satellite.run(call.as_mut()).await)
            }
            None => {
                // A client in a session has told tarpc another deadline than its own.
                let remaining = meta.map(|meta| meta.remaining());
                let due = remaining.and_then(|remaining| Instant::now().checked_add(remaining));
                ctx.deadline = due.unwrap_or(ctx.deadline);
                service.serve(ctx, body).await.map(Traced::Plain)
            }
        }
    }
}
