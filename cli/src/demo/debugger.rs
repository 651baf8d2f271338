//! The session of the demo, in the demo's own process.

use std::collections::BTreeMap;
use std::time::Duration;

use ddbx_central::driver::Session;
use ddbx_central::server;
use ddbx_protocol::control::{
    HoldReason, HoldView, Notice, ProcessState, ProcessView, Reply, Request, Wanted, What, Whom,
};
use ddbx_protocol::link::{Address, Listener};
use ddbx_protocol::session::HEARTBEAT;
use serde::Serialize;
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::DemoError;
use super::shop::{PATIENCE, temporary_directory};

/// A session at a socket. When it is dropped nobody stays held.
pub(super) struct Debugger {
    session: Session,
    address: Address,
    serving: JoinHandle<()>,
    _dir: TempDir,
}

/// What was seen of a stop.
pub(super) struct Stop {
    /// Who hit the breakpoint.
    pub(super) hit: HoldView,
    /// From its real begin to its real end.
    pub(super) held: Duration,
    /// Whoever had to wait at its end, by process.
    pub(super) waited: Vec<Waited>,
    /// Whoever did not.
    pub(super) went_on: Vec<WentOn>,
}

/// A process in which somebody had to wait.
#[derive(Debug, Serialize)]
pub(super) struct Waited {
    pub(super) process: String,
    /// Before which event the first of them stood.
    pub(super) at: String,
    /// Which hold that one waited for; none inside the process that is held itself.
    pub(super) hold: Option<u64>,
    /// Where that hold was.
    pub(super) behind: String,
    /// How many stood in the process.
    pub(super) standing: u64,
}

/// A process in which nobody had to wait.
#[derive(Debug, Serialize)]
pub(super) struct WentOn {
    pub(super) process: String,
    /// Calls that it made or served during the last part of the stop.
    pub(super) calls: u64,
}

impl Debugger {
    /// Starts a session that nobody else knows of.
    pub(super) async fn start() -> Result<Self, DemoError> {
        let dir = temporary_directory()?;
        let address = Address::Unix(dir.path().join("session.sock"));
        let listener = Listener::bind(&address, None).await?;
        let session = Session::start().map_err(DemoError::Session)?;
        let serving = tokio::spawn(server::serve(listener, session.clone()));
        Ok(Self { session, address, serving, _dir: dir })
    }

    /// Where the processes find it.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Whether all of these take part, and customers have been in the shop.
    pub(super) fn is_under_way(&self, names: &[String]) -> bool {
        let processes = self.processes();
        names.iter().all(|name| processes.iter().any(|process| process.name == *name))
            && processes.iter().any(|process| process.name == "gateway" && process.served > 0)
    }

    /// Stops the first control that comes by, and its process, and looks around.
    pub(super) async fn stop_at(
        &self,
        spec: &str,
        length: Duration,
        tell: impl FnOnce(&HoldView) -> Result<(), DemoError>,
    ) -> Result<Stop, DemoError> {
        let mut notices = self.session.subscribe().ok_or(DemoError::SessionEnded)?;
        let wanted = Wanted { spec: spec.to_owned(), once: true, ..Wanted::default() };
        let breakpoint = match self.request(Request::Break(wanted))? {
            Reply::Breakpoint(view) => view.id,
            other => return Err(refused(other)),
        };
        let hits = |what| match what {
            What::Stands(hold) if hold.breakpoint == Some(breakpoint) => Some(hold),
            _ => None,
        };
        let hit = heard(&mut notices, "somebody comes to the breakpoint", hits).await?;
        let ends = Instant::now() + length;
        tell(&hit)?;
        // By then everybody has said how it is doing now.
        sleep(2 * HEARTBEAT).await;
        let before = self.calls_so_far();
        sleep_until(ends).await;
        let (waited, went_on) = self.look_around(&hit, &before)?;
        match self.request(Request::Continue(Whom::Hold(hit.id)))? {
            Reply::Done(_) => {}
            other => return Err(refused(other)),
        }
        let goes_on = |what| match what {
            What::GoesOn { hold, held_ms, .. } if hold == hit.id => Some(held_ms),
            _ => None,
        };
        let held_ms = heard(&mut notices, "the one at the breakpoint goes on", goes_on).await?;
        Ok(Stop { hit, held: Duration::from_millis(held_ms), waited, went_on })
    }

    fn look_around(
        &self,
        hit: &HoldView,
        before: &BTreeMap<String, u64>,
    ) -> Result<(Vec<Waited>, Vec<WentOn>), DemoError> {
        let holds = match self.request(Request::Holds)? {
            Reply::Holds(holds) => holds,
            other => return Err(refused(other)),
        };
        let (mut waited, mut went_on) = (Vec::new(), Vec::new());
        for process in self.processes() {
            let stands = |hold: &&HoldView| hold.process == process.name && hold.id != hit.id;
            match holds.iter().find(stands) {
                Some(first) => waited.push(Waited::new(first, &process, hit, &holds)),
                None if process.state == ProcessState::Running => {
                    let calls = process.made + process.served;
                    let before = before.get(&process.name).copied().unwrap_or_default();
                    went_on.push(WentOn { process: process.name, calls: calls - before });
                }
                None => {}
            }
        }
        Ok((waited, went_on))
    }

    fn calls_so_far(&self) -> BTreeMap<String, u64> {
        self.processes().into_iter().map(|p| (p.name, p.made + p.served)).collect()
    }

    fn processes(&self) -> Vec<ProcessView> {
        match self.session.request(Request::Processes) {
            Some(Reply::Processes(processes)) => processes,
            _ => Vec::new(),
        }
    }

    fn request(&self, request: Request) -> Result<Reply, DemoError> {
        self.session.request(request).ok_or(DemoError::SessionEnded)
    }
}

impl Drop for Debugger {
    fn drop(&mut self) {
        self.session.continue_all();
        self.serving.abort();
    }
}

impl Waited {
    fn new(first: &HoldView, process: &ProcessView, hit: &HoldView, holds: &[HoldView]) -> Self {
        let behind = holds.iter().find(|hold| Some(&hold.id) == first.because_of.first());
        let behind = behind.or((first.reason == HoldReason::Delay).then_some(hit));
        Self {
            process: process.name.clone(),
            at: first.at.clone(),
            hold: behind.map(|hold| hold.id.0),
            behind: behind.map_or(&first.process, |hold| &hold.process).clone(),
            standing: holds.iter().filter(|hold| hold.process == process.name).count() as u64,
        }
    }
}

/// Waits until something happens.
async fn heard<T>(
    notices: &mut Receiver<Notice>,
    what: &'static str,
    is_it: impl Fn(What) -> Option<T>,
) -> Result<T, DemoError> {
    let hears = async {
        loop {
            match notices.recv().await {
                Ok(notice) => {
                    if let Some(it) = is_it(notice.what) {
                        return Ok(it);
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Err(DemoError::SessionEnded),
            }
        }
    };
    timeout(PATIENCE, hears).await.map_err(|_| DemoError::Late(what))?
}

fn refused(reply: Reply) -> DemoError {
    let why = match reply {
        Reply::Refused(why) => why,
        other => format!("it answered {other:?}"),
    };
    DemoError::Refused(why)
}
