//! A call arrives and its response leaves: the server's half of the shim, made like the
//! client's.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ddbx_protocol::{CallPath, ConnectionId, EventKind, ProcessIndex};
use ddbx_satellite::driver::Handle;
use futures::future::Either;
use serde::Serialize;
use tarpc::server::Serve;
use tarpc::{RequestName, ServerError, context};

use crate::control::{Comes, Control, Home, Newcomer};
use crate::deadlines::Came;
use crate::envelope::{Hello, RequestMeta, TracedRequest, TracedResponse};
use crate::naming::Name;
use crate::process::Process;
use crate::seats::Key;

mod call;
mod handling;

use call::Call;
use handling::Handling;
pub(crate) use handling::is_deadline;

/// A wrapped service. Made by [`Process::serve`].
#[derive(Clone)]
pub struct Server<S> {
    service: S,
    /// None without a session: it is cloned for every call.
    process: Option<Process>,
}

impl<S: Serve> Server<S>
where
    S::Req: RequestName + Serialize + 'static,
    S::Resp: Serialize + 'static,
{
    pub(crate) fn new(service: S, process: Process) -> Self {
        let process = process.satellite().is_some().then_some(process);
        Self { service, process }
    }

    /// What few calls are.
    async fn serve_later(
        service: S,
        mut ctx: context::Context,
        call: Later<S::Req>,
    ) -> Result<TracedResponse<S::Resp>, ServerError> {
        match call {
            Later::Arrived(arrived, request) => {
                let shown = match arrived.waits {
                    None => arrived.shown,
                    Some(waits) => arrived.call.enters(waits.is_from_outside, &request).await,
                };
                ctx.deadline = shown.unwrap_or(ctx.deadline);
                Handling::of(arrived.call, service.serve(ctx, request)).await
            }
            Later::InOrder(process, mut request) => {
                let satellite = process.satellite().expect(IN_SESSION).clone();
                let arrives = async move {
                    let body = request.take_body();
                    let arrived = Self::arrives(process, &ctx, request.meta_mut(), &body);
                    let call = Later::Arrived(arrived, body);
                    Box::pin(Self::serve_later(service, ctx, call)).await
                };
                satellite.run(pin!(arrives)).await
            }
        }
    }

    /// A call arrives. If nothing stands in its way it is in with that, and its deadline is
    /// known.
    #[inline]
    fn arrives(
        process: Process,
        ctx: &context::Context,
        meta: Option<&mut Box<RequestMeta>>,
        request: &S::Req,
    ) -> Arrived {
        let (satellite, controls) = (process.satellite().expect(IN_SESSION), process.controls());
        controls.served.fetch_add(1, Ordering::Relaxed);
        let method = controls.handled(request.name());
        let open = satellite.open_at(method.groups);
        let (came, delay, is_free) = match &meta {
            Some(meta) => {
                Self::comes_from(&process, satellite, meta);
                let (delay, allowed) = (meta.delay(), meta.brief.remaining);
                // Where it has waited on its way, what is left of its deadline is left now.
                let came = match meta.has_waited(delay) {
                    true => Came::now(satellite, allowed),
                    false => Came::given(ctx.deadline, satellite, allowed),
                };
                (came, Some(delay), meta.brief.is_free)
            }
            None => {
                let (now, floor) = (satellite.now(), satellite.floor());
                let shows = satellite.at(ctx.deadline);
                let allowed = controls.deadlines.remaining(shows, now, floor);
                (Came::now(satellite, allowed), None, false)
            }
        };
        let comes = meta.map_or_else(
            || {
                controls.came_from_outside.fetch_add(1, Ordering::Relaxed);
                let hash = controls.hash(request);
                let nth = controls.nth_root(satellite.has_course(), method, hash);
                let name = Name::Root { hash, nth, began: None };
                Comes::Home(Box::new(Home { name, call: Some(CallPath::root(0)) }))
            },
            Comes::Called,
        );
        let open = open.filter(|open| delay.is_none_or(|delay| delay == open.delay));
        let passes = open.filter(|open| {
            let arrives = || call::note_of_arrival(comes.origin(), &process, method);
            satellite.pass_open(*open, || satellite.now(), arrives).is_some()
        });
        let (is_in, is_from_outside) = (passes.is_some(), delay.is_none());
        let present = Control::begin(Newcomer {
            comes,
            delay: delay.or(passes.map(|open| open.delay)).unwrap_or_default(),
            is_free,
            method: Some(method),
            came,
            is_in,
            key: Key::of(ctx),
            process,
        });
        if is_in {
            present.is_seen_inside();
        }
        let waits = if is_in { None } else { Some(Waits { is_from_outside }) };
        Arrived { call: Call::new(present), shown: came.shown, waits }
    }

    /// Another process calls, over a connection that may be new.
    #[inline]
    fn comes_from(process: &Process, satellite: &Handle, meta: &RequestMeta) {
        if let Some(caller) = meta.caller() {
            satellite.accepted(caller);
            if let Some(hello) = meta.hello() {
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

/// A call that has arrived.
struct Arrived {
    call: Call,
    /// The deadline that its handler is shown.
    shown: Option<Instant>,
    /// None if it is in: nothing stood in its way.
    waits: Option<Waits>,
}

/// A call that must wait before it enters the process; then another deadline may be shown.
struct Waits {
    is_from_outside: bool,
}

/// A call that does not come in at once.
enum Later<Req: 'static> {
    /// It waits until it may.
    Arrived(Arrived, Req),
    /// Others wait while it runs.
    InOrder(Process, TracedRequest<Req>),
}

const IN_SESSION: &str = "only a process of a session comes here";

impl<S: Serve> Serve for Server<S>
where
    S::Req: RequestName + Serialize + 'static,
    S::Resp: Serialize + 'static,
{
    type Req = TracedRequest<S::Req>;
    type Resp = TracedResponse<S::Resp>;

    // Not an async function: tarpc calls it when the handler is to run, so what nearly all
    // calls are is known here, and only what is left of them is a future.
    fn serve(
        self,
        mut ctx: context::Context,
        mut request: Self::Req,
    ) -> impl Future<Output = Result<Self::Resp, ServerError>> {
        let Self { service, process } = self;
        let Some(process) = process else {
            // A client in a session has told tarpc another deadline than its own.
            let remaining = request.meta_mut().map(|meta| meta.brief.remaining);
            let due = remaining.and_then(|left| Instant::now().checked_add(left.length()));
            ctx.deadline = due.unwrap_or(ctx.deadline);
            return Either::Left(Handling::plain(service.serve(ctx, request.take_body())));
        };
        let is_in_order = process.satellite().is_some_and(Handle::is_in_order);
        let later = match is_in_order {
            true => Later::InOrder(process, request),
            false => {
                let body = request.take_body();
                let arrived = Self::arrives(process, &ctx, request.meta_mut(), &body);
                match arrived.waits {
                    None => {
                        // The handler sees the deadline that it would have seen.
                        ctx.deadline = arrived.shown.unwrap_or(ctx.deadline);
                        let handler = service.serve(ctx, body);
                        return Either::Left(Handling::of(arrived.call, handler));
                    }
                    Some(_) => Later::Arrived(arrived, body),
                }
            }
        };
        Either::Right(Box::pin(Self::serve_later(service, ctx, later)))
    }
}
