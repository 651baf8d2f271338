//! A storage that fails: nothing is lost in silence, and it is never the program's
//! problem.

use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::time::Duration;

use ddbx_protocol::{EventNumber, ProcessName, RealTime};
use ddbx_recording::{Entry, Keep, LogWriter, Options, Queue, Segment, Tail, Why};

use crate::memory::{Memory, read};
use crate::traffic::{Controls, shop};

fn entries(purchases: u32) -> (ProcessName, Vec<Entry>) {
    let (process, moments) = shop(7, 4, purchases, Controls::Named).swap_remove(2);
    (process, moments.into_iter().map(Entry::Event).collect())
}

/// Writes all, with some time between the blocks. Time goes on until nothing is
/// left to do.
fn record(memory: &Memory, process: &ProcessName, entries: &[Entry], options: Options) {
    let mut writer = LogWriter::new(memory.clone(), process, options);
    let mut now = RealTime::default();
    for some in entries.chunks(40) {
        for entry in some {
            writer.append(now, entry);
        }
        now = now + Duration::from_millis(300);
        writer.poll(now);
        assert!(writer.durable() <= writer.written());
    }
    for _ in 0..10 {
        now = now + Duration::from_secs(1);
        writer.poll(now);
    }
    // The storage may fail here, too, and then says so.
    let _ = writer.close(now);
}

#[test]
fn each_operation_fails_once() {
    let (process, entries) = entries(100);
    let reference = Memory::default().gulping(500);
    record(&reference, &process, &entries, Options::default());
    let operations = reference.operations();
    assert!(operations > 30);
    for failing in 0..operations {
        for kind in [ErrorKind::StorageFull, ErrorKind::Other, ErrorKind::Interrupted] {
            let memory = Memory::failing(move |index| (index == failing).then_some(kind));
            let memory = memory.gulping(500);
            record(&memory, &process, &entries, Options::default());
            let contents = read(&memory.bytes(), &process, Segment::FIRST);
            let tail = contents.end.unwrap();
            let read = contents.entries.iter().map(|(_, entry)| entry);
            assert!(read.eq(&entries), "operation {failing} failed, {kind:?}");
            // Only the very last writes are not made again.
            assert!(
                tail == Tail::Closed || failing + 3 >= operations,
                "operation {failing}: {tail:?}"
            );
        }
    }
}

#[test]
fn each_operation_of_a_black_box_fails_once() {
    let (process, entries) = entries(5_000);
    let options = Options { keep: Keep::LastMib(NonZeroU32::MIN), ..Options::default() };
    let kept = |memory: &Memory| -> Vec<Entry> {
        let files =
            memory.files().into_iter().map(|(segment, bytes)| read(&bytes, &process, segment));
        files.flat_map(|contents| contents.entries).map(|(_, entry)| entry).collect()
    };
    let reference = Memory::default();
    record(&reference, &process, &entries, options);
    let usual = kept(&reference).len();
    assert!(
        reference.files().first_key_value().unwrap().0 > &Segment::FIRST,
        "nothing was removed"
    );
    // Those that begin, sync or remove a segment, and some of the writes.
    let mut changes = reference.segment_operations();
    changes.extend((0..reference.operations()).step_by(1499));
    for failing in changes {
        let memory = Memory::failing(move |index| (index == failing).then_some(ErrorKind::Other));
        record(&memory, &process, &entries, options);
        let found = kept(&memory);
        assert_eq!(found, entries[entries.len() - found.len()..], "operation {failing} failed");
        assert!(found.len() > usual / 2, "operation {failing} failed: {} of {usual}", found.len());
    }
}

