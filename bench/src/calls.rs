//! What a wrapped call costs beside a plain one: in memory, on one thread.
//!
//! Windows of all variants alternate, forth and back, so that a machine that gets
//! slower meanwhile is slower for all; a second bare one shows what chance does.

use std::time::Instant;

use ddbx::Process;
use futures::StreamExt as _;
use tarpc::client::stub::Stub;
use tarpc::context::Context;
use tarpc::server::{BaseChannel, Channel as _};
use tarpc::{client, context};

use crate::verdict::{at_most, report};

const WINDOWS: usize = 60;
const CALLS: u32 = 1_000;

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

/// A channel to a service. (A macro, because only for a concrete one it is known that
/// its calls can go to another thread.)
macro_rules! connect {
    ($service:expr) => {{
        let (near, far) = tarpc::transport::channel::unbounded();
        let calls = BaseChannel::with_defaults(far).execute($service);
        tokio::spawn(calls.for_each(|call| async {
            tokio::spawn(call);
        }));
        client::new(client::Config::default(), near).spawn()
    }};
}

/// Prints what is added to a call; true if the goals are met.
pub fn run(json: bool) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let [bare, again, alone, attached] = runtime.expect("a runtime").block_on(measure());
    let verdicts = [
        at_most("bare tarpc, nanoseconds per call", bare, f64::INFINITY),
        at_most("bare tarpc again, added", again - bare, f64::INFINITY),
        at_most("wrapped, without a session, added", alone - bare, 100.0),
        at_most("in a session, nobody held, added", attached - bare, 500.0),
    ];
    report(&verdicts, json)
}

async fn measure() -> [f64; 4] {
    let session = ddbx::test::session().await;
    let process = Process::without_session("alone");
    let bare = EchoClient::from(connect!(Server.serve()));
    let again = EchoClient::from(connect!(Server.serve()));
    let alone = EchoClient::from(process.client(connect!(process.serve(Server.serve()))));
    let (caller, callee) = (session.process("caller"), session.process("callee"));
    let attached = EchoClient::from(caller.client(connect!(callee.serve(Server.serve()))));
    let mut samples: [Vec<f64>; 4] = Default::default();
    for window in 0..WINDOWS {
        let mut order = [0, 1, 2, 3];
        if window % 2 == 1 {
            order.reverse();
        }
        for variant in order {
            let nanos = match variant {
                0 => nanos_per_call(&bare).await,
                1 => nanos_per_call(&again).await,
                2 => nanos_per_call(&alone).await,
                _ => nanos_per_call(&attached).await,
            };
            samples[variant].push(nanos);
        }
    }
    samples.map(|mut samples| {
        samples.sort_unstable_by(f64::total_cmp);
        samples[samples.len() / 2]
    })
}

async fn nanos_per_call<S>(client: &EchoClient<S>) -> f64
where
    S: Stub<Req = EchoRequest, Resp = EchoResponse>,
{
    let start = Instant::now();
    for number in 0..CALLS {
        let echoed = client.echo(context::current(), u64::from(number)).await;
        assert_eq!(echoed.expect("an answer"), u64::from(number));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
}
