//! What reads bytes from outside, as functions of those bytes. Nobody but fuzzers and
//! tests of that kind calls them: all others have a socket.

use bytes::BytesMut;
use serde::de::DeserializeOwned;
use tokio::io::{join, sink};
use tokio_util::codec::Decoder;

use super::frames::{Codec, FrameError};
use super::handshake::{self, HandshakeError, VERSION};
use super::{Role, Secret};

/// Which way messages go.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// To central.
    Dialler,
    /// From central.
    Listener,
}

/// The handshake of a listener whose dialler says just this.
pub async fn answer(said: &[u8], secret: Option<&Secret>) -> Result<Role, HandshakeError> {
    handshake::answer(&mut join(said, sink()), secret, VERSION).await
}

/// The handshake of a dialler whose listener says just this.
pub async fn dial(said: &[u8], secret: Option<&Secret>) -> Result<(), HandshakeError> {
    handshake::dial(&mut join(said, sink()), secret, Role::Satellite, VERSION).await
}

/// The message in a frame whose body this is.
pub fn message<T: DeserializeOwned>(body: &[u8], from: (Role, From)) -> Result<T, FrameError> {
    let codec = codec(from);
    codec.check_length(body.len())?;
    codec.read(body)
}

/// All messages of a connection on which this is sent, one after the other.
pub fn messages<T: DeserializeOwned>(
    bytes: &[u8],
    from: (Role, From),
    mut each: impl FnMut(T),
) -> Result<(), FrameError> {
    let mut codec = codec(from);
    let mut buffer = BytesMut::from(bytes);
    while let Some(body) = codec.decode_eof(&mut buffer)? {
        each(codec.read(&body)?);
    }
    Ok(())
}

fn codec((role, from): (Role, From)) -> Codec {
    match from {
        From::Dialler => Codec::from_dialler(role),
        From::Listener => Codec::from_listener(role),
    }
}
