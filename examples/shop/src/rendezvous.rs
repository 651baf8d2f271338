//! How the processes of the shop find each other: whoever listens writes its address
//! to `NAME.addr`, in a directory that all of them know, and keeps that file locked. So
//! an address that somebody left behind is known for what it is: another service may
//! listen there by now.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ddbx::Process;
use futures::{Stream, StreamExt as _};
use serde::{Serialize, de::DeserializeOwned};
use tarpc::client::{self, Channel, NewClient};
use tarpc::serde_transport::Transport;
use tarpc::server::BaseChannel;
use tarpc::tokio_serde::formats::Bincode;
use tarpc::{ClientMessage, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::{Error, Options};

/// How long to wait for a service that is not there yet, and how often to look.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

type Tcp<In, Out> = Transport<TcpStream, In, Out, Bincode<In, Out>>;
type ServerChannel<Req, Resp> = BaseChannel<Req, Resp, Tcp<ClientMessage<Req>, Response<Resp>>>;

/// A process and the directory where it meets the others.
pub struct Rendezvous {
    dir: PathBuf,
    process: Process,
}

impl Rendezvous {
    pub fn new(options: &Options, process: Process) -> Self {
        Self { dir: options.dir.clone(), process }
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Connects to a service, now or as soon as it is there. `wrap` makes a client of
    /// the channel, and again of every later one: a lost connection is replaced.
    pub async fn connect<Req, Resp, C>(
        &self,
        service: &'static str,
        wrap: fn(&Process, Channel<Req, Resp>) -> C,
    ) -> Result<Peer<C>, Error>
    where
        Req: Serialize + Send + 'static,
        Resp: DeserializeOwned + Send + 'static,
        C: Clone + 'static,
    {
        let process = self.process.clone();
        let dial = move |stream| {
            let transport = transport(stream);
            let NewClient { client, dispatch } = client::new(client::Config::default(), transport);
            let dispatch = tokio::spawn(async move { drop(dispatch.await) });
            Line { client: wrap(&process, client), dispatch }
        };
        let path = address_file(&self.dir, service);
        let peer =
            Peer(Arc::new(Inner { service, path, dial: Box::new(dial), line: Mutex::default() }));
        peer.client().await?;
        Ok(peer)
    }

    /// Serves whoever connects, and says so when they can. `execute` turns a connection
    /// into its calls.
    pub async fn serve<Req, Resp, Calls>(
        &self,
        service: &'static str,
        execute: impl Fn(&Process, ServerChannel<Req, Resp>) -> Calls,
    ) -> Result<(), Error>
    where
        Req: DeserializeOwned + Send + 'static,
        Resp: Serialize + Send + 'static,
        Calls: Stream<Item: Future<Output = ()> + Send + 'static> + Send + 'static,
    {
        let failed = |source| Error::Listen { service, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let path = address_file(&self.dir, service);
        let _published = publish(&path, listener.local_addr().map_err(failed)?)
            .map_err(|source| Error::Publish { path, source })?;
        // A reader who has gone away is no reason to fail.
        let _ = writeln!(io::stdout(), "{service} is open");
        loop {
            let (stream, _) = listener.accept().await.map_err(failed)?;
            let channel = BaseChannel::with_defaults(transport(stream));
            let calls = execute(&self.process, channel);
            tokio::spawn(calls.for_each(async |call| drop(tokio::spawn(call))));
        }
    }
}

/// A service as its callers see it.
pub struct Peer<C>(Arc<Inner<C>>);

struct Inner<C> {
    service: &'static str,
    path: PathBuf,
    dial: Box<dyn Fn(TcpStream) -> Line<C> + Send + Sync>,
    line: Mutex<Option<Line<C>>>,
}

/// A connection. Its dispatch ends when it is lost.
struct Line<C> {
    client: C,
    dispatch: JoinHandle<()>,
}

impl<C: Clone> Peer<C> {
    /// The client, with a new connection if the last one is lost.
    pub async fn client(&self) -> Result<C, Error> {
        if let Some(client) = self.connected() {
            return Ok(client);
        }
        let line = (self.0.dial)(self.0.find().await?);
        let client = line.client.clone();
        *self.0.line.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
        Ok(client)
    }

    fn connected(&self) -> Option<C> {
        let line = self.0.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.as_ref().filter(|line| !line.dispatch.is_finished()).map(|line| line.client.clone())
    }
}

impl<C> Inner<C> {
    /// The address may be missing, or that of a process that is gone: look again. Nothing
    /// of that is an event: how often it happens is luck.
    async fn find(&self) -> Result<TcpStream, Error> {
        let found = async {
            loop {
                if let Ok(address) = published(&self.path)
                    && let Ok(stream) = TcpStream::connect(address).await
                {
                    return stream;
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        let missing = |_| Error::NotFound { service: self.service, path: self.path.clone() };
        timeout(PATIENCE, found).await.map_err(missing)
    }
}

impl<C> Clone for Peer<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

fn transport<In, Out>(stream: TcpStream) -> Tcp<In, Out>
where
    In: DeserializeOwned,
    Out: Serialize,
{
    // Small messages must not wait for each other. If it fails they do.
    let _ = stream.set_nodelay(true);
    Transport::from((stream, Bincode::default()))
}

fn address_file(dir: &Path, service: &str) -> PathBuf {
    dir.join(format!("{service}.addr"))
}

/// Written beside and moved into place: nobody reads half an address. It holds as long
/// as the file is open.
fn publish(path: &Path, address: SocketAddr) -> io::Result<File> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let mut file = File::create(&draft)?;
    file.lock()?;
    file.write_all(address.to_string().as_bytes())?;
    fs::rename(&draft, path)?;
    Ok(file)
}

/// The address in a file, if whoever wrote it is still there.
fn published(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut address = String::new();
            file.read_to_string(&mut address)?;
            Ok(address)
        }
        Err(TryLockError::Error(error)) => Err(error),
        Ok(()) => Err(io::ErrorKind::NotConnected.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_holds_as_long_as_somebody_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = address_file(folder.path(), "inventory");
        assert!(published(&path).is_err());
        let address: SocketAddr = "127.0.0.1:4711".parse().unwrap();
        let first = publish(&path, address).unwrap();
        assert_eq!(published(&path).unwrap(), address.to_string());
        assert_eq!(published(&path).unwrap(), address.to_string());
        drop(first);
        assert!(published(&path).is_err() && path.exists());
        let _second = publish(&path, address).unwrap();
        assert!(published(&path).is_ok());
    }
}
