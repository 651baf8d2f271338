//! A call leaves and its response comes back: the client's half of the shim.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ddbx_protocol::{
    CallId, CallPath, Delay, End, EventKind, EventNumber, Gate, MethodName, RpcEvent, Stack,
    VirtualTime,
};
use ddbx_satellite::driver::{Abroad, Armed, Captured, Handle, Passed, TimerOf, Visit};
use serde::Serialize;
use tarpc::client::stub::Stub;
use tarpc::client::{Channel, RpcError};
use tarpc::{RequestName, ServerError, context};

use crate::capture;
use crate::connection::Connection;
use crate::control::Control;
use crate::envelope::{
    Hello, RequestMeta, ResponseMeta, SentDelay, Traced, TracedRequest, TracedResponse,
};
use crate::naming;
use crate::process::Process;
use crate::server::is_deadline;

/// tarpc itself is given a deadline that never comes: the shim keeps the real one,
/// in virtual time. (tokio's timers do not take much more than two years.)
const FAR_AWAY: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A wrapped channel. Made by [`Process::client`].
pub struct Client<Req, Resp> {
    channel: Channel<TracedRequest<Req>, TracedResponse<Resp>>,
    process: Process,
    connection: Arc<Connection>,
}

impl<Req, Resp> Clone for Client<Req, Resp> {
    fn clone(&self) -> Self {
        Self {
            channel: self.channel.clone(),
            process: self.process.clone(),
            connection: self.connection.clone(),
        }
    }
}

impl<Req, Resp> Client<Req, Resp>
where
    Req: RequestName + Serialize + Send + 'static,
    Resp: Serialize + Send + 'static,
{
    pub(crate) fn new(
        channel: Channel<TracedRequest<Req>, TracedResponse<Resp>>,
        process: Process,
    ) -> Self {
        let connection = Arc::new(Connection::new(&process));
        Self { channel, process, connection }
    }

    async fn call_in_session(
        &self,
        satellite: &Handle,
        mut ctx: context::Context,
        request: Req,
    ) -> Result<Resp, RpcError> {
        let controls = self.process.controls();
        let mut call = Call::begin(&self.process, &self.connection, satellite, &ctx, &request);
        if satellite.is_replay() {
            Box::pin(call.find()).await;
        }
        let call = call;
        let _elsewhere = call.control.as_ref().map(Control::elsewhere);

        let args = || Some(capture::args(controls, &request));
        let seen = || Captured { args: args(), result: None };
        let arrival = satellite.arrive(call.leaving(), || call.gate(RpcEvent::Call), seen);
        let args_for_later = satellite.meets(|| call.gate(RpcEvent::Resume)).then(args).flatten();
        let (passed, sent) = satellite.pass(call.leaving(), arrival, || call.leaves()).await;

        let left = call.left(passed, sent);
        let given_up = GivenUp { call: &call, delay: left.delay, is_answered: false };
        let meta = call.meta(&left, self.connection.hello(satellite));
        ctx.deadline = Instant::now() + FAR_AWAY;
        let answered = async {
            let request = Traced::With(Box::new(meta), request);
            let (meta, outcome) = match satellite.is_replay() {
                // The caller gave it up before it arrived: so it does not.
                true if satellite.is_lost(&call.id) => std::future::pending().await,
                true => {
                    let abroad = satellite.leaves(&call.id);
                    Box::pin(self.exchange_to_the_end(abroad, ctx, request)).await
                }
                false => self.exchange(ctx, request).await,
            };
            if let Some(meta) = &meta {
                self.connection.meet(satellite, meta);
            }
            let visit = call.coming_back(&left, meta.as_deref());
            let result = || Some(capture::result(controls, &outcome));
            let seen = || Captured { args: args_for_later, result: result() };
            let arrival = satellite.arrive(visit, || call.gate(RpcEvent::Resume), seen);
            let returned = || {
                let sent_as = meta.as_deref().map(|meta| controls.event_of(meta.from, meta.sent));
                EventKind::ReturnArrived { call: call.id.clone(), sent_as }
            };
            let (passed, _) = satellite.pass(visit, arrival, returned).await;
            (outcome, passed)
        };
        // The deadline is an event like any other: it does not overtake a response
        // that would have come before it. Whoever loses is dropped; dropping the
        // call cancels it.
        let mut deadline = call.arm_deadline(&left);
        let (outcome, passed) = tokio::select! {
            biased;
            answered = answered => answered,
            delay = deadline.fired(|| call.expires()) => {
                (Err(RpcError::DeadlineExceeded), Passed { delay, ..passed })
            }
        };
        given_up.disarm();
        if let Some(control) = &call.control {
            control.wake(left.at, passed.delay);
            control.is_free_from_now_on(passed.is_free);
        }
        outcome
    }

    /// What tarpc does, without the envelope.
    async fn exchange(
        &self,
        ctx: context::Context,
        request: TracedRequest<Req>,
    ) -> (Option<Box<ResponseMeta>>, Result<Resp, RpcError>) {
        let response = self.channel.call(ctx, request).await;
        self.connection.answered(&response);
        match response {
            Ok(Traced::Plain(body)) => (None, Ok(body)),
            Ok(Traced::With(meta, body)) => (Some(meta), Ok(body)),
            Ok(Traced::Failed(meta, error)) => (Some(meta), Err(failed(error))),
            Err(error) => (None, Err(error)),
        }
    }
}

