//! A call leaves and its response comes back: the client's half of the shim.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ddbx_protocol::{
    CallId, ConnectionId, EventKind, EventNumber, Gate, MethodName, ProcessIndex, ProcessName,
    RpcEvent, Stack,
};
use ddbx_satellite::driver::{Captured, Handle, TimerOf, Visit};
use serde::Serialize;
use tarpc::client::stub::Stub;
use tarpc::client::{Channel, RpcError};
use tarpc::{RequestName, ServerError, context};

use crate::control::Control;
use crate::envelope::{Hello, RequestMeta, SentDelay, Traced, TracedRequest, TracedResponse};
use crate::naming;
use crate::point::value;
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

/// Lasts as long as any clone of a client.
struct Connection {
    process: Process,
    /// Counted by this end; 0 without a session.
    nth: u32,
    connected: EventNumber,
    /// Whether anything has ever come back.
    answered: AtomicBool,
    /// Whether the other end has said who it is.
    met: AtomicBool,
}

impl Connection {
    fn new(process: &Process) -> Self {
        let nth = process.satellite().map_or(0, |_| process.controls().next_connection());
        let (answered, met) = (AtomicBool::new(false), AtomicBool::new(false));
        let connected = EventNumber::default();
        let mut new = Self { process: process.clone(), nth, connected, answered, met };
        new.connected = new.note(|connection| EventKind::Connected { connection });
        new
    }

    fn note(&self, kind: impl FnOnce(ConnectionId) -> EventKind) -> EventNumber {
        let Some(satellite) = self.process.satellite() else { return EventNumber::default() };
        let id = || ConnectionId { client: satellite.name(), nth: self.nth };
        satellite.note(satellite.floor(), || kind(id()))
    }

    /// What a request says of the connection, as long as it may be new to the other end.
    fn hello(&self, satellite: &Handle) -> Option<Hello> {
        let met = self.met.load(Ordering::Relaxed);
        let (connection, connected) = (self.nth, self.connected);
        (!met).then(|| Hello { name: satellite.name(), connection, connected })
    }

