//! `ddbx run` as it is typed: what it records, and how it looks for a run that fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::harness::gone;

/// A directory with a `ddbx.toml`, and sessions of its own.
struct Folder(TempDir);

impl Folder {
    /// One process called `a`, which ends the run, is this script.
    fn with(script: &str) -> Self {
        Self::with_file(&format!(
            "session = 'here'\n[[process]]\nname = 'a'\nends_run = true\n\
             command = ['sh', '-c', '''{script}''']\n"
        ))
    }

    fn with_file(text: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::write(folder.path("ddbx.toml"), text).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ddbx"));
        command.arg("run").args(args.split_whitespace()).current_dir(self.0.path());
        command.env("XDG_RUNTIME_DIR", self.path("")).stdin(Stdio::null());
        for inherited in ["DDBX_SESSION", "DDBX_RECORD", "DDBX_KEEP", "DDBX_PERTURB"] {
            command.env_remove(inherited);
        }
        command
    }

    fn run(&self, args: &str) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// What is in a directory of it.
    fn names_in(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let [out, err] = [output.stdout, output.stderr].map(|o| String::from_utf8(o).unwrap());
        Self { code: output.status.code(), out, err }
    }
}

/// With the seeds 3 and 8, it fails.
const FAILS_WITH_3: &str =
    r"echo begins; case $DDBX_PERTURB in 3:*|8:*) echo it was $DDBX_PERTURB >&2; exit 7;; esac";

#[test]
fn a_run_is_recorded_into_a_new_directory() {
    let folder = Folder::with(
        "cat $DDBX_RECORD/session.json; echo keeps $DDBX_KEEP in $DDBX_RECORD; echo p=$DDBX_PERTURB",
    );
    let ran = folder.run("--record new/rec --keep 2GiB");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    // It was there before the process.
    assert!(ran.out.contains(r#""session": "here""#), "{}", ran.out);
    let rec = fs::canonicalize(folder.path("new/rec")).unwrap();
    assert!(ran.out.contains(&format!("keeps 2048 in {}\n", rec.display())), "{}", ran.out);
    assert!(ran.out.contains("p=\n"), "{}", ran.out);
    let last = "ddbx: recorded into new/rec; look at it with `ddbx inspect new/rec`, repeat it \
                with `ddbx replay new/rec`\n";
    assert!(ran.err.ends_with(last), "{}", ran.err);

    let again = folder.run("--record new/rec --keep 2GiB");
    assert_eq!((again.code, again.out.as_str()), (Some(2), ""), "{}", again.err);
    assert!(again.err.contains("record into a new directory"), "{}", again.err);
}

#[test]
fn without_options_nothing_is_recorded_or_perturbed() {
    let folder = Folder::with("echo [$DDBX_RECORD$DDBX_KEEP$DDBX_PERTURB]");
    let ran = folder.run("");
    assert!(ran.out.ends_with("| []\n") && !ran.err.contains("recorded"), "{}{}", ran.out, ran.err);
    let ran = folder.run("--perturb 42 --max-delay 250us");
    assert!(ran.out.ends_with("| [42:250]\n"), "{}", ran.out);
    let ran = folder.run("--perturb 42");
    assert!(ran.out.ends_with("| [42:5000]\n"), "{}", ran.out);
}

#[test]
fn a_line_can_be_the_failure_of_a_run() {
    let folder = Folder::with("echo oversold: 2");
    let ran = folder.run("--fail-on oversold:.[1-9]");
    assert_eq!(ran.code, Some(1));
    let sentence = "a printed \"oversold: 2\", which matches --fail-on";
    assert!(ran.err.contains(sentence), "{}", ran.err);
    assert_eq!(folder.run("--fail-on sold.out").code, Some(0));
    let wrong = folder.run("--fail-on (");
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
}

#[test]
fn a_search_keeps_the_first_run_that_fails_and_shows_it() {
    let folder = Folder::with(FAILS_WITH_3);
    let ran = folder.run("--until-fails --record rec");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let last = "run 3 (seed 3) failed: a exited with code 7; recorded into rec/run-3; repeat it \
                with `ddbx replay rec/run-3`\n";
    assert!(ran.out.ends_with(last), "{}", ran.out);
    assert!(ran.out.contains("a    | it was 3:5000\n"), "{}", ran.out);
    assert_eq!(ran.out.matches("begins").count(), 1, "{}", ran.out);
    assert_eq!(folder.names_in("rec"), ["run-3"]);
    assert!(folder.path("rec/run-3/session.json").exists());

    let again = folder.run("--until-fails --record rec");
    assert_eq!(again.code, Some(2), "{}", again.err);
    assert!(again.err.contains("rec is not empty: record into a new directory"), "{}", again.err);
}

#[test]
fn a_search_begins_with_the_seed_it_is_given_and_answers_in_json() {
    let folder = Folder::with(FAILS_WITH_3);
    let ran = folder.run("--until-fails --perturb 6 --max-delay 1ms --json");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&found["runs"], &found["failed"]["seed"]), (&3.into(), &8.into()));
    assert_eq!(found["failed"]["why"], "a exited with code 7");
    // Below the current directory if nothing else is said.
    let recording = Path::new(found["failed"]["recording"].as_str().unwrap());
    assert!(recording.starts_with("ddbx-recordings"), "{found}");
    assert!(folder.0.path().join(recording).join("session.json").exists(), "{found}");
    assert!(ran.err.contains("it was 8:1000"), "{}", ran.err);
}

