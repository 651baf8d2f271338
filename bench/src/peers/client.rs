//! The client's side: windows full of calls, as it is told on standard input.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tarpc::client::Channel;
use tarpc::client::stub::Stub;
use tarpc::context;
use tarpc::transport::channel::unbounded;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::runtimes::Runtimes;
use super::server::{Server, execute};
use super::tally::Tally;
use super::transport::at_once;
use super::{
    Door, Flavor, Lane, Measured, Method, Peer as _, PeerClient, PeerRequest, PeerResponse,
    Transport, Window,
};
use crate::usage;

/// The length of what is put.
const TEXT: usize = 256;

/// A client, of whatever it is made.
pub trait Calls {
    /// Tasks of their own call, as many as the window says, until the tally is over.
    fn start(&self, window: &Window, tally: &Arc<Tally>) -> Vec<JoinHandle<()>>;
}

/// How a client with this stub calls. (A macro, because only for a concrete one it is known
/// that its calls can go to another thread.)
macro_rules! calls_with {
    ($stub:ty) => {
        impl crate::peers::client::Calls for crate::peers::PeerClient<$stub> {
            fn start(
                &self,
                window: &crate::peers::Window,
                tally: &std::sync::Arc<crate::peers::tally::Tally>,
            ) -> Vec<tokio::task::JoinHandle<()>> {
                let one = |_| {
                    let (client, method, tally) = (self.clone(), window.method, tally.clone());
                    tokio::spawn(async move {
                        crate::peers::client::call(&client, method, &tally).await;
                    })
                };
                (0..window.outstanding).map(one).collect()
            }
        }
    };
}
pub(crate) use calls_with;

calls_with!(Channel<PeerRequest, PeerResponse>);

/// Calls until the tally is over, one call after the other.
pub async fn call<S>(client: &PeerClient<S>, method: Method, tally: &Tally)
where
    S: Stub<Req = PeerRequest, Resp = PeerResponse>,
{
    let text = "x".repeat(TEXT);
    let mut number = 0;
    let mut start = Instant::now();
    while !tally.is_over() {
        let (sent, answer) = match method {
            Method::Echo => (number, client.echo(context::current(), number).await),
            Method::Put => (TEXT as u64, client.put(context::current(), text.clone()).await),
        };
        assert_eq!(answer.expect("an answer"), sent);
        number += 1;
        let end = Instant::now();
        tally.count((end - start).as_nanos() as u64);
        start = end;
    }
}

/// A window in the midst of calls.
async fn measure(calls: &dyn Calls, window: &Window, processes: &[u32]) -> io::Result<Measured> {
    let tally = Arc::new(Tally::new()?);
    let tasks = calls.start(window, &tally);
    sleep(Duration::from_millis(window.lead_ms)).await;
    let (used, began) = (cpu(processes)?, Instant::now());
    tally.begin();
    sleep(Duration::from_millis(window.length_ms)).await;
    let (nanos, used) = (began.elapsed().as_nanos() as u64, cpu(processes)? - used);
    let latencies = tally.end();
    for ended in join_all(tasks).await {
        ended.map_err(io::Error::other)?;
    }
    Ok(Measured {
        calls: latencies.len(),
        nanos,
        cpu_nanos: used.as_nanos() as u64,
        p50_nanos: latencies.value_at_quantile(0.5),
        p99_nanos: latencies.value_at_quantile(0.99),
    })
}

/// All that can be measured.
#[derive(Default)]
pub struct Lanes(BTreeMap<(Flavor, Transport, Lane), Box<dyn Calls>>);

/// A channel over a socket.
macro_rules! channel {
    ($stream:expr) => {
        tarpc::client::new(
            tarpc::client::Config::default(),
            crate::peers::transport::framed($stream),
        )
        .spawn()
    };
}
pub(crate) use channel;

impl Lanes {
    pub fn insert(
        &mut self,
        (flavor, transport, lane): (Flavor, Transport, Lane),
        client: impl Calls + 'static,
    ) {
        self.0.insert((flavor, transport, lane), Box::new(client));
    }

    /// Over all transports, with tarpc alone, in the runtime of this flavor.
    pub async fn connect_bare(&mut self, flavor: Flavor, doors: &[Door]) -> io::Result<()> {
        for lane in [Lane::Bare, Lane::Again] {
            let (tcp, unix) = streams(door(doors, flavor, lane)?).await?;
            let mut insert = |transport, channel| {
                self.insert((flavor, transport, lane), PeerClient::from(channel));
            };
            insert(Transport::Tcp, channel!(tcp));
            insert(Transport::Unix, channel!(unix));
            insert(Transport::Memory, in_memory());
        }
        Ok(())
    }

    /// Does what it is told until standard input ends. The processor time of these
    /// processes counts as well.
    pub fn obey(&self, runtimes: &Runtimes, processes: &[u32]) -> io::Result<()> {
        println!("ready");
        for line in io::stdin().lines() {
            let window: Window = serde_json::from_str(&line?)?;
            let calls = self.0.get(&(window.flavor, window.transport, window.lane));
            let calls = calls.ok_or_else(|| io::Error::other(format!("no such: {window:?}")))?;
            let measured = measure(&**calls, &window, processes);
            let measured = runtimes.of(window.flavor).block_on(measured)?;
            println!("{}", serde_json::to_string(&measured)?);
        }
        Ok(())
    }
}

/// Where a server is entered.
pub fn door(doors: &[Door], flavor: Flavor, lane: Lane) -> io::Result<&Door> {
    let door = doors.iter().find(|door| door.flavor == flavor && door.lane == lane);
    door.ok_or_else(|| io::Error::other(format!("the server does not serve {lane:?}")))
}

/// To a server in this same runtime.
pub fn in_memory() -> Channel<PeerRequest, PeerResponse> {
    let (near, far) = unbounded();
    execute!(far, Server.serve());
    tarpc::client::new(Default::default(), near).spawn()
}

/// To a server elsewhere.
pub async fn streams(door: &Door) -> io::Result<(TcpStream, UnixStream)> {
    let tcp = at_once(TcpStream::connect(door.tcp).await?)?;
    Ok((tcp, UnixStream::connect(&door.unix).await?))
}

/// What the others have used is known exactly: they are on this same core, so none of
/// them is running now.
fn cpu(others: &[u32]) -> io::Result<Duration> {
    let used: Duration = others.iter().map(|pid| usage::cpu(*pid)).sum::<io::Result<_>>()?;
    Ok(used + usage::own_cpu())
}
