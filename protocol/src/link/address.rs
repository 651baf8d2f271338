//! Where a session listens.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::directory::session_directory;
use crate::ids::{InvalidName, SessionName};

/// The longest path that fits into a socket address on Linux.
const PATH_BYTES_MAX: usize = 107;

/// What the sockets of named sessions end with.
pub(super) const EXTENSION: &str = "sock";

/// Where central listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port. Beyond the loopback interface only with TLS.
    Tcp(SocketAddr),
    /// A TCP port of a host that has a name: to be dialled, with TLS.
    Host(String, u16),
}

impl Address {
    /// Reads the name of a session, `unix:PATH`, `tcp:IP:PORT` or `tcp:HOST:PORT`.
    pub fn parse(text: &str) -> Result<Self, InvalidAddress> {
        Self::parse_in(&session_directory(), text)
    }

    fn parse_in(directory: &Path, text: &str) -> Result<Self, InvalidAddress> {
        if let Some(address) = text.strip_prefix("tcp:") {
            let parsed = address.parse().ok().map(Self::Tcp).or_else(|| host(address));
            return parsed.ok_or_else(|| InvalidAddress::Tcp(address.to_owned()));
        }
        let path = match text.strip_prefix("unix:") {
            Some(path) if path.is_empty() || path.contains(char::is_control) => {
                return Err(InvalidAddress::Path(path.to_owned()));
            }
            Some(path) => PathBuf::from(path),
            None => directory.join(format!("{}.{EXTENSION}", SessionName::new(text)?)),
        };
        // The address is handed on to processes that start in other directories.
        let path = std::path::absolute(&path).unwrap_or(path);
        check_length(&path)?;
        Ok(Self::Unix(path))
    }

    /// Whether it is a TCP port.
    pub fn is_tcp(&self) -> bool {
        !matches!(self, Self::Unix(_))
    }

    /// Whether what is sent there stays on this machine. A name could mean anything.
    pub(super) fn is_loopback(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp(at) => at.ip().is_loopback(),
            Self::Host(..) => false,
        }
    }

    /// The session, if it is one that is found by its name.
    pub fn session_name(&self) -> Option<SessionName> {
        match self {
            Self::Unix(path) if path.parent() == Some(&session_directory()) => name_of(path),
            _ => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
            Self::Host(name, port) => write!(f, "tcp:{name}:{port}"),
        }
    }
}

/// A host with a name of letters, digits, dots and hyphens, and not of digits alone: that
/// would be an address.
fn host(text: &str) -> Option<Address> {
    let (name, port) = text.rsplit_once(':')?;
    let parts = || name.split('.');
    let is_part = |part: &str| {
        let plain = part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        !part.is_empty() && part.len() <= 63 && plain && !part.starts_with('-')
    };
    let has_letter = parts().next_back()?.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_name = name.len() <= 253 && parts().all(is_part) && has_letter;
    is_name.then(|| port.parse().ok().map(|port| Address::Host(name.to_owned(), port)))?
}

/// The session whose socket has this path.
pub(super) fn name_of(path: &Path) -> Option<SessionName> {
    let name = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    SessionName::new(name).ok()
}

pub(super) fn check_length(path: &Path) -> Result<(), InvalidAddress> {
    let len = path.as_os_str().as_bytes().len();
    if len > PATH_BYTES_MAX {
        return Err(InvalidAddress::TooLong { path: path.to_owned(), len });
    }
    Ok(())
}

/// Why an address was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidAddress {
    /// Neither `unix:`, nor `tcp:`, nor a name.
    #[error("{0}; an address is the name of a session, unix:PATH or tcp:IP:PORT")]
    Name(#[from] InvalidName),
    /// No path, or one that cannot be shown.
    #[error("unix: needs the path of a socket, and {0:?} is none")]
    Path(String),
    /// Not a host with a port.
    #[error("tcp: needs a host and a port, such as 127.0.0.1:4000; {0:?} is none")]
    Tcp(String),
    /// More than a socket address can hold.
    #[error(
        "the path of a socket can have at most {PATH_BYTES_MAX} bytes, and {path} has {len}: \
         choose a shorter name, or another place with unix:PATH"
    )]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        len: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, InvalidAddress> {
        Address::parse_in(Path::new("/run/ddbx"), text)
    }

    #[test]
    fn an_address_is_a_name_a_path_or_a_port() {
        let cases = [
            ("shop", "unix:/run/ddbx/shop.sock"),
            ("unix:/tmp/a b.sock", "unix:/tmp/a b.sock"),
            ("tcp:127.0.0.1:4000", "tcp:127.0.0.1:4000"),
            ("tcp:[::1]:4000", "tcp:[::1]:4000"),
            ("tcp:db-1.example.org:4000", "tcp:db-1.example.org:4000"),
            ("tcp:localhost:4000", "tcp:localhost:4000"),
        ];
        for (text, shown) in cases {
            let address = parse(text).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(parse(shown), Ok(address));
        }
    }

    #[test]
    fn a_relative_path_means_the_same_everywhere() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(parse("unix:x.sock"), Ok(Address::Unix(here.join("x.sock"))));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "a/b", "udp:1.2.3.4:5", "a b", "a\n", "unix:", "unix:\u{1b}", "tcp:1"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        let long = format!("{}.org", "x".repeat(64));
        for host in ["", "1.2.3", "1.2.3.999", "a..b", "-a", "a b", "a\u{1b}", "a/b", "::1", &long]
        {
            assert!(parse(&format!("tcp:{host}:4000")).is_err(), "{host:?}");
        }
        assert!(parse("tcp:host:65536").is_err() && parse("tcp:host:").is_err());
        // A name is only ever the name of a file in the directory.
        assert_eq!(parse(".."), Ok(Address::Unix("/run/ddbx/...sock".into())));
        assert!(parse("tcp:localhost").unwrap_err().to_string().contains("127.0.0.1:4000"));
    }

    #[test]
    fn a_path_of_107_bytes_is_the_longest() {
        let path = format!("unix:/{}", "x".repeat(106));
        assert!(parse(&path).is_ok());
        let error = parse(&format!("{path}x")).unwrap_err().to_string();
        assert!(error.contains("at most 107 bytes") && error.contains("has 108"), "{error}");
    }

    #[test]
    fn only_sockets_in_the_session_directory_have_names() {
        let named = Address::Unix(session_directory().join("shop.sock"));
        assert_eq!(named.session_name(), SessionName::new("shop").ok());
        assert_eq!(Address::Unix("/elsewhere/shop.sock".into()).session_name(), None);
        assert_eq!(Address::Unix(session_directory().join("shop")).session_name(), None);
    }
}
