//! The sessions that strangers try to get into: one for each door, with a process in it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use ddbx_protocol::control::{ProcessState, Reply, Request};
use ddbx_protocol::link::{Address, KeyFiles, Keys, Role, dial};
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::{Instant, sleep};

use super::certificates;
use super::kinds::Door;
use super::raw::Raw;
use crate::place::Place;
use crate::waiting::LIMIT;

const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// What nobody may hear of.
pub(super) const PROCESS: &str = "crown-jewels";

/// All sessions.
pub(super) struct Targets {
    pub(super) place: Place,
    /// `ddbx`.
    pub(super) program: PathBuf,
    targets: [Target; 3],
}

/// A session.
pub(super) struct Target {
    pub(super) door: Door,
    pub(super) address: Address,
    pub(super) keys: Keys,
    /// All that somebody who belongs to it said when it came.
    pub(super) overheard: Vec<u8>,
    /// How many descriptors it has when no stranger is there.
    pub(super) descriptors: usize,
    central: Running,
    _process: Running,
}

/// What a session needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Use {
    /// Of memory, in KiB.
    pub memory_kib: u64,
    /// Of file descriptors.
    pub descriptors: usize,
}

/// A process that ends with us.
struct Running {
    child: Child,
    _stdin: Option<ChildStdin>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn failed(what: &str) -> impl Fn(io::Error) -> String {
    move |error| format!("{what}: {error}")
}

impl Targets {
    pub(super) async fn open(programs: &Path) -> Result<Self, String> {
        let place = Place::new().map_err(failed("no place for sessions"))?;
        let program = programs.join("ddbx-under-test");
        certificates::make(place.dir())?;
        let mut targets = Vec::new();
        for door in [Door::Unix, Door::Tcp, Door::Tls] {
            targets.push(Target::open(&place, programs, door).await?);
        }
        let targets = targets.try_into().map_err(|_| "there are three doors".to_owned())?;
        Ok(Self { place, program, targets })
    }

    pub(super) fn at(&self, door: Door) -> &Target {
        &self.targets[door as usize]
    }

    pub(super) fn all(&self) -> &[Target] {
        &self.targets
    }

    /// What each session needs when all strangers are gone. It must answer.
    pub(super) async fn settled(&self) -> Result<Vec<Use>, String> {
        let mut used = Vec::new();
        for target in &self.targets {
            target.answer().await?;
            used.push(target.settled().await);
        }
        Ok(used)
    }
}

impl Target {
    async fn open(place: &Place, programs: &Path, door: Door) -> Result<Self, String> {
        let dir = place.dir();
        let (session, options): (String, &[&str]) = match door {
            Door::Unix => (format!("unix:{}", dir.join("run/s.sock").display()), &[]),
            Door::Tcp => ("tcp:127.0.0.1:0".to_owned(), &["--secret-file", "secret"]),
            Door::Tls => ("tcp:0.0.0.0:0".to_owned(), &["--tls", "central"]),
        };
        let mut command = place.command(programs.join("ddbx-under-test"));
        command.args(["central", "--json", "--session", &session]).args(options);
        let (central, opened) = start(&mut command, |line| line == "}")?;
        let said: Value = serde_json::from_str(&opened)
            .map_err(|error| format!("central said {opened:?}: {error}"))?;
        let session = said["session"].as_str().unwrap_or_default();
        let address = Address::parse(session).map_err(|error| error.to_string())?;
        let (secret, tls) = (dir.join("secret"), dir.join("certs"));
        let files = KeyFiles {
            secret: (door == Door::Tcp).then_some(&*secret),
            tls: (door == Door::Tls).then_some(&*tls),
        };
        let keys = Keys::read(&address, files).map_err(|error| error.to_string())?;

        let mut command = place.command(programs.join("actor"));
        let at = format!("{PROCESS}-{door:?}");
        command.args(["walker", PROCESS]).arg(dir).args(["--until-stdin-closes", "--at", &at]);
        command.env("DDBX_SESSION", session).env("DDBX_PROCESS", PROCESS);
        command.envs(files.secret.map(|file| ("DDBX_SECRET_FILE", file)));
        command.envs(files.tls.map(|directory| ("DDBX_TLS", directory)));
        let process = spawn(&mut command)?;
        let overheard = Vec::new();
        let descriptors = 0;
        let mut target =
            Self { door, address, keys, overheard, descriptors, central, _process: process };
        target.until_present().await?;
        target.overheard = target.overhear().await.map_err(failed("nothing was overheard"))?;
        target.descriptors = target.resting().await;
        Ok(target)
    }

    async fn until_present(&self) -> Result<(), String> {
        let until = Instant::now() + LIMIT;
        loop {
            match self.answer().await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => sleep(LOOK_AGAIN).await,
            }
        }
    }

