//! A call leaves and its response comes back: the client's half of the shim.

use std::time::{Duration, Instant};

use ddbx_protocol::{Delay, RpcEvent, Stack};
use ddbx_satellite::driver::Handle;
use ddbx_satellite::logic::strand::{Gate, Strand};
use tarpc::client::stub::Stub;
use tarpc::client::{Channel, RpcError};
use tarpc::{RequestName, ServerError, context};

use crate::control::{self, Control};
use crate::envelope::{RequestMeta, Traced, TracedRequest, TracedResponse};
use crate::process::Process;
use crate::server::is_deadline;

/// tarpc itself is given a deadline that never comes: the shim keeps the real one,
/// in virtual time. (tokio's timers do not take much more than two years.)
const FAR_AWAY: Duration = Duration::from_secs(30 * 24 * 3_600);

/// A wrapped channel. Made by [`Process::client`].
pub struct Client<Req, Resp> {
    channel: Channel<TracedRequest<Req>, TracedResponse<Resp>>,
    process: Process,
}

impl<Req, Resp> Clone for Client<Req, Resp> {
    fn clone(&self) -> Self {
        Self { channel: self.channel.clone(), process: self.process.clone() }
    }
}

impl<Req: RequestName, Resp> Client<Req, Resp> {
    pub(crate) fn new(
        channel: Channel<TracedRequest<Req>, TracedResponse<Resp>>,
        process: Process,
    ) -> Self {
        Self { channel, process }
    }

    async fn call_in_session(
        &self,
        satellite: &Handle,
        mut ctx: context::Context,
        request: Req,
    ) -> Result<Resp, RpcError> {
        let control = Control::current(&self.process);
        let resume = control::rpc(RpcEvent::Resume, request.name());
        let departure = control::rpc(RpcEvent::Call, request.name());
        let home = || Stack::home(satellite.process());
        let stack = control.as_ref().map_or_else(home, |control| control.stack.clone());
        // Read before anything can hold it: from here on only virtual time counts.
        let remaining = match &control {
            Some(control) => control.remaining(ctx.deadline),
            None => control::remaining(ctx.deadline),
        };
        let delay = self.depart(satellite, control.as_deref(), &stack, &departure).await;

        let began = satellite.now() - delay;
        let remaining_nanos = u64::try_from(remaining.as_nanos()).unwrap_or(u64::MAX);
        let meta = RequestMeta { stack: stack.0.to_vec(), delay, remaining_nanos };
        ctx.deadline = Instant::now() + FAR_AWAY;

        let answered = async {
            let response = self.channel.call(ctx, Traced::with(meta, request)).await;
            // An error that was made outside the handler's wrapper has no delay.
            let meta = response.as_ref().ok().and_then(|response| response.meta.as_ref());
            let delay = meta.map_or(delay, |meta| meta.delay);
            let strand = strand(satellite, &stack, delay);
            (response, satellite.pass(&strand, &resume).await)
        };
        // The deadline is an event like any other: it does not overtake a response
        // that would have come before it. Whoever loses is dropped; dropping the
        // call cancels it.
        let mut deadline = satellite.arm(began + remaining, delay, &stack, Gate::Deadline);
        let (outcome, delay) = tokio::select! {
            biased;
            (response, delay) = answered => (response.map(|response| response.body), delay),
            delay = deadline.fired() => (Err(RpcError::DeadlineExceeded), delay),
        };
        if let Some(control) = control {
            control.wake(began, delay);
        }
        flatten(outcome)
    }

    /// The request may leave, now or when the rule allows.
    async fn depart(
        &self,
        satellite: &Handle,
        control: Option<&Control>,
        stack: &Stack,
        gate: &Gate,
    ) -> Delay {
        match control {
            Some(control) => {
                control.pass(gate).await;
                control.delay()
            }
            None => satellite.enter(&strand(satellite, stack, Delay::ZERO), gate).await,
        }
    }
}

impl<Req: RequestName, Resp> Stub for Client<Req, Resp> {
    type Req = Req;
    type Resp = Resp;

    async fn call(&self, ctx: context::Context, request: Req) -> Result<Resp, RpcError> {
        match self.process.satellite() {
            Some(satellite) => self.call_in_session(satellite, ctx, request).await,
            None => {
                let response = self.channel.call(ctx, Traced::plain(request)).await;
                flatten(response.map(|response| response.body))
            }
        }
    }
}

fn strand(satellite: &Handle, stack: &Stack, delay: Delay) -> Strand {
    Strand { id: satellite.new_strand(), stack: stack.clone(), delay, is_branch: false }
}

fn flatten<Resp>(outcome: Result<Result<Resp, ServerError>, RpcError>) -> Result<Resp, RpcError> {
    match outcome? {
        Err(error) if is_deadline(&error) => Err(RpcError::DeadlineExceeded),
        body => Ok(body?),
    }
}
