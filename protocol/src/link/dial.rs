//! Reaching a session.

use std::fs;
use std::io;
use std::path::Path;

use thiserror::Error;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;

use super::address::{Address, InvalidAddress, check_length};
use super::connection::{Connection, Side};
use super::directory::{self, DirectoryError, directory_of, our_uid};
use super::handshake::{self, DEADLINE, HandshakeError, VERSION};
use super::keys::Keys;
use super::refusal::{Refusal, check_peer, check_tcp};
use super::stream::Stream;
use super::{ClientTls, Role};

/// Connects to the session at an address. A session over TCP always has a
/// secret; where there is one, both ends must prove it. The keys can be a secret alone,
/// or none.
pub async fn dial(
    address: &Address,
    keys: impl Into<Keys>,
    role: Role,
) -> Result<Connection, DialError> {
    let Keys { secret, tls } = keys.into();
    match address {
        Address::Unix(path) => {
            check_length(path)?;
            check_socket(path).map_err(|error| match error {
                DirectoryError::Missing(_) => DialError::NoSession(address.clone()),
                other => DialError::NotAllowed(other.into()),
            })?;
        }
        Address::Tcp(_) | Address::Host(..) => {
            check_tcp(address, secret.is_some(), tls.is_some())?;
        }
    }
    let talk = async {
        let mut stream = connect(address, tls).await?;
        handshake::dial(&mut stream, secret.as_ref(), role, VERSION).await?;
        Ok(Connection::new(stream, role, Side::Dialler))
    };
    handshake::in_time(talk).await.map_err(|error| DialError::at(address, error))
}

/// A connection to whoever listens there, who may still be anybody.
async fn connect(address: &Address, tls: Option<ClientTls>) -> Result<Stream, HandshakeError> {
    let (stream, name) = match address {
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).await?;
            check_peer(&stream, our_uid())?;
            return Ok(Stream::Unix(stream));
        }
        Address::Tcp(to) => (TcpStream::connect(to).await?, ServerName::IpAddress(to.ip().into())),
        Address::Host(name, port) => {
            let stream = TcpStream::connect((name.as_str(), *port)).await?;
            let name = ServerName::try_from(name.clone());
            (stream, name.map_err(|error| HandshakeError::Io(io::Error::other(error)))?)
        }
    };
    stream.set_nodelay(true)?;
    match tls {
        Some(tls) => tls.connect(name, stream).await,
        None => Ok(Stream::Tcp(stream)),
    }
}

/// Whether something accepts connections at an address; it need not be ddbx.
pub async fn is_alive(address: &Address) -> bool {
    match address {
        Address::Unix(path) => accepts(path).await.unwrap_or(false),
        Address::Tcp(to) => {
            matches!(timeout(DEADLINE, TcpStream::connect(to)).await, Ok(Ok(_)))
        }
        Address::Host(name, port) => {
            let connect = TcpStream::connect((name.as_str(), *port));
            matches!(timeout(DEADLINE, connect).await, Ok(Ok(_)))
        }
    }
}

/// Whether somebody accepts connections at a socket.
pub(super) async fn accepts(socket: &Path) -> io::Result<bool> {
    match UnixStream::connect(socket).await {
        Ok(_) => Ok(true),
        // Too many wait to be accepted, but there is somebody to accept them.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) if is_nobody(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Makes sure that nobody else can have put a socket there.
fn check_socket(socket: &Path) -> Result<(), DirectoryError> {
    directory::check(directory_of(socket), our_uid())?;
    match fs::symlink_metadata(socket) {
        Ok(found) if found.is_symlink() => Err(DirectoryError::Symlink(socket.to_owned())),
        _ => Ok(()),
    }
}

/// Why there is no connection to a session.
#[derive(Debug, Error)]
pub enum DialError {
    /// Nobody listens there.
    #[error("no session runs at {0}: start one, or look at what DDBX_SESSION says")]
    NoSession(Address),
    /// The session speaks another version.
    #[error("{}", HandshakeError::Version { ours: *.ours, theirs: *.theirs })]
    Version {
        /// What we speak.
        ours: u16,
        /// What the session speaks.
        theirs: u16,
    },
    /// The two do not trust each other.
    #[error(transparent)]
    NotAllowed(#[from] Refusal),
    /// Nobody can listen there.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// Something else went wrong.
    #[error("the session at {address} cannot be reached: {source}")]
    Failed {
        /// Where.
        address: Address,
        /// What.
        source: HandshakeError,
    },
}

impl DialError {
    fn at(address: &Address, error: HandshakeError) -> Self {
        match error {
            HandshakeError::Version { ours, theirs } => Self::Version { ours, theirs },
            HandshakeError::NotAllowed(refusal) => Self::NotAllowed(refusal),
            HandshakeError::Io(error) if is_nobody(&error) => Self::NoSession(address.clone()),
            source => Self::Failed { address: address.clone(), source },
        }
    }
}
