//! A handler at work. It is the shim's own future, not an async block: tarpc moves it about,
//! and what such a block is given takes its room twice. What few calls need is in a box.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ddbx_protocol::{Delay, EventNumber};
use ddbx_satellite::driver::Passed;
use futures::future::BoxFuture;
use pin_project_lite::pin_project;
use serde::Serialize;
use tarpc::ServerError;

use super::call::Call;
use crate::envelope::TracedResponse;

/// Marks the error with which a wrapped server ends a handler at its deadline.
const DEADLINE: &str = "ddbx: the deadline has passed in virtual time";

/// Nobody reads it: the call was given up.
const CANCELLED: &str = "ddbx: the call was given up, as recorded";

/// What a handler comes to.
type Outcome<T> = Result<T, ServerError>;

pin_project! {
    /// A handler until its response has left.
    pub(super) struct Handling<T, F> {
        // None without a session, and when it has ended.
        call: Option<Call>,
        #[pin]
        handler: Option<F>,
        rest: Option<Box<Rest<T>>>,
    }

    impl<T, F> PinnedDrop for Handling<T, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if let Some(call) = this.call {
                // Whoever waits for what the handler has locked gets it after this event.
                call.is_given_up();
                call.as_control(|| this.handler.set(None));
            }
        }
    }
}

/// A response that cannot leave at once, or a handler that may be ended otherwise.
struct Rest<T> {
    leaving: Option<Leaving<T>>,
    /// What ends it if that comes first, its deadline above all. None until it must wait.
    otherwise: Option<BoxFuture<'static, Ended>>,
    /// Its deadline has passed: the handler does not go on, and nothing of it leaves.
    is_too_late: bool,
}

/// A response that leaves when it may.
struct Leaving<T> {
    outcome: Outcome<T>,
    leaves: BoxFuture<'static, (Passed, EventNumber)>,
}

/// How a call ends before its response can leave.
pub(super) enum Ended {
    /// Its deadline has passed.
    Expired(Delay),
    /// And the response that says so has left.
    SaidSo(Delay, EventNumber),
    /// In a replay: it is given up where it was.
    GivenUp(Delay),
}

impl<T: Serialize + 'static, F: Future<Output = Outcome<T>>> Handling<T, F> {
    /// Without a session.
    #[inline]
    pub(super) fn plain(handler: F) -> Self {
        Self { call: None, handler: Some(handler), rest: None }
    }

    /// Of a call that has come in.
    #[inline]
    pub(super) fn of(call: Call, handler: F) -> Self {
        Self { call: Some(call), handler: Some(handler), rest: None }
    }
}

impl<T: Serialize + 'static, F: Future<Output = Outcome<T>>> Future for Handling<T, F> {
    type Output = Outcome<TracedResponse<T>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut handler = this.handler.as_mut().as_pin_mut().expect("it is polled until its end");
        let Some(call) = this.call else {
            return handler.poll(context).map(|outcome| outcome.map(TracedResponse::Plain));
        };
        let (outcome, delay, sent) = 'ended: {
            if this.rest.is_none() {
                match call.as_control(|| handler.as_mut().poll(context)) {
                    Poll::Ready(outcome) => match call.leaves_at_once() {
                        Some(sent) => break 'ended (outcome, call.delay(), sent),
                        None => this.rest.insert(Rest::new()).leave(call, outcome),
                    },
                    // Many handlers do not come here: for them no alarm has to be set.
                    Poll::Pending => ready!(call.poll_alarm(context)),
                }
            }
            let rest = this.rest.get_or_insert_with(Rest::new);
            ready!(rest.poll(call, handler, context))
        };
        let response = call.answer(outcome, delay, sent);
        call.as_control(|| this.handler.set(None));
        *this.call = None;
        Poll::Ready(Ok(response))
    }
}

impl<T: Serialize + 'static> Rest<T> {
    #[cold]
    fn new() -> Box<Self> {
        Box::new(Self { leaving: None, otherwise: None, is_too_late: false })
    }

    #[cold]
    fn leave(&mut self, call: &Call, outcome: Outcome<T>) {
        let leaves = call.leaves(&outcome);
        self.leaving = Some(Leaving { outcome, leaves });
    }

    /// The handler comes to its end and its response leaves, or something else ends it. What
    /// happens at the same time happens in this order.
    #[cold]
    fn poll<F: Future<Output = Outcome<T>>>(
        &mut self,
        call: &mut Call,
        handler: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<(Outcome<T>, Delay, EventNumber)> {
        if !self.is_too_late
            && self.leaving.is_none()
            && let Poll::Ready(outcome) = call.as_control(|| handler.poll(context))
        {
            self.leave(call, outcome);
        }
        if let Some(leaving) = &mut self.leaving
            && let Poll::Ready((passed, sent)) = leaving.leaves.as_mut().poll(context)
            && let Some(leaving) = self.leaving.take()
        {
            return Poll::Ready((leaving.outcome, passed.delay, sent));
        }
        loop {
            let otherwise = self.otherwise.get_or_insert_with(|| call.expires());
            let (why, text, delay, sent) = match ready!(otherwise.as_mut().poll(context)) {
                Ended::Expired(delay) => {
                    // Both responses would be the same event of a recording: so the handler's
                    // must have gone when the other one comes.
                    self.leaving = None;
                    self.is_too_late = true;
                    self.otherwise = Some(call.says_so(delay));
                    continue;
                }
                Ended::SaidSo(delay, sent) => (io::ErrorKind::TimedOut, DEADLINE, delay, sent),
                Ended::GivenUp(delay) => {
                    (io::ErrorKind::Interrupted, CANCELLED, delay, EventNumber(0))
                }
            };
            return Poll::Ready((Err(ended(why, text)), delay, sent));
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
