//! A call leaves and its response comes back: the client's half of the shim.
//!
//! On the way that nearly all calls take nothing is built that another has not left
//! behind, and the future is little larger than tarpc's own, which is moved about; what
//! few calls need is in boxes, made when it is needed.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ddbx_protocol::{EventKind, EventNumber, RpcEvent};
use ddbx_satellite::driver::{Arrival, Captured, Handle, Passed, Step, before};
use futures::future::Either;
use serde::Serialize;
use tarpc::client::stub::Stub;
use tarpc::client::{Channel, RpcError};
use tarpc::{RequestName, ServerError, context};

use crate::capture;
use crate::connection::Connection;
use crate::control::Control;
use crate::envelope::{ResponseMeta, Traced, TracedRequest, TracedResponse};
use crate::pool::Room;
use crate::process::Process;
use crate::server::is_deadline;

mod call;

use call::{Call, GivenUp};

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

/// What came back, without its envelope.
struct Answer<Resp> {
    meta: Option<Room<ResponseMeta>>,
    outcome: Result<Resp, RpcError>,
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
        let now = Instant::now();
        let mut call = Room::new(Call::begin(self, satellite, (&ctx, now), &request));
        if satellite.is_replay() {
            Box::pin(call.find(satellite)).await;
        }
        let _elsewhere = call.control.as_ref().map(Control::elsewhere);
        let arrival = self.comes_to_leave(satellite, &mut call, &request);
        let (passed, when) = match call.leaves(satellite, arrival) {
            Either::Left(at_once) => (at_once.into_inner(), satellite.at(now)),
            Either::Right(later) => (later.await, satellite.now()),
        };
        call.has_left(passed, when);
        let call = &*call;
        let given_up = GivenUp { call, satellite, is_answered: false };
        let meta = Room::new(call.meta(satellite, self.connection.hello(satellite)));
        let request = Traced::With(meta, request);
        ctx.deadline = now + FAR_AWAY;
        let exchange = match satellite.is_replay() {
            false => Either::Left(self.channel.call(ctx, request)),
            true => Either::Right(Box::pin(self.exchange_in_replay(satellite, call, ctx, request))),
        };
        let mut exchange = pin!(exchange);
        // The deadline is an event like any other: it does not overtake a response
        // that would have come before it. Whoever loses is dropped; dropping the
        // call cancels it.
        let deadline = call.arm_deadline(satellite);
        let (passed, outcome) = match before(&deadline, exchange.as_mut()).await {
            Some(response) => {
                let answer = self.open(satellite, response);
                match self.comes_back(satellite, call, &answer) {
                    Either::Left(at_once) => (at_once.into_inner().0, answer.outcome),
                    Either::Right(later) => {
                        let answered = async { (later.await.0, answer.outcome) };
                        Box::pin(call.ends(answered, deadline)).await
                    }
                }
            }
            None => {
                let answered = async {
                    let answer = self.open(satellite, exchange.await);
                    let back = self.comes_back(satellite, call, &answer);
                    (back.await.0, answer.outcome)
                };
                Box::pin(call.ends(answered, deadline)).await
            }
        };
        given_up.disarm();
        call.is_over(passed);
        outcome
    }

    /// A breakpoint may want to see it.
    fn comes_to_leave(&self, satellite: &Handle, call: &mut Call, request: &Req) -> Arrival {
        let controls = self.process.controls();
        let args = || Some(capture::args(controls, request));
        let seen = || Captured { args: args(), result: None };
        let arrival = satellite.arrive(call.leaving(), || call.gate(RpcEvent::Call), seen);
        if satellite.meets(|| call.gate(RpcEvent::Resume)) {
            call.args = args();
        }
        arrival
    }

    fn comes_back<'a>(
        &'a self,
        satellite: &'a Handle,
        call: &'a Call,
        answer: &Answer<Resp>,
    ) -> Step<'a, (Passed, EventNumber)> {
        let controls = self.process.controls();
        let is_lost = matches!(answer.outcome, Err(RpcError::Shutdown | RpcError::Channel(_)));
        let visit = call.coming_back(satellite, answer.meta.as_deref(), is_lost);
        let result = || Some(capture::result(controls, &answer.outcome));
        let seen = || Captured { args: call.args.clone(), result: result() };
        let arrival = satellite.arrive(visit, || call.gate(RpcEvent::Resume), seen);
        let sent_as = answer.meta.as_ref().map(|meta| (meta.from, meta.sent));
        let returned = move || EventKind::ReturnArrived {
            call: call.id(),
            sent_as: sent_as.map(|(process, number)| controls.event_of(process, number)),
        };
        satellite.pass(visit, arrival, returned)
    }

    /// Takes a response out of its envelope.
    fn open(
        &self,
        satellite: &Handle,
        response: Result<TracedResponse<Resp>, RpcError>,
    ) -> Answer<Resp> {
        self.connection.answered(&response);
        let answer = match response {
            Ok(Traced::Plain(body)) => Answer { meta: None, outcome: Ok(body) },
            Ok(Traced::With(meta, body)) => Answer { meta: Some(meta), outcome: Ok(body) },
            Ok(Traced::Failed(failure)) => {
                let (meta, error) = *failure;
                Answer { meta: Some(meta), outcome: Err(failed(error)) }
            }
            Err(error) => Answer { meta: None, outcome: Err(error) },
        };
        if let Some(meta) = &answer.meta {
            self.connection.meet(satellite, meta);
        }
        answer
    }

    /// In a replay: also if the caller gives it up. The callee then does not hear of that
    /// now but where it did.
    async fn exchange_in_replay(
        &self,
        satellite: &Handle,
        call: &Call,
        ctx: context::Context,
        request: TracedRequest<Req>,
    ) -> Result<TracedResponse<Resp>, RpcError> {
        if satellite.is_lost(&call.id()) {
            // The caller gave it up before it arrived: so it does not.
            return std::future::pending().await;
        }
        let (abroad, channel) = (satellite.leaves(&call.id()), self.channel.clone());
        let exchange = async move {
            let _abroad = abroad;
            channel.call(ctx, request).await
        };
        tokio::spawn(exchange).await.unwrap_or(Err(RpcError::Shutdown))
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
        if let Some(satellite) = self.process.satellite() {
            return self.call_in_session(satellite, ctx, request).await;
        }
        let response = self.channel.call(ctx, Traced::Plain(request)).await;
        self.connection.answered(&response);
        match response? {
            Traced::Plain(body) | Traced::With(_, body) => Ok(body),
            Traced::Failed(failure) => Err(failed(failure.1)),
        }
    }
}

fn failed(error: ServerError) -> RpcError {
    if is_deadline(&error) { RpcError::DeadlineExceeded } else { RpcError::Server(error) }
}