    /// Whether the session answers, and its process is all that takes part in it, whatever
    /// strangers have called themselves.
    pub(super) async fn answer(&self) -> Result<(), String> {
        let wrong = |error: String| format!("{:?}: {error}", self.door);
        let connection = dial(&self.address, &self.keys, Role::Controller).await;
        let connection = connection.map_err(|error| wrong(error.to_string()))?;
        let (mut sender, mut receiver) = connection.split();
        sender.send(&Request::Processes).await.map_err(|error| wrong(error.to_string()))?;
        let reply = receiver.receive::<Reply>().await.map_err(|error| wrong(error.to_string()))?;
        let Some(Reply::Processes(views)) = reply else {
            return Err(wrong(format!("it answers {reply:?}")));
        };
        let present = views.iter().filter(|view| view.state != ProcessState::Gone);
        match present.filter(|view| view.name == PROCESS).count() {
            1 => Ok(()),
            _ => Err(wrong(format!("its process is not there: {views:?}"))),
        }
    }

    /// A connection of somebody who does not speak ddbx yet.
    pub(super) async fn connect(&self) -> io::Result<Raw> {
        match &self.address {
            Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
            Address::Tcp(at) => Ok(Box::new(TcpStream::connect(at).await?)),
            Address::Host(name, port) => {
                Ok(Box::new(TcpStream::connect((name.as_str(), *port)).await?))
            }
        }
    }

    /// What somebody who belongs to the session says, heard in between.
    async fn overhear(&self) -> io::Result<Vec<u8>> {
        let Address::Tcp(_) = self.address else { return Ok(Vec::new()) };
        let tap = TcpListener::bind("127.0.0.1:0").await?;
        let address = Address::Tcp(tap.local_addr()?);
        let overhears = async {
            let (mut near, _) = tap.accept().await?;
            let mut far = self.connect().await?;
            let mut heard = Vec::new();
            pass_on(&mut near, &mut far, &mut heard).await?;
            Ok::<_, io::Error>(heard)
        };
        let asks = async {
            let dialled = dial(&address, &self.keys, Role::Controller).await;
            let (mut sender, mut receiver) = dialled.map_err(io::Error::other)?.split();
            sender.send(&Request::Processes).await.map_err(io::Error::other)?;
            receiver.receive::<Reply>().await.map_err(io::Error::other)?;
            Ok::<_, io::Error>(())
        };
        let (heard, asked) = tokio::join!(overhears, asks);
        asked?;
        heard
    }

    pub(super) fn used(&self) -> Use {
        let pid = self.central.child.id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let memory = memory.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        Use { memory_kib: memory.unwrap_or_default(), descriptors }
    }

    /// What it needs when it has noticed that all have gone: as many descriptors as in the
    /// beginning, or else more, for good.
    async fn settled(&self) -> Use {
        let until = Instant::now() + LIMIT;
        loop {
            let used = self.used();
            if used.descriptors <= self.descriptors || Instant::now() > until {
                return used;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// The descriptors that it has with its process alone, when those who have asked it
    /// something are gone.
    async fn resting(&self) -> usize {
        let mut least = usize::MAX;
        for _ in 0..20 {
            least = least.min(self.used().descriptors);
            sleep(LOOK_AGAIN).await;
        }
        least
    }
}

/// Copies both ways until either side is done; what comes from the near one is noted.
async fn pass_on(near: &mut TcpStream, far: &mut Raw, heard: &mut Vec<u8>) -> io::Result<()> {
    let (mut from_near, mut from_far) = ([0; 4096], [0; 4096]);
    loop {
        tokio::select! {
            read = near.read(&mut from_near) => match read? {
                0 => return Ok(()),
                bytes => {
                    heard.extend_from_slice(&from_near[..bytes]);
                    far.write_all(&from_near[..bytes]).await?;
                }
            },
            read = far.read(&mut from_far) => match read? {
                0 => return Ok(()),
                bytes => near.write_all(&from_far[..bytes]).await?,
            },
        }
    }
}

fn spawn(command: &mut Command) -> Result<Running, String> {
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| {
        let program = command.get_program().display();
        format!("{program}: {error}; build it with `cargo build -p ddbx-tests --bins`")
    })?;
    Ok(Running { _stdin: child.stdin.take(), child })
}

/// Starts a process and reads what it prints up to a line.
fn start(command: &mut Command, last: impl Fn(&str) -> bool) -> Result<(Running, String), String> {
    let mut running = spawn(command.stdout(Stdio::piped()))?;
    let mut printed = String::new();
    let stdout = running.child.stdout.take().ok_or("no output")?;
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(failed("cannot be read"))?;
        printed.push_str(&line);
        printed.push('\n');
        if last(&line) {
            return Ok((running, printed));
        }
    }
    Err(format!("{} ended: {printed}", command.get_program().display()))
}
