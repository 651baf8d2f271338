//! Commands for a session that runs: which one is meant, and how it is reached.

use std::path::PathBuf;

use clap::Args;
use ddbx_protocol::SessionName;
use ddbx_protocol::control::{Reply, Request};
use ddbx_protocol::link::{
    Address, DialError, DirectoryError, Receiver, Refusal, Role, Secret, Sender, dial, is_alive,
    session_names,
};
use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

pub(crate) mod breakpoints;
pub(crate) mod events;
pub(crate) mod holds;
pub(crate) mod processes;

/// Which session is meant, and how its answer is printed.
#[derive(Args)]
pub(crate) struct SessionArgs {
    /// Which session: its name, unix:PATH or tcp:IP:PORT; needless if only one runs
    #[arg(long, short = 'S', env = "DDBX_SESSION", hide_env_values = true)]
    session: Option<String>,

    /// The secret of a session over TCP
    #[arg(long, value_name = "FILE", env = "DDBX_SECRET_FILE", hide_env_values = true)]
    secret_file: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A connection to a session.
pub(crate) struct Client {
    runtime: Runtime,
    sender: Sender,
    receiver: Receiver,
}

impl SessionArgs {
    /// Connects to the session.
    pub(crate) fn connect(&self) -> Result<Client, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connection = runtime.block_on(async {
            let address = self.address().await?;
            let secret = match (&address, &self.secret_file) {
                (Address::Tcp(_), Some(file)) => Some(Secret::read(file).map_err(bad_input)?),
                _ => None,
            };
            match dial(&address, secret.as_ref(), Role::Controller).await {
                Err(error) => Err(not_reached(error).await),
                Ok(connection) => Ok(connection),
            }
        })?;
        let (sender, receiver) = connection.split();
        Ok(Client { runtime, sender, receiver })
    }

    /// Asks one thing.
    pub(crate) fn ask(&self, request: Request) -> Result<Reply, Failure> {
        self.connect()?.ask(request)
    }

    async fn address(&self) -> Result<Address, Failure> {
        if let Some(session) = self.session.as_deref().filter(|session| !session.is_empty()) {
            return Address::parse(session).map_err(bad_input);
        }
        let alive = alive().await.map_err(|error| Failure::Failed(error.to_string()))?;
        match alive.as_slice() {
            [only] => Address::parse(only.as_str()).map_err(bad_input),
            [] => Err(Failure::NoSession(format!("no session runs: {START_ONE}"))),
            [first, ..] => Err(Failure::BadInput(format!(
                "{} sessions run: {}; say which with --session {first}",
                alive.len(),
                listed(&alive),
            ))),
        }
    }
}

const START_ONE: &str =
    "start one with `ddbx run`, or with `ddbx central` and your services by hand";

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

fn listed(names: &[SessionName]) -> String {
    names.iter().map(SessionName::as_str).collect::<Vec<_>>().join(", ")
}

impl Client {
    /// Asks one thing, and waits for the answer.
    pub(crate) fn ask(&mut self, request: Request) -> Result<Reply, Failure> {
        self.send(request)?;
        self.next()?.ok_or_else(ended)
    }

    pub(crate) fn send(&mut self, request: Request) -> Result<(), Failure> {
        self.runtime.block_on(self.sender.send(&request)).map_err(|_| ended())
    }

    /// The next answer; none when there are no more.
    pub(crate) fn next(&mut self) -> Result<Option<Reply>, Failure> {
        match self.runtime.block_on(self.receiver.receive()) {
            Ok(Some(Reply::Refused(why))) => Err(refused(why)),
            Ok(reply) => Ok(reply),
            Err(_) => Err(ended()),
        }
    }
}

/// A refusal with a mark has its place on a line of its own.
fn refused(why: String) -> Failure {
    if why.contains('\n') { Failure::Marked(why) } else { Failure::Failed(why) }
}

fn bad_input(error: impl ToString) -> Failure {
    Failure::BadInput(error.to_string())
}

async fn not_reached(error: DialError) -> Failure {
    match error {
        DialError::NoSession(address) => {
            let none = match address.session_name() {
                Some(name) => format!("no session called {name} runs"),
                None => format!("no session runs at {address}"),
            };
            let next = match alive().await.unwrap_or_default().as_slice() {
                [] => START_ONE.to_owned(),
                alive => format!("those that run: {}; --session says which", listed(alive)),
            };
            Failure::NoSession(format!("{none}: {next}"))
        }
        DialError::Address(error) => bad_input(error),
        DialError::NotAllowed(Refusal::SecretNeeded) => Failure::BadInput(
            "a session over TCP has a secret: say where it is with --secret-file FILE, or with \
             DDBX_SECRET_FILE"
                .to_owned(),
        ),
        refused @ (DialError::NotAllowed(_) | DialError::Version { .. }) => {
            Failure::Failed(refused.to_string())
        }
        failed @ DialError::Failed { .. } => Failure::NoSession(failed.to_string()),
    }
}

fn ended() -> Failure {
    Failure::NoSession(format!("the session has ended: {START_ONE}"))
}

/// What is in the answer, if it is the one that fits the question.
macro_rules! answer {
    ($reply:expr, $fits:path) => {
        match $reply {
            $fits(content) => content,
            other => return Err($crate::session::unexpected(other)),
        }
    };
}
pub(crate) use answer;

/// The session answers something else than it was asked.
pub(crate) fn unexpected(reply: Reply) -> Failure {
    Failure::Failed(format!("the session gave an answer that does not fit: {reply:?}"))
}

/// Prints a value as JSON, on lines of its own.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    print(&text)
}

/// Prints a line, or several.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = anstream::stdout();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}
