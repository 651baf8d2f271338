//! The server's side.

use std::io::{self, Read as _};
use std::path::Path;
use std::{process, thread};

use tarpc::context::Context;

use super::runtimes::Runtimes;
use super::transport::Entrance;
use super::{Door, Flavor, Lane, Peer};

/// Does as little as can be.
#[derive(Clone)]
pub struct Server;

impl Peer for Server {
    async fn echo(self, _: Context, number: u64) -> u64 {
        number
    }

    async fn put(self, _: Context, text: String) -> u64 {
        text.len() as u64
    }
}

/// Handles all calls of a transport. (A macro, because only for a concrete service it is
/// known that its calls can go to another thread.)
macro_rules! execute {
    ($transport:expr, $service:expr) => {{
        use futures::StreamExt as _;
        use tarpc::server::Channel as _;
        let channel = tarpc::server::BaseChannel::with_defaults($transport);
        tokio::spawn(channel.execute($service).for_each(|call| async {
            tokio::spawn(call);
        }));
    }};
}
pub(crate) use execute;

/// Serves whoever comes to an entrance.
macro_rules! serve {
    ($entrance:expr, $service:expr) => {{
        let crate::peers::transport::Entrance { tcp, unix } = $entrance;
        let service = $service;
        let over_unix = service.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                if let Ok(stream) = crate::peers::transport::at_once(stream) {
                    let transport = crate::peers::transport::framed(stream);
                    crate::peers::server::execute!(transport, service.clone());
                }
            }
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = unix.accept().await {
                let transport = crate::peers::transport::framed(stream);
                crate::peers::server::execute!(transport, over_unix.clone());
            }
        });
    }};
}
pub(crate) use serve;

/// Opens the plain lanes, in the runtime of this flavor.
pub async fn serve_bare(flavor: Flavor, directory: &Path) -> io::Result<Vec<Door>> {
    let mut doors = Vec::new();
    for lane in [Lane::Bare, Lane::Again] {
        let (entrance, door) = Entrance::open(flavor, lane, directory).await?;
        serve!(entrance, Server.serve());
        doors.push(door);
    }
    Ok(doors)
}

/// Says where the doors are, and stays until standard input ends.
pub fn stay(runtimes: &Runtimes, doors: &[Door]) -> io::Result<()> {
    println!("{}", serde_json::to_string(doors)?);
    thread::spawn(|| {
        until_stdin_ends();
        process::exit(0);
    });
    // The other one has threads of its own.
    runtimes.of(Flavor::CurrentThread).block_on(std::future::pending())
}

/// Whoever started this process has told it to go, or is gone.
pub fn until_stdin_ends() {
    let mut ignored = [0; 64];
    while io::stdin().read(&mut ignored).is_ok_and(|length| length > 0) {}
}
