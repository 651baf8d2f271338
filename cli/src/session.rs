//! Commands for a session that runs.

use std::path::PathBuf;

use clap::Args;
use ddbx_protocol::control::{Reply, Request};
use ddbx_protocol::link::{FindError, FindFailure, KeyFiles, Receiver, START_ONE, Sender, reach};
use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;
use crate::text::escaped_json;

pub(crate) mod breakpoints;
pub(crate) mod events;
pub(crate) mod holds;
pub(crate) mod processes;

// A word for a session. What it does is said by the word: a documentation here, or of
// the arguments below, would be shown instead.
#[derive(Args)]
pub(crate) struct InSession<Word: Args> {
    #[command(flatten)]
    pub(crate) word: Word,

    #[command(flatten)]
    pub(crate) session: SessionArgs,
}

// Which session is meant, and how its answer is printed.
#[derive(Args)]
pub(crate) struct SessionArgs {
    /// Which session: its name, unix:PATH or tcp:IP:PORT; needless if only one runs
    #[arg(long, short = 'S', env = "DDBX_SESSION", hide_env_values = true)]
    session: Option<String>,

    /// The secret of a session over TCP
    #[arg(long, value_name = "FILE", env = "DDBX_SECRET_FILE", hide_env_values = true)]
    secret_file: Option<PathBuf>,

    /// The directory with the certificates of a session on another machine
    #[arg(long, value_name = "DIR", env = "DDBX_TLS", hide_env_values = true)]
    tls: Option<PathBuf>,

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
        let files = KeyFiles { secret: self.secret_file.as_deref(), tls: self.tls.as_deref() };
        let reaching = reach(self.session.as_deref(), files);
        let connection = runtime.block_on(reaching).map_err(not_reached)?;
        let (sender, receiver) = connection.split();
        Ok(Client { runtime, sender, receiver })
    }

    /// Asks one thing.
    pub(crate) fn ask(&self, request: Request) -> Result<Reply, Failure> {
        self.connect()?.ask(request)
    }
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

fn not_reached(error: FindError) -> Failure {
    let why = error.to_string();
    match error.failure() {
        FindFailure::NoSession => Failure::NoSession(why),
        FindFailure::BadInput => Failure::BadInput(why),
        FindFailure::Failed => Failure::Failed(why),
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
    print(&escaped_json(&text))
}

/// Prints a line, or several.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = anstream::stdout();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}
