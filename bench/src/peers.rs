//! A client and a server, and what they tell whoever started them. The same files are used
//! by `bench/others`, which is why they name their paths and know nothing of ddbx.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[path = "peers/args.rs"]
pub mod args;
#[path = "peers/client.rs"]
pub mod client;
#[path = "peers/pin.rs"]
pub mod pin;
#[path = "peers/runtimes.rs"]
pub mod runtimes;
#[path = "peers/server.rs"]
pub mod server;
#[path = "peers/tally.rs"]
pub mod tally;
#[path = "peers/transport.rs"]
pub mod transport;

/// What the server does for the client.
#[tarpc::service]
pub trait Peer {
    /// Gives a number back.
    async fn echo(number: u64) -> u64;
    /// Takes a text, and says how long it is.
    async fn put(text: String) -> u64;
}

/// How they are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Tcp,
    Unix,
    /// Both in the client's process, on its one thread.
    Memory,
}

/// The runtime that both sides have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flavor {
    /// tokio's default, what `#[tokio::main]` gives. A task that is woken runs next, so a
    /// request is sent as soon as it is there, each by itself.
    MultiThread,
    /// All tasks in turn on one thread: what was said in one turn is sent together, so much of
    /// a call's own cost is shared by those that are outstanding with it.
    CurrentThread,
}

impl Flavor {
    pub const ALL: [Self; 2] = [Self::MultiThread, Self::CurrentThread];
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    Echo,
    /// With 256 bytes.
    Put,
}

/// One of the variants between which a pair of processes can change at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// tarpc alone.
    Bare,
    /// The same once more, over a connection of its own.
    Again,
    /// Both sides wrapped.
    Wrapped,
    /// Both sides wrapped, in processes in which breakpoints can be planted.
    Planted,
}

/// Where a lane of the server is entered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Door {
    pub flavor: Flavor,
    pub lane: Lane,
    pub tcp: SocketAddr,
    pub unix: PathBuf,
}

/// What the client is to do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Window {
    pub flavor: Flavor,
    pub lane: Lane,
    pub transport: Transport,
    pub method: Method,
    /// How many calls at a time.
    pub outstanding: usize,
    /// Before it counts: so long that what others do behind the calls is as usual.
    pub lead_ms: u64,
    pub length_ms: u64,
}

/// What became of that.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Measured {
    pub calls: u64,
    pub nanos: u64,
    /// Of all processes that take part in the calls.
    pub cpu_nanos: u64,
    pub p50_nanos: u64,
    pub p99_nanos: u64,
}
