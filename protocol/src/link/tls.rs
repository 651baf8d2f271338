//! TLS, for sessions across machines: both ends show a certificate of the session's own
//! authority, which `ddbx certs` makes. The handshake of ddbx runs inside it.
//!
//! Only TLS 1.3, and nothing is resumed: whoever comes shows its certificate. That of
//! central is good for being central only, and the other one for dialling only, so no
//! service can pose as central.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error, RootCertStore, ServerConfig,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::handshake::HandshakeError;
use super::private_file::{self, Others, Unfit};
use super::refusal::{Fault, Refusal, Whose};
use super::stream::Stream;

/// The certificate of the session's authority.
pub const AUTHORITY_FILE: &str = "ca.pem";
/// The certificates and keys of central, and of all others.
pub const CENTRAL_FILES: (&str, &str) = ("central.pem", "central.key");
/// See [`CENTRAL_FILES`].
pub const CLIENT_FILES: (&str, &str) = ("client.pem", "client.key");
/// The secret of the session, unless another file is said to have it.
pub const SECRET_FILE: &str = "secret";

/// What is in one of these files is short.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// How much of what a refused dialler says is read, so that it hears why.
const DRAINED_BYTES_MAX: usize = 64 << 10;

/// With what a satellite or a controller proves over TLS who it is.
#[derive(Clone)]
pub struct ClientTls(Arc<ClientConfig>);

impl ClientTls {
    /// From the files that `ddbx certs` has made.
    pub fn read(directory: &Path) -> Result<Self, TlsError> {
        let Files { authority, chain, key } = Files::read(directory, CLIENT_FILES)?;
        let unusable = |error| TlsError::Unusable { directory: directory.to_owned(), error };
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_root_certificates(authority)
            .with_client_auth_cert(chain, key);
        let mut config = config.map_err(unusable)?;
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }

    /// Speaks TLS with the session `name`.
    pub(super) async fn connect(
        &self,
        name: ServerName<'static>,
        stream: TcpStream,
    ) -> Result<Stream, HandshakeError> {
        let connected = TlsConnector::from(self.0.clone()).connect(name, stream).await;
        match connected.map_err(HandshakeError::from) {
            Ok(stream) => Ok(Stream::Tls(Box::new(TlsStream::Client(stream)))),
            // A session without TLS takes its first word for something foreign.
            Err(HandshakeError::Closed) => Err(Refusal::TlsUnknown.into()),
            Err(HandshakeError::Io(error)) if error.get_ref().is_some_and(|e| e.is::<Error>()) => {
                Err(HandshakeError::Foreign)
            }
            Err(error) => Err(error),
        }
    }
}

/// With what central proves over TLS that it is central.
#[derive(Clone)]
pub struct CentralTls(Arc<ServerConfig>);

impl CentralTls {
    /// From the files that `ddbx certs` has made.
    pub fn read(directory: &Path) -> Result<Self, TlsError> {
        let Files { authority, chain, key } = Files::read(directory, CENTRAL_FILES)?;
        let unusable = |error| TlsError::Unusable { directory: directory.to_owned(), error };
        let known =
            WebPkiClientVerifier::builder_with_provider(Arc::new(authority), provider()).build();
        let known = known.map_err(|error| unusable(Error::General(error.to_string())))?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .map_err(unusable)?
            .with_client_cert_verifier(known)
            .with_single_cert(chain, key);
        let mut config = config.map_err(unusable)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self(Arc::new(config)))
    }

    /// Speaks TLS with whoever has dialled.
    pub(super) async fn accept(&self, stream: TcpStream) -> Result<Stream, HandshakeError> {
        let accepted = TlsAcceptor::from(self.0.clone()).accept(stream).into_fallible().await;
        match accepted {
            Ok(stream) => Ok(Stream::Tls(Box::new(TlsStream::Server(stream)))),
            Err((error, stream)) => {
                let error = HandshakeError::from(error);
                if !matches!(error, HandshakeError::Closed) {
                    drain(stream).await;
                }
                Err(error)
            }
        }
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientTls(..)")
    }
}

