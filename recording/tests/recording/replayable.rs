//! What can be replayed, and what is said if it cannot.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use ddbx_protocol::{EventNumber, ProcessName, RealTime};
use ddbx_recording::{
    Entry, Gap, Keep, LogWriter, NotReplayable, Options, Recording, Why, is_replayable, join, seal,
};

use crate::directory::{new_process, record, session};
use crate::traffic::{Controls, shop};

type Logs = Vec<(ProcessName, Vec<Entry>)>;

fn logs() -> Logs {
    let logs = shop(5, 4, 10, Controls::Named).into_iter();
    logs.map(|(name, moments)| (name, moments.into_iter().map(Entry::Event).collect())).collect()
}

fn check(directory: &Path) -> Result<(), NotReplayable> {
    is_replayable(&Recording::open(directory).unwrap())
}

/// What is said of these logs.
fn said_of(spoil: impl FnOnce(&mut Logs)) -> String {
    let temporary = tempfile::tempdir().unwrap();
    let mut logs = logs();
    spoil(&mut logs);
    for (name, entries) in logs {
        record(temporary.path(), &name, entries);
    }
    check(temporary.path()).map_or_else(|why| why.to_string(), |()| "fine".to_owned())
}

#[test]
fn whatever_is_missing_is_said_with_what_to_do() {
    assert_eq!(said_of(|_| {}), "fine");
    let gap = |logs: &mut Logs| {
        logs[2].1[9] = Entry::Gap(Gap { missing: 1, why: Why::DiskFull });
    };
    assert_eq!(
        said_of(gap),
        "1 entry is missing after orders:9 (the disk was full): record again with more room on the disk"
    );
    let removed = said_of(|logs| drop(logs[2].1.remove(9)));
    assert!(removed.starts_with("orders:11 comes after number 9"), "{removed}");
    assert!(removed.ends_with("restore the recording from a copy, or record again"));
    let swapped = said_of(|logs| logs[2].1.swap(9, 10));
    assert!(swapped.contains("record again"), "{swapped}");
    let silent = said_of(|logs| drop(logs.remove(5)));
    assert!(silent.contains("comes from registry, which did not record"), "{silent}");
}

#[test]
fn a_log_without_an_end_can_be_replayed_only_if_all_else_is_in_order() {
    let temporary = tempfile::tempdir().unwrap();
    for (name, entries) in logs() {
        record(temporary.path(), &name, entries);
    }
    let path = temporary.path().join("orders@1/000001.log");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let refused = check(temporary.path()).unwrap_err();
    assert!(matches!(refused, NotReplayable::NotClosed { .. }), "{refused}");
    assert_eq!(
        refused.to_string(),
        "the log of orders was not closed: the process was killed or its tail was cut; replay \
         what is there with --partial"
    );
    // The seal says that this is all there was: its process was killed.
    seal(temporary.path(), BTreeMap::new()).unwrap();
    check(temporary.path()).unwrap();
    fs::write(&path, &bytes).unwrap();
    let refused = check(temporary.path()).unwrap_err();
    assert!(matches!(refused, NotReplayable::NotSound(_)), "{refused}");
}

#[test]
fn the_end_alone_cannot_be_replayed() {
    let temporary = tempfile::tempdir().unwrap();
    let keep = Keep::LastMib(NonZeroU32::MIN);
    let (name, entries) = logs().swap_remove(0);
    let begun = |skip: usize| {
        let directory = temporary.path().join(skip.to_string());
        let files = join(&directory, &session(keep), new_process(&name)).unwrap();
        let mut writer = LogWriter::new(files, &name, Options { keep, ..Options::default() });
        // What it names as departures is elsewhere: only its own departures are looked at.
        let own = entries.iter().filter(|entry| match entry {
            Entry::Event(moment) => moment.kind.sent_as().is_none(),
            _ => true,
        });
        for (number, entry) in (1..).zip(own).skip(skip) {
            let Entry::Event(mut moment) = entry.clone() else { continue };
            moment.number = EventNumber(number);
            writer.append(RealTime::default(), &Entry::Event(moment));
        }
        writer.close(RealTime::default()).unwrap();
        check(&directory)
    };
    begun(0).unwrap();
    let refused = begun(3).unwrap_err();
    assert!(matches!(refused, NotReplayable::EndOnly { first: EventNumber(4), .. }), "{refused}");
    assert!(refused.to_string().ends_with("record again without --keep"));
}
