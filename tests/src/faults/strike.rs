//! What goes wrong, done to processes that run; and how long those who stood still go on
//! standing.

use std::time::Duration;

use ddbx_protocol::control::HoldReason;
use ddbx_protocol::link::Address;
use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::time::{sleep, timeout};

use super::kinds::Kind;
use super::play::{Play, control_of};
use super::program::Program;
use super::run::{Release, Trouble};
use super::schedule::Act;
use super::told::monotonic_nanos;
use crate::waiting::LIMIT;

const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How many come to central who do not belong there, and how often some of them say
/// something.
const STRANGERS: usize = 40;
const DRIP: Duration = Duration::from_millis(100);

impl Play<'_> {
    /// Something goes wrong while a call is held; in the end all are in the session again.
    pub(super) async fn strike(&mut self, act: &Act, held: &str) -> Result<(), Trouble> {
        let holder = self.stage.services[act.holder()].pid;
        let waiting = self.waiting(act).await?;
        let stopped = Duration::from_millis(act.stopped_ms);
        let since = monotonic_nanos();
        match act.kind {
            Kind::CentralKilled => {
                self.debugger()?.central.signal(Signal::KILL);
                self.note_release(act, held, since).await?;
                self.stage.open_again().await?;
            }
            Kind::CentralStopped => {
                self.debugger()?.central.stop().await?;
                self.note_release(act, held, since).await?;
                self.debugger()?.central.signal(Signal::CONT);
            }
            Kind::CentralSlow => {
                self.debugger()?.central.stop().await?;
                sleep(stopped).await;
                self.debugger()?.central.signal(Signal::CONT);
            }
            Kind::ConnectionCut | Kind::ConnectionHalfOpen | Kind::VersionMismatch => {
                let relay = self.debugger()?.relay.as_ref();
                let relay = relay.ok_or_else(|| Trouble::Stage("no relay".to_owned()))?;
                match act.kind {
                    Kind::ConnectionCut => relay.cut(Some(holder)),
                    Kind::ConnectionHalfOpen => relay.fail(holder, act.fails),
                    _ => {
                        relay.mistake_versions(true);
                        relay.cut(None);
                    }
                }
                self.note_release(act, held, since).await?;
                let relay = self.debugger()?.relay.as_ref();
                relay.inspect(|relay| relay.mistake_versions(false));
            }
            Kind::NetworkCut => {
                let network = self.debugger()?.network.as_ref();
                let network = network.ok_or_else(|| Trouble::Stage("no network".to_owned()))?;
                network.cut().map_err(Trouble::Stage)?;
                self.note_release(act, held, since).await?;
                let network = self.debugger()?.network.as_ref();
                network.map_or(Ok(()), |network| network.mend()).map_err(Trouble::Stage)?;
            }
            Kind::Strangers => self.visit(stopped).await?,
            Kind::DiskFull => {
                let disk = self.debugger()?.disk.as_ref();
                let disk = disk.ok_or_else(|| Trouble::Stage("no disk".to_owned()))?;
                let full = |error| Trouble::Stage(format!("the disk cannot be filled: {error}"));
                let filler = disk.fill(0).map_err(full)?;
                self.stage.caller.say("choose much").await;
                sleep(stopped).await;
                std::fs::remove_file(filler).map_err(full)?;
            }
            Kind::ServiceKilled
            | Kind::ServiceStopped
            | Kind::ServiceExits
            | Kind::RuntimeShutDown
            | Kind::PanicUnwinds
            | Kind::PanicAborts => {
                self.strike_program(act, held).await?;
                for name in waiting {
                    self.note_release(act, &name, since).await?;
                }
                self.mend_program(act).await;
                // One that is gone is started again when its calls have ended.
                if act.kind.ends_a_service() {
                    return Ok(());
                }
            }
        }
        self.stage.until_all_take_part().await
    }

    /// Something goes wrong with the program, with a debugger or without.
    pub(super) async fn strike_program(&mut self, act: &Act, held: &str) -> Result<(), Trouble> {
        let target = &mut self.stage.services[act.target];
        match act.kind {
            Kind::ServiceKilled => target.signal(Signal::KILL),
            Kind::ServiceStopped => return target.stop().await,
            Kind::ServiceExits => target.say("exit").await,
            Kind::RuntimeShutDown => target.say("return").await,
            Kind::PanicUnwinds | Kind::PanicAborts => target.say(&format!("panic {held}")).await,
            _ => return Ok(()),
        }
        if act.kind.ends_a_service() { target.ends().await } else { Ok(()) }
    }

    /// What was stopped goes on.
    pub(super) async fn mend_program(&mut self, act: &Act) {
        if act.kind == Kind::ServiceStopped {
            sleep(Duration::from_millis(act.stopped_ms)).await;
            self.stage.services[act.target].signal(Signal::CONT);
        }
    }

    /// Calls that wait elsewhere because of one that is held in a process which is about to
    /// be killed: they must not wait for the dead.
    async fn waiting(&self, act: &Act) -> Result<Vec<String>, Trouble> {
        if act.kind != Kind::ServiceKilled || act.target != act.holder() {
            return Ok(Vec::new());
        }
        let target = &self.stage.services[act.target].name;
        let holds = self.debugger()?.holds().await?;
        let waits = |call: &str| {
            holds.iter().any(|hold| {
                let is_it = hold.control.as_ref().is_some_and(|it| it.to_string() == call);
                is_it && hold.reason == HoldReason::Delay && hold.process != *target
            })
        };
        let calls = self.stage.begun.iter().filter(|name| name.starts_with("around"));
        Ok(calls.filter(|name| waits(&control_of(name))).cloned().collect())
    }

    /// Waits until a call goes on that stood still, and notes how long that took.
    async fn note_release(&mut self, act: &Act, name: &str, since: u64) -> Result<(), Trouble> {
        let looks = async {
            loop {
                let programs = self.stage.services.iter().flat_map(Program::progress);
                let of_it = programs.filter(|progress| progress.name == name);
                if let Some(at) = of_it.map(|it| it.nanos).filter(|nanos| *nanos > since).min() {
                    return at;
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        let at = timeout(LIMIT, looks).await;
        let at = at.map_err(|_| Trouble::Hung(format!("{name} stands after {}", act.kind)))?;
        let after_ms = (at - since) as f64 / 1e6;
        self.run.releases.push(Release { kind: act.kind, after_ms });
        Ok(())
    }

    /// Some come to central who do not belong there, and stay for a while.
    async fn visit(&self, stay: Duration) -> Result<(), Trouble> {
        let Address::Unix(socket) = &self.debugger()?.address else { return Ok(()) };
        let cannot = |error| Trouble::Stage(format!("strangers cannot come: {error}"));
        let mut strangers = Vec::new();
        for _ in 0..STRANGERS {
            strangers.push(UnixStream::connect(socket).await.map_err(cannot)?);
        }
        let drips = async {
            for byte in b"ddbx".iter().cycle() {
                for stranger in strangers.iter_mut().step_by(2) {
                    // They may have been shown out.
                    let _ = stranger.write_all(&[*byte]).await;
                }
                sleep(DRIP).await;
            }
        };
        let _ = timeout(stay, drips).await;
        Ok(())
    }
}
