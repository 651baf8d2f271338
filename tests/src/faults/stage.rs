//! The processes of a schedule, with a debugger or without.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use ddbx_cli::certs::{self, Valid};
use ddbx_protocol::control::{HoldView, ProcessState, ProcessView, Reply, Request};
use ddbx_protocol::link::{Address, KeyFiles, Keys, Role, dial};
use serde_json::{Value, json};
use time::{Duration, OffsetDateTime};
use tokio::time::{sleep, timeout};

use super::Trouble;
use super::kinds::Way;
use super::network::{self, Network};
use super::program::Program;
use super::relay::Relay;
use super::schedule::{Schedule, service};
use crate::place::Place;
use crate::small_disk::SmallDisk;
use crate::waiting::LIMIT;

/// Who begins all calls.
pub(super) const CALLER: &str = "caller";

const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(10);

/// All processes of a schedule.
pub(super) struct Stage {
    pub(super) caller: Program,
    pub(super) services: Vec<Program>,
    /// The calls that were begun.
    pub(super) begun: Vec<String>,
    pub(super) debugger: Option<Debugger>,
    surroundings: Surroundings,
}

/// What is there only in the run with a debugger.
pub(super) struct Debugger {
    pub(super) central: Program,
    pub(super) relay: Option<Relay>,
    pub(super) network: Option<Network>,
    pub(super) disk: Option<SmallDisk>,
    pub(super) recording: Option<PathBuf>,
    pub(super) address: Address,
    keys: Keys,
    /// What services need in their environment.
    environment: Vec<(&'static str, String)>,
}

struct Surroundings {
    place: Place,
    programs: PathBuf,
}

impl Surroundings {
    fn central(&self, session: &str, way: Way) -> Command {
        let mut command = self.place.command(self.programs.join("ddbx-under-test"));
        command.args(["central", "--json", "--session", session]);
        if way == Way::Network {
            command.args(["--tls", "certs"]);
        }
        command
    }

    fn walker(&self, name: &str, debugger: Option<&Debugger>) -> Command {
        let mut command = self.place.command(self.programs.join("actor"));
        command.args(["walker", name]).arg(self.place.dir()).args(["--drives", "--tells"]);
        let Some(debugger) = debugger else { return command };
        command.envs(debugger.environment.iter().map(|(name, value)| (*name, value)));
        command.envs(debugger.recording.iter().map(|directory| ("DDBX_RECORD", directory)));
        match &debugger.network {
            Some(network) => network.among_services(&command),
            None => command,
        }
    }
}

impl Stage {
    /// Starts all processes of a schedule.
    pub(super) async fn open(
        schedule: &Schedule,
        programs: &Path,
        with_debugger: bool,
    ) -> Result<Self, Trouble> {
        let place = Place::new().map_err(stage("no place for it"))?;
        let surroundings = Surroundings { place, programs: programs.to_owned() };
        let debugger = match with_debugger {
            true => Some(Debugger::open(&surroundings, schedule).await?),
            false => None,
        };
        let start = |name: &str| Program::start(name, surroundings.walker(name, debugger.as_ref()));
        let caller = start(CALLER)?;
        let mut services = Vec::new();
        for index in 0..schedule.services {
            services.push(start(&service(index))?);
        }
        let begun = Vec::new();
        let stage = Self { caller, services, begun, debugger, surroundings };
        for index in 0..schedule.services {
            stage.until_it_listens(index).await?;
        }
        stage.until_all_take_part().await?;
        Ok(stage)
    }

    fn address_file(&self, index: usize) -> PathBuf {
        self.surroundings.place.dir().join(format!("{}.addr", service(index)))
    }

    async fn until_it_listens(&self, index: usize) -> Result<(), Trouble> {
        let path = self.address_file(index);
        self.services[index].until("it listens", |_| path.exists().then_some(())).await
    }

    /// Starts a service again, when the old one is gone; all others forget that one. If its
    /// handlers panic, this may end the new one.
    pub(super) async fn start_again(&mut self, index: usize, aborts: bool) -> Result<(), Trouble> {
        self.services[index].close_stdin();
        self.services[index].ends().await?;
        fs::remove_file(self.address_file(index)).map_err(stage("no address"))?;
        let name = service(index);
        let mut command = self.surroundings.walker(&name, self.debugger.as_ref());
        command.args(aborts.then_some("--aborts"));
        self.services[index] = Program::start(&name, command)?;
        self.until_it_listens(index).await?;
        // Each one says when it has forgotten: what comes next must not meet the old one.
        let old = format!("{name}@{}", self.services[index].pid);
        for other in self.services.iter_mut().chain([&mut self.caller]) {
            other.say(&format!("forget {old}")).await;
            other.outcome(&old).await?;
        }
        self.until_all_take_part().await
    }

    /// Opens the session again.
    pub(super) async fn open_again(&mut self) -> Result<(), Trouble> {
        if let Some(debugger) = &mut self.debugger {
            debugger.open_again(&self.surroundings).await?;
        }
        self.until_all_take_part().await
    }

    /// Waits until everybody who runs is in the session, and nobody else.
    pub(super) async fn until_all_take_part(&self) -> Result<(), Trouble> {
        let Some(debugger) = &self.debugger else { return Ok(()) };
        let all = self.services.len() + 1;
        debugger
            .until("all take part", async || {
                let present = debugger.processes().await?;
                Ok((present.len() == all).then_some(()))
            })
            .await
    }