impl<Req, Resp> Client<Req, Resp>
where
    Req: RequestName + Serialize + Send + 'static,
    Resp: Serialize + Send + 'static,
{
    /// The same in a replay: also if the caller gives it up. The callee then does not
    /// hear of that now but where it did.
    async fn exchange_to_the_end(
        &self,
        abroad: Abroad,
        ctx: context::Context,
        request: TracedRequest<Req>,
    ) -> (Option<Box<ResponseMeta>>, Result<Resp, RpcError>) {
        let client = self.clone();
        let exchange = async move {
            let _abroad = abroad;
            client.exchange(ctx, request).await
        };
        let exchanged = tokio::spawn(exchange).await;
        exchanged.unwrap_or((None, Err(RpcError::Shutdown)))
    }
}

impl<Req, Resp> Stub for Client<Req, Resp>
where
    Req: RequestName + Serialize + Send + 'static,
    Resp: Serialize + Send + 'static,
{
    type Req = Req;
    type Resp = Resp;

    async fn call(&self, ctx: context::Context, request: Req) -> Result<Resp, RpcError> {
        match self.process.satellite() {
            Some(satellite) => self.call_in_session(satellite, ctx, request).await,
            None => self.exchange(ctx, Traced::Plain(request)).await.1,
        }
    }
}

/// A call of a session, as its caller sees it.
struct Call<'a> {
    satellite: &'a Handle,
    /// None from outside.
    control: Option<Arc<Control>>,
    id: CallId,
    stack: Stack,
    method: MethodName,
    content: u16,
    /// What it has of its deadline.
    remaining: Duration,
}

/// A call has left its caller.
struct Left {
    /// What its clock showed.
    at: VirtualTime,
    delay: Delay,
    is_free: bool,
    sent: EventNumber,
}

impl<'a> Call<'a> {
    fn begin<Req: RequestName + Serialize>(
        process: &Process,
        connection: &Connection,
        satellite: &'a Handle,
        ctx: &context::Context,
        request: &Req,
    ) -> Self {
        let controls = process.controls();
        controls.made.fetch_add(1, Ordering::Relaxed);
        let method = naming::method(request.name());
        let caller = Control::of_call(process, ctx);
        // Where nothing is recorded or replayed, nobody asks.
        let content = match satellite.has_course() {
            true => naming::content(controls.hash(request), connection.nth()),
            false => 0,
        };
        // What is left of the deadline is read before anything can hold the call: from
        // here on only virtual time counts.
        let (id, stack, remaining) = match &caller {
            Some(caller) => {
                let control = &caller.control;
                let id = caller.next_call(&method, request);
                (id, control.stack.clone(), control.remaining(ctx.deadline))
            }
            None => {
                let root = controls.root(&satellite.name(), request.name(), request);
                let clock = satellite.now() - satellite.floor();
                let remaining = controls.deadlines.remaining(ctx.deadline, clock);
                let id = CallId { control: root, path: CallPath::root(1) };
                (id, Stack::home(satellite.process()), remaining)
            }
        };
        let control = caller.map(|caller| caller.control);
        Self { satellite, control, id, stack, method, content, remaining }
    }

