//! A request on its way, until its response is back with the caller: the client's half of
//! what a handler is on the other side, and made like that.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ddbx_satellite::driver::Passed;
use futures::future::BoxFuture;
use serde::Serialize;
use tarpc::RequestName;
use tarpc::client::RpcError;

use super::call::Call;
use super::{Answer, Client, Said};
use crate::capture;
use crate::envelope::{Short, TracedResponse};

/// What a call comes to.
type Outcome<Resp> = Result<Resp, RpcError>;

/// A call until it is back. tarpc's own future of it stands elsewhere, where it is not moved.
pub(super) struct Exchange<'a, Req: 'static, Resp: 'static, F> {
    client: &'a Client<Req, Resp>,
    call: Call<'a>,
    exchange: Pin<&'a mut F>,
    rest: Option<Box<Rest<'a, Resp>>>,
}

/// A response that cannot come back at once, or one that may come too late.
struct Rest<'a, Resp> {
    back: Option<Back<'a, Resp>>,
    /// The deadline is an event like any other: it does not overtake a response that would
    /// have come before it. None until it must be waited for.
    expires: Option<BoxFuture<'a, Passed>>,
}

/// A response that comes back when it may.
struct Back<'a, Resp> {
    outcome: Outcome<Resp>,
    comes: BoxFuture<'a, Passed>,
}

impl<'a, Req, Resp, F> Exchange<'a, Req, Resp, F>
where
    Req: RequestName + Serialize + Send + 'static,
    Resp: Serialize + Send + 'static,
{
    /// Of a call that has left.
    #[inline]
    pub(super) fn new(
        client: &'a Client<Req, Resp>,
        call: Call<'a>,
        exchange: Pin<&'a mut F>,
    ) -> Self {
        Self { client, call, exchange, rest: None }
    }

    /// A response of which there is more to say, or an error: what the call comes
    /// to, unless it must wait for that.
    #[inline(never)]
    fn is_back(
        client: &Client<Req, Resp>,
        call: &mut Call<'a>,
        rest: &mut Option<Box<Rest<'a, Resp>>>,
        response: Outcome<TracedResponse<Resp>>,
    ) -> Option<Outcome<Resp>> {
        let answer = client.meet(call, response);
        let passed = call.who.is_back_with(&answer);
        if call.is_back_at_once(passed, || answer.sent_as(&client.connection)) {
            call.is_over(passed);
            return Some(answer.outcome);
        }
        rest.insert(Rest::new()).comes_back(client, call, answer);
        None
    }
}

impl<Req, Resp, F> Future for Exchange<'_, Req, Resp, F>
where
    Req: RequestName + Serialize + Send + 'static,
    Resp: Serialize + Send + 'static,
    F: Future<Output = Outcome<TracedResponse<Resp>>>,
{
    type Output = Outcome<Resp>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { client, call, exchange, rest } = self.get_mut();
        if rest.is_none() {
            match exchange.as_mut().poll(context) {
                // Nearly all, and not moved about.
                Poll::Ready(Ok(TracedResponse::Short(Short { body, says })))
                    if client.connection.is_answered() =>
                {
                    let passed = call.who.is_back_after(says.delay());
                    if call.is_back_at_once(passed, || client.connection.sent_as(says.sent())) {
                        call.is_over(passed);
                        return Poll::Ready(Ok(body));
                    }
                    let answer = Answer { said: Said::InShort(says), outcome: Ok(body) };
                    rest.insert(Rest::new()).comes_back(client, call, answer);
                }
                Poll::Ready(response) => {
                    if let Some(outcome) = Self::is_back(client, call, rest, response) {
                        return Poll::Ready(outcome);
                    }
                }
                Poll::Pending => ready!(call.who.poll_alarm(context)),
            }
        }
        let rest = rest.get_or_insert_with(Rest::new);
        let (passed, outcome) = ready!(rest.poll((client, call), exchange.as_mut(), context));
        call.is_over(passed);
        Poll::Ready(outcome)
    }
}

impl<'a, Resp: Serialize + Send + 'static> Rest<'a, Resp> {
    #[cold]
    fn new() -> Box<Self> {
        Box::new(Self { back: None, expires: None })
    }

    #[cold]
    fn comes_back<Req>(&mut self, client: &Client<Req, Resp>, call: &Call<'a>, answer: Answer<Resp>)
    where
        Req: RequestName + Serialize + Send + 'static,
    {
        let result = || capture::result(client.process.controls(), &answer.outcome);
        let passed = call.who.is_back_with(&answer);
        let comes = call.comes_back(passed, result, client.returned(call, &answer));
        self.back = Some(Back { outcome: answer.outcome, comes });
    }

    /// The response comes back, or the deadline passes. What happens at the same time happens
    /// in this order.
    #[cold]
    fn poll<Req, F>(
        &mut self,
        (client, call): (&Client<Req, Resp>, &Call<'a>),
        exchange: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<(Passed, Outcome<Resp>)>
    where
        Req: RequestName + Serialize + Send + 'static,
        F: Future<Output = Outcome<TracedResponse<Resp>>>,
    {
        if self.back.is_none()
            && let Poll::Ready(response) = exchange.poll(context)
        {
            let answer = client.meet(call, response);
            self.comes_back(client, call, answer);
        }
        if let Some(back) = &mut self.back
            && let Poll::Ready(passed) = back.comes.as_mut().poll(context)
            && let Some(back) = self.back.take()
        {
            return Poll::Ready((passed, back.outcome));
        }
        let expires = self.expires.get_or_insert_with(|| call.expires()).as_mut().poll(context);
        expires.map(|passed| (passed, Err(RpcError::DeadlineExceeded)))
    }
}