    /// The other end has said who it is.
    fn meet(&self, satellite: &Handle, from: ProcessIndex, name: Option<&ProcessName>) {
        if let Some(name) = name
            && !self.met.swap(true, Ordering::Relaxed)
        {
            self.process.controls().meet(from, name.clone());
            satellite.connected(from);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.note(|connection| EventKind::Closed { connection });
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

    /// What tarpc does, with a word about what may be behind it if nothing ever
    /// comes back: an end that is not wrapped just closes the connection.
    async fn exchange(
        &self,
        ctx: context::Context,
        request: TracedRequest<Req>,
    ) -> Result<TracedResponse<Resp>, RpcError> {
        let response = self.channel.call(ctx, request).await;
        let answered = &self.connection.answered;
        if !answered.load(Ordering::Relaxed) {
            let closed = matches!(response, Err(RpcError::Shutdown | RpcError::Channel(_)));
            if !answered.swap(true, Ordering::Relaxed) && closed {
                eprintln!(
                    "ddbx: {}: a connection was closed before anything came back; if the server \
                     is not wrapped by ddbx, wrap both ends or none",
                    self.process.name()
                );
            }
        }
        response
    }

    async fn call_in_session(
        &self,
        satellite: &Handle,
        mut ctx: context::Context,
        request: Req,
    ) -> Result<Resp, RpcError> {
        let controls = self.process.controls();
        controls.made.fetch_add(1, Ordering::Relaxed);
        let control = Control::of_call(&self.process, &ctx);
        // Read before anything can hold it: from here on only virtual time counts.
        let remaining = match &control {
            Some(control) => control.remaining(ctx.deadline),
            None => {
                let clock = satellite.now() - satellite.floor();
                controls.deadlines.remaining(ctx.deadline, clock)
            }
        };
        let (call, stack) = match &control {
            Some(control) => (control.next_call(), control.stack.clone()),
            None => {
                let root = controls.root(&satellite.name(), request.name(), &request);
                (CallId { control: root, nth: 1 }, Stack::home(satellite.process()))
            }
        };
        let from_outside = Visit {
            control: &call.control,
            stack: &stack,
            delay: None,
            is_free: false,
            inside: None,
        };
        let visit = || control.as_ref().map_or(from_outside, |control| control.visit());
        let elsewhere = control.as_ref().map(Control::elsewhere);

        let method = method(request.name());
        let gate = |event| Gate::Rpc(event, method.clone());
        let capture = || Some(controls.redact(value(&request)).take_args());
        let arrival = satellite.arrive(
            visit(),
            || gate(RpcEvent::Call),
            || Captured { args: capture(), result: None },
        );
        let args = satellite.meets(|| gate(RpcEvent::Resume)).then(capture).flatten();
        let passed = satellite.pass(visit(), arrival).await;
        if let Some(control) = &control {
            control.went_on(passed);
        }

        let delay = passed.delay;
        let began = satellite.now() - delay;
        let sent = satellite
            .note(delay, || EventKind::CallSent { call: call.clone(), method: method.clone() });
        let meta = RequestMeta {
            stack: stack.0.to_vec(),
            call: call.clone(),
            delay: SentDelay::Leaves { satellite: satellite.clone(), at: began, delay },
            is_free: passed.is_free,
            remaining_nanos: u64::try_from(remaining.as_nanos()).unwrap_or(u64::MAX),
            sent,
            hello: self.connection.hello(satellite),
        };
        ctx.deadline = Instant::now() + FAR_AWAY;

        let returning = |delay, is_free| Visit {
            control: &call.control,
            stack: &stack,
            delay: Some(delay),
            is_free,
            inside: None,
        };
        let answered = async {
            let response = self.exchange(ctx, Traced::with(meta, request)).await;
            let (meta, outcome) = match response {
                Ok(Traced::With(meta, body)) => {
                    self.connection.meet(satellite, meta.from, meta.name.as_ref());
                    (Some(meta), Ok(body))
                }
                Ok(Traced::Failed(meta, error)) => {
                    self.connection.meet(satellite, meta.from, meta.name.as_ref());
                    (Some(meta), Err(failed(error)))
                }
                Ok(Traced::Plain(body)) => (None, Ok(body)),
                Err(error) => (None, Err(error)),
            };
            // An error that was made outside the handler's wrapper has no delay. It may
            // come from whoever is furthest behind.
            let woken = || satellite.woken_by_anybody(began, delay);
            let (delay, is_free) =
                meta.as_ref().map_or_else(|| (woken(), false), |m| (m.delay, m.is_free));
            let is_free = is_free || passed.is_free;
            let arrival = satellite.arrive(
                returning(delay, is_free),
                || gate(RpcEvent::Resume),
                || Captured { args, result: Some(controls.redact(result(&outcome))) },
            );
            let passed = satellite.pass(returning(delay, is_free), arrival).await;
            let sent_as = || meta.map(|meta| controls.event_of(meta.from, meta.sent));
            satellite.note(passed.delay, || EventKind::ReturnArrived {
                call: call.clone(),
                sent_as: sent_as(),
            });
            (outcome, passed)
        };
        // The deadline is an event like any other: it does not overtake a response
        // that would have come before it. Whoever loses is dropped; dropping the
        // call cancels it.
        let mut deadline = satellite.arm(TimerOf {
            control: &call.control,
            stack: &stack,
            delay,
            due: began + remaining,
            gate: Gate::Deadline,
            is_free: false,
        });
        let (outcome, delay, is_free) = tokio::select! {
            biased;
            (outcome, passed) = answered => (outcome, passed.delay, passed.is_free),
            delay = deadline.fired() => {
                satellite.note(delay, || EventKind::DeadlineExpired { call: call.clone() });
                (Err(RpcError::DeadlineExceeded), delay, passed.is_free)
            }
        };
        if let Some(control) = &control {
            control.wake(began, delay);
            control.is_free_from_now_on(is_free);
        }
        drop(elsewhere);
        outcome
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
            None => match self.exchange(ctx, Traced::Plain(request)).await? {
                Traced::Plain(body) | Traced::With(_, body) => Ok(body),
                Traced::Failed(_, error) => Err(failed(error)),
            },
        }
    }
}

/// tarpc's names are identifiers and a dot; if they ever are not, the call goes on
/// under a name like it.
pub(crate) fn method(name: &str) -> MethodName {
    let cleaned = || MethodName::new(naming::clean(name));
    MethodName::new(name).or_else(|_| cleaned()).expect("a cleaned name")
}

fn result<Resp: Serialize>(outcome: &Result<Resp, RpcError>) -> serde_json::Value {
    match outcome {
        Ok(response) => value(response).take_args(),
        Err(error) => serde_json::json!({ "error": error.to_string() }),
    }
}

/// tarpc's requests and responses are enums with the method as variant.
pub(crate) trait TakeArgs {
    /// What is in the variant.
    fn take_args(self) -> Self;
}

impl TakeArgs for serde_json::Value {
    fn take_args(self) -> Self {
        match self {
            Self::Object(fields) if fields.len() == 1 => {
                fields.into_iter().next().map(|(_, inner)| inner).unwrap_or_default()
            }
            other => other,
        }
    }
}

fn failed(error: ServerError) -> RpcError {
    if is_deadline(&error) { RpcError::DeadlineExceeded } else { RpcError::Server(error) }
}
