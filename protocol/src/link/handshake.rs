//! The first bytes of a connection: do the ends fit, and may they talk?
//!
//! ```text
//! dialler                                            listener
//!   magic  version  role     nonce  ────────────────▶
//!          ◀────────────────  magic  version  verdict  nonce
//!   proof  ────────────────────────────────────────▶            with a secret
//!          ◀────────────────────────────────────────  proof     with a secret
//! ```
//!
//! The two openings keep their layout in all versions, so that ends of different
//! versions can at least say so. The listener reads the magic before anything
//! else and says nothing to whom that is foreign. A proof covers both nonces, so
//! an old one is worth nothing; the two have different labels, so neither can be
//! sent back as the other; and the dialler proves first, so a stranger learns
//! nothing from the listener that could be tried against guesses.

use std::io;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Role;
use super::refusal::Refusal;
use super::secret::{Secret, random};
use super::tls;

/// The version of the handshake and of all messages after it.
pub const VERSION: u16 = 4;

/// A handshake that takes longer than this has failed.
pub const DEADLINE: Duration = Duration::from_secs(5);

const MAGIC: [u8; 4] = *b"ddbx";

/// What a session that speaks TLS says first to whoever does not: an alert.
const TLS_ALERT: [u8; 4] = [21, 3, 3, 0];

/// The version does not fit.
const REFUSED: u8 = 0;
/// There is nothing to prove.
const WELCOME: u8 = 1;
/// A proof is next.
const PROVE: u8 = 2;

/// What the dialler's proof begins with.
const DIALLER: &[u8] = b"ddbx dialler";
/// What the listener's proof begins with.
const LISTENER: &[u8] = b"ddbx listener";

/// What both sides begin with.
struct Opening {
    version: u16,
    /// From the dialler its role, from the listener its verdict.
    word: u8,
    nonce: [u8; 32],
}

impl Opening {
    const BYTES: usize = 4 + 2 + 1 + 32;

    fn new(version: u16, word: u8) -> io::Result<Self> {
        Ok(Self { version, word, nonce: random()? })
    }

    async fn write(&self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.version.to_be_bytes());
        bytes.push(self.word);
        bytes.extend(self.nonce);
        stream.write_all(&bytes).await?;
        stream.flush().await
    }

    async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Self, HandshakeError> {
        let mut magic = [0; 4];
        stream.read_exact(&mut magic).await?;
        match magic {
            MAGIC => {}
            TLS_ALERT => return Err(Refusal::TlsNeeded.into()),
            _ => return Err(HandshakeError::Foreign),
        }
        let version = stream.read_u16().await?;
        let word = stream.read_u8().await?;
        let mut nonce = [0; 32];
        stream.read_exact(&mut nonce).await?;
        Ok(Self { version, word, nonce })
    }
}

/// All of a handshake, in time: a dialler that says nothing, or a byte now and then, is
/// given up like one that has gone.
pub(super) async fn in_time<T>(
    talk: impl Future<Output = Result<T, HandshakeError>>,
) -> Result<T, HandshakeError> {
    timeout(DEADLINE, talk).await.unwrap_or(Err(HandshakeError::Silent))
}

/// The dialler's side of the handshake.
pub(super) async fn dial<S>(
    stream: &mut S,
    secret: Option<&Secret>,
    role: Role,
    version: u16,
) -> Result<(), HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let hello = Opening::new(version, byte_of(role))?;
    hello.write(stream).await?;
    let answer = Opening::read(stream).await?;
    match (answer.word, secret) {
        (WELCOME, None) => Ok(()),
        (PROVE, Some(secret)) => {
            send_proof(stream, secret, &transcript(DIALLER, &hello, &answer)).await?;
            let theirs = transcript(LISTENER, &hello, &answer);
            match expect_proof(stream, secret, &theirs).await {
                // Whoever does not accept our proof closes without a word.
                Err(HandshakeError::Closed) => Err(Refusal::WrongSecret.into()),
                checked => checked,
            }
        }
        (WELCOME, Some(_)) => Err(Refusal::SecretUnknown.into()),
        (PROVE, None) => Err(Refusal::SecretNeeded.into()),
        (REFUSED, _) => Err(HandshakeError::Version { ours: version, theirs: answer.version }),
        _ => Err(HandshakeError::Foreign),
    }
}

/// The listener's side of the handshake.
pub(super) async fn answer<S>(
    stream: &mut S,
    secret: Option<&Secret>,
    version: u16,
) -> Result<Role, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let hello = Opening::read(stream).await?;
    if hello.version != version {
        Opening::new(version, REFUSED)?.write(stream).await?;
        return Err(HandshakeError::Version { ours: version, theirs: hello.version });
    }
    let role = role_of(hello.word).ok_or(HandshakeError::Foreign)?;
    let answer = Opening::new(version, if secret.is_some() { PROVE } else { WELCOME })?;
    answer.write(stream).await?;
    if let Some(secret) = secret {
        expect_proof(stream, secret, &transcript(DIALLER, &hello, &answer)).await?;
        send_proof(stream, secret, &transcript(LISTENER, &hello, &answer)).await?;
    }
    Ok(role)
}

fn byte_of(role: Role) -> u8 {
    match role {
        Role::Satellite => 1,
        Role::Controller => 2,
    }
}

fn role_of(byte: u8) -> Option<Role> {
    [Role::Satellite, Role::Controller].into_iter().find(|role| byte_of(*role) == byte)
}

/// What a proof is about.
fn transcript(label: &[u8], hello: &Opening, answer: &Opening) -> Vec<u8> {
    let role_and_version = [&[hello.word][..], &hello.version.to_be_bytes()].concat();
    [label, &hello.nonce, &answer.nonce, &role_and_version].concat()
}

