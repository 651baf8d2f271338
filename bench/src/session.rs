//! A session in this process, at a socket that nobody else knows of.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;

use ddbx_central::driver::Session;
use ddbx_central::server;
use ddbx_protocol::Mode;
use ddbx_protocol::link::{Address, Listener};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// It ends when this is dropped, and its directory goes with it.
pub struct OpenSession {
    pub session: Session,
    pub address: Address,
    pub dir: TempDir,
}

impl OpenSession {
    /// Whoever dials is served as long as the runtime is there.
    pub fn open(runtime: &Runtime) -> io::Result<Self> {
        Self::open_in(Mode::Permit, runtime)
    }

    /// The same, in which the rule is applied in this way.
    pub fn open_in(mode: Mode, runtime: &Runtime) -> io::Result<Self> {
        let ours_alone = Permissions::from_mode(0o700);
        let dir =
            tempfile::Builder::new().prefix("ddbx-bench-").permissions(ours_alone).tempdir()?;
        let address = Address::Unix(dir.path().join("session.sock"));
        let listener = runtime.block_on(Listener::bind(&address, None));
        let session = Session::start_in(mode)?;
        runtime.spawn(server::serve(listener.map_err(io::Error::other)?, session.clone()));
        Ok(Self { session, address, dir })
    }
}
