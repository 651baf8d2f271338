//! A call leaves and its response comes back: the client's half of the shim.
//!
//! On the way that nearly all calls take nothing is built that another has not left
//! behind, and the future is little larger than tarpc's own, which is moved about; what
//! few calls need is in boxes, made when it is needed.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use ddbx_protocol::{EventKind, EventNumber, RpcEvent};
use ddbx_recording::{Happens, SentAs};
use ddbx_satellite::driver::{Captured, Handle, Passed, SetAlarm, Step, Visit, before};
use futures::FutureExt as _;
use futures::future::Either;
use serde::Serialize;
use tarpc::client::stub::Stub;
use tarpc::client::{Channel, RpcError};
use tarpc::{RequestName, ServerError, context};

use crate::capture;
use crate::connection::Connection;
use crate::control::Control;
use crate::deadlines::Now;
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

impl<Resp> Answer<Resp> {
    /// As what it was sent.
    #[inline]
    fn sent_as(&self) -> SentAs {
        let sent = |meta: &ResponseMeta| SentAs { process: meta.from, number: meta.sent };
        self.meta.as_deref().map(sent).unwrap_or_default()
    }

    /// Whether it was the connection that gave it.
    fn is_lost(&self) -> bool {
        matches!(self.outcome, Err(RpcError::Shutdown | RpcError::Channel(_)))
    }
}