    /// Begins a walk through services, the last of which works for so long.
    pub(super) async fn walk(&mut self, walk: Walk<'_>) {
        let last = walk.path.len() - 1;
        let step = |(place, index): (usize, &usize)| {
            let work_ms = if place == last { walk.work_ms } else { 0 };
            json!({ "at": service(*index), "work_ms": work_ms, "awaits": place == last && walk.awaits })
        };
        let steps: Vec<Value> = walk.path.iter().enumerate().map(step).collect();
        let line = json!({ "name": walk.name, "deadline_ms": walk.deadline_ms, "steps": steps });
        self.begun.push(walk.name.to_owned());
        self.caller.say(&line.to_string()).await;
    }
}

/// A call to begin.
#[derive(Clone, Copy)]
pub(super) struct Walk<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'a [usize],
    pub(super) work_ms: u64,
    pub(super) deadline_ms: u64,
    /// Whether it waits for an order in the last service.
    pub(super) awaits: bool,
}

impl Debugger {
    async fn open(surroundings: &Surroundings, schedule: &Schedule) -> Result<Self, Trouble> {
        let dir = surroundings.place.dir();
        let way = schedule.way();
        let network = match way {
            Way::Network => Some(Network::make().map_err(Trouble::Stage)?),
            Way::Direct | Way::Relay => None,
        };
        let mut session = format!("unix:{}", dir.join("run/central.sock").display());
        if let Some(network) = &network {
            network.enter().map_err(Trouble::Stage)?;
            let now = OffsetDateTime::now_utc();
            let valid = Valid { from: now - Duration::days(1), until: now + Duration::days(1) };
            certs::make(&dir.join("certs"), &[network::CENTRAL.to_owned()], valid)
                .map_err(|error| Trouble::Stage(error.to_string()))?;
            "tcp:0.0.0.0:0".clone_into(&mut session);
        }
        let central = Program::start("central", surroundings.central(&session, way))?;
        let session = opened(&central).await?;
        let address =
            Address::parse(&session).map_err(|error| Trouble::Stage(error.to_string()))?;
        let certificates = dir.join("certs");
        let files = KeyFiles { secret: None, tls: network.is_some().then_some(&*certificates) };
        let keys =
            Keys::read(&address, files).map_err(|error| Trouble::Stage(error.to_string()))?;
        let mut environment = vec![("DDBX_SESSION", session)];
        if let (Some(_), Address::Tcp(at)) = (&network, &address) {
            environment = vec![
                ("DDBX_SESSION", format!("tcp:{}:{}", network::CENTRAL, at.port())),
                ("DDBX_TLS", certificates.display().to_string()),
            ];
        }
        let mut relay = None;
        if way == Way::Relay {
            let at = dir.join("run/relay.sock");
            let started = Relay::start(&at, &dir.join("run/central.sock"));
            relay = Some(started.map_err(stage("no relay"))?);
            environment = vec![("DDBX_SESSION", format!("unix:{}", at.display()))];
        }
        let disk = schedule.fills_a_disk().then(|| SmallDisk::mount(dir.join("disk"))).flatten();
        let recorded_in = disk.as_ref().map_or(dir, SmallDisk::dir);
        let recording = schedule.is_recorded.then(|| recorded_in.join("recording"));
        Ok(Self { central, relay, network, disk, recording, address, keys, environment })
    }

    async fn open_again(&mut self, surroundings: &Surroundings) -> Result<(), Trouble> {
        self.central.ends().await?;
        let command = surroundings.central(&self.address.to_string(), Way::Direct);
        self.central = Program::start("central", command)?;
        opened(&self.central).await.map(drop)
    }

    /// What the session answers.
    pub(super) async fn ask(&self, request: Request) -> Result<Reply, Trouble> {
        let asks = async {
            let connection = dial(&self.address, &self.keys, Role::Controller).await;
            let (mut sender, mut receiver) = connection.map_err(io::Error::other)?.split();
            sender.send(&request).await.map_err(io::Error::other)?;
            let reply = receiver.receive::<Reply>().await.map_err(io::Error::other)?;
            reply.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
        };
        let answered = timeout(LIMIT, asks).await.unwrap_or_else(|late| Err(late.into()));
        match answered.map_err(stage("central does not answer"))? {
            Reply::Refused(why) => Err(Trouble::Stage(format!("central refuses: {why}"))),
            reply => Ok(reply),
        }
    }

    /// Waits until there is something.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> Result<Option<T>, Trouble>,
    ) -> Result<T, Trouble> {
        let looks = async {
            loop {
                if let Some(found) = look().await? {
                    return Ok(found);
                }
                sleep(LOOK_AGAIN).await;
            }
        };
        let in_vain = || Trouble::Stage(format!("waited in vain: {what}"));
        timeout(LIMIT, looks).await.unwrap_or_else(|_| Err(in_vain()))
    }

    /// Who takes part.
    pub(super) async fn processes(&self) -> Result<Vec<ProcessView>, Trouble> {
        match self.ask(Request::Processes).await? {
            Reply::Processes(mut views) => {
                views.retain(|view| view.state != ProcessState::Gone);
                Ok(views)
            }
            other => Err(Trouble::Stage(format!("central answers {other:?}"))),
        }
    }

    /// Who stands still.
    pub(super) async fn holds(&self) -> Result<Vec<HoldView>, Trouble> {
        match self.ask(Request::Holds).await? {
            Reply::Holds(holds) => Ok(holds),
            other => Err(Trouble::Stage(format!("central answers {other:?}"))),
        }
    }
}

/// What central says when it is ready: where it is.
async fn opened(central: &Program) -> Result<String, Trouble> {
    let said = |central: &Program| serde_json::from_str::<Value>(&central.printed()).ok();
    let said = central.until("that it is open", said).await?;
    Ok(said["session"].as_str().unwrap_or_default().to_owned())
}

fn stage(what: &'static str) -> impl Fn(io::Error) -> Trouble {
    move |error| Trouble::Stage(format!("{what}: {error}"))
}