async fn send_proof(
    stream: &mut (impl AsyncWrite + Unpin),
    secret: &Secret,
    transcript: &[u8],
) -> Result<(), HandshakeError> {
    stream.write_all(&secret.prove(transcript)?).await?;
    Ok(stream.flush().await?)
}

async fn expect_proof(
    stream: &mut (impl AsyncRead + Unpin),
    secret: &Secret,
    transcript: &[u8],
) -> Result<(), HandshakeError> {
    let mut proof = [0; 32];
    stream.read_exact(&mut proof).await?;
    if !secret.verify(transcript, &proof)? {
        return Err(Refusal::WrongSecret.into());
    }
    Ok(())
}

/// Why a handshake came to nothing.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The other end does not speak this protocol at all.
    #[error("the other end does not speak ddbx")]
    Foreign,
    /// The other end speaks another version.
    #[error(
        "this end speaks version {ours} of the ddbx protocol and the other end version {theirs}: \
         rebuild the service against the same ddbx, or use the ddbx of that version"
    )]
    Version {
        /// What we speak.
        ours: u16,
        /// What they speak.
        theirs: u16,
    },
    /// The other end is not trusted.
    #[error(transparent)]
    NotAllowed(#[from] Refusal),
    /// Not a whole handshake within [`DEADLINE`].
    #[error(
        "the other end did not finish its handshake within {} s: is it stopped, or busy?",
        DEADLINE.as_secs()
    )]
    Silent,
    /// The other end went away. Whoever only looks whether somebody listens does
    /// that, so it is nothing to report.
    #[error("the other end closed the connection before the handshake was done")]
    Closed,
    /// The connection failed.
    #[error("the handshake failed: {0}")]
    Io(io::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        if let Some(refusal) = tls::refusal(&error) {
            return Self::NotAllowed(refusal);
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handshake in memory: what the dialler and the listener make of it.
    async fn meet(
        (dialler_version, dialler_secret): (u16, Option<&Secret>),
        (listener_version, listener_secret): (u16, Option<&Secret>),
    ) -> (Result<(), HandshakeError>, Result<Role, HandshakeError>) {
        let (mut near, mut far) = tokio::io::duplex(64);
        let dialler =
            async move { dial(&mut near, dialler_secret, Role::Controller, dialler_version).await };
        // Moved, so that the end is closed when that side is done.
        let listener = async move { answer(&mut far, listener_secret, listener_version).await };
        tokio::join!(dialler, listener)
    }

    fn secret() -> Secret {
        Secret::create(&tempfile::tempdir().unwrap().path().join("secret")).unwrap()
    }

    #[tokio::test]
    async fn both_sides_name_both_versions() {
        let (dialler, listener) = meet((7, None), (8, None)).await;
        let (dialler, listener) = (dialler.unwrap_err(), listener.unwrap_err());
        assert!(matches!(dialler, HandshakeError::Version { ours: 7, theirs: 8 }), "{dialler}");
        assert!(matches!(listener, HandshakeError::Version { ours: 8, theirs: 7 }), "{listener}");
        let text = dialler.to_string();
        assert!(text.contains("version 7") && text.contains("version 8"), "{text}");
        assert!(text.contains("rebuild the service"), "{text}");
    }

    #[tokio::test]
    async fn the_same_secret_or_none() {
        use HandshakeError::NotAllowed;
        let (one, other) = (secret(), secret());
        assert!(matches!(meet((1, None), (1, None)).await, (Ok(()), Ok(Role::Controller))));
        assert!(matches!(
            meet((1, Some(&one)), (1, Some(&one))).await,
            (Ok(()), Ok(Role::Controller))
        ));
        assert!(matches!(
            meet((1, Some(&one)), (1, Some(&other))).await,
            (Err(NotAllowed(Refusal::WrongSecret)), Err(NotAllowed(Refusal::WrongSecret)))
        ));
        assert!(matches!(
            meet((1, None), (1, Some(&one))).await,
            (Err(NotAllowed(Refusal::SecretNeeded)), Err(HandshakeError::Closed))
        ));
        // This listener has let the dialler in; the dialler does not let itself in.
        let (dialler, _) = meet((1, Some(&one)), (1, None)).await;
        assert!(matches!(dialler, Err(NotAllowed(Refusal::SecretUnknown))));
    }

    #[tokio::test]
    async fn a_listener_must_prove_the_secret_too() {
        let secret = secret();
        let (mut near, mut far) = tokio::io::duplex(256);
        let impostor = async move {
            let hello = Opening::read(&mut far).await?;
            Opening::new(hello.version, PROVE)?.write(&mut far).await?;
            let mut proof = [0; 32];
            far.read_exact(&mut proof).await?;
            // The dialler's own proof, sent back.
            far.write_all(&proof).await?;
            Ok::<_, HandshakeError>(far)
        };
        let dialler = dial(&mut near, Some(&secret), Role::Satellite, VERSION);
        let (dialled, impostor) = tokio::join!(dialler, impostor);
        impostor.unwrap();
        assert!(matches!(dialled, Err(HandshakeError::NotAllowed(Refusal::WrongSecret))));
    }

    /// The layout is a promise to all other versions.
    #[tokio::test]
    async fn openings_keep_their_layout() {
        let mut bytes = Vec::new();
        Opening { version: 0x0102, word: 3, nonce: [4; 32] }.write(&mut bytes).await.unwrap();
        assert_eq!(bytes, [b"ddbx\x01\x02\x03".as_slice(), &[4; 32]].concat());
        let read = Opening::read(&mut bytes.as_slice()).await.unwrap();
        assert_eq!((read.version, read.word, read.nonce), (0x0102, 3, [4; 32]));
    }
}
