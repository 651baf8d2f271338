//! A process of a schedule, with what it says; it ends with this.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::Trouble;
use super::told::{Line, Moment, Outcome, Progress};
use crate::waiting::LIMIT;

/// A running process.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) pid: i32,
    child: Child,
    stdin: Option<ChildStdin>,
    said: Arc<Said>,
}

#[derive(Default)]
struct Said {
    text: Mutex<(String, Vec<Line>)>,
    more: Notify,
}

impl Said {
    fn lock(&self) -> MutexGuard<'_, (String, Vec<Line>)> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Program {
    pub(super) fn start(name: &str, mut command: Command) -> Result<Self, Trouble> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // Not in our own: if whoever started us ends while one is stopped, the kernel hangs
        // up on the whole group.
        command.process_group(0);
        let program = command.get_program().display().to_string();
        let cannot = |why: &dyn ToString| {
            let build = "build it with `cargo build -p ddbx-tests --bins`";
            Trouble::Stage(format!("{program}: {}; {build}", why.to_string()))
        };
        let mut command = tokio::process::Command::from(command);
        let mut child = command.kill_on_drop(true).spawn().map_err(|error| cannot(&error))?;
        let pid = child.id().and_then(|pid| pid.try_into().ok()).ok_or_else(|| cannot(&"gone"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let stdout = stdout.ok_or_else(|| cannot(&"no output"))?;
        let said = Arc::new(Said::default());
        let collected = said.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut said = collected.lock();
                said.1.extend(serde_json::from_str::<Line>(&line));
                said.0 += &line;
                said.0.push('\n');
                drop(said);
                collected.more.notify_waiters();
            }
        });
        Ok(Self { name: name.to_owned(), pid, child, stdin, said })
    }

    /// All that it has printed so far.
    pub(super) fn printed(&self) -> String {
        self.said.lock().0.clone()
    }

    /// How far walks have come in it so far.
    pub(super) fn progress(&self) -> Vec<Progress> {
        let of = |line: &Line| match line {
            Line::Progress(progress) => Some(progress.clone()),
            Line::Outcome(_) => None,
        };
        self.said.lock().1.iter().filter_map(of).collect()
    }

    /// Waits until it has said something.
    pub(super) async fn until<T>(
        &self,
        what: &str,
        mut look: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, Trouble> {
        let looks = async {
            loop {
                // Before looking, so that nothing is missed in between.
                let more = self.said.more.notified();
                if let Some(found) = look(self) {
                    return found;
                }
                // A line may have come before this was listening.
                let _ = timeout(LOOK_AGAIN, more).await;
            }
        };
        let waited = timeout(LIMIT, looks).await;
        waited.map_err(|_| Trouble::Hung(format!("{} never says: {what}", self.name)))
    }

    /// Waits until something of this name has ended: how.
    pub(super) async fn outcome(&self, name: &str) -> Result<String, Trouble> {
        let of_it = |line: &Line| match line {
            Line::Outcome(Outcome { name: of, outcome }) if of == name => Some(outcome.clone()),
            _ => None,
        };
        self.until(&format!("how {name} ended"), |program| {
            program.said.lock().1.iter().find_map(of_it)
        })
        .await
    }

    /// Waits until a walk has come to a moment here.
    pub(super) async fn comes_to(&self, name: &str, moment: Moment) -> Result<(), Trouble> {
        let is_it = |progress: &Progress| progress.name == name && progress.moment == moment;
        let look = |program: &Self| program.progress().iter().any(is_it).then_some(());
        self.until(&format!("{name} {moment:?}"), look).await
    }

    /// Tells it something. One that is gone does not hear it, which others will notice.
    pub(super) async fn say(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes()).await;
            let _ = stdin.flush().await;
        }
    }

    /// One that is gone does not feel it.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Stops it, and waits until it stands.
    pub(super) async fn stop(&self) -> Result<(), Trouble> {
        self.signal(Signal::STOP);
        let is_stopped = |program: &Self| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid)).ok()?;
            status.lines().any(|line| line.starts_with("State:\tT")).then_some(())
        };
        self.until("it is stopped", is_stopped).await
    }

    /// Tells it that there is no more to do.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until it is gone. One that does not go hangs.
    pub(super) async fn ends(&mut self) -> Result<(), Trouble> {
        match timeout(LIMIT, self.child.wait()).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Trouble::Hung(format!("{} does not end", self.name))),
        }
    }
}

/// How often to look for what is not said.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
