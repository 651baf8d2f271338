//! A shop in a directory of its own, closed again whatever happens.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ddbx_shop::{TrafficReport, services};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Long enough for any machine; only a failing test waits for it.
const LIMIT: Duration = Duration::from_secs(60);

pub struct Shop {
    dir: TempDir,
    slower: u32,
    services: Vec<(&'static str, Running)>,
}

impl Shop {
    /// Starts all services. Nobody has to wait for them: clients do so by themselves.
    pub fn open(slower: u32) -> Self {
        let dir = TempDir::new().unwrap();
        let mut shop = Self { dir, slower, services: Vec::new() };
        for service in services() {
            let running = Running::start(&mut shop.command(service));
            shop.services.push((service, running));
        }
        shop
    }

    /// Starts traffic.
    pub fn traffic(&self, args: &[&str]) -> Traffic {
        let mut command = self.command("traffic");
        let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running::start(command);
        let lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
        Traffic { running, lines }
    }

    /// What `shop race` says. It fails if and only if the lamp was sold twice.
    pub fn race(&self, second_after: &str) -> String {
        let output = self.command("race").args(["--second-after", second_after]).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|o| String::from_utf8(o).unwrap());
        let expected = if out.starts_with("oversold") { 1 } else { 0 };
        assert_eq!(output.status.code(), Some(expected), "{out}{err}");
        assert!(out.ends_with('\n'), "{err}");
        out
    }

    pub fn signal(&self, service: &str, signal: Signal) {
        let (_, running) = self.services.iter().find(|(name, _)| *name == service).unwrap();
        running.signal(signal);
    }

    /// Kills a service and starts it again.
    pub fn restart(&mut self, service: &str) {
        let mut command = self.command(service);
        let (_, running) = self.services.iter_mut().find(|(name, _)| *name == service).unwrap();
        running.kill();
        *running = Running::start(&mut command);
    }

    fn command(&self, subcommand: &str) -> Command {
        let mut command = command(subcommand);
        command.env("SHOP_DIR", self.dir.path()).env("SHOP_SLOWER", self.slower.to_string());
        command
    }
}

pub struct Traffic {
    running: Running,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Traffic {
    /// Reads reports until there is one like this.
    pub fn report_with(&mut self, is_enough: impl Fn(&TrafficReport) -> bool) -> TrafficReport {
        let began = Instant::now();
        loop {
            let report = self.next().expect("traffic goes on");
            if is_enough(&report) {
                return report;
            }
            assert!(began.elapsed() < LIMIT, "still not so: {report}");
        }
    }

    /// Reads until the end.
    pub fn last_report(mut self) -> TrafficReport {
        let mut last = None;
        while let Some(report) = self.next() {
            last = Some(report);
        }
        assert!(self.running.0.wait().unwrap().success());
        last.expect("traffic ends with a report")
    }

    pub fn signal(&self, signal: Signal) {
        self.running.signal(signal);
    }

    pub fn close_stdin(&mut self) {
        drop(self.running.0.stdin.take());
    }

    fn next(&mut self) -> Option<TrafficReport> {
        let line = self.lines.next()?.unwrap();
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }
}

/// A process that does not outlive the test, not even a failing one.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

pub fn command(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
    command.arg(subcommand).stdin(Stdio::null());
    command
}

/// Tries again until it is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LIMIT, "it never happens that {what}");
    }
}
