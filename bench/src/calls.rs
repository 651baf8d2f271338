//! What a wrapped call costs beside a plain one: in memory, on one thread.
//!
//! Windows of all variants alternate, forth and back, so that a machine that gets
//! slower meanwhile is slower for all; a second bare one shows what chance does. Each
//! variant is compared with bare calls of its own shape: a task of its own makes calls
//! cheaper than the runtime's first future does.
//!
//! Where things happen to lie in memory makes more of a difference than some of what is
//! measured, and in one process that stays as it is: so many processes measure, one after
//! the other, and what each of them found counts once.

use std::io;
use std::process::Stdio;
use std::time::Instant;

use clap::ValueEnum;
use ddbx::Process;
use serde::{Deserialize, Serialize};
use tarpc::client::stub::Stub;
use tarpc::context::Context;
use tarpc::{client, context};
use tokio::io::duplex;
use tokio::runtime::{Builder, Runtime};

use crate::again::again;
use crate::peers::server::execute;
use crate::peers::transport::framed;
use crate::stats::{Spread, median};
use crate::verdict::{Verdict, at_most, known, report};

mod instructions;

pub use instructions::{CountArgs, count};

const PROCESSES: usize = 21;
const WINDOWS: usize = 12;
const CALLS: u32 = 1_000;
/// Until pools are filled and tables have grown.
const WARM_UP: u32 = 5_000;

/// More than all calls that are made at a time.
const PIPE_BYTES: usize = 64 * 1024;

const ALONE_NANOS_MAX: f64 = 100.0;
const ATTACHED_NANOS_MAX: f64 = 500.0;

/// Beside bare calls that come from a task too.
const BY_CONTROL: &str = "attached and idle, by a control";

/// Two calls, of which the callee of the one makes the other.
const NESTED: &str = "attached and idle, one call in another";

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

/// Answers what another one does, which it calls in turn.
#[derive(Clone)]
struct Relay<S>(EchoClient<S>);

/// How a relay answers. (A macro, because only for a concrete one it is known that its calls can
/// go to another thread.)
macro_rules! relays_with {
    ($stub:ty) => {
        impl Echo for Relay<$stub> {
            async fn echo(self, ctx: Context, number: u64) -> u64 {
                self.0.echo(ctx, number).await.expect("an answer")
            }
        }
    };
}

relays_with!(client::Channel<EchoRequest, EchoResponse>);
relays_with!(ddbx::Client<EchoRequest, EchoResponse>);

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
    /// tarpc without anything; the callee calls another one
    BareNested,
    /// In a session, nobody held; the same
    AttachedNested,
    /// tarpc without anything; messages are bytes on their way
    BareAsBytes,
    /// Wrapped, without a session; the same
    AloneAsBytes,
    /// In a session, nobody held; the same
    AttachedAsBytes,
    /// Recorded, as the environment says; calls come from outside
    Recorded,
}

impl Variant {
    /// What it is compared to: the same without ddbx.
    fn base(self) -> Self {
        match self {
            Self::Bare | Self::Again | Self::Alone | Self::Attached | Self::Recorded => Self::Bare,
            Self::BareInTask | Self::ByControl => Self::BareInTask,
            Self::BareNested | Self::AttachedNested => Self::BareNested,
            Self::BareAsBytes | Self::AloneAsBytes | Self::AttachedAsBytes => Self::BareAsBytes,
        }
    }

    /// Whether its messages are bytes on their way.
    fn is_as_bytes(self) -> bool {
        matches!(self, Self::BareAsBytes | Self::AloneAsBytes | Self::AttachedAsBytes)
    }

    /// Those that can be measured in a process in which nothing is recorded.
    fn timed() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied().filter(|variant| *variant != Self::Recorded)
    }

    /// Which of these.
    fn place(self) -> usize {
        Self::timed().position(|timed| timed == self).expect("it is timed")
    }
}

/// A channel to a service.
macro_rules! connect {
    ($service:expr) => {
        connect!(tarpc::transport::channel::unbounded(), $service)
    };
    ($ends:expr, $service:expr) => {{
        let (near, far) = $ends;
        execute!(far, $service);
        client::new(client::Config::default(), near).spawn()
    }};
}

/// The same, but messages are bytes on their way.
macro_rules! connect_as_bytes {
    ($service:expr) => {{
        let (near, far) = duplex(PIPE_BYTES);
        connect!((framed(near), framed(far)), $service)
    }};
}

/// All that are called.
struct Clients {
    bare: EchoClient,
    again: EchoClient,
    alone: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    attached: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    recorded: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    bare_nested: EchoClient,
    attached_nested: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    bare_as_bytes: EchoClient,
    alone_as_bytes: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    attached_as_bytes: EchoClient<ddbx::Client<EchoRequest, EchoResponse>>,
    caller: Process,
    _session: ddbx::test::Session,
}

