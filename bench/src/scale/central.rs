//! Central in a process of its own, so that it is known what it uses.

use std::io::{self, BufRead as _, BufReader};
use std::process::Child;
use std::thread;
use std::time::Duration;

use ddbx_protocol::control::{Reply, Request, SessionView};
use ddbx_protocol::link::{Address, Receiver, Role, Sender, dial};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::again::again;
use crate::peers::server::until_stdin_ends;
use crate::session::OpenSession;
use crate::usage;

/// Is central until standard input ends.
pub fn be() -> io::Result<()> {
    // As `ddbx central` has it.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let open = OpenSession::open(&runtime)?;
    println!("{}", open.address);
    let (end, ended) = oneshot::channel();
    thread::spawn(move || {
        until_stdin_ends();
        let _ = end.send(());
    });
    // Nothing is sent if that thread is gone, and then it is over as well.
    let _ = runtime.block_on(ended);
    Ok(())
}

/// A session elsewhere. It ends when this is dropped.
pub struct Central {
    child: Child,
    pub address: Address,
    sender: Sender,
    receiver: Receiver,
}

impl Central {
    /// Starts it.
    pub async fn start() -> io::Result<Self> {
        let mut child = again(["central"])?.spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?)
            .read_line(&mut line)?;
        let address = Address::parse(line.trim()).map_err(io::Error::other)?;
        let connection = dial(&address, None, Role::Controller).await.map_err(io::Error::other)?;
        let (sender, receiver) = connection.split();
        Ok(Self { child, address, sender, receiver })
    }

    /// Asks it something that it does not refuse.
    pub async fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        match self.answer(request).await? {
            Reply::Refused(why) => Err(io::Error::other(why)),
            reply => Ok(reply),
        }
    }

    /// Asks it something, and takes whatever it says.
    pub async fn answer(&mut self, request: &Request) -> io::Result<Reply> {
        self.sender.send(request).await.map_err(io::Error::other)?;
        let reply = self.receiver.receive().await.map_err(io::Error::other)?;
        reply.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Its number in the operating system.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How the session is.
    pub async fn view(&mut self) -> io::Result<SessionView> {
        match self.ask(&Request::Session).await? {
            Reply::Session(view) => Ok(view),
            other => Err(io::Error::other(format!("no answer to what was asked: {other:?}"))),
        }
    }

    /// The processor time that it has used.
    pub fn cpu(&self) -> io::Result<Duration> {
        usage::cpu(self.child.id())
    }

    /// The memory that it uses, in MiB.
    pub fn memory_mib(&self) -> io::Result<f64> {
        Ok(usage::memory(self.child.id())? as f64 / f64::from(1 << 20))
    }
}

impl Drop for Central {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
