//! Who tries to get in, and where.

use serde::Serialize;

/// How a session is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    /// A Unix socket.
    Unix,
    /// TCP with a secret.
    Tcp,
    /// The same inside TLS.
    Tls,
}

/// An attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Another user of the machine.
    OtherUser,
    /// The same, with a directory and a socket that somebody has opened to all.
    OtherUserThroughOpenDirectory,
    /// A request of a browser, or of something like it.
    Http,
    /// A browser that wants to speak with the port.
    WebSocket,
    /// Bytes without meaning.
    Garbage,
    /// Much of it, after a beginning that is right.
    Flood,
    /// One of another version.
    Version,
    /// Neither a satellite nor a controller.
    Role,
    /// Says nothing.
    Silent,
    /// Says a byte a second.
    Slow,
    /// Asks without having proved anything.
    NoProof,
    /// Proves something wrong.
    WrongProof,
    /// A client of ddbx with another secret.
    WrongSecret,
    /// All that somebody else once said.
    Replay,
    /// The handshake of ddbx where TLS is spoken.
    Plain,
    /// TLS without a certificate.
    NoCertificate,
    /// A certificate of another session.
    ForeignCertificate,
    /// A certificate whose time is over.
    ExpiredCertificate,
    /// A request of a browser that has a certificate.
    HttpWithCertificate,
    /// One of the session that sends a message without end.
    OversizedFrame,
    /// One of the session that says more than a message.
    TrailingBytes,
    /// One of the session that says something before it has said who it is.
    NotIntroduced,
    /// One of the session that wants the name of another.
    Name,
    /// One of the session that says it is another.
    Number,
    /// A session beyond the loopback interface, without TLS.
    ListenWithoutTls,
    /// A session in a directory that is a link.
    SymlinkedDirectory,
    /// A secret that others can read.
    OpenSecret,
    /// A secret on the command line.
    SecretOnCommandLine,
}

/// When an attempt can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Alone.
    OtherUser,
    /// Beside all others, for it only waits.
    Waits,
    /// At any time.
    Any,
}

impl Kind {
    pub(super) fn phase(self) -> Phase {
        match self {
            Self::OtherUser | Self::OtherUserThroughOpenDirectory => Phase::OtherUser,
            Self::Silent | Self::Slow => Phase::Waits,
            _ => Phase::Any,
        }
    }

    fn doors(self) -> &'static [Door] {
        use Door::{Tcp, Tls, Unix};
        match self {
            Self::Http | Self::WebSocket | Self::Garbage | Self::Silent | Self::Slow => {
                &[Unix, Tcp, Tls]
            }
            Self::OtherUser
            | Self::OtherUserThroughOpenDirectory
            | Self::OversizedFrame
            | Self::TrailingBytes
            | Self::NotIntroduced
            | Self::Name
            | Self::Number
            | Self::SymlinkedDirectory => &[Unix],
            Self::Version | Self::Role => &[Unix, Tcp],
            Self::Flood | Self::NoProof | Self::WrongProof => &[Tcp],
            Self::WrongSecret | Self::Replay => &[Tcp, Tls],
            Self::OpenSecret | Self::SecretOnCommandLine => &[Tcp],
            Self::Plain
            | Self::NoCertificate
            | Self::ForeignCertificate
            | Self::ExpiredCertificate
            | Self::HttpWithCertificate
            | Self::ListenWithoutTls => &[Tls],
        }
    }
}

const KINDS: [Kind; 28] = [
    Kind::OtherUser,
    Kind::OtherUserThroughOpenDirectory,
    Kind::Http,
    Kind::WebSocket,
    Kind::Garbage,
    Kind::Flood,
    Kind::Version,
    Kind::Role,
    Kind::Silent,
    Kind::Slow,
    Kind::NoProof,
    Kind::WrongProof,
    Kind::WrongSecret,
    Kind::Replay,
    Kind::Plain,
    Kind::NoCertificate,
    Kind::ForeignCertificate,
    Kind::ExpiredCertificate,
    Kind::HttpWithCertificate,
    Kind::OversizedFrame,
    Kind::TrailingBytes,
    Kind::NotIntroduced,
    Kind::Name,
    Kind::Number,
    Kind::ListenWithoutTls,
    Kind::SymlinkedDirectory,
    Kind::OpenSecret,
    Kind::SecretOnCommandLine,
];

/// An attempt at a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) kind: Kind,
    pub(super) door: Door,
}

/// All that there are.
pub(super) fn cases() -> Vec<Case> {
    let of = |kind: Kind| kind.doors().iter().map(move |door| Case { kind, door: *door });
    KINDS.into_iter().flat_map(of).collect()
}