#[test]
fn a_search_that_finds_nothing_leaves_nothing() {
    let folder = Folder::with("echo all well; [ -e $DDBX_RECORD/session.json ]");
    let ran = folder.run("--until-fails --runs 12");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "no failure in 12 runs\n"), "{}", ran.err);
    assert!(ran.err.contains("ddbx: 10 runs, 0 failures\n"), "{}", ran.err);
    assert!(!folder.path("ddbx-recordings").exists());
    let ran = folder.run("--until-fails --runs 1 --json");
    let found: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(found, serde_json::json!({ "runs": 1, "failed": null }));
}

#[test]
fn panics_and_lines_fail_a_run_that_exits_well() {
    let panics = "thread '\"'\"'worker'\"'\"' (12) panicked at src/lib.rs:3:5:";
    for (line, args) in [(panics, ""), ("oversold: 1", " --fail-on oversold")] {
        let folder =
            Folder::with(&format!("case $DDBX_PERTURB in 2:*) echo '{line}' >&2;; esac; exit 0"));
        let ran = folder.run(&format!("--until-fails --runs 5 --record rec{args}"));
        assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
        assert!(ran.out.contains("run 2 (seed 2) failed: a printed \""), "{}", ran.out);
    }
}

/// That others are gone at the end of a run surprises only those who look there.
#[test]
fn who_panics_because_the_run_is_over_fails_nothing() {
    let folder = Folder::with_file(
        r#"[[process]]
        name = "server"
        ready = "log:up"
        command = ["sh", "-c", """
            trap "echo \\"thread 'main' panicked at the end\\"; exit 101" TERM
            echo up; while :; do sleep 0.02; done"""]
        [[process]]
        name = "test"
        after = ["server"]
        ends_run = true
        command = ["true"]"#,
    );
    let ran = folder.run("--until-fails --runs 2");
    assert_eq!(ran.out, "no failure in 2 runs\n", "{}", ran.err);
}

#[test]
fn who_does_not_get_ready_has_failed_and_what_cannot_start_is_an_error() {
    let folder = Folder::with_file(
        "[[process]]\nname = 'a'\nready = 'log:up'\ncommand = ['sh', '-c', 'exit 4']",
    );
    let ran = folder.run("--until-fails --record rec");
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let why = "run 1 (seed 1) failed: a exited with code 4 before it was ready";
    assert!(ran.out.contains(why), "{}", ran.out);

    let folder = Folder::with_file("[[process]]\nname = 'a'\ncommand = ['no-such-program']");
    let ran = folder.run("--until-fails --record rec");
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    assert!(ran.err.contains("cannot start a: no-such-program"), "{}", ran.err);
    assert_eq!(folder.names_in("rec"), [""; 0]);
}

#[tokio::test]
async fn a_search_that_is_stopped_leaves_nothing_running() {
    let folder = Folder::with(
        "case $DDBX_PERTURB in 3:*) echo $$ > new; mv new pid; exec sleep 1000;; esac; exit 0",
    );
    let mut command = folder.command("--until-fails");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !folder.path("pid").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let pid = fs::read_to_string(folder.path("pid")).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert_eq!(ran.out, "stopped: no failure in 2 runs\n");
    gone(Pid::from_raw(pid).unwrap()).await;
    assert!(!folder.path("ddbx-recordings").exists());
}