#[test]
fn a_full_disk_leaves_a_gap_and_no_more() {
    let (process, entries) = entries(20_000);
    // It is full for long, and then it is not.
    let memory =
        Memory::failing(|index| (5..100).contains(&index).then_some(ErrorKind::StorageFull));
    let options = Options { sync_after: None, ..Options::default() };
    let mut writer = LogWriter::new(memory.clone(), &process, options);
    let mut now = RealTime::default();
    for some in entries.chunks(500) {
        now = now + Duration::from_millis(50);
        for entry in some {
            writer.append(now, entry);
        }
        writer.poll(now);
    }
    assert!(writer.counters().missing > 0 && writer.counters().failures > 0);
    for _ in 0..100 {
        now = now + Duration::from_secs(1);
        writer.poll(now);
    }
    for entry in &entries[..10] {
        writer.append(now, entry);
    }
    let counters = writer.close(now).unwrap();
    let contents = read(&memory.bytes(), &process, Segment::FIRST);
    assert_eq!(contents.end.unwrap(), Tail::Closed);
    let mut expected = entries.iter();
    let mut gaps = 0;
    let (after, before) = contents.entries.split_at(contents.entries.len() - 10);
    for (_, entry) in after {
        match entry {
            Entry::Gap(gap) => {
                assert_eq!(gap.why, Why::DiskFull);
                gaps += 1;
                expected.nth(gap.missing as usize - 1).unwrap();
            }
            entry => assert_eq!(entry, expected.next().unwrap()),
        }
    }
    assert_eq!(expected.next(), None, "every entry is there or counted");
    assert!(gaps > 0 && before.iter().map(|(_, entry)| entry).eq(&entries[..10]));
    assert_eq!(counters.entries + counters.missing, entries.len() as u64 + 10);
}

#[test]
fn what_is_durable_is_known() {
    let (process, entries) = entries(20);
    let memory = Memory::default();
    let mut writer = LogWriter::new(memory.clone(), &process, Options::default());
    let number = |index: usize| match &entries[index] {
        Entry::Event(moment) => moment.number,
        _ => panic!("only events"),
    };
    let start = RealTime::default();
    writer.append(start, &entries[0]);
    writer.poll(start);
    assert_eq!((writer.written(), writer.durable()), (EventNumber(0), EventNumber(0)));
    assert_eq!(writer.poll_at(), Some(start + Duration::from_millis(20)));
    writer.poll(start + Duration::from_millis(20));
    assert_eq!((writer.written(), writer.durable()), (number(0), EventNumber(0)));
    writer.append(start, &entries[1]);
    writer.poll(start + Duration::from_millis(1020));
    assert_eq!((writer.written(), writer.durable()), (number(1), number(1)));
    assert_eq!((memory.syncs(), writer.poll_at()), (1, None));
}

/// The kernel may drop what it could not write, and report that once.
#[test]
fn nothing_is_durable_after_a_sync_that_failed() {
    let (process, entries) = entries(20);
    // Create, write, sync, write, sync, write, sync.
    let memory = Memory::failing(|index| (index == 4).then_some(ErrorKind::Other));
    let mut writer = LogWriter::new(memory, &process, Options::default());
    let now = RealTime::default();
    let mut durable = Vec::new();
    for entry in &entries[..3] {
        writer.append(now, entry);
        writer.flush(now);
        writer.sync();
        durable.push(writer.durable().0);
    }
    assert_eq!((durable, writer.written()), (vec![1, 1, 1], EventNumber(3)));
    assert_eq!(writer.counters().sync_failures, 1);
    assert!(writer.close(now).is_err());
}

#[test]
fn what_the_queue_dropped_is_a_gap() {
    let (process, entries) = entries(20);
    let (memory, queue, now) = (Memory::default(), Queue::new(3), RealTime::default());
    let mut writer = LogWriter::new(memory.clone(), &process, Options::default());
    for entry in &entries[..5] {
        queue.push(entry.clone());
    }
    writer.drain(now, &queue);
    queue.push(entries[5].clone());
    writer.drain(now, &queue);
    writer.close(now).unwrap();
    let contents = read(&memory.bytes(), &process, Segment::FIRST);
    let found: Vec<_> = contents.entries.iter().map(|(_, entry)| entry).collect();
    assert_eq!(found[..3], [&entries[0], &entries[1], &entries[2]]);
    assert!(matches!(found[3], Entry::Gap(gap) if gap.missing == 2 && gap.why == Why::QueueFull));
    assert_eq!(found[4..], [&entries[5]]);
}