impl Clients {
    async fn connected() -> Self {
        let session = ddbx::test::session().await;
        let process = Process::without_session("alone");
        let (caller, callee) = (session.process("caller"), session.process("callee"));
        let attached = connect!(callee.serve(Server.serve()));
        let between = session.process("between");
        let relay = Relay(EchoClient::from(between.client(connect!(callee.serve(Server.serve())))));
        let attached_nested = connect!(between.serve(relay.serve()));
        let bare_relay = Relay(EchoClient::from(connect!(Server.serve())));
        let attached_as_bytes = connect_as_bytes!(callee.serve(Server.serve()));
        let alone_as_bytes = connect_as_bytes!(process.serve(Server.serve()));
        let (recorded, answering) = (ddbx::init("recorded"), ddbx::init("answering"));
        Self {
            bare: EchoClient::from(connect!(Server.serve())),
            again: EchoClient::from(connect!(Server.serve())),
            alone: EchoClient::from(process.client(connect!(process.serve(Server.serve())))),
            attached: EchoClient::from(caller.client(attached)),
            recorded: EchoClient::from(recorded.client(connect!(answering.serve(Server.serve())))),
            bare_nested: EchoClient::from(connect!(bare_relay.serve())),
            attached_nested: EchoClient::from(caller.client(attached_nested)),
            bare_as_bytes: EchoClient::from(connect_as_bytes!(Server.serve())),
            alone_as_bytes: EchoClient::from(process.client(alone_as_bytes)),
            attached_as_bytes: EchoClient::from(caller.client(attached_as_bytes)),
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
            Variant::BareNested => call(&self.bare_nested, calls).await,
            Variant::AttachedNested => call(&self.attached_nested, calls).await,
            Variant::BareAsBytes => call(&self.bare_as_bytes, calls).await,
            Variant::AloneAsBytes => call(&self.alone_as_bytes, calls).await,
            Variant::AttachedAsBytes => call(&self.attached_as_bytes, calls).await,
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
    let mut verdicts = match nanoseconds() {
        Ok(verdicts) => verdicts,
        Err(error) => {
            eprintln!("calls: {error}");
            return false;
        }
    };
    verdicts.extend(allocations(&Stage::set()));
    let passed = report(&verdicts, json);
    instructions::run(json) && passed
}

/// What one process found, of all variants that are timed, in their order.
#[derive(Serialize, Deserialize)]
struct Found {
    nanos: Vec<f64>,
    added: Vec<f64>,
}

/// Measures in this process, and prints that for another one.
pub fn once() -> io::Result<()> {
    // Where a session has a connection over bytes tarpc's timers cost it less than without it: so
    // calls in memory are in a runtime where there is none.
    let in_memory = Stage::set();
    let as_bytes = Stage::set();
    println!("{}", serde_json::to_string(&windows(&in_memory, &as_bytes))?);
    Ok(())
}

/// Where calls are made.
struct Stage {
    runtime: Runtime,
    clients: Clients,
}

impl Stage {
    fn set() -> Self {
        let runtime = one_thread();
        let clients = runtime.block_on(Clients::connected());
        Self { runtime, clients }
    }

    fn nanos_per_call(&self, variant: Variant) -> f64 {
        self.runtime.block_on(self.clients.nanos_per_call(variant))
    }
}

fn windows(in_memory: &Stage, as_bytes: &Stage) -> Found {
    let mut windows: Vec<Vec<f64>> = Vec::new();
    for window in 0..=WINDOWS {
        let mut order: Vec<Variant> = Variant::timed().collect();
        if window % 2 == 1 {
            order.reverse();
        }
        let mut nanos = vec![0.0; order.len()];
        for variant in order {
            let stage = if variant.is_as_bytes() { as_bytes } else { in_memory };
            nanos[variant.place()] = stage.nanos_per_call(variant);
        }
        windows.push(nanos);
    }
    // In the first one everything is new.
    let middle = |of: &dyn Fn(&Vec<f64>) -> f64| median(windows[1..].iter().map(of));
    let nanos = |variant: Variant| middle(&|nanos| nanos[variant.place()]);
    let added =
        |variant: Variant| middle(&|nanos| nanos[variant.place()] - nanos[variant.base().place()]);
    Found {
        nanos: Variant::timed().map(nanos).collect(),
        added: Variant::timed().map(added).collect(),
    }
}

fn found() -> io::Result<Found> {
    let output = again(["calls-once"])?.stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(serde_json::from_slice(&output.stdout)?),
        false => Err(io::Error::other(format!("a process that measures ended: {}", output.status))),
    }
}

fn nanoseconds() -> io::Result<Vec<Verdict>> {
    let all = (0..PROCESSES).map(|_| found()).collect::<io::Result<Vec<Found>>>()?;
    let bare = |variant: Variant| median(all.iter().map(|found| found.nanos[variant.place()]));
    let added = |variant: Variant| Spread::of(all.iter().map(|found| found.added[variant.place()]));
    let chance = added(Variant::Again).doubt();
    let shown = |what: &str, variant| {
        known(format!("{what}, nanoseconds added"), added(variant).median).give_or_take(chance)
    };
    let goal = |what: &str, variant, max| {
        at_most(format!("{what}, nanoseconds added"), added(variant).median, max)
            .give_or_take(chance)
    };
    Ok(vec![
        known("bare tarpc, nanoseconds per call", bare(Variant::Bare)),
        known("bare tarpc in a task, nanoseconds per call", bare(Variant::BareInTask)),
        shown("bare tarpc again (null)", Variant::Again),
        goal("without a session", Variant::Alone, ALONE_NANOS_MAX),
        goal("attached and idle", Variant::Attached, ATTACHED_NANOS_MAX),
        goal(BY_CONTROL, Variant::ByControl, ATTACHED_NANOS_MAX),
        known("bare tarpc, one call in another, nanoseconds for both", bare(Variant::BareNested)),
        shown(NESTED, Variant::AttachedNested),
        known("bare tarpc as bytes, nanoseconds per call", bare(Variant::BareAsBytes)),
        shown("without a session, as bytes", Variant::AloneAsBytes),
        shown("attached and idle, as bytes", Variant::AttachedAsBytes),
    ])
}

/// On this thread, which is where calls are: a satellite's own has nothing to do.
fn allocations(Stage { runtime, clients }: &Stage) -> Vec<Verdict> {
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
        goal(NESTED, Variant::AttachedNested),
    ]
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}
