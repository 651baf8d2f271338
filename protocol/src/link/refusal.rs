//! Who may take part in a session, and who may not.

use std::net::SocketAddr;

use thiserror::Error;
use tokio::net::UnixStream;

use super::directory::DirectoryError;

/// Why a connection is not allowed. Authentication fails closed: whatever is in
/// doubt is refused.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The other end of a Unix socket is not the same user.
    #[error("the other end belongs to user {theirs} and this one to user {ours}: use the same")]
    OtherUser {
        /// Who we are.
        ours: u32,
        /// Who they are.
        theirs: u32,
    },
    /// The socket lies where others could have put it.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// TCP that could leave this machine, unencrypted.
    #[error("{0} is not a loopback address: use 127.0.0.1 or [::1], and a tunnel if need be")]
    NotLoopback(SocketAddr),
    /// A secret is asked for and there is none.
    #[error("this session needs its secret: set DDBX_SECRET_FILE to the file that holds it")]
    SecretNeeded,
    /// There is a secret that the session does not ask for.
    #[error(
        "this session asks for no secret, so it may be somebody else's: unset DDBX_SECRET_FILE \
         if it should have none"
    )]
    SecretUnknown,
    /// The proofs do not match.
    #[error("the two ends have different secrets: does DDBX_SECRET_FILE belong to this session?")]
    WrongSecret,
}

/// Anybody on this machine can reach a TCP port: nothing but the secret tells us
/// apart, and nothing but the loopback interface keeps the messages here.
pub(super) fn check_tcp(address: SocketAddr, has_secret: bool) -> Result<(), Refusal> {
    if !address.ip().is_loopback() {
        Err(Refusal::NotLoopback(address))
    } else if !has_secret {
        Err(Refusal::SecretNeeded)
    } else {
        Ok(())
    }
}

/// Makes sure that the other end of a Unix socket is the user `ours`. An owner
/// that cannot be told is nobody's.
pub(super) fn check_peer(stream: &UnixStream, ours: u32) -> Result<(), Refusal> {
    match stream.peer_cred().map_or(u32::MAX, |peer| peer.uid()) {
        theirs if theirs == ours => Ok(()),
        theirs => Err(Refusal::OtherUser { ours, theirs }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::directory::our_uid;
    use super::*;

    #[tokio::test]
    async fn a_peer_must_be_the_same_user() {
        let (one, _other) = UnixStream::pair().unwrap();
        check_peer(&one, our_uid()).unwrap();
        let error = check_peer(&one, our_uid() + 1).unwrap_err();
        assert!(matches!(error, Refusal::OtherUser { theirs, .. } if theirs == our_uid()));
    }
}
