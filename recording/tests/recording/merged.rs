//! One order of the whole run.

use std::collections::BTreeSet;
use std::time::Duration;

use ddbx_protocol::{
    CallId, CallPath, ControlId, Delay, EventId, EventKind, EventNumber, MethodName, PointLabel,
    ProcessName, RealTime,
};
use ddbx_recording::{
    Choice, ChoiceValue, Departure, Entry, Gap, Moment, Recording, Step, Why, merged,
};

use crate::directory::record;
use crate::traffic::{Controls, shop};

#[test]
fn all_of_it_in_the_order_of_each_log_and_nothing_before_it_was_sent() {
    let temporary = tempfile::tempdir().unwrap();
    let logs = shop(5, 4, 10, Controls::Named);
    for (name, moments) in &logs {
        record(temporary.path(), name, moments.iter().cloned().map(Entry::Event));
    }
    let recording = Recording::open(temporary.path()).unwrap();
    let mut seen = BTreeSet::new();
    let (mut ends, mut jumps_back, mut last) = (0, 0, Duration::ZERO);
    for step in merged(&recording) {
        let entry = match step {
            Step::Entry(entry) => entry,
            Step::End { .. } => {
                ends += 1;
                continue;
            }
            Step::Broken { error, .. } => panic!("{error}"),
        };
        let id = entry.event_id().unwrap();
        assert_eq!(entry.departure, Departure::Before);
        let Entry::Event(moment) = &entry.entry else { panic!("only events") };
        assert!(moment.kind.sent_as().is_none_or(|sent_as| seen.contains(sent_as)));
        let before = EventId { number: EventNumber(id.number.0 - 1), ..id.clone() };
        assert!(before.number.0 == 0 || seen.contains(&before), "{id}");
        jumps_back += u32::from(entry.since_start < last);
        last = entry.since_start;
        seen.insert(id);
    }
    assert_eq!(seen.len(), logs.iter().map(|(_, moments)| moments.len()).sum::<usize>());
    assert_eq!(ends, logs.len());
    // Logs begin at slightly different times; apart from that it goes by the clock.
    assert!(jumps_back * 4 < seen.len() as u32, "{jumps_back} of {}", seen.len());
}

fn at(number: u64, millis: i64, kind: EventKind) -> Entry {
    let at = RealTime::from_nanos(millis * 1_000_000);
    Entry::Event(Moment { number: EventNumber(number), at, delay: Delay::ZERO, kind })
}

/// Written as `process:number`, or `process:-` for what has none, with its time in ms.
fn order(logs: &[(&str, Vec<Entry>)]) -> Vec<String> {
    let temporary = tempfile::tempdir().unwrap();
    for (name, entries) in logs {
        record(temporary.path(), &ProcessName::new(name).unwrap(), entries.clone());
    }
    let recording = Recording::open(temporary.path()).unwrap();
    let entries = merged(&recording).filter_map(|step| match step {
        Step::Entry(entry) => Some(entry),
        _ => None,
    });
    entries
        .map(|entry| {
            let process = &entry.log.manifest().process;
            let name = entry.event_id().map_or(format!("{process}:-"), |id| id.to_string());
            let remark = match entry.departure {
                Departure::Before => "",
                Departure::Other => " other",
                Departure::Later => " later",
                Departure::Absent => " absent",
            };
            format!("{name} {}{remark}", entry.since_start.as_millis())
        })
        .collect()
}

fn point() -> EventKind {
    let control = ControlId::new("a/main").unwrap();
    EventKind::Point { control, call: None, label: PointLabel::new("here").unwrap() }
}

fn call() -> (CallId, MethodName) {
    let control = ControlId::new("a/main").unwrap();
    (CallId { control, path: CallPath::root(1) }, MethodName::new("S.m").unwrap())
}

fn sent() -> EventKind {
    let (call, method) = call();
    EventKind::CallSent { call, method, content: 0 }
}

fn arrived(process: &str, number: u64) -> EventKind {
    let (call, method) = call();
    let process = ProcessName::new(process).unwrap();
    EventKind::CallArrived {
        call,
        method,
        sent_as: Some(EventId { process, number: EventNumber(number) }),
    }
}

#[test]
fn by_time_unless_a_message_says_otherwise() {
    // The clock of each process begins anywhere.
    let a = vec![at(1, 500, point()), at(2, 505, sent()), at(3, 540, point())];
    let b = vec![
        at(1, 9_000, point()),
        at(2, 9_002, arrived("a", 2)),
        at(3, 9_020, point()),
        at(4, 9_030, point()),
    ];
    assert_eq!(
        order(&[("a", a), ("b", b)]),
        ["a:1 0", "b:1 0", "a:2 5", "b:2 2", "b:3 20", "b:4 30", "a:3 40"]
    );
}

#[test]
fn what_has_no_time_follows_what_is_before_it() {
    let choice = Entry::Choice(Choice {
        control: ControlId::new("a/main").unwrap(),
        call: None,
        name: ddbx_protocol::ChoiceName::new("replica").unwrap(),
        value: ChoiceValue::new([1]).unwrap(),
    });
    let gap = Entry::Gap(Gap { missing: 1, why: Why::QueueFull });
    let a = vec![at(1, 0, point()), choice, at(2, 10, point()), gap, at(4, 30, point())];
    let b = vec![at(1, 0, point()), at(2, 5, point()), at(3, 20, point())];
    assert_eq!(
        order(&[("a", a), ("b", b)]),
        ["a:1 0", "a:- 0", "b:1 0", "b:2 5", "a:2 10", "a:- 10", "b:3 20", "a:4 30"]
    );
}

#[test]
fn a_process_that_was_started_again_goes_on_where_it_ended() {
    let first = vec![at(1, 100, point()), at(2, 120, point())];
    let again = vec![at(1, 0, point()), at(2, 5, point())];
    let b = vec![at(1, 0, point()), at(2, 22, point()), at(3, 30, point())];
    assert_eq!(
        order(&[("a", first), ("a", again), ("b", b)]),
        ["a:1 0", "b:1 0", "a:2 20", "a:1 0", "b:2 22", "a:2 5", "b:3 30"]
    );
}

#[test]
fn arrivals_that_wait_in_vain_are_let_through_and_marked() {
    let a = vec![at(1, 0, arrived("b", 7)), at(2, 5, sent())];
    let b = vec![at(1, 0, point()), at(2, 1, point())];
    assert_eq!(order(&[("a", a), ("b", b)]), ["b:1 0", "b:2 1", "a:1 0 absent", "a:2 5"]);
    let a = vec![at(1, 0, point()), at(2, 5, sent())];
    let b = vec![at(1, 0, arrived("a", 2))];
    let mut other = arrived("a", 2);
    if let EventKind::CallArrived { method, .. } = &mut other {
        *method = MethodName::new("S.n").unwrap();
    }
    let c = vec![at(1, 0, other)];
    assert_eq!(order(&[("a", a), ("b", b), ("c", c)]), ["a:1 0", "a:2 5", "b:1 0", "c:1 0 other"]);
    // They wait for each other.
    let a = vec![at(1, 0, arrived("b", 2)), at(2, 5, sent())];
    let b = vec![at(1, 0, arrived("a", 2)), at(2, 5, sent())];
    assert_eq!(order(&[("a", a), ("b", b)]), ["a:1 0 later", "a:2 5", "b:1 0", "b:2 5"]);
}
