//! What a wrapped call costs beside a plain one: in memory, on one thread.
//!
//! Windows of all variants alternate, forth and back, so that a machine that gets
//! slower meanwhile is slower for all; a second bare one shows what chance does. Each
//! variant is compared with bare calls of its own shape: a task of its own makes calls
//! cheaper than the runtime's first future does.

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

/// Beside bare calls that come from a task too.
const BY_CONTROL: &str = "attached and idle, by a control";

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
    /// tarpc without anything; calls come from a task
    BareInTask,
    /// In a session, nobody held; calls come from a control, which is a task
    ByControl,
    /// Recorded, as the environment says; calls come from outside
    Recorded,
}

impl Variant {
    /// What it is compared to: the same without ddbx.
    fn base(self) -> Self {
        match self {
            Self::Bare | Self::Again | Self::Alone | Self::Attached | Self::Recorded => Self::Bare,
            Self::BareInTask | Self::ByControl => Self::BareInTask,
        }
    }
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
    recorded: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    caller: Process,
    _session: ddbx::test::Session,
}

impl Clients {
    async fn connected() -> Self {
        let session = ddbx::test::session().await;
        let process = Process::without_session("alone");
        let (caller, callee) = (session.process("caller"), session.process("callee"));
        let attached = connect!(callee.serve(Server.serve()));
        let (recorded, answering) = (ddbx::init("recorded"), ddbx::init("answering"));
        Self {
            bare: EchoClient::from(connect!(Server.serve())),
            again: EchoClient::from(connect!(Server.serve())),
            alone: EchoClient::from(process.client(connect!(process.serve(Server.serve())))),
            attached: EchoClient::from(caller.client(attached)),
            recorded: EchoClient::from(recorded.client(connect!(answering.serve(Server.serve())))),
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
            Variant::Recorded => call(&self.recorded, calls).await,
            Variant::BareInTask => {
                let client = self.bare.clone();
                let calls = async move { call(&client, calls).await };
                tokio::spawn(calls).await.expect("no call has failed");
            }
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
    // Nothing is recorded in this process.
    let variants = Variant::value_variants().split_last().expect("there are some").1;
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
    let of = |nanos: &[f64], variant: Variant| nanos[variant as usize];
    let bare = |variant| median(windows.iter().map(|nanos| of(nanos, variant)));
    let added = |variant: Variant| {
        let added = |nanos: &Vec<f64>| of(nanos, variant) - of(nanos, variant.base());
        Spread::of(windows.iter().map(added))
    };
    let chance = added(Variant::Again).doubt();
    let goal = |what: &str, variant, max| {
        at_most(format!("{what}, nanoseconds added"), added(variant).median, max)
            .give_or_take(chance)
    };
    vec![
        known("bare tarpc, nanoseconds per call", bare(Variant::Bare)),
        known("bare tarpc in a task, nanoseconds per call", bare(Variant::BareInTask)),
        known("bare tarpc again, nanoseconds added (null)", added(Variant::Again).median)
            .give_or_take(chance),
        goal("without a session", Variant::Alone, ALONE_NANOS_MAX),
        goal("attached and idle", Variant::Attached, ATTACHED_NANOS_MAX),
        goal(BY_CONTROL, Variant::ByControl, ATTACHED_NANOS_MAX),
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
    // A table may have to grow now and then, and a control that begins is not a call.
    let goal = |what: &str, variant: Variant| {
        let added = per_call(variant) - per_call(variant.base());
        at_most(format!("{what}, allocations added"), (added * 10.0).round() / 10.0, 0.0)
    };
    vec![
        known("bare tarpc, allocations per call", per_call(Variant::Bare)),
        goal("without a session", Variant::Alone),
        goal("attached and idle", Variant::Attached),
        goal(BY_CONTROL, Variant::ByControl),
    ]
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
