//! What is finished stays as it is, or everybody who looks is told.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use ddbx_protocol::ProcessName;
use ddbx_recording::{
    Breach, Entry, Finding, JoinError, Keep, OpenError, Recording, SealError, join, seal, verify,
};
use tempfile::TempDir;

use crate::directory::{new_process, record, session};
use crate::traffic::{Controls, shop};

fn finished() -> TempDir {
    let temporary = tempfile::tempdir().unwrap();
    for (name, moments) in shop(5, 4, 10, Controls::Named) {
        record(temporary.path(), &name, moments.into_iter().map(Entry::Event));
    }
    let exits = [("traffic", 0), ("orders", 101)];
    let exits = exits.map(|(name, code)| (ProcessName::new(name).unwrap(), code));
    seal(temporary.path(), BTreeMap::from(exits)).unwrap();
    let found = verify(&Recording::open(temporary.path()).unwrap());
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    temporary
}

/// The only thing that is wrong.
fn breach(directory: &Path) -> Breach {
    let found = verify(&Recording::open(directory).unwrap());
    let mut wrong = found.findings.into_iter().filter(Finding::is_wrong);
    match (wrong.next(), wrong.next()) {
        (Some(Finding::Breach(breach)), None) => breach,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_says_what_there_was() {
    let temporary = finished();
    let recording = Recording::open(temporary.path()).unwrap();
    let seal = recording.seal().unwrap();
    assert_eq!(seal.files.len(), 1 + 2 * 6);
    let log = seal.files["orders@1/000001.log"];
    let bytes = fs::read(temporary.path().join("orders@1/000001.log")).unwrap();
    assert_eq!((log.bytes, log.crc32), (bytes.len() as u64, crc32fast::hash(&bytes)));
    assert_eq!(seal.exits[&ProcessName::new("orders").unwrap()], 101);
    let all: u64 = seal.files.values().map(|file| file.bytes).sum();
    assert_eq!(recording.bytes().unwrap(), all);
}

#[test]
fn it_is_made_once_and_nobody_joins_any_more() {
    let temporary = finished();
    let refused = seal(temporary.path(), BTreeMap::new()).unwrap_err();
    assert!(matches!(refused, SealError::Twice(_)), "{refused}");
    let late = new_process(&ProcessName::new("late").unwrap());
    let refused = join(temporary.path(), &session(Keep::All), late).unwrap_err();
    assert!(matches!(refused, JoinError::Finished(_)));
    let sentence = "this recording is finished: record into a new directory";
    assert!(refused.to_string().ends_with(sentence), "{refused}");
    let nothing = tempfile::tempdir().unwrap();
    let refused = seal(nothing.path(), BTreeMap::new()).unwrap_err();
    assert!(matches!(refused, SealError::Open(OpenError::NotARecording(_))), "{refused}");
}

#[test]
fn a_tail_that_is_cut_is_noticed_wherever_that_is() {
    let temporary = finished();
    let recording = Recording::open(temporary.path()).unwrap();
    for log in recording.logs() {
        let path = temporary.path().join(format!("{}@1/000001.log", log.manifest().process));
        let bytes = fs::read(&path).unwrap();
        let mut blocks: Vec<_> =
            log.read().unwrap().map(|recorded| recorded.unwrap().position.byte as usize).collect();
        blocks.dedup();
        let end = bytes.len() - 20;
        let places = [0, 1, end - 1, end, end + 1, bytes.len() - 1];
        for place in places.into_iter().chain(blocks) {
            fs::write(&path, &bytes[..place]).unwrap();
            let Breach::Shorter { is, had, .. } = breach(temporary.path()) else {
                panic!("{} cut at {place}", path.display());
            };
            assert_eq!((is, had), (place as u64, bytes.len() as u64));
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert!(verify(&recording).is_sound());
}

#[test]
fn a_log_that_is_gone_or_new_or_grown_is_noticed() {
    let temporary = finished();
    let path = |name: &str| temporary.path().join(name);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(path("registry@1"), elsewhere.path().join("registry@1")).unwrap();
    let found = verify(&Recording::open(temporary.path()).unwrap());
    let gone = |finding: &&Finding| matches!(finding, Finding::Breach(Breach::Gone { .. }));
    assert_eq!(found.findings.iter().filter(gone).count(), 2, "{:?}", found.findings);
    fs::rename(elsewhere.path().join("registry@1"), path("registry@1")).unwrap();

    record(elsewhere.path(), &ProcessName::new("mail").unwrap(), []);
    fs::rename(elsewhere.path().join("mail@1"), path("mail@1")).unwrap();
    let found = verify(&Recording::open(temporary.path()).unwrap());
    let added = |finding: &&Finding| matches!(finding, Finding::Breach(Breach::Added { .. }));
    assert_eq!(found.findings.iter().filter(added).count(), 2, "{:?}", found.findings);
    fs::remove_dir_all(path("mail@1")).unwrap();

    // What a process writes after the end of the run: another part of its log.
    fs::write(path("orders@1/000002.log"), []).unwrap();
    let found = verify(&Recording::open(temporary.path()).unwrap());
    assert!(!found.is_sound());
    fs::remove_file(path("orders@1/000002.log")).unwrap();

    let mut file = OpenOptions::new().append(true).open(path("orders@1/000001.log")).unwrap();
    file.write_all(b"more").unwrap();
    let found = verify(&Recording::open(temporary.path()).unwrap());
    let grown = |finding: &Finding| matches!(finding, Finding::Breach(Breach::Longer { .. }));
    assert!(found.findings.iter().any(grown), "{:?}", found.findings);
}

#[test]
fn a_manifest_that_is_another_is_noticed() {
    let temporary = finished();
    let other = tempfile::tempdir().unwrap();
    let mut process = new_process(&ProcessName::new("orders").unwrap());
    process.pid += 1;
    let files = join(other.path(), &session(Keep::All), process).unwrap();
    let manifest = temporary.path().join("orders@1/process.json");
    fs::copy(files.directory().join("process.json"), manifest).unwrap();
    let breach = breach(temporary.path());
    assert!(matches!(breach, Breach::Changed { .. }), "{breach}");
    assert_eq!(
        breach.to_string(),
        "orders@1/process.json has changed since the recording was finished"
    );
}
