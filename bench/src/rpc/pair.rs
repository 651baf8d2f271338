//! A client's and a server's process, and what they are told.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command};

use ddbx_protocol::link::Address;
use tempfile::TempDir;

use crate::again::{again, outside_of_sessions};
use crate::peers::{Measured, Window};

/// What a pair of processes is.
#[derive(Default)]
pub struct Setup {
    /// Another program than this one.
    pub program: Option<PathBuf>,
    /// Variables of the environment that both get.
    pub environment: Vec<(&'static str, String)>,
    /// The address of the session in which both take part.
    pub session: Option<Address>,
    pub is_recorded: bool,
    /// Whose processor time counts as well: that of a central that takes part in every call.
    pub central: Option<u32>,
}

/// They run until this is dropped.
pub struct Pair {
    client: Process,
    _server: Process,
    _dir: TempDir,
}

impl Pair {
    /// Starts both; returns when they can be measured.
    pub fn start(setup: &Setup) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("ddbx-bench-").tempdir()?;
        let command = |role: &str| {
            let mut command = match &setup.program {
                Some(program) => outside_of_sessions(program),
                None => again(None::<&str>)?,
            };
            command.arg(role).envs(setup.environment.iter().cloned());
            if let Some(session) = &setup.session {
                command.env("DDBX_SESSION", session.to_string());
            }
            if setup.is_recorded {
                command.env("DDBX_RECORD", dir.path().join("recording"));
            }
            io::Result::Ok(command)
        };
        let sockets = dir.path().join("server");
        std::fs::create_dir(&sockets)?;
        let mut server = Process::start(command("server")?.arg(sockets))?;
        let mut client = command("client")?;
        client.arg(server.said()?);
        for process in setup.central.iter().copied().chain([server.child.id()]) {
            client.args(["--cpu-of", &process.to_string()]);
        }
        let mut client = Process::start(&mut client)?;
        client.said()?;
        Ok(Self { client, _server: server, _dir: dir })
    }

    /// Has the client call for a while.
    pub fn window(&mut self, window: &Window) -> io::Result<Measured> {
        self.begin(window)?;
        self.end()
    }

    /// Has the client call, and does not wait for it.
    pub fn begin(&mut self, window: &Window) -> io::Result<()> {
        self.client.tell(&serde_json::to_string(window)?)
    }

    /// Waits until the client has called.
    pub fn end(&mut self) -> io::Result<Measured> {
        Ok(serde_json::from_str(&self.client.said()?)?)
    }
}

/// A process that does what it is told. It ends when this is dropped.
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Tells it to do something.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{line}")
    }

    /// Waits for the next that it says.
    pub fn said(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err(io::Error::other("a process has ended early; what it printed is above")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

impl Process {
    /// Its number in the operating system.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
