//! One order of the whole run.

use std::collections::BTreeSet;
use std::time::Duration;

use ddbx_protocol::{
    CallId, CallPath, ControlId, Delay, EventId, EventKind, EventNumber, MethodName, PointLabel,
    ProcessName, RealTime,
};
use ddbx_recording::{
    Choice, ChoiceValue, Departure, Entry, Finding, Gap, Moment, Recording, Step, Why, merged,
    verify,
};

use crate::directory::record;
use crate::traffic::{Controls, shop};

#[test]
fn all_of_it_in_the_order_of_each_log_and_nothing_before_it_was_sent() {
    let longest = in_one_order(10);
    assert!(longest < 512, "{longest}: read in one piece");
}

#[test]
fn the_same_of_logs_that_are_read_ahead() {
    let longest = in_one_order(500);
    assert!(longest > 4 * 512, "{longest}: read in several pieces");
}

/// How many events the longest log has.
fn in_one_order(purchases: u32) -> usize {
    let temporary = tempfile::tempdir().unwrap();
    let logs = shop(5, 4, purchases, Controls::Named);
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
    logs.iter().map(|(_, moments)| moments.len()).max().unwrap()
}

fn at(number: u64, millis: i64, kind: EventKind) -> Entry {
    let at = RealTime::from_nanos(millis * 1_000_000);
    Entry::Event(Moment {
        number: EventNumber(number),
        at,
        delay: Delay::ZERO,
        kind,
        payload: None,
    })
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

/// Of the control's nth call.
fn nth(mut kind: EventKind, nth: u32) -> EventKind {
    match &mut kind {
        EventKind::CallSent { call, .. } | EventKind::CallArrived { call, .. } => {
            call.path = CallPath::root(nth);
        }
        other => panic!("{other:?} is no call"),
    }
    kind
}

#[test]
fn of_departures_of_one_name_the_one_that_fits_is_meant() {
    let first = vec![at(1, 0, nth(sent(), 1))];
    let again = vec![at(1, 0, point()), at(2, 50, point()), at(3, 50, nth(sent(), 3))];
    let (one, three) = (nth(arrived("a", 1), 1), nth(arrived("a", 3), 3));
    let b = vec![at(1, 0, point()), at(2, 1, one), at(3, 2, three), at(4, 3, point())];
    assert_eq!(
        order(&[("a", first), ("a", again), ("b", b)]),
        ["a:1 0", "a:1 0", "b:1 0", "b:2 1", "a:2 50", "a:3 50", "b:3 2", "b:4 3"]
    );
    // The first one is over when the second comes, and is not that.
    let first = vec![at(1, 0, nth(sent(), 1))];
    let again = vec![at(1, 40, nth(sent(), 2))];
    let b = vec![at(1, 0, nth(arrived("a", 1), 2)), at(2, 1, nth(arrived("a", 1), 3))];
    assert_eq!(
        order(&[("a", first), ("a", again), ("b", b)]),
        ["a:1 0", "a:1 0", "b:1 0", "b:2 1 other"]
    );
}

/// A process was killed before it wrote its last events, and started again. Whoever has
/// heard of them does not wait for events that have their names by chance.
#[test]
fn what_a_killed_process_did_last_is_lost_and_not_expected_of_the_next() {
    let first = vec![at(1, 0, nth(sent(), 1)), Entry::Gap(Gap { missing: 1, why: Why::DiskFull })];
    let again = vec![at(1, 0, nth(arrived("b", 2), 1)), at(2, 5, nth(sent(), 5))];
    let b = vec![at(1, 0, nth(arrived("a", 2), 2)), at(2, 5, nth(sent(), 1))];
    assert_eq!(
        order(&[("a", first.clone()), ("a", again.clone()), ("b", b.clone())]),
        ["a:1 0", "a:- 0", "b:1 0 absent", "b:2 5", "a:1 0", "a:2 5"]
    );
    // If it comes later after all, that is found out.
    let comes = vec![again[0].clone(), at(2, 5, nth(sent(), 2))];
    let temporary = tempfile::tempdir().unwrap();
    for (name, entries) in [("a", &first), ("a", &comes), ("b", &b)] {
        record(temporary.path(), &ProcessName::new(name).unwrap(), entries.clone());
    }
    let found = verify(&Recording::open(temporary.path()).unwrap()).findings;
    let [Finding::Gap(_), Finding::BeforeDeparture { arrival, .. }] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(arrival.to_string(), "b:1");
    // Without a loss somebody must be wrong.
    let first = vec![first[0].clone()];
    let order = order(&[("a", first), ("a", again), ("b", b)]);
    assert_eq!(order, ["a:1 0", "a:1 0 later", "a:2 5", "b:1 0 other", "b:2 5"]);
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
