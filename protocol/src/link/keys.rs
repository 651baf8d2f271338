//! What the two ends of a connection show each other: the dialler has keys, and the
//! listener has locks that they fit.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::address::Address;
use super::secret::{Secret, SecretError};
use super::tls::{CentralTls, ClientTls, SECRET_FILE, TlsError};

/// With what satellites and controllers come to a session. Over a Unix socket they need
/// none.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// The secret of the session.
    pub secret: Option<Secret>,
    /// With TLS, if the session is elsewhere.
    pub tls: Option<ClientTls>,
}

/// What central asks of whoever comes.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// The secret of the session.
    pub secret: Option<Secret>,
    /// With TLS, if others are elsewhere.
    pub tls: Option<CentralTls>,
}

/// Where keys and locks are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyFiles<'a> {
    /// The file of the secret. Without one, it is with the certificates.
    pub secret: Option<&'a Path>,
    /// The directory of the certificates.
    pub tls: Option<&'a Path>,
}

impl KeyFiles<'_> {
    /// The file of the secret.
    pub fn secret_file(&self) -> Option<PathBuf> {
        let beside = || Some(self.tls?.join(SECRET_FILE));
        self.secret.map(Path::to_owned).or_else(beside)
    }
}

impl Keys {
    /// Reads what a session at this address needs: over TCP alone.
    pub fn read(address: &Address, files: KeyFiles<'_>) -> Result<Self, KeysError> {
        if !address.is_tcp() {
            return Ok(Self::default());
        }
        let secret = files.secret_file().map(|file| Secret::read(&file)).transpose()?;
        let tls = files.tls.map(ClientTls::read).transpose()?;
        Ok(Self { secret, tls })
    }
}

impl From<Option<&Secret>> for Keys {
    fn from(secret: Option<&Secret>) -> Self {
        Self { secret: secret.cloned(), tls: None }
    }
}

impl From<&Keys> for Keys {
    fn from(keys: &Keys) -> Self {
        keys.clone()
    }
}

impl From<Option<Secret>> for Locks {
    fn from(secret: Option<Secret>) -> Self {
        Self { secret, tls: None }
    }
}

impl<'a> From<Option<&'a Path>> for KeyFiles<'a> {
    fn from(secret: Option<&'a Path>) -> Self {
        Self { secret, tls: None }
    }
}

/// Why there are no keys.
#[derive(Debug, Error)]
pub enum KeysError {
    /// The secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
}
