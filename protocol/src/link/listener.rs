//! Where a session is reached.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpListener, UnixListener};
use tokio::time::sleep;

use super::Role;
use super::address::{Address, InvalidAddress, check_length};
use super::connection::{Connection, Side};
use super::dial::accepts;
use super::directory::{self, DirectoryError, directory_of, our_uid, session_directory};
use super::handshake::{self, HandshakeError, VERSION};
use super::keys::Locks;
use super::refusal::{Refusal, check_peer, check_tcp};
use super::stream::Stream;

/// Where central listens. A socket file is removed when this is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    locks: Arc<Locks>,
}

#[derive(Debug)]
enum Socket {
    Unix {
        /// Dropped first: while the listener lives, its file's number is given to
        /// no other file.
        _file: SocketFile,
        listener: UnixListener,
    },
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at an address that nobody else listens at. What a session that
    /// crashed has left behind is replaced. The locks can be a secret alone, or none.
    pub async fn bind(address: &Address, locks: impl Into<Locks>) -> Result<Self, BindError> {
        let locks = locks.into();
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => BindError::Running(address.clone()),
            _ => BindError::Io { address: address.clone(), source },
        };
        let (socket, address) = match address {
            Address::Unix(path) => {
                check_length(path)?;
                let directory = directory_of(path);
                if directory == session_directory() {
                    directory::create(directory)?;
                }
                directory::check(directory, our_uid())?;
                let _alone = lock(directory).await.map_err(failed)?;
                make_room(path, address).await?;
                let listener = UnixListener::bind(path).map_err(failed)?;
                let file = SocketFile::of(path).map_err(failed)?;
                fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
                (Socket::Unix { _file: file, listener }, address.clone())
            }
            Address::Host(name, _) => return Err(BindError::Named(name.clone())),
            Address::Tcp(at) => {
                check_tcp(address, locks.secret.is_some(), locks.tls.is_some())
                    .map_err(BindError::NotAllowed)?;
                let listener = TcpListener::bind(at).await.map_err(failed)?;
                let at = listener.local_addr().map_err(failed)?;
                (Socket::Tcp(listener), Address::Tcp(at))
            }
        };
        Ok(Self { socket, address, locks: Arc::new(locks) })
    }

    /// Where others reach it: with the real port where any was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The next that dials. Cancel-safe. An error is about one connection, or about
    /// too many of them: it is worth trying again, after a moment.
    pub async fn accept(&self) -> io::Result<Incoming> {
        let stream = match &self.socket {
            Socket::Unix { listener, .. } => Stream::Unix(listener.accept().await?.0),
            Socket::Tcp(listener) => Stream::Tcp(listener.accept().await?.0),
        };
        Ok(Incoming { stream, locks: self.locks.clone() })
    }
}

/// Somebody who has dialled and is not known yet.
#[derive(Debug)]
pub struct Incoming {
    stream: Stream,
    locks: Arc<Locks>,
}

impl Incoming {
    /// Finds out who it is. Takes as long as the other end lets it, up to
    /// [`DEADLINE`](super::DEADLINE): for a task of its own.
    pub async fn handshake(self) -> Result<(Role, Connection), HandshakeError> {
        let Self { stream, locks } = self;
        handshake::in_time(async {
            let mut stream = secured(stream, &locks).await?;
            let role = handshake::answer(&mut stream, locks.secret.as_ref(), VERSION).await?;
            Ok((role, Connection::new(stream, role, Side::Listener)))
        })
        .await
    }
}

/// What has to be sure before a word of ours is said.
async fn secured(stream: Stream, locks: &Locks) -> Result<Stream, HandshakeError> {
    match (stream, &locks.tls) {
        (Stream::Unix(stream), _) => {
            check_peer(&stream, our_uid())?;
            Ok(Stream::Unix(stream))
        }
        (Stream::Tcp(stream), tls) => {
            stream.set_nodelay(true)?;
            match tls {
                Some(tls) => tls.accept(stream).await,
                None => Ok(Stream::Tcp(stream)),
            }
        }
        (stream @ Stream::Tls(_), _) => Ok(stream),
    }
}

/// Two sessions that start at once could both find a dead socket, and the slower
/// one would then remove the living socket of the faster. So the directory is
/// locked from the look to the new socket.
async fn lock(directory: &Path) -> io::Result<File> {
    const RETRY: Duration = Duration::from_millis(5);
    let lock = File::open(directory)?;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => sleep(RETRY).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Removes a socket that nobody accepts connections at; everything else stays.
async fn make_room(path: &Path, address: &Address) -> Result<(), BindError> {
    let failed = |source| BindError::Io { address: address.clone(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => Err(BindError::NotASocket(path.to_owned())),
        Ok(_) if accepts(path).await.map_err(failed)? => Err(BindError::Running(address.clone())),
        Ok(_) => fs::remove_file(path).map_err(failed),
    }
}

/// The file of our socket.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    id: (u64, u64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), id: file_id(path)? })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Only if it is still ours: somebody may have removed it, and somebody else
        // may listen there by now.
        if file_id(&self.path).is_ok_and(|id| id == self.id) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What tells a file from every other one that exists.
fn file_id(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Why a session cannot listen.
#[derive(Debug, Error)]
pub enum BindError {
    /// A session runs there already.
    #[error("{}: end it first, or choose another name", runs_already(.0))]
    Running(Address),
    /// Something that is no socket is in the way. It is left alone.
    #[error("{0} is there already and is no socket: move it away, or choose another name")]
    NotASocket(PathBuf),
    /// The directory is not ours alone.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Nobody can listen there.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// A name instead of an address.
    #[error(
        "a session listens at an IP address, and {0} is a name: use tcp:0.0.0.0:PORT for all \
         addresses of this machine, or one of them"
    )]
    Named(String),
    /// TCP without a secret, or on a network without TLS.
    #[error(transparent)]
    NotAllowed(Refusal),
    /// The system refuses.
    #[error("no session can listen at {address}: {source}")]
    Io {
        /// Where.
        address: Address,
        /// Why.
        source: io::Error,
    },
}

fn runs_already(address: &Address) -> String {
    match address.session_name() {
        Some(name) => format!("session {name} runs already"),
        None => format!("something listens at {address} already"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_runs_is_called_by_its_name() {
        let named = Address::Unix(session_directory().join("shop.sock"));
        let text = BindError::Running(named).to_string();
        assert!(text.starts_with("session shop runs already"), "{text}");
    }
}
