//! How a recording lies on the disk, and who may see it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;

use ddbx_protocol::{ProcessName, RealTime, SessionName};
use ddbx_recording::{
    Entry, Files, JoinError, Keep, LogWriter, NewProcess, OpenError, Options, Program, ReadError,
    Recording, SessionManifest, Tail, create, join,
};

use crate::traffic::{Controls, shop};

pub fn session(keep: Keep) -> SessionManifest {
    SessionManifest::new(SessionName::new("shop").unwrap(), "2026-01-01T00:00:00Z", keep)
}

pub fn new_process(name: &ProcessName) -> NewProcess {
    let command = Some(vec!["shop".to_owned(), name.to_string()]);
    NewProcess { name: name.clone(), pid: 42, command }
}

/// Joins and writes all, in good order.
pub fn record(directory: &Path, name: &ProcessName, entries: impl IntoIterator<Item = Entry>) {
    let files = join(directory, &session(Keep::All), new_process(name)).unwrap();
    let mut writer = LogWriter::new(files, name, Options::default());
    for entry in entries {
        writer.append(RealTime::default(), &entry);
    }
    writer.close(RealTime::default()).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_its_owner_can_read_a_recording() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("some/recording");
    let name = ProcessName::new("inventory#2").unwrap();
    record(&directory, &name, []);
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(&directory.join("session.json")), 0o600);
    let process = directory.join("inventory#2@1");
    assert_eq!(mode(&process), 0o700);
    assert_eq!(mode(&process.join("process.json")), 0o600);
    assert_eq!(mode(&process.join("000001.log")), 0o600);
    let recording = Recording::open(&directory).unwrap();
    assert_eq!(recording.session(), &session(Keep::All));
    let manifest = recording.logs()[0].manifest();
    assert_eq!((&manifest.process, manifest.start, manifest.pid), (&name, 1, 42));
    assert_eq!(manifest.command.as_deref().unwrap(), ["shop", "inventory#2"]);
}

#[test]
fn processes_join_without_a_word_to_each_other() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("recording");
    let name = ProcessName::new("orders").unwrap();
    let joined: Vec<Files> = thread::scope(|scope| {
        let join = || join(&directory, &session(Keep::All), new_process(&name)).unwrap();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(join)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let recording = Recording::open(&directory).unwrap();
    let starts: Vec<_> = recording.logs().iter().map(|log| log.manifest().start).collect();
    assert_eq!(starts, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(joined.len(), 8);
    // Nothing was written yet: that is no error.
    let mut reader = recording.logs()[0].read().unwrap();
    assert!(reader.next().is_none() && matches!(reader.tail(), Tail::Open(_)));
    let strays = fs::read_dir(&directory)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".new"));
    assert_eq!(strays.count(), 0);
}

#[test]
fn a_recording_can_be_made_before_its_processes_start_but_only_once() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("new/recording");
    let kept = session(Keep::LastMib(4.try_into().unwrap()));
    create(&directory, &kept).unwrap();
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(Recording::open(&directory).unwrap().logs().len(), 0);
    let refused = create(&directory, &kept).unwrap_err();
    assert!(refused.to_string().ends_with("already: record into a new directory"), "{refused}");
    let name = ProcessName::new("orders").unwrap();
    let other = SessionManifest { created: "later".to_owned(), ..kept.clone() };
    join(&directory, &other, new_process(&name)).unwrap();
    assert_eq!(Recording::open(&directory).unwrap().session(), &kept);
    let refused = join(&directory, &session(Keep::All), new_process(&name)).unwrap_err();
    assert!(matches!(refused, JoinError::OtherSession { .. }), "{refused}");
}

#[test]
fn what_is_not_a_private_recording_of_this_session_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("recording");
    let name = ProcessName::new("orders").unwrap();
    assert!(matches!(Recording::open(&directory), Err(OpenError::NotARecording(_))));
    record(&directory, &name, []);
    let mut other = session(Keep::All);
    other.session = SessionName::new("office").unwrap();
    let refused = join(&directory, &other, new_process(&name)).unwrap_err();
    assert!(matches!(refused, JoinError::OtherSession { .. }), "{refused}");
    fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
    let refused = join(&directory, &session(Keep::All), new_process(&name)).unwrap_err();
    assert!(matches!(refused, JoinError::NotPrivate(_)), "{refused}");
}

#[test]
fn whoever_comes_first_says_what_was_started() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("recording");
    let name = ProcessName::new("orders").unwrap();
    let file = "/srv/shop/ddbx.toml".to_owned();
    let text = "\n\"".repeat(512 * 1024);
    let mut first = session(Keep::All);
    first.program = Some(Program { file: file.clone(), text: text.clone() });
    join(&directory, &first, new_process(&name)).unwrap();
    join(&directory, &session(Keep::All), new_process(&name)).unwrap();
    let found = Recording::open(&directory).unwrap().session().program.clone().unwrap();
    assert!(found.file == file && found.text == text, "1 MiB fits, whatever is in it");
    first.program = Some(Program { file, text: text.repeat(2) });
    let refused =
        join(&temporary.path().join("other"), &first, new_process(&name)).unwrap_err().to_string();
    assert!(refused.contains("a shorter ddbx.toml"), "{refused}");
}

#[test]
fn files_in_the_wrong_place_are_noticed() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = temporary.path().join("recording");
    for (name, moments) in shop(1, 1, 1, Controls::Named) {
        record(&directory, &name, moments.into_iter().map(Entry::Event));
    }
    let log = |name: &str| directory.join(format!("{name}@1/000001.log"));
    fs::copy(log("orders"), log("gateway")).unwrap();
    let recording = Recording::open(&directory).unwrap();
    let gateway = recording.logs().iter().find(|log| log.manifest().process.as_str() == "gateway");
    let error = gateway.unwrap().read().unwrap().next().unwrap().unwrap_err();
    assert!(error.to_string().contains("belongs elsewhere"), "{error}");
    assert!(matches!(error, ReadError::Damaged { .. }));
    fs::rename(directory.join("orders@1"), directory.join("orders@7")).unwrap();
    assert!(matches!(Recording::open(&directory), Err(OpenError::Misplaced(_))));
}
