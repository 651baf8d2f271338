//! How satellites and controllers (the command line, the screen) reach central.
//!
//! Central listens, all others dial. By default that is a Unix socket which only
//! its owner can reach, and both sides check that the other belongs to the same
//! user. TCP needs a secret, which both sides prove; it keeps strangers out, and
//! hides nothing from whoever can read the wire. So it stays on the loopback
//! interface, or runs inside TLS (`tls.rs`).
//!
//! A connection opens with a handshake of fixed size (`handshake.rs`); after that
//! both sides send length-delimited messages (`frames.rs`). Whatever goes wrong on
//! a connection ends that connection and nothing else.

#[cfg(not(unix))]
compile_error!("ddbx runs on Unix only: sessions rest on Unix sockets and their owners");

use serde::{Deserialize, Serialize};

mod address;
mod connection;
mod dial;
mod directory;
mod find;
mod frames;
mod handshake;
mod keys;
mod listener;
#[doc(hidden)]
pub mod outside;
mod private_file;
mod refusal;
mod secret;
mod stream;
mod tls;

pub use address::{Address, InvalidAddress};
pub use connection::{Connection, Receiver, Sender};
pub use dial::{DialError, dial, is_alive};
pub use directory::{DirectoryError, session_directory, session_names};
pub use find::{FindError, FindFailure, START_ONE, find, reach};
pub use frames::FrameError;
pub use handshake::{DEADLINE, HandshakeError, VERSION};
pub use keys::{KeyFiles, Keys, KeysError, Locks};
pub use listener::{BindError, Incoming, Listener};
pub use refusal::{Fault, Refusal, Whose};
pub use secret::{Secret, SecretError};
pub use tls::{
    AUTHORITY_FILE, CENTRAL_FILES, CLIENT_FILES, CentralTls, ClientTls, SECRET_FILE, TlsError,
};

/// What the side that dials is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// The debugger inside a process. Many small messages: bincode.
    Satellite,
    /// The command line or the screen. Messages that a person, or a script in
    /// any language, can read: JSON.
    Controller,
}
