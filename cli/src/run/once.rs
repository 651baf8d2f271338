//! One run in a session of its own.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use ddbx_protocol::SessionName;
use ddbx_recording::Program;
use tokio::sync::mpsc;

use super::RunArgs;
use super::alarm::Alarm;
use super::config::Config;
use super::output::Sinks;
use super::recording::{create_recording, finish_recording};
use super::screen::{self, Held};
use super::stops::Stops;
use super::supervisor::{Ended, Hooks, Options, supervise};
use crate::central::{self, Open};
use crate::exit::Failure;

/// What all runs of a command have in common.
pub(super) struct Runner<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) config: Config,
    /// A name or an address.
    pub(super) session: String,
    pub(super) stops: Stops,
}

/// What is different from run to run.
pub(super) struct Variant<'a> {
    pub(super) sinks: Sinks,
    /// What the screen shows of what is printed, if there is one.
    pub(super) shown: Option<(Held, mpsc::Receiver<String>)>,
    /// Of the delays, if there are to be any.
    pub(super) seed: Option<u64>,
    pub(super) record: Option<&'a Path>,
    pub(super) alarm: Option<Arc<Alarm>>,
    /// Whether to say that the session is open.
    pub(super) is_announced: bool,
}

impl Runner<'_> {
    /// Opens the session and runs what the file lists in it. All of it ends with the
    /// runtime, whoever is still connected.
    pub(super) fn once(&self, variant: Variant<'_>) -> Result<Ended, Failure> {
        central::runtime()?.block_on(self.in_session(variant))
    }

    async fn in_session(&self, variant: Variant<'_>) -> Result<Ended, Failure> {
        let Variant { sinks, shown, seed, record, alarm, is_announced } = variant;
        let args = self.args;
        let mut open = Open::start(&self.session, args.in_session.key_files(), args.mode).await?;
        let mut environment = open.environment.clone();
        if let Some(directory) = record {
            let session = recorded_as(&open.name);
            let program = self.program()?;
            environment.extend(create_recording(directory, session, args.keep(), program)?);
            if args.payloads {
                environment.push(("DDBX_PAYLOADS".to_owned(), "1".to_owned()));
            }
        }
        if let Some(seed) = seed {
            let delays = format!("{seed}:{}", args.max_delay.micros);
            environment.push(("DDBX_PERTURB".to_owned(), delays));
        }
        if is_announced {
            anstream::eprintln!("ddbx: session {} is open; try `ddbx ps` elsewhere", open.name);
        }
        let at = open.at.clone();
        let (session, finished) = (open.session.clone(), open.session.clone());
        let hooks = Hooks {
            is_attached: move |name: &str| central::is_attached(&session, name),
            stop: || self.stops.clone().told(),
            // What has happened is to be in the recording, but not what processes do because
            // they are asked to end: a replay does not ask.
            before_teardown: async move { finished.finished().await },
        };
        let options = Options { alarm, ..args.options() };
        let mut running = pin!(supervise(sinks, &self.config, &environment, hooks, &options));
        let screen = async {
            match shown {
                Some((held, printed)) => screen::show(at, held, printed).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = screen => running.await,
            () = open.asked_to_end() => {
                self.stops.tell();
                running.await
            }
        };
        if let Some(directory) = record {
            finish_recording(directory, &ended.exits)?;
        }
        Ok(ended)
    }

    fn program(&self) -> Result<Program, Failure> {
        let file = std::path::absolute(&self.args.file)?.display().to_string();
        Ok(Program { file, text: self.config.text.clone() })
    }
}

/// A session that has an address only is recorded under the name that sessions have
/// if nobody gives them one.
fn recorded_as(session: &str) -> SessionName {
    SessionName::new(session)
        .or_else(|_| SessionName::new("default"))
        .expect("the second is a name")
}
