//! Between satellites and central: passes on what each says, until it is told not to.
//! This is how a single connection breaks while both of its ends live.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::schedule::Directions;

/// Where the version stands in the first bytes that a dialler says.
const VERSION_AT: usize = 5;

/// A relay. All its connections close with it.
pub(super) struct Relay {
    shared: Arc<Shared>,
    accepts: JoinHandle<()>,
}

struct Shared {
    central: PathBuf,
    /// Whether diallers seem to speak another version.
    is_mistaken: Mutex<bool>,
    connections: Mutex<Vec<Connection>>,
}

struct Connection {
    /// Whose.
    pid: Option<i32>,
    passes: watch::Sender<Passes>,
    both: JoinHandle<()>,
}

/// Which directions work.
#[derive(Clone, Copy)]
struct Passes {
    to_central: bool,
    to_satellite: bool,
}

impl Relay {
    /// Listens at one socket and passes on to another.
    pub(super) fn start(at: &Path, central: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(at)?;
        let shared = Arc::new(Shared {
            central: central.to_owned(),
            is_mistaken: Mutex::new(false),
            connections: Mutex::default(),
        });
        let own = shared.clone();
        let accepts = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                own.accept(stream).await;
            }
        });
        Ok(Self { shared, accepts })
    }

    /// Closes the connections of a process, or all.
    pub(super) fn cut(&self, pid: Option<i32>) {
        let of_it = |connection: &Connection| pid.is_none() || connection.pid == pid;
        let mut connections = lock(&self.shared.connections);
        connections.iter().filter(|one| of_it(one)).for_each(|one| one.both.abort());
        connections.retain(|one| !of_it(one));
    }

    /// Nothing comes through the connections that a process has now. Later ones work.
    pub(super) fn fail(&self, pid: i32, directions: Directions) {
        let passes = Passes {
            to_central: directions == Directions::ToSatellite,
            to_satellite: directions == Directions::ToCentral,
        };
        let connections = lock(&self.shared.connections);
        for connection in connections.iter().filter(|connection| connection.pid == Some(pid)) {
            connection.passes.send_replace(passes);
        }
    }

    /// Whether diallers seem to speak another version from now on.
    pub(super) fn mistake_versions(&self, is_mistaken: bool) {
        *lock(&self.shared.is_mistaken) = is_mistaken;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepts.abort();
        self.cut(None);
    }
}

impl Shared {
    /// Who finds nobody behind the relay is told so by its being closed.
    async fn accept(&self, satellite: UnixStream) {
        let pid = satellite.peer_cred().ok().and_then(|peer| peer.pid());
        let Ok(central) = UnixStream::connect(&self.central).await else { return };
        let (from_satellite, to_satellite) = satellite.into_split();
        let (from_central, to_central) = central.into_split();
        let (passes, seen) = watch::channel(Passes { to_central: true, to_satellite: true });
        let alter = if *lock(&self.is_mistaken) { VERSION_AT } else { usize::MAX };
        let up = Direction { alter, passes: seen.clone(), is_open: |passes| passes.to_central };
        let down =
            Direction { alter: usize::MAX, passes: seen, is_open: |passes| passes.to_satellite };
        let both = tokio::spawn(async move {
            tokio::join!(
                up.pass(from_satellite, to_central),
                down.pass(from_central, to_satellite)
            );
        });
        let mut connections = lock(&self.connections);
        connections.retain(|connection| !connection.both.is_finished());
        connections.push(Connection { pid, passes, both });
    }
}

/// One direction of a connection.
struct Direction {
    /// Which byte is changed.
    alter: usize,
    passes: watch::Receiver<Passes>,
    is_open: fn(&Passes) -> bool,
}

impl Direction {
    /// Until one end closes; the other is told, unless nothing comes through.
    async fn pass(mut self, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
        let mut bytes = [0; 16 * 1024];
        let mut passed = 0;
        loop {
            let read = from.read(&mut bytes).await;
            if self.passes.wait_for(self.is_open).await.is_err() {
                return;
            }
            let count = match read {
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            if let Some(byte) = self.alter.checked_sub(passed).and_then(|at| bytes.get_mut(at)) {
                *byte = byte.wrapping_add(1);
            }
            passed += count;
            if to.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