/// How a call has come back to its caller, and with what.
type Back<Resp> = (Passed, Result<Resp, RpcError>);

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

    // Not an async function, and likewise below: what such a one is given takes its room
    // twice, and futures are moved about.
    #[expect(clippy::manual_async_fn, reason = "see above")]
    fn call_in_session(
        &self,
        satellite: &Handle,
        mut ctx: context::Context,
        request: Req,
    ) -> impl Future<Output = Result<Resp, RpcError>> {
        async move {
            let now = Now::of(satellite);
            let caller = Control::of_call(&self.process, &ctx);
            let _elsewhere = caller.as_ref().map(|caller| Control::elsewhere(&*caller.control));
            let of = (satellite, caller.as_ref());
            let (mut call, has_left) = Call::begin(self, of, (&ctx, now), &request);
            ctx.deadline = now.at + FAR_AWAY;
            if !has_left {
                Box::pin(self.leaves(&mut call, &request)).await;
            }
            let call = &call;
            let given_up = GivenUp(call);
            let request = Traced::With(call.meta.clone(), request);
            let exchange = match satellite.is_replay() {
                false => Either::Left(self.channel.call(ctx, request)),
                true => Either::Right(Box::pin(self.exchange_in_replay(call, ctx, request))),
            };
            let mut exchange = pin!(exchange);
            // The deadline is an event like any other: it does not overtake a response
            // that would have come before it. Whoever loses is dropped; dropping the
            // call cancels it.
            let alarm = satellite.set_own(call.alarm(), call.due());
            let response = before(alarm.as_ref(), exchange.as_mut()).await;
            let (passed, outcome) = match self.is_back_at_once(call, response) {
                Ok(back) => back,
                Err(answer) => self.is_back(call, answer, exchange, alarm).await,
            };
            given_up.disarm();
            call.is_over(passed);
            outcome
        }
    }

    /// A response is back, if there is one, nothing stands in its way and nobody wants to know
    /// of it.
    #[inline]
    fn is_back_at_once(
        &self,
        call: &Call<'_>,
        response: Option<Result<TracedResponse<Resp>, RpcError>>,
    ) -> Result<Back<Resp>, Option<Answer<Resp>>> {
        let Some(response) = response else { return Err(None) };
        let answer = self.open(call, response);
        let passed = call.comes_back(&answer);
        let open = call.satellite.open_at(call.method().groups);
        let open = open.filter(|open| open.delay == passed.delay);
        let note = || call.note(Happens::ReturnArrived { sent_as: answer.sent_as() });
        let pass = |open| call.satellite.pass_open(open, || call.satellite.now(), note);
        match open.and_then(pass) {
            Some(_) => Ok((passed, answer.outcome)),
            None => Err(Some(answer)),
        }
    }

    /// The same when it may, or its deadline passes first.
    fn is_back<'a>(
        &'a self,
        call: &'a Call<'_>,
        answer: Option<Answer<Resp>>,
        exchange: impl Future<Output = Result<TracedResponse<Resp>, RpcError>> + 'a,
        alarm: Option<SetAlarm<'a>>,
    ) -> Pin<Box<impl Future<Output = Back<Resp>>>> {
        let answered = async {
            let answer = match answer {
                Some(answer) => answer,
                None => self.open(call, exchange.await),
            };
            let passed = self.comes_back(call, &answer).await.0;
            (passed, answer.outcome)
        };
        Box::pin(call.ends(answered, call.deadline(alarm)))
    }

    /// It leaves when it may. A breakpoint may want to see it.
    async fn leaves(&self, call: &mut Call<'_>, request: &Req) {
        let (satellite, controls) = (call.satellite, self.process.controls());
        if satellite.is_replay() {
            call.find().await;
        }
        let args = || Some(capture::args(controls, request));
        let seen = || Captured { args: args(), result: None };
        let arrival = satellite.arrive(call.leaving(), || call.gate(RpcEvent::Call), seen);
        if satellite.meets(|| call.gate(RpcEvent::Resume)) {
            call.args = args().map(Box::new);
        }
        let passed = call.leaves(arrival).await;
        call.has_left(passed, satellite.now());
    }

    /// It comes back to its caller when it may.
    fn comes_back<'a>(
        &'a self,
        call: &'a Call<'_>,
        answer: &Answer<Resp>,
    ) -> Step<'a, (Passed, EventNumber)> {
        let (satellite, controls) = (call.satellite, self.process.controls());
        let Passed { delay, is_free } = call.comes_back(answer);
        let visit = Visit { who: call, delay: Some(delay), is_free, inside: None };
        let result = || Some(capture::result(controls, &answer.outcome));
        let seen = || Captured { args: call.args.as_deref().cloned(), result: result() };
        let arrival = satellite.arrive(visit, || call.gate(RpcEvent::Resume), seen);
        let returned = self.returned(call, answer);
        satellite.pass(visit, arrival, move || returned)
    }

    fn returned(&self, call: &Call<'_>, answer: &Answer<Resp>) -> EventKind {
        let departure =
            |meta: &ResponseMeta| self.process.controls().departure(meta.from, meta.sent);
        let sent_as = answer.meta.as_deref().and_then(departure);
        EventKind::ReturnArrived { call: call.id(), sent_as }
    }

    /// Takes a response out of its envelope.
    #[inline]
    fn open(
        &self,
        call: &Call<'_>,
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
        self.connection.meet(call.satellite, call.meta.hello.as_ref(), answer.meta.as_deref());
        answer
    }

    /// In a replay: also if the caller gives it up. The callee then does not hear of that
    /// now but where it did.
    async fn exchange_in_replay(
        &self,
        call: &Call<'_>,
        ctx: context::Context,
        request: TracedRequest<Req>,
    ) -> Result<TracedResponse<Resp>, RpcError> {
        let satellite = call.satellite;
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

    fn call(
        &self,
        ctx: context::Context,
        request: Req,
    ) -> impl Future<Output = Result<Resp, RpcError>> {
        match self.process.satellite() {
            Some(satellite) => Either::Left(self.call_in_session(satellite, ctx, request)),
            None => {
                let call = self.channel.call(ctx, Traced::Plain(request));
                Either::Right(call.map(|response| {
                    self.connection.answered(&response);
                    match response? {
                        Traced::Plain(body) | Traced::With(_, body) => Ok(body),
                        Traced::Failed(failure) => Err(failed(failure.1)),
                    }
                }))
            }
        }
    }
}

fn failed(error: ServerError) -> RpcError {
    if is_deadline(&error) { RpcError::DeadlineExceeded } else { RpcError::Server(error) }
}
