//! Sockets as tarpc likes them.

use std::io;
use std::path::Path;

use serde::{Serialize, de::DeserializeOwned};
use tarpc::serde_transport;
use tarpc::tokio_serde::formats::Bincode;
use tarpc::tokio_util::codec::LengthDelimitedCodec;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};

use super::{Door, Flavor, Lane};

/// Messages over a socket.
pub type Framed<S, In, Out> = serde_transport::Transport<S, In, Out, Bincode<In, Out>>;

pub fn framed<S, In, Out>(stream: S) -> Framed<S, In, Out>
where
    S: AsyncRead + AsyncWrite,
    In: DeserializeOwned,
    Out: Serialize,
{
    serde_transport::new(LengthDelimitedCodec::builder().new_framed(stream), Bincode::default())
}

/// tarpc never says that messages are not to wait for more: without that, bursts can
/// stand still for 40 ms.
pub fn at_once(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Where a lane is served.
pub struct Entrance {
    pub tcp: TcpListener,
    pub unix: UnixListener,
}

impl Entrance {
    /// At a port that the system chooses, and in this directory.
    pub async fn open(flavor: Flavor, lane: Lane, directory: &Path) -> io::Result<(Self, Door)> {
        let tcp = TcpListener::bind("127.0.0.1:0").await?;
        let path = directory.join(format!("{lane:?}-{flavor:?}.sock"));
        let unix = UnixListener::bind(&path)?;
        let door = Door { flavor, lane, tcp: tcp.local_addr()?, unix: path };
        Ok((Self { tcp, unix }, door))
    }
}
