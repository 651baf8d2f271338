//! What proves that two ends belong to one session.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use thiserror::Error;

use super::directory::our_uid;
use super::private_file::{self, Others, Unfit};

const BYTES: usize = 32;

/// The 256-bit secret of a session. It lives in a file that only its owner can
/// read, and is never sent: each side proves that it knows it.
#[derive(Clone)]
pub struct Secret([u8; BYTES]);

impl Secret {
    /// Makes a random secret and puts it into a new file.
    pub fn create(path: &Path) -> Result<Self, SecretError> {
        refuse_itself(path)?;
        let failed = |source| SecretError::Create { path: path.to_owned(), source };
        let secret = Self(random().map_err(failed)?);
        let hex: String = secret.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        writeln!(file, "{hex}").map_err(failed)?;
        Ok(secret)
    }

    /// Reads a secret, if nobody else can have read or chosen it.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        Self::read_as(path, our_uid())
    }

    fn read_as(path: &Path, uid: u32) -> Result<Self, SecretError> {
        refuse_itself(path)?;
        let text = private_file::read_as(path, Others::Nothing, 2 * BYTES as u64 + 2, uid);
        let text = text.map_err(|unfit| {
            let path = path.to_owned();
            match unfit {
                Unfit::Io(source) => SecretError::Read { path, source },
                Unfit::NotOurs(owner) => SecretError::NotOurs { path, owner },
                Unfit::Open(mode) => SecretError::Open { path, mode },
            }
        })?;
        parse(text.trim_ascii_end())
            .map(Self)
            .ok_or_else(|| SecretError::Malformed(path.to_owned()))
    }

    /// A proof, for one text, of knowing the secret.
    pub(super) fn prove(&self, text: &[u8]) -> io::Result<[u8; 32]> {
        Ok(self.mac(text)?.finalize().into_bytes().into())
    }

    /// Whether a proof is right, in a time that does not tell how wrong it is.
    pub(super) fn verify(&self, text: &[u8], proof: &[u8]) -> io::Result<bool> {
        Ok(self.mac(text)?.verify_slice(proof).is_ok())
    }

    fn mac(&self, text: &[u8]) -> io::Result<Hmac<Sha256>> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).map_err(io::Error::other)?;
        Ok(mac.chain_update(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Bytes that nobody can guess.
pub(super) fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// A secret where the name of its file belongs has been seen by everybody.
fn refuse_itself(path: &Path) -> Result<(), SecretError> {
    let name = path.file_name().unwrap_or_default();
    match parse(name.as_encoded_bytes()) {
        Some(_) => Err(SecretError::Itself),
        None => Ok(()),
    }
}

fn parse(hex: &[u8]) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    if hex.len() != 2 * BYTES {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? * 16 + digit(1)?) as u8;
    }
    Some(bytes)
}

/// Why there is no secret.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The secret was given instead of its file: all users see command lines.
    #[error(
        "that is a secret and not the file of one, and other users can see it on a command line: \
         make a new one, and give the name of its file"
    )]
    Itself,
    /// A new file could not be made; an old one is never overwritten.
    #[error("the secret file {path} cannot be made: {source}")]
    Create {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be read.
    #[error("the secret file {path} cannot be read: {source}; DDBX_SECRET_FILE says where it is")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Somebody else made the file, and so knows what is in it.
    #[error("the secret file {path} belongs to user {owner}: make one of your own")]
    NotOurs {
        /// Which file.
        path: PathBuf,
        /// Whose.
        owner: u32,
    },
    /// Others may have read the file.
    #[error(
        "the secret file {path} is open to other users (mode {mode:o}), so it is no secret any \
         more: make a new one, with mode 600"
    )]
    Open {
        /// Which file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Not what [`Secret::create`] writes.
    #[error("the secret file {0} does not hold 64 hexadecimal digits: make a new one")]
    Malformed(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_somebody_else_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        Secret::create(&path).unwrap();
        let error = Secret::read_as(&path, our_uid() + 1).unwrap_err();
        assert!(matches!(error, SecretError::NotOurs { owner, .. } if owner == our_uid()));
    }

    #[test]
    fn a_proof_is_for_one_secret_and_one_text() {
        let secret = Secret([1; BYTES]);
        let proof = secret.prove(b"text").unwrap();
        assert!(secret.verify(b"text", &proof).unwrap());
        assert!(!secret.verify(b"other", &proof).unwrap());
        assert!(!secret.verify(b"text", &proof[..31]).unwrap());
        assert!(!Secret([2; BYTES]).verify(b"text", &proof).unwrap());
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret([7; BYTES])), "Secret(..)");
    }
}
