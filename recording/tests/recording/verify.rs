//! A sound recording is found sound, and each thing that can be wrong is found.

use std::fs;

use ddbx_protocol::{EventId, EventKind, EventNumber, ProcessName};
use ddbx_recording::{Entry, Finding, Gap, Moment, Recording, Tail, Verification, Why, verify};

use crate::directory::record;
use crate::traffic::{Controls, shop};

const GATEWAY: usize = 1;
const ORDERS: usize = 2;

type Logs = Vec<(ProcessName, Vec<Entry>)>;

fn check(spoil: impl FnOnce(&mut Logs)) -> Verification {
    let temporary = tempfile::tempdir().unwrap();
    let logs = shop(5, 4, 10, Controls::Named).into_iter();
    let mut logs: Logs = logs
        .map(|(name, moments)| (name, moments.into_iter().map(Entry::Event).collect()))
        .collect();
    spoil(&mut logs);
    for (name, entries) in logs {
        record(temporary.path(), &name, entries);
    }
    verify(&Recording::open(temporary.path()).unwrap())
}

fn moment(entry: &mut Entry) -> &mut Moment {
    match entry {
        Entry::Event(moment) => moment,
        other => panic!("{other:?} is no event"),
    }
}

/// The index of the first event of this kind.
fn first(entries: &mut [Entry], is: impl Fn(&EventKind) -> bool) -> usize {
    entries.iter_mut().position(|entry| is(&moment(entry).kind)).unwrap()
}

fn is_call_sent(kind: &EventKind) -> bool {
    matches!(kind, EventKind::CallSent { .. })
}

fn is_call_arrived(kind: &EventKind) -> bool {
    matches!(kind, EventKind::CallArrived { .. })
}

#[test]
fn the_shop_is_sound() {
    let found = check(|_| {});
    assert!(found.findings.is_empty(), "{:?}", found.findings);
    assert_eq!(found.logs.len(), 6);
    for log in &found.logs {
        assert_eq!(log.range, Some((EventNumber(1), EventNumber(log.events))));
        assert_eq!((log.gaps, log.tail), (0, Some(Tail::Closed)));
    }
}

#[test]
fn an_event_that_is_not_there_is_missed_twice() {
    let found = check(|logs| {
        let at = first(&mut logs[GATEWAY].1, is_call_sent);
        logs[GATEWAY].1.remove(at);
    });
    let is_known =
        |finding: &Finding| matches!(finding, Finding::Jump { .. } | Finding::NoDeparture { .. });
    assert_eq!(found.findings.len(), 2, "{:?}", found.findings);
    assert!(found.findings.iter().all(is_known) && !found.is_sound());
}

#[test]
fn a_gap_explains_it() {
    let found = check(|logs| {
        let at = first(&mut logs[GATEWAY].1, is_call_sent);
        logs[GATEWAY].1[at] = Entry::Gap(Gap { missing: 1, why: Why::QueueFull });
    });
    let [Finding::Gap(lost), Finding::DepartureLost { departure, .. }] = &found.findings[..] else {
        panic!("{:?}", found.findings);
    };
    assert_eq!(lost.after.0 + 1, departure.number.0);
    let sentence = format!(
        "1 entry is missing after gateway:{} (the program was faster than its recorder)",
        lost.after.0
    );
    assert_eq!(lost.to_string(), sentence);
    assert!(found.is_sound());
    assert_eq!(found.logs.iter().map(|log| log.missing).sum::<u64>(), 1);
}

#[test]
fn so_does_a_process_that_did_not_record() {
    let found = check(|logs| drop(logs.remove(GATEWAY)));
    assert!(!found.findings.is_empty() && found.is_sound(), "{:?}", found.findings);
}

#[test]
fn numbers_must_rise() {
    let found = check(|logs| {
        let last = logs[ORDERS].1.last().unwrap().clone();
        logs[ORDERS].1.push(last);
    });
    assert!(matches!(found.findings[..], [Finding::NotRising { .. }]), "{:?}", found.findings);
}

#[test]
fn an_arrival_must_name_its_own_departure() {
    let found = check(|logs| {
        let at = first(&mut logs[ORDERS].1, is_call_arrived);
        let EventKind::CallArrived { call, .. } = &mut moment(&mut logs[ORDERS].1[at]).kind else {
            panic!("not an arrival");
        };
        call.path = call.path.child(1);
    });
    assert!(matches!(found.findings[..], [Finding::OtherDeparture { .. }]), "{:?}", found.findings);
}

#[test]
fn nothing_arrives_before_it_was_sent() {
    // The gateway's first call is answered to itself: it waits for its own future.
    let found = check(|logs| {
        let gateway = &mut logs[GATEWAY].1;
        let (arrives, sends) = (first(gateway, is_call_arrived), first(gateway, is_call_sent));
        assert!(arrives < sends);
        let process = ProcessName::new("gateway").unwrap();
        let number = moment(&mut gateway[sends]).number;
        let EventKind::CallArrived { sent_as, .. } = &mut moment(&mut gateway[arrives]).kind else {
            panic!("not an arrival");
        };
        *sent_as = Some(EventId { process, number });
    });
    let [Finding::BeforeDeparture { arrival, departure }] = &found.findings[..] else {
        panic!("{:?}", found.findings);
    };
    assert!(arrival.number < departure.number);
}

#[test]
fn damage_and_its_consequences_are_told_apart() {
    let temporary = tempfile::tempdir().unwrap();
    for (name, moments) in shop(5, 4, 10, Controls::Named) {
        record(temporary.path(), &name, moments.into_iter().map(Entry::Event));
    }
    let path = temporary.path().join("gateway@1/000001.log");
    let bytes = fs::read(&path).unwrap();
    let recording = Recording::open(temporary.path()).unwrap();

    let mut changed = bytes.clone();
    changed[60] ^= 1;
    fs::write(&path, changed).unwrap();
    let found = verify(&recording);
    let wrong: Vec<_> = found.findings.iter().filter(|finding| finding.is_wrong()).collect();
    assert!(matches!(wrong[..], [Finding::Unreadable(_)]), "{wrong:?}");
    assert!(found.findings.len() > 1, "departures were lost with it");

    fs::write(&path, &bytes[..bytes.len() - 30]).unwrap();
    let found = verify(&recording);
    assert!(found.is_sound());
    assert!(found.logs.iter().any(|log| matches!(log.tail, Some(Tail::Torn(_)))));
}
