//! `ddbx demo` as its users run it: the real command, with real processes.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A machine may be slow, but not as slow as this.
const FOR_EVER: Duration = Duration::from_secs(60);

#[test]
fn a_stop_with_ddbx_breaks_nothing_and_without_it_a_lot() {
    let demo = Demo::new();
    let output = demo.command(&["--headless", "--json", "--hold", "3s"]).output().unwrap();
    let report = demo.ended_well(&output);
    let number = |run: &str, what: &str| {
        report[run][what].as_u64().unwrap_or_else(|| panic!("{run} {what}: {report}"))
    };
    let errors = |run| number(run, "deadline_errors") + number(run, "leases_lost");
    for run in ["baseline", "with_ddbx", "without_ddbx"] {
        assert!(number(run, "calls") > 0, "{report}");
    }
    assert_eq!(number("baseline", "held_ms"), 0, "{report}");
    assert!(number("with_ddbx", "held_ms") >= 3_000, "{report}");
    assert!(number("without_ddbx", "held_ms") >= 3_000, "{report}");
    assert!(errors("with_ddbx") <= errors("baseline"), "{report}");
    // Each customer at least misses a deadline, and inventory loses its lease.
    assert!(errors("without_ddbx") >= errors("baseline") + 3, "{report}");

    let of = |list: &str| report[list].as_array().unwrap().clone();
    let names = |list: &str| {
        let mut names: Vec<_> = of(list).iter().map(|entry| entry["process"].clone()).collect();
        names.retain(|name| name != "payments");
        names
    };
    // Whoever has to do with the stop waits for it, and nobody else.
    assert_eq!(names("waited"), ["gateway", "inventory", "orders", "registry", "traffic"]);
    assert!(of("waited").iter().all(|waited| waited["held_in"] == "inventory"), "{report}");
    let branch = ["branch-inventory", "branch-payments", "branch-registry"];
    assert_eq!(names("went_on"), branch);
    let renews = of("went_on").into_iter().find(|entry| entry["process"] == branch[0]).unwrap();
    assert!(renews["calls"].as_u64().unwrap() > 0, "{report}");
    demo.left_nothing();
}

#[test]
fn who_is_interrupted_leaves_nothing_behind() {
    for signal in [Signal::INT, Signal::TERM] {
        let demo = Demo::new();
        let mut child = demo.started();
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        demo.left_nothing();
    }
}

#[test]
fn who_is_killed_leaves_nobody_running() {
    let demo = Demo::new();
    let mut child = demo.started();
    child.kill().unwrap();
    child.wait().unwrap();
    let began = Instant::now();
    while !demo.running().is_empty() {
        assert!(began.elapsed() < FOR_EVER, "still there: {:?}", demo.running());
    }
}

/// A demo whose temporary files are in a place of their own, by which its processes
/// are known, too.
struct Demo(TempDir);

impl Demo {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ddbx"));
        command.arg("demo").args(args).env("TMPDIR", self.0.path()).stdin(Stdio::null());
        // Other tests may keep the machine busy.
        command.env("SHOP_SLOWER", "3");
        command
    }

    /// The demo, once its services run.
    fn started(&self) -> Child {
        let mut child = self.command(&["--headless"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("Nobody stops")));
        // Who reads no more would end the demo, too.
        std::mem::forget(lines);
        let began = Instant::now();
        while self.running().len() < 2 && Path::new("/proc/self/environ").exists() {
            assert!(began.elapsed() < FOR_EVER, "nobody starts");
        }
        child
    }

    fn ended_well(&self, output: &Output) -> Value {
        let [out, err] = [&output.stdout, &output.stderr].map(|o| String::from_utf8_lossy(o));
        assert!(output.status.success(), "{}\n{err}\n{out}", output.status);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    fn left_nothing(&self) {
        assert_eq!(self.running(), Vec::<String>::new());
        assert_eq!(fs::read_dir(self.0.path()).unwrap().count(), 0, "no file");
    }

    /// The processes that have its directory in their environment. Where the system
    /// does not tell, none.
    fn running(&self) -> Vec<String> {
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        let place = self.0.path().to_str().unwrap();
        let is_ours = |process: &Path| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(place)
        };
        let ours = processes.map(|process| process.unwrap().path()).filter(|path| is_ours(path));
        ours.map(|process| process.display().to_string()).collect()
    }
}
