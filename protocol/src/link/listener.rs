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

use super::address::{Address, InvalidAddress, check_length};
use super::connection::{Connection, Side, Stream};
use super::dial::accepts;
use super::directory::{self, DirectoryError, directory_of, our_uid, session_directory};
use super::handshake::{self, HandshakeError, VERSION};
use super::refusal::{Refusal, check_peer, check_tcp};
use super::{Role, Secret};

/// Where central listens. A socket file is removed when this is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
    secret: Option<Arc<Secret>>,
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
    /// crashed has left behind is replaced.
    pub async fn bind(address: &Address, secret: Option<Secret>) -> Result<Self, BindError> {
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
            Address::Tcp(at) => {
                check_tcp(*at, secret.is_some()).map_err(BindError::NotAllowed)?;
                let listener = TcpListener::bind(at).await.map_err(failed)?;
                let at = listener.local_addr().map_err(failed)?;
                (Socket::Tcp(listener), Address::Tcp(at))
            }
        };
        Ok(Self { socket, address, secret: secret.map(Arc::new) })
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
        Ok(Incoming { stream, secret: self.secret.clone() })
    }
}

/// Somebody who has dialled and is not known yet.
#[derive(Debug)]
pub struct Incoming {
    stream: Stream,
    secret: Option<Arc<Secret>>,
}

impl Incoming {
    /// Finds out who it is. Takes as long as the other end lets it, up to
    /// [`DEADLINE`](super::DEADLINE): for a task of its own.
    pub async fn handshake(mut self) -> Result<(Role, Connection), HandshakeError> {
        let secret = self.secret.as_deref();
        let role = match &mut self.stream {
            Stream::Unix(stream) => {
                check_peer(stream, our_uid())?;
                handshake::answer(stream, secret, VERSION).await?
            }
            Stream::Tcp(stream) => {
                stream.set_nodelay(true)?;
                handshake::answer(stream, secret, VERSION).await?
            }
        };
        Ok((role, Connection::new(self.stream, role, Side::Listener)))
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
    /// TCP without a secret, or on a network.
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
