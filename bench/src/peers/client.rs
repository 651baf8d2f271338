//! The client's side: windows full of calls, as it is told on standard input.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::join_all;
use hdrhistogram::Histogram;
use tarpc::client::Channel;
use tarpc::client::stub::Stub;
use tarpc::context;
use tarpc::transport::channel::unbounded;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::server::{Server, execute};
use super::transport::at_once;
use super::{
    Door, Lane, Measured, Method, Peer as _, PeerClient, PeerRequest, PeerResponse, Transport,
    Window,
};
use crate::usage;

/// The length of what is put.
const TEXT: usize = 256;

/// The greatest latency that is told from greater ones, in nanoseconds.
const LATENCY_MAX: u64 = 60_000_000_000;

/// The latencies of calls, in nanoseconds.
pub type Latencies = Arc<Mutex<Histogram<u64>>>;

/// A client, of whatever it is made.
pub trait Calls {
    /// So many tasks call until then.
    fn start(&self, window: &Window, until: Instant, latencies: &Latencies) -> Vec<JoinHandle<()>>;
}

/// How a client with this stub calls. (A macro, because only for a concrete one it is known
/// that its calls can go to another thread.)
macro_rules! calls_with {
    ($stub:ty) => {
        impl crate::peers::client::Calls for crate::peers::PeerClient<$stub> {
            fn start(
                &self,
                window: &crate::peers::Window,
                until: std::time::Instant,
                latencies: &crate::peers::client::Latencies,
            ) -> Vec<tokio::task::JoinHandle<()>> {
                let one = |_| {
                    let (client, latencies) = (self.clone(), latencies.clone());
                    let method = window.method;
                    tokio::spawn(async move {
                        crate::peers::client::call(&client, method, until, &latencies).await;
                    })
                };
                (0..window.outstanding).map(one).collect()
            }
        }
    };
}
pub(crate) use calls_with;

calls_with!(Channel<PeerRequest, PeerResponse>);

/// Calls until then, one call after the other.
pub async fn call<S>(
    client: &PeerClient<S>,
    method: Method,
    until: Instant,
    latencies: &Mutex<Histogram<u64>>,
) where
    S: Stub<Req = PeerRequest, Resp = PeerResponse>,
{
    let text = "x".repeat(TEXT);
    let mut number = 0;
    let mut start = Instant::now();
    while start < until {
        let (sent, answer) = match method {
            Method::Echo => (number, client.echo(context::current(), number).await),
            Method::Put => (TEXT as u64, client.put(context::current(), text.clone()).await),
        };
        assert_eq!(answer.expect("an answer"), sent);
        number += 1;
        let end = Instant::now();
        let nanos = (end - start).as_nanos() as u64;
        latencies.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(nanos);
        start = end;
    }
}

async fn all_calls(calls: &dyn Calls, window: &Window, millis: u64) -> io::Result<Latencies> {
    let latencies = Histogram::new_with_bounds(1, LATENCY_MAX, 3).map_err(io::Error::other)?;
    let latencies = Arc::new(Mutex::new(latencies));
    let until = Instant::now() + Duration::from_millis(millis);
    for ended in join_all(calls.start(window, until, &latencies)).await {
        ended.map_err(io::Error::other)?;
    }
    Ok(latencies)
}

/// All that can be measured.
#[derive(Default)]
pub struct Lanes(BTreeMap<(Transport, Lane), Box<dyn Calls>>);

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
    pub fn insert(&mut self, transport: Transport, lane: Lane, client: impl Calls + 'static) {
        self.0.insert((transport, lane), Box::new(client));
    }

    /// Over all transports, with tarpc alone.
    pub async fn connect_bare(&mut self, doors: &[Door]) -> io::Result<()> {
        for door in doors.iter().filter(|door| matches!(door.lane, Lane::Bare | Lane::Again)) {
            let (tcp, unix) = streams(door).await?;
            self.insert(Transport::Tcp, door.lane, PeerClient::from(channel!(tcp)));
            self.insert(Transport::Unix, door.lane, PeerClient::from(channel!(unix)));
            self.insert(Transport::Memory, door.lane, PeerClient::from(in_memory()));
        }
        Ok(())
    }

    /// Does what it is told until standard input ends. The processor time of these
    /// processes counts as well.
    pub fn obey(&self, runtime: &Runtime, processes: &[u32]) -> io::Result<()> {
        println!("ready");
        for line in io::stdin().lines() {
            let window: Window = serde_json::from_str(&line?)?;
            let calls = self.0.get(&(window.transport, window.lane));
            let calls = calls.ok_or_else(|| io::Error::other(format!("no such: {window:?}")))?;
            runtime.block_on(all_calls(&**calls, &window, window.lead_ms))?;
            let (used, began) = (cpu(processes)?, Instant::now());
            let latencies = runtime.block_on(all_calls(&**calls, &window, window.length_ms))?;
            let (nanos, used) = (began.elapsed().as_nanos() as u64, cpu(processes)? - used);
            let latencies = latencies.lock().unwrap_or_else(PoisonError::into_inner);
            let measured = Measured {
                calls: latencies.len(),
                nanos,
                cpu_nanos: used.as_nanos() as u64,
                p50_nanos: latencies.value_at_quantile(0.5),
                p99_nanos: latencies.value_at_quantile(0.99),
            };
            println!("{}", serde_json::to_string(&measured)?);
        }
        Ok(())
    }
}

/// To a server on this same thread.
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
