//! Reading while somebody writes, and after somebody was killed.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use ddbx_protocol::{ControlId, Delay, EventKind, ProcessName, RealTime};
use ddbx_recording::{Entry, Keep, LogWriter, Options, Queue, Recording, Tail, join, verify};

use crate::damage::Log;
use crate::directory::{new_process, record, session};

/// Tells a test that it is the one to be killed, and where to record.
const VICTIM: &str = "DDBX_TEST_VICTIM";

#[test]
fn a_log_is_read_as_it_grows_byte_by_byte() {
    let temporary = tempfile::tempdir().unwrap();
    let log = Log::new(1024);
    let name = &log.process;
    record(temporary.path(), name, []);
    let path = temporary.path().join(format!("{name}@1/000001.log"));
    fs::write(&path, []).unwrap();
    let recording = Recording::open(temporary.path()).unwrap();
    let mut reader = recording.logs()[0].read().unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let mut seen = Vec::new();
    for byte in &log.bytes {
        assert_ne!(reader.tail(), Tail::Closed);
        file.write_all(&[*byte]).unwrap();
        seen.extend(reader.by_ref().map(|recorded| recorded.unwrap().entry));
    }
    assert!(seen == log.entries);
    assert_eq!(reader.tail(), Tail::Closed);
}

#[test]
fn what_was_written_survives_a_kill() {
    let temporary = tempfile::tempdir().unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "live::victim", "--nocapture"])
        .env(VICTIM, temporary.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut written = 0;
    while written < 50_000 {
        let line = lines.next().unwrap().unwrap();
        written = line.strip_prefix("written ").map_or(written, |number| number.parse().unwrap());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let recording = Recording::open(temporary.path()).unwrap();
    let mut reader = recording.logs()[0].read().unwrap();
    let mut last = 0;
    for recorded in reader.by_ref() {
        match recorded.unwrap().entry {
            Entry::Event(moment) => {
                assert_eq!(moment.number.0, last + 1);
                last += 1;
            }
            other => panic!("only events: {other:?}"),
        }
    }
    assert!(last >= written, "{written} events were written, {last} can be read");
    assert_ne!(reader.tail(), Tail::Closed);
    assert!(verify(&recording).is_sound());
}

/// Not a test by itself: writes until it is killed, when told to.
#[test]
fn victim() {
    let Some(directory) = env::var_os(VICTIM) else {
        return;
    };
    let name = ProcessName::new("victim").unwrap();
    let files = join(Path::new(&directory), &session(Keep::All), new_process(&name)).unwrap();
    let options = Options { sync_after: None, ..Options::default() };
    let (mut writer, queue) = (LogWriter::new(files, &name, options), Queue::default());
    let control = ControlId::root(&name, "main").unwrap();
    for at in 0i64.. {
        let now = RealTime::from_nanos(at * 1_000_000);
        for _ in 0..100 {
            queue.note(now, Delay::ZERO, EventKind::Ended { control: control.clone() });
        }
        writer.drain(now, &queue);
        // A reader that has gone away has seen enough.
        if writeln!(std::io::stdout(), "written {}", writer.written().0).is_err() {
            return;
        }
    }
}
