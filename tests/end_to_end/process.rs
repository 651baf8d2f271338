//! A process that a test has started, with what it prints; it ends with the test.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use ddbx_tests::waiting::until;
use rustix::process::{Pid, Signal, kill_process};

/// A running process.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    printed: Collected,
    complained: Collected,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let printed = collect(child.stdout.take().unwrap());
        let complained = collect(child.stderr.take().unwrap());
        Self { stdin: child.stdin.take(), child, printed, complained }
    }

    /// What it has printed so far.
    pub fn printed(&self) -> String {
        self.printed.text.lock().unwrap().clone()
    }

    /// What it has printed so far on standard error.
    pub fn complained(&self) -> String {
        self.complained.text.lock().unwrap().clone()
    }

    /// Waits until a line that it has printed fits.
    pub fn line(&self, fits: impl Fn(&str) -> bool) -> String {
        until("a line that fits", || self.printed().lines().find(|line| fits(line)).map(Into::into))
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it the hard way.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Tells it that there is no more to do.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until it has ended, and all that it has printed is there.
    pub fn end(&mut self) -> ExitStatus {
        let status = until("a process ends", || self.child.try_wait().unwrap());
        let all_read = || self.printed.all.is_finished() && self.complained.all.is_finished();
        until("all that it printed", || all_read().then_some(()));
        status
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("printed:\n{}\ncomplained:\n{}", self.printed(), self.complained());
        }
    }
}

/// What is read while a process prints.
struct Collected {
    text: Arc<Mutex<String>>,
    all: JoinHandle<()>,
}

fn collect(from: impl Read + Send + 'static) -> Collected {
    let text = Arc::new(Mutex::new(String::new()));
    let collected = text.clone();
    let all = thread::spawn(move || {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            collected.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    });
    Collected { text, all }
}
