//! One started process: its output and its end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ddbx_protocol::ProcessName;
use regex::Regex;
use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::group::Group;
use crate::run::alarm::Alarm;
use crate::run::config::Process;
use crate::run::output::Speaker;
use crate::run::output::escapes::clean;
use crate::run::output::lines::Lines;
use crate::run::supervisor::LOOK_AGAIN;

/// One attempt to connect may take this long.
const CONNECT_MAX: Duration = Duration::from_secs(1);

/// When a process has ended but somebody keeps its pipes open: so long without
/// output means that all of it has been read, and a pipe never has more than so much.
const SILENCE: Duration = Duration::from_millis(100);
const PIPE_BYTES_MAX: usize = 1 << 20;

/// A child by its place in the order of start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChildNumber(pub(super) usize);

/// What happens to a child.
pub(super) enum Event {
    /// A line of its output, or its port, says that it is ready.
    Ready(ChildNumber),
    /// It has ended and its output has been handed on.
    Exited(ChildNumber, Exit),
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// As shells give it: 128 and the number of the signal that ended it.
    pub code: u8,
    /// For people, after the name.
    pub text: String,
}

impl From<io::Result<ExitStatus>> for Exit {
    fn from(status: io::Result<ExitStatus>) -> Self {
        let (code, text) = match status.as_ref().map(|status| (status.code(), status.signal())) {
            Ok((Some(code), _)) => (code, format!("exited with code {code}")),
            Ok((None, Some(number))) => (128 + number, ended_by(number)),
            Ok((None, None)) => (1, "ended in an unknown way".to_owned()),
            Err(error) => (1, format!("ended in an unknown way: {error}")),
        };
        Self { code: u8::try_from(code).unwrap_or(u8::MAX), text }
    }
}

fn ended_by(signal: i32) -> String {
    // The standard library knows the names, but has no function that tells them.
    let named = ExitStatus::from_raw(signal).to_string();
    let name = named.split(['(', ')']).nth(1).map(str::to_owned);
    format!("was ended by {}", name.unwrap_or_else(|| format!("signal {signal}")))
}

/// Starts one replica. Nothing of it outlives both of what is returned.
pub(super) fn start(
    process: &Process,
    replica: usize,
    environment: &[(String, String)],
) -> io::Result<(Child, Arc<Group>)> {
    let mut command = Command::new(program(process));
    command
        .args(&process.command[1..])
        .envs(&process.env)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .env("DDBX_PROCESS", process.replicas[replica].as_str())
        .env("DDBX_REPLICA", (replica + 1).to_string())
        .current_dir(&process.dir)
        // A group that is not in the foreground is stopped when it reads the terminal.
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    let child = command.spawn()?;
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let pid = pid.ok_or_else(|| io::Error::other("it has no process id"))?;
    Ok((child, Arc::new(Group::led_by(pid))))
}

/// A path is relative to the directory in which the process runs; systems differ
/// in what they make of it otherwise.
fn program(process: &Process) -> PathBuf {
    let program = Path::new(&process.command[0]);
    if process.command[0].contains('/') { process.dir.join(program) } else { program.to_owned() }
}

/// What follows a child until its end.
pub(super) struct Watch {
    pub(super) number: ChildNumber,
    pub(super) name: ProcessName,
    pub(super) alarm: Option<Arc<Alarm>>,
    pub(super) speaker: Speaker,
    /// The line that makes it ready, if one does.
    pub(super) ready: Option<Regex>,
    pub(super) events: mpsc::UnboundedSender<Event>,
    pub(super) grace: Duration,
}

impl Watch {
    /// Hands on the output of the child, then tells its end.
    pub(super) async fn run(self, mut child: Child, group: Arc<Group>) {
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (end, ended) = watch::channel(false);
        let seen = AtomicBool::new(false);
        let ending = async {
            let status = child.wait().await;
            group.end(self.grace).await;
            end.send_replace(true);
            status
        };
        let (status, (), ()) = tokio::join!(
            ending,
            self.forward(stdout, ended.clone(), &seen),
            self.forward(stderr, ended.clone(), &seen),
        );
        self.tell(Event::Exited(self.number, status.into()));
    }

    async fn forward(
        &self,
        pipe: Option<impl AsyncRead + Unpin>,
        mut ended: watch::Receiver<bool>,
        seen: &AtomicBool,
    ) {
        let Some(mut pipe) = pipe else { return };
        let mut lines = Lines::default();
        let mut buffer = vec![0; 16 << 10];
        let mut after_end = 0;
        while after_end < PIPE_BYTES_MAX {
            let silence = async {
                // The sender outlives this, and its end would mean the same.
                let _ = ended.wait_for(|ended| *ended).await;
                sleep(SILENCE).await;
            };
            let read = tokio::select! {
                read = pipe.read(&mut buffer) => read,
                () = silence => break,
            };
            let Ok(length @ 1..) = read else { break };
            if *ended.borrow() {
                after_end += length;
            }
            for line in lines.push(&buffer[..length]) {
                self.line(line, seen).await;
            }
        }
        if let Some(line) = lines.finish() {
            self.line(line, seen).await;
        }
    }

    async fn line(&self, line: String, seen: &AtomicBool) {
        if let Some(alarm) = &self.alarm {
            alarm.look(&self.name, &clean(&line, false));
        }
        let matches = |ready: &Regex| ready.is_match(&clean(&line, false));
        let ready = !seen.load(Ordering::Relaxed) && self.ready.as_ref().is_some_and(matches);
        self.speaker.line(line).await;
        if ready && !seen.swap(true, Ordering::Relaxed) {
            self.tell(Event::Ready(self.number));
        }
    }

    fn tell(&self, event: Event) {
        // Nobody listens any more when the run is given up.
        let _ = self.events.send(event);
    }
}

/// Tells when something accepts connections at the address.
pub(super) async fn probe(
    address: String,
    number: ChildNumber,
    events: mpsc::UnboundedSender<Event>,
) {
    loop {
        if let Ok(Ok(stream)) = timeout(CONNECT_MAX, TcpStream::connect(&address)).await
            && !is_connected_to_itself(&stream)
        {
            let _ = events.send(Event::Ready(number));
            return;
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// On one machine an attempt may get the very port that it tries to reach.
fn is_connected_to_itself(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}
