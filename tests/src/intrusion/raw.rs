//! Bytes as strangers send and hear them.

use std::io;
use std::time::{Duration, Instant};

use ddbx_protocol::link::VERSION;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::target::PROCESS;
use crate::waiting::LIMIT;

pub(super) trait Both: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Both for T {}

/// A connection, whatever it runs over.
pub(super) type Raw = Box<dyn Both>;

/// The bytes of an opening of the handshake.
pub(super) const OPENING_BYTES: usize = 39;

/// What a dialler begins with.
pub(super) fn hello(version: u16, role: u8, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = b"ddbx".to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.push(role);
    bytes.extend(garbage(32, random));
    bytes
}

pub(super) fn garbage(bytes: usize, random: &mut fastrand::Rng) -> Vec<u8> {
    std::iter::repeat_with(|| random.u8(..)).take(bytes).collect()
}

/// What became of an attempt.
#[derive(Debug)]
pub struct Outcome {
    /// Whether nobody was let in.
    pub refused: bool,
    /// How many bytes were heard that a stranger must not hear.
    pub leaked: usize,
    /// How long it took.
    pub took: Duration,
    /// What happened instead, if it was not refused.
    pub note: String,
}

impl Outcome {
    pub(super) fn refused_if(refused: bool, note: impl Into<String>, since: Instant) -> Self {
        Self { refused, leaked: 0, took: since.elapsed(), note: note.into() }
    }
}

/// What a stranger may hear before it is shown the door.
#[derive(Clone, Copy, Debug)]
pub(super) enum MayHear {
    /// Nothing.
    Nothing,
    /// One opening with this verdict.
    Opening(u8),
    /// What TLS says before it knows who is there: records, none of them readable.
    Tls,
}

/// Sends something, and listens until the other end closes.
pub(super) async fn say(mut raw: Raw, bytes: &[u8], may: MayHear) -> Outcome {
    let since = Instant::now();
    // It may be shown the door before it has said all.
    let _ = timeout(LIMIT, raw.write_all(bytes)).await;
    let _ = timeout(LIMIT, raw.flush()).await;
    listen(raw, may, since).await
}

/// Listens until the other end closes.
pub(super) async fn listen(mut raw: Raw, may: MayHear, since: Instant) -> Outcome {
    let mut heard = Vec::new();
    let closed = timeout(LIMIT, async {
        let mut part = [0; 4096];
        loop {
            match raw.read(&mut part).await {
                Ok(0) | Err(_) => return true,
                Ok(bytes) => heard.extend_from_slice(&part[..bytes]),
            }
            if heard.len() > 1 << 20 {
                return false;
            }
        }
    });
    let closed = closed.await.unwrap_or(false);
    let leaked = leaked(&heard, may);
    let note = if closed { String::new() } else { "the connection stayed open".to_owned() };
    Outcome { refused: closed, leaked, took: since.elapsed(), note }
}

/// How many bytes nobody should have heard.
fn leaked(heard: &[u8], may: MayHear) -> usize {
    let names = heard.windows(PROCESS.len()).any(|part| part == PROCESS.as_bytes());
    let is_handshake = match may {
        MayHear::Nothing => heard.is_empty(),
        MayHear::Opening(verdict) => {
            let version = VERSION.to_be_bytes();
            let begins = [b"ddbx".as_slice(), &version, &[verdict]].concat();
            heard.is_empty() || heard.len() == OPENING_BYTES && heard.starts_with(&begins)
        }
        MayHear::Tls => are_tls_records(heard),
    };
    if is_handshake && !names { 0 } else { heard.len() }
}

/// Whole records of the kinds that a handshake has, and not many.
fn are_tls_records(mut heard: &[u8]) -> bool {
    const KINDS: std::ops::RangeInclusive<u8> = 20..=23;
    const BYTES_MAX: usize = 4096;
    if heard.len() > BYTES_MAX {
        return false;
    }
    while let [kind, 3, _, high, low, rest @ ..] = heard {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if !KINDS.contains(kind) || rest.len() < length {
            return false;
        }
        heard = &rest[length..];
    }
    heard.is_empty()
}

/// A byte a second, for as long as there is somebody to hear it.
pub(super) async fn drip(raw: Raw, bytes: &[u8], may: MayHear) -> Outcome {
    const EVERY: Duration = Duration::from_secs(1);
    let since = Instant::now();
    let (reader, mut writer) = tokio::io::split(raw);
    let drips = async {
        for byte in bytes {
            writer.write_all(&[*byte]).await?;
            writer.flush().await?;
            tokio::time::sleep(EVERY).await;
        }
        std::future::pending::<io::Result<()>>().await
    };
    let hears = listen(Box::new(tokio::io::join(reader, tokio::io::sink())), may, since);
    tokio::select! {
        outcome = hears => outcome,
        ended = drips => Outcome::refused_if(ended.is_err(), "it hears all", since),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_handshake_is_leaked() {
        let opening = |verdict: u8| {
            let version = VERSION.to_be_bytes();
            [b"ddbx".as_slice(), &version, &[verdict], &[7; 32]].concat()
        };
        assert_eq!(leaked(&[], MayHear::Nothing), 0);
        assert_eq!(leaked(b"HTTP/1.1 400", MayHear::Nothing), 12);
        assert_eq!(leaked(&opening(2), MayHear::Nothing), OPENING_BYTES);
        assert_eq!(leaked(&opening(2), MayHear::Opening(2)), 0);
        assert_eq!(leaked(&opening(1), MayHear::Opening(2)), OPENING_BYTES);
        // A proof after it would be something to try guesses on.
        let proof = [opening(2), vec![7; 32]].concat();
        assert_eq!(leaked(&proof, MayHear::Opening(2)), OPENING_BYTES + 32);
        let alert = [21, 3, 3, 0, 2, 2, 40];
        assert_eq!(leaked(&alert, MayHear::Tls), 0);
        assert_eq!(leaked(&alert[..6], MayHear::Tls), 6);
        let names = [&[22, 3, 3, 0, 12][..], PROCESS.as_bytes()].concat();
        assert_eq!(leaked(&names, MayHear::Tls), names.len());
    }
}
