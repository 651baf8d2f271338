//! Who may take part in a session, and who may not.

use thiserror::Error;
use tokio::net::UnixStream;

use super::address::Address;
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
    #[error(
        "{0} is not a loopback address, and nobody else may read or write what goes there: make \
         certificates with `ddbx certs DIR` and use them with --tls DIR or DDBX_TLS=DIR, or stay \
         with tcp:127.0.0.1:PORT"
    )]
    NotLoopback(Address),
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
    #[error(
        "the two ends have different secrets: does DDBX_SECRET_FILE, or what is in DDBX_TLS, belong to this session?"
    )]
    WrongSecret,
    /// The session speaks TLS, and we do not.
    #[error(
        "this session uses TLS: set DDBX_TLS to the directory with what `ddbx certs` has made for \
         it"
    )]
    TlsNeeded,
    /// We speak TLS, and the session does not.
    #[error(
        "this session does not use TLS, so it may be somebody else's: unset DDBX_TLS if it should \
         not"
    )]
    TlsUnknown,
    /// A certificate is not accepted.
    #[error("{} {}", whose.certificate(), fault.sentence())]
    Certificate {
        /// Whose.
        whose: Whose,
        /// What is wrong with it.
        fault: Fault,
    },
}

/// Which of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This one; the other one says so.
    Ours,
    /// The other one.
    Theirs,
}

impl Whose {
    fn certificate(self) -> &'static str {
        match self {
            Self::Ours => "the session does not accept the certificate of this end: it",
            Self::Theirs => "the certificate of the other end is not accepted: it",
        }
    }
}

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// There is none.
    Missing,
    /// Its time is over, or has not come.
    Expired,
    /// Another authority has made it, or it is for something else.
    Foreign,
    /// It is for another host.
    Name,
}

impl Fault {
    fn sentence(self) -> &'static str {
        match self {
            Self::Missing => "is missing: set DDBX_TLS to what `ddbx certs` has made",
            Self::Expired => {
                "has expired, or is not valid yet: make new ones with `ddbx certs` for all \
                 machines, if all clocks are right"
            }
            Self::Foreign => {
                "does not belong to this session: does DDBX_TLS have a copy of what `ddbx certs` \
                 has made for it?"
            }
            Self::Name => {
                "is for another host: give all its names and addresses to `ddbx certs --host`, or \
                 use one of those that it has"
            }
        }
    }
}

/// Anybody on this machine can reach a TCP port: nothing but the secret tells us
/// apart, and nothing but the loopback interface, or TLS, keeps the messages among us.
pub(super) fn check_tcp(address: &Address, has_secret: bool, has_tls: bool) -> Result<(), Refusal> {
    if !address.is_loopback() && !has_tls {
        Err(Refusal::NotLoopback(address.clone()))
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
