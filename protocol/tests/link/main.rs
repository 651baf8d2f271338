//! Sockets as others use them: messages both ways, strangers kept out, and files
//! that are ours alone.

#![allow(clippy::unwrap_used)]

mod messages;
mod sockets;
mod strangers;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use ddbx_protocol::link::{
    Address, Connection, DialError, HandshakeError, Listener, Role, Secret, dial,
};
use tempfile::TempDir;
use tokio::time::timeout;

/// A directory for one session, ours alone.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let ours_alone = Permissions::from_mode(0o700);
        Self { directory: tempfile::Builder::new().permissions(ours_alone).tempdir().unwrap() }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn unix(&self) -> Address {
        Address::Unix(self.path().join("s.sock"))
    }

    /// A new secret.
    fn secret(&self, name: &str) -> Secret {
        Secret::create(&self.path().join(name)).unwrap()
    }

    async fn listen(&self) -> Listener {
        Listener::bind(&self.unix(), None).await.unwrap()
    }
}

/// Any free port of the loopback interface.
fn any_port() -> Address {
    Address::parse("tcp:127.0.0.1:0").unwrap()
}

type Met = (Result<(Role, Connection), HandshakeError>, Result<Connection, DialError>);

/// Dials a listener: what each side makes of it. If one of them never ends, the
/// test fails instead of hanging.
async fn meet(listener: &Listener, secret: Option<&Secret>, role: Role) -> Met {
    let listen = async { listener.accept().await.unwrap().handshake().await };
    let both = async { tokio::join!(listen, dial(listener.address(), secret, role)) };
    timeout(Duration::from_secs(60), both).await.expect("both sides come to an end")
}
