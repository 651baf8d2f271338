//! The shop of the demo: every process of it is this same program, started once more.
//!
//! Each has a process group of its own, so that ctrl-c reaches only the demo, and a
//! standard input that the demo holds open: should the demo be killed, they end too.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ddbx_protocol::link::Address;
use ddbx_shop::{TrafficReport, services};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::DemoError;

/// What runs as the branch, apart from the shop: inventory and those it calls.
const BRANCH: [&str; 3] = ["registry", "payments", "inventory"];

/// How long anything may take that normally takes moments.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How much of what a process has printed is worth showing.
const OUTPUT_BYTES_MAX: usize = 4 << 10;

/// What an inherited environment could say to the shim; here the demo says it.
const SHIM: [&str; 9] = [
    "DDBX_SESSION",
    "DDBX_PROCESS",
    "DDBX_RECORD",
    "DDBX_KEEP",
    "DDBX_EXACT",
    "DDBX_REPLAY",
    "DDBX_PERTURB",
    "DDBX_SECRET_FILE",
    "DDBX_REDACT",
];

/// A shop with its customers, and a branch. All of it ends when this is dropped.
pub(super) struct Shop {
    /// Gone before the directory, into which they write.
    members: Vec<Member>,
    dir: TempDir,
    session: Option<Address>,
}

struct Member {
    name: String,
    child: Child,
}

impl Shop {
    /// Closed, and without processes.
    pub(super) fn new(session: Option<&Address>) -> Result<Self, DemoError> {
        let dir = temporary_directory()?;
        Ok(Self { members: Vec::new(), dir, session: session.cloned() })
    }

    /// Starts everything; returns when the customers can buy.
    pub(super) async fn open(&mut self) -> Result<(), DemoError> {
        let (shop, branch) = (self.dir.path().to_owned(), self.dir.path().join("branch"));
        for service in services() {
            self.start(service, service, &shop)?;
        }
        for service in BRANCH {
            self.start(&format!("branch-{service}"), service, &branch)?;
        }
        // Who has an address has found everybody whom it calls.
        let doors = services().iter().map(|service| address(&shop, service));
        let doors = doors.chain(BRANCH.map(|service| address(&branch, service)));
        let doors: Vec<PathBuf> = doors.collect();
        self.until("the services are up", || doors.iter().all(|door| door.exists())).await?;
        self.start("traffic", "traffic", &shop)
    }

    /// The names of all that run.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// Signals one of the processes.
    pub(super) fn signal(&self, name: &str, signal: Signal) -> Result<(), DemoError> {
        let failed = |why: io::Error| DemoError::Signal { name: name.to_owned(), why };
        let member = self.members.iter().find(|member| member.name == name);
        let member = member.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        kill_process(Pid::from_child(&member.child), signal).map_err(|error| failed(error.into()))
    }

    /// Waits, while all goes on.
    pub(super) async fn wait(&mut self, length: Duration) -> Result<(), DemoError> {
        sleep(length).await;
        self.check()
    }

    /// Waits until it is so.
    pub(super) async fn until(
        &mut self,
        what: &'static str,
        mut is_so: impl FnMut() -> bool,
    ) -> Result<(), DemoError> {
        let began = Instant::now();
        while !is_so() {
            if began.elapsed() > PATIENCE {
                return Err(DemoError::Late(what));
            }
            self.wait(LOOK_AGAIN).await?;
        }
        Ok(())
    }

    /// Sends the customers home; what became of them.
    pub(super) async fn close(&mut self) -> Result<TrafficReport, DemoError> {
        let mut report = self.last_word("traffic").await?;
        let began = Instant::now();
        // Whoever was asked may have had no time to answer: a customer who buys nothing
        // asks again.
        while report.leases_lost.is_none() && began.elapsed() < PATIENCE {
            let shop = self.dir.path().to_owned();
            self.start("auditor", "auditor", &shop)?;
            report.leases_lost = self.last_word("auditor").await?.leases_lost;
        }
        Ok(report)
    }

    /// What the processes have printed for people, whoever printed anything.
    pub(super) fn printed(&self) -> Vec<(String, String)> {
        let printed = self.names().filter_map(|name| {
            let bytes = fs::read(self.log(name)).ok().filter(|bytes| !bytes.is_empty())?;
            let shown = &bytes[bytes.len().saturating_sub(OUTPUT_BYTES_MAX)..];
            Some((name.to_owned(), String::from_utf8_lossy(shown).into_owned()))
        });
        printed.collect()
    }

    /// Closes a customer's standard input and waits for its report.
    async fn last_word(&mut self, name: &str) -> Result<TrafficReport, DemoError> {
        let at = self.members.iter().position(|member| member.name == name);
        let late = DemoError::Late("the customers have gone home");
        let Some(at) = at else { return Err(late) };
        drop(self.members[at].child.stdin.take());
        let began = Instant::now();
        while self.members[at].exited()?.is_none() {
            if began.elapsed() > PATIENCE {
                return Err(late);
            }
            sleep(LOOK_AGAIN).await;
        }
        let member = self.members.remove(at);
        let said = fs::read_to_string(self.report(name)).map_err(DemoError::Directory)?;
        let report = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
        report.ok_or_else(|| member.died("without a report"))
    }

    fn start(&mut self, name: &str, role: &str, meet_in: &Path) -> Result<(), DemoError> {
        let failed = |why| DemoError::Start { name: name.to_owned(), why };
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        for variable in SHIM {
            command.env_remove(variable);
        }
        if let Some(session) = &self.session {
            command.env("DDBX_SESSION", session.to_string());
        }
        command
            .args(["demo-shop", role])
            .env("DDBX_PROCESS", name)
            .env("SHOP_DIR", meet_in)
            .stdin(Stdio::piped())
            .stdout(File::create(self.report(name)).map_err(failed)?)
            .stderr(File::create(self.log(name)).map_err(failed)?)
            .process_group(0);
        let child = command.spawn().map_err(failed)?;
        self.members.push(Member { name: name.to_owned(), child });
        Ok(())
    }

    /// Nobody ends before it is told to.
    fn check(&mut self) -> Result<(), DemoError> {
        for member in &mut self.members {
            if let Some(how) = member.exited()? {
                return Err(member.died(&how));
            }
        }
        Ok(())
    }

    fn report(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.out"))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.log"))
    }
}

impl Member {
    fn exited(&mut self) -> Result<Option<String>, DemoError> {
        let status = self.child.try_wait();
        let failed = |error: io::Error| self.died(&error.to_string());
        Ok(status.map_err(failed)?.map(|status| status.to_string()))
    }

    fn died(&self, how: &str) -> DemoError {
        DemoError::Died { name: self.name.clone(), how: how.to_owned() }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Also one that is stopped; one that has ended is waited for already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// For this user alone, and removed when it is dropped.
pub(super) fn temporary_directory() -> Result<TempDir, DemoError> {
    let ours_alone = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().prefix("ddbx-demo-").permissions(ours_alone).tempdir();
    directory.map_err(DemoError::Directory)
}

fn address(dir: &Path, service: &str) -> PathBuf {
    dir.join(format!("{service}.addr"))
}