    /// In a replay: which of the recorded calls it is.
    async fn find(&mut self) {
        let Some(control) = &self.control else { return };
        let find = || self.satellite.like(control.call.as_ref(), &self.leaves());
        let mut found = find();
        if found.as_ref().is_some_and(|like| !like.is_same) {
            // It may be another one that is begun beside it: that one comes first.
            tokio::task::yield_now().await;
            found = find();
        }
        if let Some(like) = found {
            self.id.path = like.path;
        }
    }

    fn leaves(&self) -> EventKind {
        let (call, method) = (self.id.clone(), self.method.clone());
        EventKind::CallSent { call, method, content: self.content }
    }

    fn expires(&self) -> EventKind {
        EventKind::DeadlineExpired { call: self.id.clone(), end: End::Caller }
    }

    fn gate(&self, event: RpcEvent) -> Gate {
        Gate::Rpc(event, self.method.clone())
    }

    fn leaving(&self) -> Visit<'_> {
        let (control, stack) = (&self.id.control, &self.stack);
        let from_outside = Visit { control, stack, delay: None, is_free: false, inside: None };
        self.control.as_ref().map_or(from_outside, |control| control.visit())
    }

    fn left(&self, passed: Passed, sent: EventNumber) -> Left {
        let Passed { delay, is_free } = passed;
        if let Some(control) = &self.control {
            control.went_on(passed);
        }
        Left { at: self.satellite.now() - delay, delay, is_free, sent }
    }

    fn meta(&self, left: &Left, hello: Option<Hello>) -> RequestMeta {
        let (satellite, at, delay) = (self.satellite.clone(), left.at, left.delay);
        RequestMeta {
            stack: self.stack.0.to_vec(),
            call: self.id.clone(),
            delay: SentDelay::Leaves { satellite, at, delay },
            is_free: left.is_free,
            remaining_nanos: u64::try_from(self.remaining.as_nanos()).unwrap_or(u64::MAX),
            sent: left.sent,
            hello,
        }
    }

    /// An error that was made outside the handler's wrapper has no delay. It may come
    /// from whoever is furthest behind.
    fn coming_back(&self, left: &Left, answer: Option<&ResponseMeta>) -> Visit<'_> {
        let woken = || self.satellite.woken_by_anybody(left.at, left.delay);
        let (delay, is_free) = answer.map_or_else(|| (woken(), false), |a| (a.delay, a.is_free));
        Visit {
            control: &self.id.control,
            stack: &self.stack,
            delay: Some(delay),
            is_free: is_free || left.is_free,
            inside: None,
        }
    }

    fn arm_deadline(&self, left: &Left) -> Armed {
        self.satellite.arm(TimerOf {
            control: &self.id.control,
            stack: &self.stack,
            delay: left.delay,
            due: left.at + self.remaining,
            gate: Gate::Deadline,
            is_free: false,
        })
    }
}

/// Notes that a call was given up, if its future is dropped before the answer.
struct GivenUp<'a> {
    call: &'a Call<'a>,
    delay: Delay,
    is_answered: bool,
}

impl GivenUp<'_> {
    fn disarm(mut self) {
        self.is_answered = true;
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            let call = self.call.id.clone();
            self.call
                .satellite
                .note(self.delay, || EventKind::Cancelled { call, end: End::Caller });
        }
    }
}

fn failed(error: ServerError) -> RpcError {
    if is_deadline(&error) { RpcError::DeadlineExceeded } else { RpcError::Server(error) }
}
