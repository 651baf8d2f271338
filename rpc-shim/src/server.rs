//! A call arrives and its response leaves: the server's half of the shim.

use std::io;
use std::time::{Duration, Instant};

use ddbx_protocol::{Delay, RpcEvent, Stack};
use ddbx_satellite::driver::Handle;
use ddbx_satellite::logic::strand::{Gate, Strand};
use tarpc::server::Serve;
use tarpc::{RequestName, ServerError, context};

use crate::control::{self, Control};
use crate::envelope::{RequestMeta, ResponseMeta, Traced, TracedRequest, TracedResponse};
use crate::process::Process;

/// Marks the error with which a wrapped server ends a handler at its deadline.
const DEADLINE: &str = "ddbx: the deadline has passed in virtual time";

/// A wrapped service. Made by [`Process::serve`].
#[derive(Clone)]
pub struct Server<S> {
    service: S,
    process: Process,
}

impl<S: Serve> Server<S> {
    pub(crate) fn new(service: S, process: Process) -> Self {
        Self { service, process }
    }

    async fn serve_in_session(
        self,
        satellite: &Handle,
        mut ctx: context::Context,
        meta: Option<Box<RequestMeta>>,
        request: S::Req,
    ) -> TracedResponse<S::Resp> {
        let arrival = control::rpc(RpcEvent::Arrive, request.name());
        let departure = control::rpc(RpcEvent::Return, request.name());
        let (stack, delay, remaining) =
            self.arrive(satellite, &ctx, meta.as_deref(), &arrival).await;

        // The handler sees the deadline that it would have seen.
        let due = (satellite.now() - delay) + remaining;
        let shown = Instant::now().checked_add(remaining);
        ctx.deadline = shown.unwrap_or(ctx.deadline);
        let control = Control::new(&self.process, satellite, stack.clone(), delay, due, shown);
        let handled = async {
            let outcome = control.clone().run(self.service.serve(ctx, request)).await;
            control.pass(&departure).await;
            (outcome, control.delay())
        };
        let mut deadline = satellite.arm(due, delay, &stack, Gate::Deadline);
        let (outcome, delay) = tokio::select! {
            biased;
            handled = handled => handled,
            delay = deadline.fired() => {
                (Err(ServerError::new(io::ErrorKind::TimedOut, DEADLINE.to_owned())), delay)
            }
        };
        Traced::with(ResponseMeta { delay }, outcome)
    }

    /// The request may reach its handler, now or when the rule allows. One that
    /// comes from outside the session takes over the delay that it meets.
    async fn arrive(
        &self,
        satellite: &Handle,
        ctx: &context::Context,
        meta: Option<&RequestMeta>,
        gate: &Gate,
    ) -> (Stack, Delay, Duration) {
        let here = satellite.process();
        let id = satellite.new_strand();
        let Some(meta) = meta else {
            let stack = Stack::home(here);
            let strand = Strand { id, stack: stack.clone(), delay: Delay::ZERO, is_branch: false };
            let delay = satellite.enter(&strand, gate).await;
            return (stack, delay, control::remaining(ctx.deadline));
        };
        if let Some(caller) = meta.stack.last() {
            self.process.called_by(*caller);
        }
        let stack = Stack(meta.stack.iter().copied().chain([here]).collect());
        let strand = Strand { id, stack: stack.clone(), delay: meta.delay, is_branch: false };
        let delay = satellite.pass(&strand, gate).await;
        (stack, delay, Duration::from_nanos(meta.remaining_nanos))
    }
}

impl<S: Serve> Serve for Server<S> {
    type Req = TracedRequest<S::Req>;
    type Resp = TracedResponse<S::Resp>;

    async fn serve(
        self,
        ctx: context::Context,
        request: Self::Req,
    ) -> Result<Self::Resp, ServerError> {
        let Traced { meta, body } = request;
        match self.process.satellite().cloned() {
            Some(satellite) => Ok(self.serve_in_session(&satellite, ctx, meta, body).await),
            None => Ok(Traced::plain(self.service.serve(ctx, body).await)),
        }
    }
}

pub(crate) fn is_deadline(error: &ServerError) -> bool {
    error.kind == io::ErrorKind::TimedOut && error.detail == DEADLINE
}
