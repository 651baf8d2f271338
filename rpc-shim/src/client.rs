//! A call leaves and its response comes back: the client's half of the shim.
//!
//! On the way that nearly all calls take nothing is built that another has not left
//! behind, and the future is little larger than tarpc's own, which is moved about; what
//! few calls need is in boxes, made when it is needed.

use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use ddbx_protocol::EventKind;
use ddbx_recording::SentAs;
use ddbx_satellite::driver::Handle;
use pin_project_lite::pin_project;
use serde::Serialize;
use tarpc::client::stub::Stub;
use tarpc::client::{Channel, RpcError};
use tarpc::{RequestName, ServerError, context};

use crate::connection::Connection;
use crate::envelope::{ResponseMeta, Says, Short, TracedRequest, TracedResponse};
use crate::process::Process;
use crate::server::is_deadline;

mod call;
mod carried;
mod exchange;

use call::{Call, Who};
use carried::Carried;
use exchange::Exchange;

/// A wrapped channel. Made by [`Process::client`].
pub struct Client<Req: 'static, Resp: 'static> {
    channel: Channel<TracedRequest<Req>, TracedResponse<Resp>>,
    process: Process,
    connection: Arc<Connection>,
}

impl<Req: 'static, Resp: 'static> Clone for Client<Req, Resp> {
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
    said: Said,
    outcome: Result<Resp, RpcError>,
}

/// What the envelope of a response said.
enum Said {
    /// There was none, or nothing in it.
    Nothing,
    /// No more than a number holds.
    InShort(Says),
    /// More.
    All(ResponseMeta),
}

impl<Resp> Answer<Resp> {
    /// All that was said, if it was not said in short.
    #[inline]
    fn meta(&self) -> Option<&ResponseMeta> {
        match &self.said {
            Said::All(meta) => Some(meta),
            Said::Nothing | Said::InShort(_) => None,
        }
    }

    /// As what it was sent.
    #[inline]
    fn sent_as(&self, connection: &Connection) -> SentAs {
        match &self.said {
            Said::Nothing => SentAs::default(),
            Said::InShort(says) => connection.sent_as(says.sent()),
            Said::All(meta) => SentAs { process: meta.from, number: meta.sent },
        }
    }

