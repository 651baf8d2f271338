//! `ddbx recordings`, `ddbx inspect` and `ddbx verify` on good recordings, on those that
//! somebody has tampered with, and on one that is being written.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ddbx_protocol::{ControlId, Delay, EventKind, ProcessName, RealTime, SessionName};
use ddbx_recording::{Keep, LogWriter, NewProcess, Options, Queue, SessionManifest, join};
use serde_json::Value;
use tempfile::TempDir;

struct Run {
    code: Option<i32>,
    out: String,
    err: String,
}

fn ddbx(command: &str, recording: &Path, args: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_ddbx"))
        .arg(command)
        .arg(recording)
        .args(args)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/golden/v1")
}

/// A copy of the golden recording, which is finished.
fn copy() -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in ["session.json", "seal.json"] {
        fs::copy(golden().join(file), to.path().join(file)).unwrap();
    }
    for process in ["gateway@1", "orders@1"] {
        fs::create_dir(to.path().join(process)).unwrap();
        for file in ["process.json", "000001.log"] {
            let path = format!("{process}/{file}");
            fs::copy(golden().join(&path), to.path().join(&path)).unwrap();
        }
    }
    to
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn state(recording: &Path) -> String {
    let listed = ddbx("recordings", recording, &["--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    listed[0]["state"].as_str().unwrap().to_owned()
}

/// All three say that something is wrong, two of them what.
#[track_caller]
fn is_damaged(recording: &Path, sentence: &str) {
    let verified = ddbx("verify", recording, &[]);
    assert_eq!(verified.code, Some(1), "{}{}", verified.out, verified.err);
    let said = format!("{}{}", verified.out, verified.err);
    assert!(said.contains(sentence), "{said}");
    let inspected = ddbx("inspect", recording, &[]);
    assert_eq!(inspected.code, Some(1), "{}", inspected.err);
    assert!(inspected.err.contains(sentence), "{}", inspected.err);
    assert_eq!(state(recording), "damaged");
}

#[test]
fn departures_come_before_arrivals_and_each_log_in_its_order() {
    let entries = json_lines(&ddbx("inspect", &golden(), &["--json"]).out);
    let mut seen = BTreeSet::new();
    let (mut arrivals, mut last) = (0, std::collections::BTreeMap::new());
    for entry in entries.iter().filter(|entry| entry.get("kind").is_some()) {
        let process = entry["process"].as_str().unwrap().to_owned();
        let number = entry["number"].as_u64().unwrap();
        assert!(last.insert(process.clone(), number).is_none_or(|before| before < number));
        let kind = entry["kind"].as_object().unwrap().values().next().unwrap();
        if let Some(sent_as) = kind.get("sent_as").filter(|sent_as| !sent_as.is_null()) {
            let departure = (
                sent_as["process"].as_str().unwrap().to_owned(),
                sent_as["number"].as_u64().unwrap(),
            );
            assert!(seen.contains(&departure), "{departure:?} of {process}:{number}");
            arrivals += 1;
        }
        seen.insert((process, number));
    }
    assert_eq!((seen.len(), arrivals), (28, 4));
    let other = |what: &str| entries.iter().filter(|entry| entry.get(what).is_some()).count();
    assert_eq!((other("choice"), other("gap")), (2, 2));
}

#[test]
fn filters_choose() {
    let count = |args: &[&str]| {
        let run = ddbx("inspect", &golden(), args);
        assert_eq!(run.code, Some(0), "{}", run.err);
        run.out.lines().count()
    };
    assert_eq!(count(&[]), 32);
    assert_eq!(count(&["--process", "orders"]), 19);
    assert_eq!(count(&["--control", "gateway/main!1"]), 6);
    // Its own events, and the entries, the choice and the point of who handles it.
    assert_eq!(count(&["--control", "gateway/main!2"]), 6 + 8);
    assert_eq!(count(&["--control", "gateway/main/poll"]), 3);
    assert_eq!(count(&["--method", "Orders.*", "--process", "gateway"]), 5);
    assert_eq!(count(&["--method", "Orders.*", "--process", "orders"]), 8 + 8);
    assert_eq!(count(&["--method", "Payments.*"]), 0);
    assert_eq!(count(&["--from", "0.0005s"]), 1);
    assert_eq!(count(&["--to", "50us", "--process", "gateway"]), 2);
    let nobody = ddbx("inspect", &golden(), &["--process", "mail"]);
    assert_eq!(nobody.code, Some(2));
    assert!(nobody.err.contains("gateway, orders"), "{}", nobody.err);
}

#[test]
fn gaps_are_named_and_are_not_wrong() {
    let run = ddbx("verify", &golden(), &["--json"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let found: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(found["sound"], true);
    let gap = &found["findings"][0];
    assert_eq!(
        (&gap["process"], &gap["after"], &gap["missing"], &gap["why"]),
        (&"gateway".into(), &9.into(), &3.into(), &"disk_full".into())
    );
}

#[test]
fn a_finished_recording_that_was_changed_is_damaged() {
    let tampered = copy();
    let at = |file: &str| tampered.path().join(file);
    let whole = ddbx("inspect", tampered.path(), &["--json"]).out;
    let log = fs::read(at("orders@1/000001.log")).unwrap();

    change(&at("orders@1/000001.log"), |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 16;
    });
    is_damaged(tampered.path(), "orders@1/000001.log");
    // What can be read is exact: of each process a prefix, nothing else.
    let shown = ddbx("inspect", tampered.path(), &["--json"]).out;
    for process in ["gateway", "orders"] {
        let of = |text: &str| -> Vec<Value> {
            let all = json_lines(text).into_iter();
            all.filter(|entry| entry["process"] == process)
                .map(|mut entry| {
                    entry.as_object_mut().unwrap().remove("departure");
                    entry
                })
                .collect()
        };
        let (all, some) = (of(&whole), of(&shown));
        assert!(!some.is_empty() && all.starts_with(&some), "{process}");
        assert_eq!(some.len() < all.len(), process == "orders");
    }

    // Without its last block, exactly.
    fs::write(at("orders@1/000001.log"), &log[..log.len() - 20]).unwrap();
    is_damaged(tampered.path(), "orders@1/000001.log was cut");
    fs::write(at("orders@1/000001.log"), &log).unwrap();
    assert_eq!(state(tampered.path()), "sealed");

    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(at("orders@1"), elsewhere.path().join("orders@1")).unwrap();
    is_damaged(tampered.path(), "orders@1/000001.log is gone");
    fs::rename(elsewhere.path().join("orders@1"), at("orders@1")).unwrap();

    change(&at("seal.json"), |bytes| bytes[100] ^= 1);
    is_damaged(tampered.path(), "seal.json is not as ddbx wrote it");
}

#[test]
fn without_a_seal_a_lost_tail_is_named_and_is_not_wrong() {
    let unfinished = copy();
    fs::remove_file(unfinished.path().join("seal.json")).unwrap();
    assert_eq!(state(unfinished.path()), "closed");
    for (cut, word) in [(20, "open"), (21, "torn")] {
        let log = unfinished.path().join("orders@1/000001.log");
        let bytes = fs::read(&log).unwrap();
        fs::write(&log, &bytes[..bytes.len() - cut]).unwrap();
        assert_eq!(state(unfinished.path()), word);
        let verified = ddbx("verify", unfinished.path(), &[]);
        assert_eq!(verified.code, Some(0), "{}", verified.out);
        assert!(verified.out.contains("note: the log of orders "), "{}", verified.out);
        let inspected = ddbx("inspect", unfinished.path(), &[]);
        assert_eq!(inspected.code, Some(0));
        assert!(inspected.err.starts_with("note: the log of orders "), "{}", inspected.err);
        fs::write(&log, &bytes).unwrap();
    }
}

#[test]
fn what_is_no_recording_is_bad_input() {
    let empty = tempfile::tempdir().unwrap();
    for command in ["verify", "inspect"] {
        for path in [empty.path(), &empty.path().join("nowhere")] {
            let run = ddbx(command, path, &[]);
            assert_eq!(run.code, Some(2), "{}", run.err);
            assert!(run.err.contains("is not a recording"), "{}", run.err);
            assert!(run.out.is_empty());
        }
    }
    assert_eq!(ddbx("recordings", &empty.path().join("nowhere"), &[]).code, Some(2));
    let none = ddbx("recordings", empty.path(), &["--json"]);
    assert_eq!((none.code, none.out.trim()), (Some(0), "[]"));
}

#[test]
fn a_recording_is_looked_at_while_it_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let name = ProcessName::new("inventory").unwrap();
    // Whatever is in a manifest, nothing of it reaches the terminal as it is.
    let session = SessionName::new("shop").unwrap();
    let session = SessionManifest::new(session, "to\u{1b}[2Jday", Keep::All);
    let process = NewProcess { name: name.clone(), pid: 42, command: None };
    let recording = directory.path().join("rec");
    let files = join(&recording, &session, process).unwrap();
    let mut writer = LogWriter::new(files, &name, Options::default());
    let queue = Queue::default();
    for round in 1..=3usize {
        let now = RealTime::from_nanos(round as i64 * 1_000_000);
        let control = ControlId::root(&name, "main").unwrap();
        queue.note(now, Delay::ZERO, EventKind::Ended { control });
        writer.drain(now, &queue);
        writer.flush(now);
        let run = ddbx("inspect", &recording, &[]);
        assert_eq!((run.code, run.out.lines().count()), (Some(0), round), "{}", run.err);
        assert!(run.err.contains("still runs"), "{}", run.err);
    }
    // It is found from the directory above, too.
    let listed = ddbx("recordings", directory.path(), &[]);
    assert!(listed.out.contains("rec") && listed.out.contains("open"), "{}", listed.out);
    assert!(!listed.out.contains('\u{1b}') && listed.out.contains("\\u{1b}"), "{}", listed.out);
    writer.close(RealTime::from_nanos(3_000_000)).unwrap();
    let run = ddbx("inspect", &recording, &[]);
    assert!(run.err.is_empty() && run.out.contains("0.002000s  inventory:3"), "{}", run.out);
}
