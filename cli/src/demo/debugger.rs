//! The session of the demo, in the demo's own process.

use std::collections::BTreeMap;
use std::time::Duration;

use ddbx_central::driver::Session;
use ddbx_central::server;
use ddbx_protocol::HoldId;
use ddbx_protocol::control::{
    HoldView, Notice, ProcessState, ProcessView, Reply, Request, Wanted, What, Whom,
};
use ddbx_protocol::link::{Address, BindError, Listener};
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
    pub(super) around: Around,
}

/// How the others were doing, at the end of a stop.
#[derive(Debug, Serialize)]
pub(super) struct Around {
    /// In which processes somebody had to wait.
    pub(super) waited: Vec<Waited>,
    /// In which nobody had to.
    pub(super) went_on: Vec<WentOn>,
    /// For how long it was counted what those did.
    pub(super) counted_ms: u64,
}

/// A process in which somebody had to wait.
#[derive(Debug, Serialize)]
pub(super) struct Waited {
    pub(super) process: String,
    /// For which hold the first of them waited; none if for its own process, which is held.
    pub(super) hold: Option<HoldId>,
    /// Where that is.
    pub(super) held_in: String,
    /// Before which events they stood, and how many before each.
    pub(super) at: BTreeMap<String, u64>,
}

/// A process in which nobody had to wait.
#[derive(Debug, Serialize)]
pub(super) struct WentOn {
    pub(super) process: String,
    /// How many calls it made and served. None if all who would call it waited.
    pub(super) calls: u64,
}

impl Debugger {
    /// Starts a session that nobody else knows of.
    pub(super) async fn start() -> Result<Self, DemoError> {
        let dir = temporary_directory()?;
        let address = Address::Unix(dir.path().join("session.sock"));
        Self::start_at(address, dir).await
    }

    /// Starts one that others find by its name.
    pub(super) async fn start_named(name: &str) -> Result<Self, DemoError> {
        let address = Address::parse(name).map_err(BindError::Address)?;
        Self::start_at(address, temporary_directory()?).await
    }

    async fn start_at(address: Address, dir: TempDir) -> Result<Self, DemoError> {
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
        let hit = heard(&mut notices, PATIENCE, "somebody comes to the breakpoint", hits).await?;
        let ends = Instant::now() + length;
        tell(&hit)?;
        let goes_on = |what| match what {
            What::GoesOn { hold, held_ms, .. } if hold == hit.id => Some(held_ms),
            _ => None,
        };
        let around = tokio::select! {
            around = self.look_around(&hit, ends) => around?,
            _ = heard(&mut notices, length + PATIENCE, "it goes on", goes_on) => {
                return Err(DemoError::GivenUp);
            }
        };
        match self.request(Request::Continue(Whom::Hold(hit.id)))? {
            Reply::Done(_) => {}
            other => return Err(refused(other)),
        }
        let what = "the one at the breakpoint goes on";
        let held_ms = heard(&mut notices, PATIENCE, what, goes_on).await?;
        Ok(Stop { hit, held: Duration::from_millis(held_ms), around })
    }

    /// How the others are doing, as it is just before the end of the stop.
    async fn look_around(&self, hit: &HoldView, ends: Instant) -> Result<Around, DemoError> {
        // By then everybody has said how it is doing now.
        sleep(2 * HEARTBEAT).await;
        let (before, since) = (self.calls_so_far(), Instant::now());
        sleep_until(ends).await;
        let holds = match self.request(Request::Holds)? {
            Reply::Holds(holds) => holds,
            other => return Err(refused(other)),
        };
        let (mut waited, mut went_on) = (Vec::new(), Vec::new());
        for process in self.processes() {
            let stands = |hold: &&HoldView| hold.process == process.name && hold.id != hit.id;
            let standing: Vec<&HoldView> = holds.iter().filter(stands).collect();
            if let Some(first) = standing.first() {
                waited.push(Waited::new(first, &standing, &holds));
            } else if process.state == ProcessState::Running {
                let before = before.get(&process.name).copied().unwrap_or_default();
                let calls = (process.made + process.served).saturating_sub(before);
                went_on.push(WentOn { process: process.name, calls });
            }
        }
        let counted_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Around { waited, went_on, counted_ms })
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
    fn new(first: &HoldView, standing: &[&HoldView], holds: &[HoldView]) -> Self {
        let waits_for = holds.iter().find(|hold| first.because_of.first() == Some(&hold.id));
        let mut at = BTreeMap::new();
        for hold in standing {
            *at.entry(hold.at.clone()).or_default() += 1;
        }
        Self {
            process: first.process.clone(),
            hold: waits_for.map(|hold| hold.id),
            held_in: waits_for.map_or(&first.process, |hold| &hold.process).clone(),
            at,
        }
    }
}

/// Waits until something happens.
async fn heard<T>(
    notices: &mut Receiver<Notice>,
    limit: Duration,
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
    timeout(limit, hears).await.map_err(|_| DemoError::Late(what))?
}

fn refused(reply: Reply) -> DemoError {
    let why = match reply {
        Reply::Refused(why) => why,
        other => format!("it answered {other:?}"),
    };
    DemoError::Refused(why)
}
