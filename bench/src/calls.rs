//! What a wrapped call costs beside a plain one: in memory, on one thread.
//!
//! Windows of all variants alternate, forth and back, so that a machine that gets
//! slower meanwhile is slower for all; a second bare one shows what chance does.

use std::time::Instant;

use clap::ValueEnum;
use ddbx::Process;
use tarpc::client::stub::Stub;
use tarpc::context::Context;
use tarpc::{client, context};
use tokio::runtime::{Builder, Runtime};

use crate::peers::server::execute;
use crate::stats::{Spread, median};
use crate::verdict::{Verdict, at_most, known, report};

mod instructions;

pub use instructions::{CountArgs, count};

const WINDOWS: usize = 100;
const CALLS: u32 = 1_000;
/// Until pools are filled and tables have grown.
const WARM_UP: u32 = 5_000;

const ALONE_NANOS_MAX: f64 = 100.0;
const ATTACHED_NANOS_MAX: f64 = 500.0;

#[tarpc::service]
trait Echo {
    async fn echo(number: u64) -> u64;
}

#[derive(Clone)]
struct Server;

impl Echo for Server {
    async fn echo(self, _: Context, number: u64) -> u64 {
        number
    }
}

/// What is called how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Variant {
    /// tarpc without anything
    Bare,
    /// The same once more
    Again,
    /// Wrapped, without a session
    Alone,
    /// In a session, nobody held; calls come from outside
    Attached,
    /// The same; calls come from a control
    ByControl,
}

/// A channel to a service.
macro_rules! connect {
    ($service:expr) => {{
        let (near, far) = tarpc::transport::channel::unbounded();
        execute!(far, $service);
        client::new(client::Config::default(), near).spawn()
    }};
}

/// All that are called.
struct Clients {
    bare: EchoClient,
    again: EchoClient,
    alone: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    attached: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    caller: Process,
    _session: ddbx::test::Session,
}

impl Clients {
    async fn connected() -> Self {
        let session = ddbx::test::session().await;
        let process = Process::without_session("alone");
        let (caller, callee) = (session.process("caller"), session.process("callee"));
        let attached = connect!(callee.serve(Server.serve()));
        Self {
            bare: EchoClient::from(connect!(Server.serve())),
            again: EchoClient::from(connect!(Server.serve())),
            alone: EchoClient::from(process.client(connect!(process.serve(Server.serve())))),
            attached: EchoClient::from(caller.client(attached)),
            caller,
            _session: session,
        }
    }

    async fn call(&self, variant: Variant, calls: u32) {
        match variant {
            Variant::Bare => call(&self.bare, calls).await,
            Variant::Again => call(&self.again, calls).await,
            Variant::Alone => call(&self.alone, calls).await,
            Variant::Attached => call(&self.attached, calls).await,
            Variant::ByControl => {
                let client = self.attached.clone();
                let calls = async move { call(&client, calls).await };
                self.caller.spawn("caller", calls).await.expect("no call has failed");
            }
        }
    }

    async fn nanos_per_call(&self, variant: Variant) -> f64 {
        let start = Instant::now();
        self.call(variant, CALLS).await;
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    }
}

async fn call<S>(client: &EchoClient<S>, calls: u32)
where
    S: Stub<Req = EchoRequest, Resp = EchoResponse>,
{
    for number in 0..calls {
        let echoed = client.echo(context::current(), u64::from(number)).await;
        assert_eq!(echoed.expect("an answer"), u64::from(number));
    }
}

/// Prints what is added to a call; true if the goals are met.
pub fn run(json: bool) -> bool {
    let runtime = one_thread();
    let clients = runtime.block_on(Clients::connected());
    let mut verdicts = nanoseconds(&runtime, &clients);
    verdicts.extend(allocations(&runtime, &clients));
    let passed = report(&verdicts, json);
    instructions::run(json) && passed
}

fn nanoseconds(runtime: &Runtime, clients: &Clients) -> Vec<Verdict> {
    let variants = Variant::value_variants();
    let mut windows: Vec<Vec<f64>> = Vec::new();
    for window in 0..WINDOWS {
        let mut order: Vec<usize> = (0..variants.len()).collect();
        if window % 2 == 1 {
            order.reverse();
        }
        let mut nanos = vec![0.0; variants.len()];
        for nth in order {
            nanos[nth] = runtime.block_on(clients.nanos_per_call(variants[nth]));
        }
        windows.push(nanos);
    }
    let bare = median(windows.iter().map(|nanos| nanos[0]));
    let added = |nth: usize| Spread::of(windows.iter().map(|nanos| nanos[nth] - nanos[0]));
    let chance = added(1).doubt();
    vec![
        known("bare tarpc, nanoseconds per call", bare),
        known("bare tarpc again, nanoseconds added (null)", added(1).median).give_or_take(chance),
        at_most("without a session, nanoseconds added", added(2).median, ALONE_NANOS_MAX)
            .give_or_take(chance),
        at_most("attached and idle, nanoseconds added", added(3).median, ATTACHED_NANOS_MAX)
            .give_or_take(chance),
        // No goal: it runs in a task of its own, and bare calls do not.
        known("by a control in a task, over bare outside one, nanoseconds", added(4).median)
            .give_or_take(chance),
    ]
}

/// On this thread, which is where calls are: a satellite's own has nothing to do.
fn allocations(runtime: &Runtime, clients: &Clients) -> Vec<Verdict> {
    let per_call = |variant| {
        runtime.block_on(clients.call(variant, WARM_UP));
        let counted =
            allocation_counter::measure(|| runtime.block_on(clients.call(variant, CALLS)));
        counted.count_total as f64 / f64::from(CALLS)
    };
    let bare = per_call(Variant::Bare);
    // A table may have to grow now and then, and a control that begins is not a call.
    let added = |variant| ((per_call(variant) - bare) * 10.0).round() / 10.0;
    vec![
        known("bare tarpc, allocations per call", bare),
        at_most("without a session, allocations added", added(Variant::Alone), 0.0),
        at_most("attached and idle, allocations added", added(Variant::Attached), 0.0),
        at_most("the same by a control, allocations added", added(Variant::ByControl), 0.0),
    ]
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