impl fmt::Debug for CentralTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CentralTls(..)")
    }
}

/// A connection that is closed with something unread is reset, and then the other end may
/// not hear why it was refused.
async fn drain(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut unread = [0; 1024];
    let mut drained = 0;
    while drained < DRAINED_BYTES_MAX {
        match stream.read(&mut unread).await {
            Ok(bytes) if bytes > 0 => drained += bytes,
            _ => return,
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// What an error says about certificates, if it does.
pub(super) fn refusal(error: &io::Error) -> Option<Refusal> {
    let of = |whose, fault| Some(Refusal::Certificate { whose, fault });
    let theirs = |fault| of(Whose::Theirs, fault);
    let ours = |fault| of(Whose::Ours, fault);
    match error.get_ref()?.downcast_ref::<Error>()? {
        Error::NoCertificatesPresented => theirs(Fault::Missing),
        Error::InvalidCertificate(error) => theirs(match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Fault::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Fault::Expired
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Fault::Name
            }
            _ => Fault::Foreign,
        }),
        Error::AlertReceived(AlertDescription::CertificateRequired) => ours(Fault::Missing),
        Error::AlertReceived(AlertDescription::CertificateExpired) => ours(Fault::Expired),
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::DecryptError,
        ) => ours(Fault::Foreign),
        _ => None,
    }
}

/// What an end needs.
struct Files {
    authority: RootCertStore,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Files {
    fn read(directory: &Path, (chain, key): (&str, &str)) -> Result<Self, TlsError> {
        let mut authority = RootCertStore::empty();
        for certificate in certificates(&directory.join(AUTHORITY_FILE))? {
            let added = authority.add(certificate);
            added.map_err(|error| TlsError::Unusable { directory: directory.to_owned(), error })?;
        }
        let chain = certificates(&directory.join(chain))?;
        let path = directory.join(key);
        let bytes = read(&path, Others::Nothing)?;
        let key = PrivateKeyDer::from_pem_slice(&bytes)
            .map_err(|error| TlsError::Malformed { path, error })?;
        Ok(Self { authority, chain, key })
    }
}

/// Anybody may read certificates; nobody else may say what they are.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path, Others::Read)?;
    let malformed = |error| TlsError::Malformed { path: path.to_owned(), error };
    let read = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    match read.map_err(malformed)? {
        none if none.is_empty() => Err(malformed(pem::Error::NoItemsFound)),
        some => Ok(some),
    }
}

fn read(path: &Path, others: Others) -> Result<Vec<u8>, TlsError> {
    private_file::read(path, others, FILE_BYTES_MAX).map_err(|unfit| {
        let path = path.to_owned();
        match unfit {
            Unfit::Io(source) => TlsError::Read { path, source },
            Unfit::NotOurs(owner) => TlsError::NotOurs { path, owner },
            Unfit::Open(mode) => TlsError::Open { path, mode },
        }
    })
}

/// Why there is no TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error(
        "{path} cannot be read: {source}; TLS needs the directory that `ddbx certs` has made, or \
         a copy"
    )]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else made the file, and so knows or chooses what is in it.
    #[error(
        "{path} belongs to user {owner}: make a copy of your own, or new ones with `ddbx certs`"
    )]
    NotOurs {
        /// Which.
        path: PathBuf,
        /// Whose.
        owner: u32,
    },
    /// Others may have read or changed the file.
    #[error(
        "{path} is open to other users (mode {mode:o}), so they may be in the session: make new \
         ones with `ddbx certs`, and keep mode 600"
    )]
    Open {
        /// Which.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Not what `ddbx certs` writes.
    #[error("{path} does not hold what it should: {error}; make new ones with `ddbx certs`")]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        error: pem::Error,
    },
    /// The files do not fit together.
    #[error(
        "the certificates in {directory} cannot be used: {error}; make new ones with `ddbx certs`"
    )]
    Unusable {
        /// Where.
        directory: PathBuf,
        /// Why.
        error: Error,
    },
}