    /// Whether it was the connection that gave it.
    fn is_lost(&self) -> bool {
        matches!(self.outcome, Err(RpcError::Shutdown | RpcError::Channel(_)))
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

    // Not an async function: what such a one is given takes its room twice, and futures are
    // moved about.
    #[expect(clippy::manual_async_fn, reason = "see above")]
    #[inline]
    fn call_in_session(
        &self,
        satellite: &Handle,
        mut ctx: context::Context,
        mut request: TracedRequest<Req>,
    ) -> impl Future<Output = Result<Resp, RpcError>> {
        async move {
            let (call, has_left) = Call::begin(self, satellite, &mut ctx, &mut request);
            if !has_left {
                return self.leaves(call, ctx, request).await;
            }
            call.who.set_alarm();
            let exchange = pin!(self.channel.call(ctx, request));
            Exchange::new(self, call, exchange).await
        }
    }

    /// It leaves when it may.
    #[cold]
    fn leaves<'a>(
        &'a self,
        mut call: Call<'a>,
        mut ctx: context::Context,
        mut request: TracedRequest<Req>,
    ) -> Pin<Box<impl Future<Output = Result<Resp, RpcError>> + use<'a, Req, Resp>>> {
        Box::pin(async move {
            let (meta, body) = request.parts_mut();
            call.leaves(self.process.controls(), &mut ctx, body).await;
            call.who.write_late(meta, self.connection.hello(call.who.satellite));
            match call.who.satellite.is_replay() {
                true => call.who.set_alarm_in_replay(),
                false => call.who.set_alarm(),
            }
            match call.who.may_be_given_up_in_replay() {
                true => {
                    let exchange = pin!(self.exchange_in_replay(&call.who, ctx, request));
                    Exchange::new(self, call, exchange).await
                }
                false => {
                    let exchange = pin!(self.channel.call(ctx, request));
                    Exchange::new(self, call, exchange).await
                }
            }
        })
    }

    /// It is back, which is this event.
    fn returned(&self, call: &Call<'_>, answer: &Answer<Resp>) -> EventKind {
        let SentAs { process, number } = answer.sent_as(&self.connection);
        let sent_as = self.process.controls().departure(process, number);
        EventKind::ReturnArrived { call: call.who.id(), sent_as }
    }

    /// Takes a response out of its envelope.
    #[inline]
    fn open(&self, response: Result<TracedResponse<Resp>, RpcError>) -> Answer<Resp> {
        self.connection.answered(&response);
        let (said, outcome) = match response {
            Ok(TracedResponse::Plain(body)) => (Said::Nothing, Ok(body)),
            Ok(TracedResponse::Short(Short { body, says })) => (Said::InShort(says), Ok(body)),
            Ok(TracedResponse::With(mut room)) => {
                (Said::All(mem::take(room.meta_mut())), Ok(room.take_body()))
            }
            Ok(TracedResponse::Failed(failure)) => {
                let (meta, error) = *failure;
                (Said::All(meta), Err(failed(error)))
            }
            Err(error) => (Said::Nothing, Err(error)),
        };
        Answer { said, outcome }
    }

    /// What few responses are that come without a session.
    #[cold]
    fn open_first(
        &self,
        response: Result<TracedResponse<Resp>, RpcError>,
    ) -> Result<Resp, RpcError> {
        self.open(response).outcome
    }

    /// The same of a session, where the other end may have said who it is.
    #[inline]
    fn meet(
        &self,
        call: &Call<'_>,
        response: Result<TracedResponse<Resp>, RpcError>,
    ) -> Answer<Resp> {
        let answer = self.open(response);
        self.connection.meet(call.who.satellite, call.who.introduced(), answer.meta());
        answer
    }

    /// In a replay where the caller may give it up: the callee then does not hear of that now
    /// but where it did.
    fn exchange_in_replay(
        &self,
        who: &Who<'_>,
        ctx: context::Context,
        request: TracedRequest<Req>,
    ) -> impl Future<Output = Result<TracedResponse<Resp>, RpcError>> + use<Req, Resp> {
        let (satellite, id, channel) = (who.satellite, who.id(), self.channel.clone());
        let is_answered = satellite.is_answered(&id);
        let arrives = !is_answered && !satellite.is_lost(&id);
        let abroad = arrives.then(|| satellite.leaves(&id));
        async move {
            if is_answered {
                // The caller waits for it, and nothing else does.
                return Carried::new(async move { channel.call(ctx, request).await }).await;
            }
            let Some(abroad) = abroad else {
                // The caller gave it up before it arrived: so it does not.
                return std::future::pending().await;
            };
            let exchange = async move {
                let _abroad = abroad;
                channel.call(ctx, request).await
            };
            tokio::spawn(exchange).await.unwrap_or(Err(RpcError::Shutdown))
        }
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
            Some(satellite) => {
                let request = TracedRequest::new(request);
                Calling::InSession { future: self.call_in_session(satellite, ctx, request) }
            }
            None => {
                let exchange = self.channel.call(ctx, TracedRequest::plain(request));
                Calling::Plain { client: self, exchange }
            }
        }
    }
}

pin_project! {
    /// A call, with a session or without: one type for both, in which nothing is moved.
    #[project = CallingNow]
    enum Calling<'a, Req: 'static, Resp: 'static, P, S> {
        Plain { client: &'a Client<Req, Resp>, #[pin] exchange: P },
        InSession { #[pin] future: S },
    }
}

impl<Req, Resp, P, S> Future for Calling<'_, Req, Resp, P, S>
where
    Req: RequestName + Serialize + Send + 'static,
    Resp: Serialize + Send + 'static,
    P: Future<Output = Result<TracedResponse<Resp>, RpcError>>,
    S: Future<Output = Result<Resp, RpcError>>,
{
    type Output = Result<Resp, RpcError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            CallingNow::Plain { client, exchange } => match ready!(exchange.poll(context)) {
                Ok(TracedResponse::Plain(body)) if client.connection.is_answered() => {
                    Poll::Ready(Ok(body))
                }
                response => Poll::Ready(client.open_first(response)),
            },
            CallingNow::InSession { future } => future.poll(context),
        }
    }
}

fn failed(error: ServerError) -> RpcError {
    if is_deadline(&error) { RpcError::DeadlineExceeded } else { RpcError::Server(error) }
}
