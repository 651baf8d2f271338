//! A session of its own for each test: sockets, addresses and secrets lie in a
//! directory that nobody else knows, and nothing outlives it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ddbx_protocol::control::{Reply, Request};
use ddbx_protocol::link::reach;
use ddbx_tests::place::Place;
use ddbx_tests::waiting::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::process::Process;
use crate::walks::Caller;

/// What the session is called unless a test says otherwise.
pub const SESSION: &str = "main";

/// How a command ended.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    /// It went well: what it printed.
    pub fn well(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// It ended with this code, without output, and said one thing: that sentence.
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        let sentence = self.err.strip_prefix("error: ").map(str::trim_end);
        sentence.unwrap_or_else(|| panic!("no sentence: {self:?}")).to_owned()
    }
}

pub struct Cluster {
    place: Place,
    session: String,
    secret: Option<PathBuf>,
    tls: Option<PathBuf>,
    recording: Option<PathBuf>,
    variables: Vec<(&'static str, &'static str)>,
}

impl Cluster {
    /// Nothing runs yet.
    pub fn new() -> Self {
        let place = Place::new().unwrap();
        let (session, variables) = (SESSION.to_owned(), Vec::new());
        Self { place, session, secret: None, tls: None, recording: None, variables }
    }

    /// With a session that is open.
    pub fn open() -> (Self, Process) {
        let cluster = Self::new();
        let central = cluster.central();
        (cluster, central)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub fn dir(&self) -> &Path {
        self.place.dir()
    }

    /// Everything from here on belongs to this session.
    pub fn use_session(&mut self, session: &str, secret: Option<PathBuf>) {
        (self.session, self.secret) = (session.to_owned(), secret);
    }

    /// Everything from here on shows these certificates, or none.
    pub fn use_tls(&mut self, certificates: Option<&str>) {
        self.tls = certificates.map(|name| self.path(name));
    }

    /// Everything from here on is recorded there.
    pub fn record_into(&mut self, recording: &Path) {
        self.recording = Some(recording.to_owned());
    }

    /// Everything to be debugged has these in its environment from here on.
    pub fn use_variables(&mut self, variables: &[(&'static str, &'static str)]) {
        self.variables = variables.to_vec();
    }

    /// `ddbx` with these words, for no session in particular.
    pub fn ddbx_command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command(env!("CARGO_BIN_EXE_ddbx-under-test"));
        command.args(words).envs(self.tls.iter().map(|tls| ("DDBX_TLS", tls)));
        command
    }

