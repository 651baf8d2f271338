//! Which session is meant, and why it is not reached: in words for whoever has typed
//! its name.

use thiserror::Error;

use super::Role;
use super::address::{Address, InvalidAddress};
use super::connection::Connection;
use super::dial::{DialError, dial, is_alive};
use super::directory::{DirectoryError, session_names};
use super::keys::{KeyFiles, Keys, KeysError};
use super::refusal::Refusal;
use crate::ids::SessionName;

/// What to do where no session runs.
pub const START_ONE: &str =
    "start one with `ddbx run`, or with `ddbx central` and your services by hand";

/// The session that is meant: the one that is named, or else the only one that runs.
pub async fn find(session: Option<&str>) -> Result<Address, FindError> {
    if let Some(session) = session.filter(|session| !session.is_empty()) {
        return Ok(Address::parse(session)?);
    }
    match alive().await?.as_slice() {
        [only] => Ok(Address::parse(only.as_str())?),
        [] => Err(FindError::NoneRuns),
        several => Err(FindError::SeveralRun(several.to_vec())),
    }
}

/// Finds the session that is meant and connects to it as a controller. Keys are read only
/// for a session over TCP; the file of a secret may be all that is given.
pub async fn reach<'a>(
    session: Option<&str>,
    files: impl Into<KeyFiles<'a>>,
) -> Result<Connection, FindError> {
    let address = find(session).await?;
    let keys = Keys::read(&address, files.into())?;
    match dial(&address, keys, Role::Controller).await {
        Ok(connection) => Ok(connection),
        Err(DialError::NoSession(address)) => {
            let others = alive().await.unwrap_or_default();
            Err(FindError::NotThere { address, others })
        }
        Err(DialError::Address(error)) => Err(error.into()),
        Err(DialError::NotAllowed(Refusal::SecretNeeded)) => Err(FindError::SecretNeeded),
        Err(error) => Err(FindError::Dial(error)),
    }
}

/// The sessions that run and are found by their names.
async fn alive() -> Result<Vec<SessionName>, DirectoryError> {
    let mut alive = Vec::new();
    for name in session_names()? {
        // One whose name is too long for a socket cannot run.
        if let Ok(address) = Address::parse(name.as_str())
            && is_alive(&address).await
        {
            alive.push(name);
        }
    }
    Ok(alive)
}

/// Why the session that is meant is not reached.
#[derive(Debug, Error)]
pub enum FindError {
    /// What was named cannot be a session.
    #[error(transparent)]
    Address(#[from] InvalidAddress),
    /// The directory of sessions cannot be trusted or read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// None was named, and none runs.
    #[error("no session runs: {START_ONE}")]
    NoneRuns,
    /// None was named, and more than one could be meant.
    #[error("{}", which(.0))]
    SeveralRun(Vec<SessionName>),
    /// The one that was named does not run.
    #[error("{}: {}", nobody_at(.address), instead(.others))]
    NotThere {
        /// Where it would be.
        address: Address,
        /// Those that run.
        others: Vec<SessionName>,
    },
    /// Its secret or its certificates cannot be read.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// It has a secret.
    #[error(
        "a session over TCP has a secret: say where it is with --secret-file FILE, or with \
         DDBX_SECRET_FILE"
    )]
    SecretNeeded,
    /// There is somebody, but no connection.
    #[error(transparent)]
    Dial(DialError),
}

/// Whose matter it is that a session is not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindFailure {
    /// There is no session, or nobody answers.
    NoSession,
    /// What was asked for is wrong.
    BadInput,
    /// Something else.
    Failed,
}

impl FindError {
    /// Whose matter it is.
    pub fn failure(&self) -> FindFailure {
        match self {
            Self::NoneRuns | Self::NotThere { .. } => FindFailure::NoSession,
            Self::Dial(DialError::NoSession(_) | DialError::Failed { .. }) => {
                FindFailure::NoSession
            }
            Self::Address(_) | Self::SeveralRun(_) | Self::Keys(_) | Self::SecretNeeded => {
                FindFailure::BadInput
            }
            Self::Directory(_) | Self::Dial(_) => FindFailure::Failed,
        }
    }
}

fn listed(names: &[SessionName]) -> String {
    names.iter().map(SessionName::as_str).collect::<Vec<_>>().join(", ")
}

fn which(names: &[SessionName]) -> String {
    let first = names.first().map_or("NAME", SessionName::as_str);
    let (number, all) = (names.len(), listed(names));
    format!("{number} sessions run: {all}; say which with --session {first}")
}

fn nobody_at(address: &Address) -> String {
    match address.session_name() {
        Some(name) => format!("no session called {name} runs"),
        None => format!("no session runs at {address}"),
    }
}

fn instead(others: &[SessionName]) -> String {
    match others {
        [] => START_ONE.to_owned(),
        others => format!("those that run: {}; --session says which", listed(others)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_named_session_is_not_looked_for() {
        let meant = find(Some("tcp:127.0.0.1:7")).await.unwrap();
        assert_eq!(meant, Address::parse("tcp:127.0.0.1:7").unwrap());
        let error = find(Some("no/name")).await.unwrap_err();
        assert_eq!(error.failure(), FindFailure::BadInput, "{error}");
    }

    #[test]
    fn sentences_say_what_to_do() {
        let names = ["main", "other"].map(|name| SessionName::new(name).unwrap());
        let several = FindError::SeveralRun(names.to_vec());
        assert_eq!(
            several.to_string(),
            "2 sessions run: main, other; say which with --session main"
        );
        let address = Address::parse("tcp:127.0.0.1:7").unwrap();
        let mut not_there = FindError::NotThere { address, others: names.to_vec() };
        assert_eq!(not_there.failure(), FindFailure::NoSession);
        assert!(
            not_there.to_string().ends_with(": those that run: main, other; --session says which")
        );
        if let FindError::NotThere { others, .. } = &mut not_there {
            others.clear();
        }
        assert!(not_there.to_string().ends_with(START_ONE));
    }
}