    /// `ddbx-tui` with these words.
    pub fn screen_command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command(env!("CARGO_BIN_EXE_ddbx-tui-under-test"));
        command.args(words).envs(self.tls.iter().map(|tls| ("DDBX_TLS", tls)));
        command
    }

    /// Runs `ddbx` with these words, as they are.
    pub fn ddbx_plain(&self, words: &[&str]) -> Done {
        let output = self.ddbx_command(words).output().unwrap();
        Done {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs `ddbx` for the session.
    pub fn ddbx(&self, words: &[&str]) -> Done {
        self.ddbx_plain(&self.for_session(words))
    }

    /// Starts `ddbx` for the session.
    pub fn start_ddbx(&self, words: &[&str]) -> Process {
        Process::start(&mut self.ddbx_command(&self.for_session(words)))
    }

    fn for_session<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        let mut words = [words, &["--session", &self.session]].concat();
        if let Some(secret) = &self.secret {
            words.extend(["--secret-file", secret.to_str().unwrap()]);
        }
        words
    }

    /// What `ddbx --json` says.
    pub fn json(&self, words: &[&str]) -> Value {
        let text = self.ddbx(&[words, &["--json"]].concat()).well();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}"))
    }

    /// What the session answers to something that no command asks.
    pub fn ask(&self, request: &Request) -> Reply {
        let socket = format!("unix:{}", self.path(&format!("run/ddbx/{SESSION}.sock")).display());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut sender, mut receiver) = reach(Some(&socket), None).await.unwrap().split();
            sender.send(request).await.unwrap();
            receiver.receive().await.unwrap().unwrap()
        })
    }

    /// Sets a breakpoint: its number.
    pub fn set_break(&self, words: &[&str]) -> String {
        self.json(&[&["break"], words].concat())["id"].to_string()
    }

    /// Waits until somebody stands at a breakpoint: what `ddbx wait` says of it.
    pub fn hit(&self, breakpoint: &str) -> Value {
        self.json(&["wait", "--hit", breakpoint, "--timeout", "40s"])
    }

    /// Who stands still now.
    pub fn holds(&self) -> Vec<Value> {
        self.json(&["holds"]).as_array().unwrap().clone()
    }

    /// Waits until there is a hold that fits.
    pub fn hold(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        until(what, || self.holds().into_iter().find(|hold| fits(hold)))
    }

    /// Holds a walk of this name through a process for longer than its deadline.
    pub fn hold_for_long(&self, caller: &mut Caller, name: &str, at: &str) {
        caller.warm_up(&[at]);
        let breakpoint = self.set_break(&[&format!("{at}:Walker.walk@arrive")]);
        caller.walk(name, 1_000, &[(at, 0)]);
        self.hit(&breakpoint);
        self.hold("held for long", |hold| hold["held_ms"].as_u64().unwrap() > 1_200);
    }

    /// The names of those who take part.
    pub fn present(&self) -> Vec<String> {
        let ps = self.json(&["ps"]);
        let present =
            ps["processes"].as_array().unwrap().iter().filter(|view| view["state"] != "gone");
        present.map(|view| view["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until exactly these take part.
    pub fn until_present(&self, names: &[&str]) {
        until(&format!("{names:?} take part"), || (self.present() == names).then_some(()));
    }

    /// Opens the session and waits until it can be reached.
    pub fn central(&self) -> Process {
        self.central_with(&[])
    }

    /// The same, with more words.
    pub fn central_with(&self, words: &[&str]) -> Process {
        let central = self.start_ddbx(&[&["central", "--json"], words].concat());
        central.line(|line| line == "}");
        central
    }

    /// A service that takes part in walks, and in the session.
    pub fn walker(&self, name: &str) -> Process {
        self.walker_at(name, name)
    }

    /// The same, found by others under another name.
    pub fn walker_at(&self, name: &str, at: &str) -> Process {
        let walker = Process::start(
            &mut self.actor(&["walker", name], &["--until-stdin-closes", "--at", at]),
        );
        until("a walker listens", || self.path(&format!("{at}.addr")).exists().then_some(()));
        walker
    }

    /// Who starts walks.
    pub fn caller(&self, name: &str) -> Caller {
        Caller(Process::start(&mut self.actor(&["walker", name], &["--drives"])))
    }

    /// A process to be debugged, in the session.
    pub fn actor(&self, play: &[&str], options: &[&str]) -> Command {
        let mut command = self.place.command(env!("CARGO_BIN_EXE_actor"));
        command.args(play).arg(self.dir()).args(options).env("DDBX_SESSION", &self.session);
        command.envs(self.secret.iter().map(|secret| ("DDBX_SECRET_FILE", secret)));
        command.envs(self.tls.iter().map(|tls| ("DDBX_TLS", tls)));
        if let Some(recording) = &self.recording {
            command.env("DDBX_RECORD", recording);
        }
        command.envs(self.variables.iter().copied());
        command
    }

    /// The processes that were given this cluster's directory and still run: those of
    /// `ddbx run` are its children, not ours.
    pub fn left_over(&self) -> Vec<Pid> {
        let ours = |pid: &Pid| {
            let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()));
            let dir = self.dir().to_str().unwrap();
            words.is_ok_and(|words| String::from_utf8_lossy(&words).contains(dir))
        };
        let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)
        });
        numbers.filter(ours).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for pid in self.left_over() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
